//! Layers of experts: their cases, weights and f64 answers.

use crate::Rng;
use tilewise::moe::{MoeLayer, Router, Scoring};
use tilewise::{
    Activation, Context, DType, Precision, QuantizedTensor, RightOperand, Shards, Tensor,
};
use tilewise_core::quant::{dequantize, quantize};
use tilewise_core::{Format, convert};
use tilewise_oracle::any_error;
use tilewise_oracle::moe::{Choice, Ffn, Layer, Stack};

/// Random numbers that a type can hold.
pub fn numbers(rng: &mut Rng, dtype: DType, count: usize, spread: f32) -> Vec<f32> {
    (0..count).map(|_| convert::round(dtype, spread * rng.number())).collect()
}

/// The numbers in f64.
pub fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&x| x.into()).collect()
}

/// A tensor of any type of floats.
pub fn upload(context: &Context, dtype: DType, numbers: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_bytes(context, dtype, &convert::encode(dtype, numbers), shape).unwrap()
}

/// A stack \[groups, n, k\], or a matrix if there are no groups.
pub struct Held {
    groups: Option<usize>,
    size: [usize; 2],
    numbers: Vec<f32>,
    format: Format,
    wide: Vec<f64>,
    errors: Option<Vec<f64>>,
    /// N numbers for each matrix, of the type of x.
    bias: Option<Vec<f64>>,
}

impl Held {
    /// Random weights of a type or format, for an input of type `x`.
    pub fn new(
        rng: &mut Rng,
        of: &str,
        groups: Option<usize>,
        [n, k]: [usize; 2],
        x: DType,
    ) -> Self {
        let count = groups.unwrap_or(1) * n * k;
        let dense = DType::FLOATS.into_iter().find(|dtype| dtype.name() == of);
        if let Some(dtype) = dense {
            let numbers = numbers(rng, dtype, count, 0.5);
            let (wide, format) = (wide(&numbers), Format::Dense(dtype));
            return Held { groups, size: [n, k], numbers, format, wide, errors: None, bias: None };
        }
        let format = of.parse().unwrap();
        let numbers = numbers(rng, DType::F32, count, 0.5);
        let all = quantize(&numbers, groups.unwrap_or(1) * n, k, format).unwrap();
        let types = if x == DType::F32 { vec![] } else { vec![x, DType::F16] };
        let errors = any_error(&all, &types);
        let (wide, format) = (wide(&dequantize(&all)), Format::Quantized(format));
        Held { groups, size: [n, k], numbers, format, wide, errors: Some(errors), bias: None }
    }

    /// The stack for the oracle.
    pub fn stack(&self) -> Stack<'_> {
        let (errors, bias) = (self.errors.as_deref(), self.bias.as_deref());
        Stack { values: &self.wide, errors, format: self.format, bias }
    }

    /// Uploads the stack.
    pub fn on(&self, context: &Context) -> RightOperand {
        let [n, k] = self.size;
        match self.format {
            Format::Dense(dtype) => {
                let shape: Vec<usize> = self.groups.into_iter().chain(self.size).collect();
                upload(context, dtype, &self.numbers, &shape).into()
            }
            Format::Quantized(format) => {
                let matrix = |numbers: &[f32]| quantize(numbers, n, k, format).unwrap();
                let all: Vec<_> = self.numbers.chunks(n * k).map(matrix).collect();
                match self.groups {
                    Some(_) => QuantizedTensor::upload_groups(context, &all).unwrap().into(),
                    None => QuantizedTensor::upload(context, &all[0]).unwrap().into(),
                }
            }
        }
    }

    /// The matrices of a stack in shards: the first by itself, and the others as a stack or one by
    /// one.
    pub fn in_shards(&self, context: &Context) -> RightOperand {
        let shards = match self.on(context) {
            RightOperand::Dense(w) => {
                let part = |first: usize, count: usize| w.narrow(0, first, count).unwrap();
                Shards::new([part(0, 1).squeeze(0).unwrap(), part(1, w.shape()[0] - 1)])
            }
            RightOperand::Quantized(w) => {
                Shards::new((0..w.shape()[0]).map(|at| w.get(at).unwrap()))
            }
            other => Shards::new([other]),
        };
        shards.unwrap().into()
    }

    /// The biases, \[groups, n\], uploaded.
    fn bias_on(&self, context: &Context, dtype: DType) -> Option<Tensor> {
        let numbers: Vec<f32> = self.bias.as_ref()?.iter().map(|&x| x as f32).collect();
        Some(upload(context, dtype, &numbers, &[self.groups?, self.size[0]]))
    }

    /// A stack whose matrices have the rows of both stacks, one by one if they alternate.
    fn with(&self, other: &Held, alternate: bool) -> Held {
        let [n, k] = self.size;
        Held {
            groups: self.groups,
            size: [2 * n, k],
            numbers: joined(&self.numbers, &other.numbers, if alternate { k } else { n * k }),
            format: self.format,
            wide: Vec::new(),
            errors: None,
            bias: self
                .bias
                .as_ref()
                .zip(other.bias.as_ref())
                .map(|(one, other)| joined(one, other, if alternate { 1 } else { n })),
        }
    }
}

/// Parts of two lists by turns.
fn joined<T: Copy>(one: &[T], other: &[T], size: usize) -> Vec<T> {
    let pairs = one.chunks(size).zip(other.chunks(size));
    pairs.flat_map(|(one, other)| [one, other].concat()).collect()
}

/// Weights of gate, up and down.
pub struct Experts([Held; 3]);

impl Experts {
    fn new(rng: &mut Rng, of: &str, groups: Option<usize>, [f, h]: [usize; 2], x: DType) -> Self {
        Experts([[f, h], [f, h], [h, f]].map(|size| Held::new(rng, of, groups, size, x)))
    }

    fn ffn(&self) -> Ffn<'_> {
        let [gate, up, down] = self.0.each_ref().map(Held::stack);
        Ffn { f: self.0[0].size[0], gate, up, down }
    }
}

/// A layer and its call.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    /// Rows of the input.
    pub tokens: usize,
    /// Experts to choose from.
    pub experts: usize,
    /// Experts of a token.
    pub k: usize,
    /// Size of the hidden rows.
    pub f: usize,
    /// Size of the rows of the input.
    pub h: usize,
    /// Type of the input.
    pub dtype: DType,
    /// Type or format of the weights.
    pub weights: &'static str,
    /// Whether gate and up are one stack.
    pub fused: bool,
    /// Whether their rows alternate there.
    pub interleaved: bool,
    /// Whether the experts have biases.
    pub biases: bool,
    /// F of the shared experts.
    pub shared: Option<usize>,
    /// How the router scores.
    pub scoring: Scoring,
    /// Whether the router normalizes; the router's own choice if absent.
    pub normalize: Option<bool>,
    /// The router's factor.
    pub scale: f32,
    /// Whether the router has a bias.
    pub bias: bool,
    /// How many groups of experts there are, and from how many of them a token chooses.
    pub groups: [usize; 2],
    /// Function of the gate.
    pub activation: Activation,
    /// Alpha and limit of the function in its place.
    pub swiglu_oai: Option<[f32; 2]>,
    /// The expert that every token chooses first.
    pub crowded: bool,
    /// Whether the experts' weights come in shards.
    pub sharded: bool,
}

/// A small layer with nothing special.
pub const PLAIN: Case = Case {
    tokens: 7,
    experts: 5,
    k: 2,
    f: 9,
    h: 13,
    dtype: DType::F32,
    weights: "f32",
    fused: false,
    interleaved: false,
    biases: false,
    shared: None,
    scoring: Scoring::Softmax,
    normalize: None,
    scale: 1.0,
    bias: false,
    groups: [1, 1],
    activation: Activation::Silu,
    swiglu_oai: None,
    crowded: false,
    sharded: false,
};

/// A layer whose sizes quantized formats take.
pub const FEW_BITS: Case = Case { f: 64, h: 128, tokens: 5, experts: 3, ..PLAIN };

/// Every setting of a layer by itself and with others, and every kind of weights.
pub fn cases() -> Vec<Case> {
    let sigmoid = Case { scoring: Scoring::Sigmoid, ..PLAIN };
    let half = Case { dtype: DType::F16, weights: "f16", f: 16, h: 32, ..PLAIN };
    let bf16 = Case { dtype: DType::BF16, weights: "bf16", ..half };
    // Limits are so low that they matter here.
    let small =
        Case { biases: true, swiglu_oai: Some([1.702, 7.0]), dtype: DType::BF16, ..FEW_BITS };
    let oss = Case { biases: true, swiglu_oai: Some([1.702, 0.5]), ..bf16 };
    vec![
        PLAIN,
        Case { tokens: 0, ..PLAIN },
        Case { tokens: 1, k: 3, ..PLAIN },
        Case { sharded: true, shared: Some(3), ..PLAIN },
        Case { tokens: 64, crowded: true, ..PLAIN },
        Case { experts: 1, k: 1, ..PLAIN },
        Case { k: 5, fused: true, ..PLAIN },
        Case { k: 1, h: 1, f: 1, ..PLAIN },
        Case { experts: 300, k: 8, tokens: 3, ..PLAIN },
        Case { normalize: Some(false), shared: Some(6), ..PLAIN },
        Case { bias: true, ..PLAIN },
        Case { bias: true, normalize: Some(true), scale: 2.5, ..sigmoid },
        Case { activation: Activation::Gelu, shared: Some(3), ..sigmoid },
        Case { activation: Activation::GeluErf, normalize: Some(true), fused: true, ..sigmoid },
        Case { activation: Activation::Relu, ..PLAIN },
        Case { activation: Activation::None, fused: true, ..PLAIN },
        Case { experts: 12, groups: [4, 2], k: 3, bias: true, scale: 2.5, ..sigmoid },
        Case { biases: true, ..PLAIN },
        Case { biases: true, tokens: 2, sharded: true, activation: Activation::Relu, ..half },
        Case { biases: true, shared: Some(4), swiglu_oai: Some([1.702, 7.0]), ..PLAIN },
        Case { fused: true, tokens: 1, k: 4, ..oss },
        Case { fused: true, interleaved: true, f: 15, h: 31, ..oss },
        Case { fused: true, interleaved: true, weights: "mxfp4", ..small },
        Case { shared: Some(8), ..half },
        Case { tokens: 0, shared: Some(8), fused: true, ..half },
        Case { fused: true, ..bf16 },
        Case { shared: Some(24), f: 15, h: 31, ..bf16 },
        Case { dtype: DType::F16, ..PLAIN },
        Case { weights: "affine-4bit-g64-f16", shared: Some(64), ..FEW_BITS },
        Case { weights: "affine-4bit-g64-bf16", dtype: DType::BF16, fused: true, ..FEW_BITS },
        Case { weights: "q8_0", dtype: DType::F16, tokens: 64, crowded: true, ..FEW_BITS },
        Case { weights: "mxfp4", tokens: 1, ..FEW_BITS },
        Case { weights: "mxfp4", dtype: DType::F16, sharded: true, fused: true, ..FEW_BITS },
    ]
}

/// The operands of a case on the host.
pub struct Operands {
    /// The case.
    pub case: Case,
    /// The input.
    pub x: Vec<f32>,
    /// The numbers by which the router chooses.
    pub logits: Vec<f32>,
    /// Its bias, which some cases use.
    pub bias: Vec<f32>,
    /// The experts to choose from.
    pub own: Experts,
    /// The experts that every token meets.
    pub shared: Option<Experts>,
}

impl Operands {
    /// Random operands.
    pub fn new(case: Case, seed: u64) -> Self {
        let Case { tokens, experts, f, h, dtype, weights, .. } = case;
        let rng = &mut Rng::new(seed);
        let mut logits = numbers(rng, DType::F32, tokens * experts, 4.0);
        if case.crowded {
            logits.chunks_mut(experts).for_each(|row| row[experts / 2] = 9.0);
        }
        let mut operands = Operands {
            case,
            x: numbers(rng, dtype, tokens * h, 1.0),
            logits,
            bias: numbers(rng, DType::F32, experts, 0.5),
            own: Experts::new(rng, weights, Some(experts), [f, h], dtype),
            shared: case.shared.map(|f| Experts::new(rng, weights, None, [f, h], dtype)),
        };
        if case.biases {
            for held in &mut operands.own.0 {
                held.bias = Some(wide(&numbers(rng, dtype, experts * held.size[0], 1.0)));
            }
        }
        operands
    }

    /// The layer, with its weights uploaded.
    pub fn layer(&self, context: &Context) -> MoeLayer {
        let Case { k, scoring, normalize, activation, fused, interleaved, dtype, .. } = self.case;
        let mut router = Router::new(k).scoring(scoring).scale(self.case.scale);
        if let Some(normalize) = normalize {
            router = router.normalize(normalize);
        }
        if self.case.bias {
            router = router.bias(&upload(context, DType::F32, &self.bias, &[self.bias.len()]));
        }
        let own = |held: &Held| match self.case.sharded {
            true => held.in_shards(context),
            false => held.on(context),
        };
        let both = |experts: &Experts, alternate| experts.0[0].with(&experts.0[1], alternate);
        let [n_group, topk_group] = self.case.groups;
        let router = router.groups(n_group, topk_group);
        let [gate, up, down] = self.own.0.each_ref().map(own);
        let fused_own = both(&self.own, interleaved);
        let mut layer = match (fused, interleaved) {
            (true, false) => MoeLayer::fused(own(&fused_own), down, router),
            (true, true) => MoeLayer::interleaved(own(&fused_own), down, router),
            (false, _) => MoeLayer::new(gate, up, down, router),
        };
        layer = layer.activation(activation);
        if let Some([alpha, limit]) = self.case.swiglu_oai {
            layer = layer.swiglu_oai(alpha, limit);
        }
        if self.case.biases {
            let [gate, up, down] = &self.own.0;
            let held = if fused { vec![&fused_own, down] } else { vec![gate, up, down] };
            let all = held.into_iter().map(|held| held.bias_on(context, dtype));
            layer = layer.biases(&all.collect::<Option<Vec<_>>>().unwrap());
        }
        let Some(shared) = &self.shared else { return layer };
        let [gate, up, down] = shared.0.each_ref().map(|held| held.on(context));
        match fused {
            true => layer.shared_fused(both(shared, false).on(context), down),
            false => layer.shared(gate, up, down),
        }
    }

    /// The input and the logits, uploaded.
    pub fn on(&self, context: &Context) -> [Tensor; 2] {
        let Case { tokens, experts, h, dtype, .. } = self.case;
        [
            upload(context, dtype, &self.x, &[tokens, h]),
            upload(context, DType::F32, &self.logits, &[tokens, experts]),
        ]
    }

    /// Reads an output and compares it with the oracle's.
    ///
    /// # Errors
    /// The first number that is too far off, or the error of the read.
    pub async fn check(&self, y: &Tensor) -> Result<(), String> {
        let Case { h, experts, k, scoring, dtype, activation, .. } = self.case;
        let bias = wide(&self.bias);
        let layer = Layer {
            dtype,
            h,
            experts,
            choice: Choice {
                k,
                scoring,
                normalize: self.case.normalize.unwrap_or(scoring == Scoring::Softmax),
                scale: f64::from(self.case.scale),
                bias: self.case.bias.then_some(&bias),
                groups: self.case.groups,
            },
            activation,
            swiglu_oai: self.case.swiglu_oai.map(|numbers| numbers.map(f64::from)),
            precision: Precision::F32,
            own: self.own.ffn(),
            shared: self.shared.as_ref().map(Experts::ffn),
        };
        let wanted = layer.forward(&wide(&self.x), &wide(&self.logits), y.dtype());
        assert!(wanted.error.iter().all(|error| error.is_finite()), "{:?}", self.case);
        let got = y.read_f32().await.map_err(|error| error.to_string())?;
        let wrong = |wrong| format!("{:?}, {:?}: {wrong}", self.case, y.context());
        wanted.check(&wide(&got), y.dtype()).map(drop).map_err(wrong)
    }
}
