//! Mixture of experts against its f64 oracle, on every adapter and the CPU executor.

mod errors;
mod gather;
mod routes;
mod routing;

use tilewise::moe::reference::{Choice, Ffn, Layer, Stack};
use tilewise::moe::{Router, Scoring};
use tilewise::planner::Grouping;
use tilewise::{
    Activation, Context, DType, MoeLayer, Precision, QuantizedTensor, Result, RightOperand, Shards,
    Tensor,
};
use tilewise_core::quant::{dequantize, quantize};
use tilewise_core::{Format, convert};
use tilewise_tests::{Rng, adapters, contexts, minima};

/// Random numbers, as a type holds them.
pub(crate) fn numbers(rng: &mut Rng, dtype: DType, count: usize, spread: f32) -> Vec<f32> {
    (0..count).map(|_| convert::round(dtype, spread * rng.number())).collect()
}

pub(crate) fn wide(numbers: &[f32]) -> Vec<f64> {
    numbers.iter().map(|&x| x.into()).collect()
}

/// A tensor of any type of floats.
pub(crate) fn upload(context: &Context, dtype: DType, numbers: &[f32], shape: &[usize]) -> Tensor {
    Tensor::from_bytes(context, dtype, &convert::encode(dtype, numbers), shape).unwrap()
}

/// A stack \[groups, n, k\], or a matrix where there are no groups.
pub(crate) struct Held {
    groups: Option<usize>,
    size: [usize; 2],
    numbers: Vec<f32>,
    format: Format,
    wide: Vec<f64>,
    errors: Option<Vec<f64>>,
}

impl Held {
    fn new(rng: &mut Rng, of: &str, groups: Option<usize>, [n, k]: [usize; 2], x: DType) -> Self {
        let count = groups.unwrap_or(1) * n * k;
        let dense = DType::FLOATS.into_iter().find(|dtype| dtype.name() == of);
        if let Some(dtype) = dense {
            let numbers = numbers(rng, dtype, count, 0.5);
            let (wide, format) = (wide(&numbers), Format::Dense(dtype));
            return Held { groups, size: [n, k], numbers, format, wide, errors: None };
        }
        let format = of.parse().unwrap();
        let numbers = numbers(rng, DType::F32, count, 0.5);
        let all = quantize(&numbers, groups.unwrap_or(1) * n, k, format).unwrap();
        let types = if x == DType::F32 { vec![] } else { vec![x, DType::F16] };
        let errors = all.rounded_error(&types).into_iter().zip(all.summed_error());
        let errors = errors.map(|(rounded, summed)| rounded.max(summed)).collect();
        let (wide, format) = (wide(&dequantize(&all)), Format::Quantized(format));
        Held { groups, size: [n, k], numbers, format, wide, errors: Some(errors) }
    }

    fn stack(&self) -> Stack<'_> {
        Stack { values: &self.wide, errors: self.errors.as_deref(), format: self.format }
    }

    fn on(&self, context: &Context) -> RightOperand {
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

    /// The matrices of a stack in shards: the first alone, and the others as a stack or each alone.
    fn in_shards(&self, context: &Context) -> RightOperand {
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

    /// The rows of two stacks, matrix by matrix.
    fn above(&self, other: &Held) -> Held {
        let size = self.size[0] * self.size[1];
        let pairs = self.numbers.chunks(size).zip(other.numbers.chunks(size));
        Held {
            groups: self.groups,
            size: [2 * self.size[0], self.size[1]],
            numbers: pairs.flat_map(|(one, other)| [one, other].concat()).collect(),
            format: self.format,
            wide: Vec::new(),
            errors: None,
        }
    }
}

/// Gate, up and down.
pub(crate) struct Experts(pub(crate) [Held; 3]);

impl Experts {
    fn new(rng: &mut Rng, of: &str, groups: Option<usize>, [f, h]: [usize; 2], x: DType) -> Self {
        Experts([[f, h], [f, h], [h, f]].map(|size| Held::new(rng, of, groups, size, x)))
    }

    pub(crate) fn ffn(&self) -> Ffn<'_> {
        let [gate, up, down] = self.0.each_ref().map(Held::stack);
        Ffn { f: self.0[0].size[0], gate, up, down }
    }
}

/// A layer and its call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) tokens: usize,
    pub(crate) experts: usize,
    pub(crate) k: usize,
    pub(crate) f: usize,
    pub(crate) h: usize,
    pub(crate) dtype: DType,
    /// Type or format of the weights.
    pub(crate) weights: &'static str,
    pub(crate) fused: bool,
    /// F of the shared experts.
    pub(crate) shared: Option<usize>,
    pub(crate) scoring: Scoring,
    pub(crate) normalize: Option<bool>,
    pub(crate) scale: f32,
    pub(crate) bias: bool,
    pub(crate) activation: Activation,
    /// The expert that every token chooses first.
    pub(crate) crowded: bool,
    /// Whether the experts' weights come in shards.
    pub(crate) sharded: bool,
}

pub(crate) const PLAIN: Case = Case {
    tokens: 7,
    experts: 5,
    k: 2,
    f: 9,
    h: 13,
    dtype: DType::F32,
    weights: "f32",
    fused: false,
    shared: None,
    scoring: Scoring::Softmax,
    normalize: None,
    scale: 1.0,
    bias: false,
    activation: Activation::Silu,
    crowded: false,
    sharded: false,
};

/// Of sizes that quantized formats take.
const FEW_BITS: Case = Case { f: 64, h: 128, tokens: 5, experts: 3, ..PLAIN };

fn cases() -> Vec<Case> {
    let sigmoid = Case { scoring: Scoring::Sigmoid, ..PLAIN };
    let half = Case { dtype: DType::F16, weights: "f16", f: 16, h: 32, ..PLAIN };
    let bf16 = Case { dtype: DType::BF16, weights: "bf16", ..half };
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
pub(crate) struct Operands {
    pub(crate) case: Case,
    pub(crate) x: Vec<f32>,
    pub(crate) logits: Vec<f32>,
    bias: Vec<f32>,
    pub(crate) own: Experts,
    shared: Option<Experts>,
}

impl Operands {
    pub(crate) fn new(case: Case, seed: u64) -> Self {
        let Case { tokens, experts, f, h, dtype, weights, .. } = case;
        let rng = &mut Rng::new(seed);
        let mut logits = numbers(rng, DType::F32, tokens * experts, 4.0);
        if case.crowded {
            logits.chunks_mut(experts).for_each(|row| row[experts / 2] = 9.0);
        }
        Operands {
            case,
            x: numbers(rng, dtype, tokens * h, 1.0),
            logits,
            bias: numbers(rng, DType::F32, experts, 0.5),
            own: Experts::new(rng, weights, Some(experts), [f, h], dtype),
            shared: case.shared.map(|f| Experts::new(rng, weights, None, [f, h], dtype)),
        }
    }

    pub(crate) fn layer(&self, context: &Context) -> MoeLayer {
        let Case { k, scoring, normalize, activation, fused, .. } = self.case;
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
        let both = |experts: &Experts| experts.0[0].above(&experts.0[1]);
        let [gate, up, down] = self.own.0.each_ref().map(own);
        let layer = match fused {
            true => MoeLayer::fused(own(&both(&self.own)), down, router),
            false => MoeLayer::new(gate, up, down, router),
        };
        let layer = layer.activation(activation);
        let Some(shared) = &self.shared else { return layer };
        let [gate, up, down] = shared.0.each_ref().map(|held| held.on(context));
        match fused {
            true => layer.shared_fused(both(shared).on(context), down),
            false => layer.shared(gate, up, down),
        }
    }

    pub(crate) fn on(&self, context: &Context) -> [Tensor; 2] {
        let Case { tokens, experts, h, dtype, .. } = self.case;
        [
            upload(context, dtype, &self.x, &[tokens, h]),
            upload(context, DType::F32, &self.logits, &[tokens, experts]),
        ]
    }

    /// Fails where an output is further off than it may be.
    fn check(&self, y: &Tensor) {
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
            },
            activation,
            precision: Precision::F32,
            own: self.own.ffn(),
            shared: self.shared.as_ref().map(Experts::ffn),
        };
        let wanted = layer.forward(&wide(&self.x), &wide(&self.logits), y.dtype());
        assert!(wanted.error.iter().all(|error| error.is_finite()), "{:?}", self.case);
        let got = wide(&y.read_f32_blocking().unwrap());
        let context = y.context();
        if let Err(wrong) = wanted.check(&got, y.dtype()) {
            panic!("{:?}, {context:?}: {wrong}", self.case);
        }
    }
}

#[test]
fn the_layer_is_right() {
    for (turn, context) in contexts().into_iter().enumerate() {
        for (seed, case) in cases().into_iter().enumerate() {
            // Compiling is what takes time: the first cases, and every other one.
            if !context.is_cpu() && seed > 6 && seed % 2 != turn % 2 {
                continue;
            }
            let operands = Operands::new(case, seed as u64);
            let [x, logits] = operands.on(&context);
            let y = operands.layer(&context).forward(&x, &logits).unwrap();
            assert_eq!(y.dtype(), case.dtype);
            operands.check(&y);
        }
    }
}

/// A device with no more than Vulkan requires decodes weights before it multiplies them.
#[test]
fn the_smallest_device() {
    for adapter in adapters() {
        let context = adapter.with_limits(|limits| minima::lower(limits, &minima::vulkan()));
        for tokens in [2, 40] {
            let case = Case { tokens, weights: "affine-4bit-g64-f16", ..FEW_BITS };
            let operands = Operands::new(case, 5);
            let [x, logits] = operands.on(&context);
            operands.check(&operands.layer(&context).forward(&x, &logits).unwrap());
        }
    }
}

/// The same bits from every way to call it, whatever was computed before.
#[test]
fn calls_are_alike() -> Result<()> {
    for context in contexts() {
        for case in [Case { tokens: 9, shared: Some(6), ..PLAIN }, Case { fused: true, ..PLAIN }] {
            let operands = Operands::new(case, 3);
            let layer = operands.layer(&context);
            let [x, logits] = operands.on(&context);
            let bits = |y: &Tensor| y.read_bytes_blocking().unwrap();
            let y = layer.forward(&x, &logits)?;
            operands.check(&y);
            let wanted = bits(&y);
            assert_eq!(bits(&layer.forward(&x, &logits)?), wanted);
            // Rows whose elements do not follow each other are copied.
            let turned = x.t().contiguous()?.t();
            assert_eq!(bits(&layer.forward(&turned, &logits)?), wanted);
            // The rows of one token are not sorted.
            let one = [&x, &logits].map(|all| all.narrow(0, 0, 1).unwrap());
            let named = |[x, logits]: [&Tensor; 2]| {
                let grouping = layer.plans(x, logits).unwrap()[0].problem.grouping;
                matches!(grouping, Grouping::Indexed { .. })
            };
            assert!(named(one.each_ref()) && !named([&x, &logits]));
            // Fewer tokens on the same memory, and again all of them.
            let few = [&x, &logits].map(|all| all.narrow(0, 2, 4).unwrap());
            let fresh = operands.layer(&context).forward(&few[0], &few[1])?;
            assert_eq!(bits(&layer.forward(&few[0], &few[1])?), bits(&fresh));
            assert_eq!(bits(&layer.clone().forward(&x, &logits)?), wanted);
            // Into a view, with nothing written beside it.
            let [t, h] = [case.tokens, case.h];
            let all = upload(&context, DType::F32, &vec![7.0; (t + 2) * (h + 3)], &[t + 2, h + 3]);
            let out = all.slice(&[1..t + 1, 2..h + 2])?;
            layer.forward_into(&x, &logits, &out)?;
            assert_eq!(bits(&out), wanted);
            let around = all.read_blocking::<f32>()?;
            let sevens = around.iter().filter(|y| **y == 7.0).count();
            assert_eq!(sevens, (t + 2) * (h + 3) - t * h, "{context:?}");
            let columns = Tensor::zeros(&context, DType::F32, &[h, t])?.t();
            layer.forward_into(&x, &logits, &columns)?;
            assert_eq!(bits(&columns.contiguous()?), wanted);
            // A layer with gate and up in one, or apart, has memory of other sizes.
            let apart = Operands::new(Case { fused: !case.fused, ..case }, 3);
            let apart = apart.layer(&context).sharing_memory(&layer);
            operands.check(&apart.forward(&x, &logits)?);
            assert_eq!(bits(&layer.forward(&x, &logits)?), wanted);
            // Memory of another layer, used by turns.
            let other = Operands::new(Case { h: 4, f: 3, ..PLAIN }, 4);
            let [own, its] = other.on(&context);
            let other = other.layer(&context).sharing_memory(&layer);
            let first = bits(&other.forward(&own, &its)?);
            assert_eq!(bits(&layer.forward(&x, &logits)?), wanted);
            assert_eq!(bits(&other.forward(&own, &its)?), first);
            if let (Some(device), Some(queue)) = (context.device(), context.queue()) {
                let y = [(); 3].map(|()| Tensor::zeros(&context, DType::F32, &[t, h]).unwrap());
                let mut encoder = device.create_command_encoder(&Default::default());
                layer.encode(&mut encoder, &x, &logits, &y[0])?;
                let mut pass = encoder.begin_compute_pass(&Default::default());
                // Each finds the memory as the one before has left it.
                layer.record(&mut pass, &few[0], &few[1], &y[2].narrow(0, 0, 4)?)?;
                layer.record(&mut pass, &x, &logits, &y[1])?;
                drop(pass);
                queue.submit([encoder.finish()]);
                assert_eq!([bits(&y[0]), bits(&y[1])], [wanted.clone(), wanted.clone()]);
                assert_eq!(bits(&y[2].narrow(0, 0, 4)?), bits(&fresh));
            }
            // In place.
            layer.forward_into(&x, &logits, &x)?;
            assert_eq!(bits(&x), wanted);
        }
    }
    Ok(())
}

/// Tokens with NaN among their logits become NaN, and no others.
#[test]
fn not_a_number() -> Result<()> {
    for context in contexts() {
        for scoring in [Scoring::Softmax, Scoring::Sigmoid] {
            let case = Case { scoring, normalize: Some(true), ..PLAIN };
            let mut operands = Operands::new(case, 5);
            let e = case.experts;
            operands.logits[e..2 * e].fill(f32::NAN);
            operands.logits[3 * e + 2] = f32::NAN;
            let layer = operands.layer(&context);
            let [x, logits] = operands.on(&context);
            let y = layer.forward(&x, &logits)?;
            let bad = [1, 3];
            for (token, row) in y.read_blocking::<f32>()?.chunks(case.h).enumerate() {
                let is_bad = bad.contains(&token);
                assert!(row.iter().all(|y| y.is_nan() == is_bad), "{token}, {context:?}");
            }
            // The others are as without it.
            let good: Vec<usize> = (0..case.tokens).filter(|token| !bad.contains(token)).collect();
            let rows = |all: &[f32], width: usize| {
                good.iter().flat_map(|&row| all[row * width..][..width].to_vec()).collect()
            };
            let (x, logits) = (rows(&operands.x, case.h), rows(&operands.logits, e));
            let own = Operands {
                case: Case { tokens: good.len(), ..case },
                x,
                logits,
                ..Operands::new(case, 5)
            };
            let places: Vec<u32> = good.iter().map(|&row| row as u32).collect();
            let places = Tensor::upload(&context, &places, &[places.len()])?;
            own.check(&y.rows(&places)?);
        }
    }
    Ok(())
}

/// A narrow output does not round the sum of routed experts before shared ones are added.
#[test]
fn narrow_outputs() -> Result<()> {
    for context in contexts() {
        let of = |number: f32| upload(&context, DType::F32, &[number], &[1, 1]);
        let stack = |number: f32| of(number).unsqueeze(0);
        let layer = MoeLayer::new(&stack(1.0)?, &stack(1.0)?, &stack(4097.0)?, 1)
            .activation(Activation::Relu)
            .shared(of(1.0), of(1.0), of(-4096.0));
        for dtype in DType::FLOATS {
            let y = Tensor::zeros(&context, dtype, &[1, 1])?;
            layer.forward_into(&of(1.0), &of(0.0), &y)?;
            assert_eq!(y.read_f32_blocking()?, [1.0], "{dtype} {context:?}");
        }
    }
    Ok(())
}

/// Rows of gate and up that alternate are two views, without a copy. Weights that are stored
/// transposed are views, too.
#[test]
fn views_of_weights() -> Result<()> {
    let (tokens, experts, f, h) = (5, 3, 7, 16);
    for context in contexts() {
        let mut rng = Rng::new(77);
        let [gate, up, down] = [0; 3].map(|_| numbers(&mut rng, DType::F16, experts * f * h, 0.5));
        let x = upload(&context, DType::F16, &numbers(&mut rng, DType::F16, 80, 1.0), &[tokens, h]);
        let logits = upload(
            &context,
            DType::F32,
            &numbers(&mut rng, DType::F32, 15, 2.0),
            &[tokens, experts],
        );
        let rows = gate.chunks(h).zip(up.chunks(h));
        let alternate: Vec<f32> = rows.flat_map(|(gate, up)| [gate, up].concat()).collect();
        let both = upload(&context, DType::F16, &alternate, &[experts, f, 2, h]);
        let half = |i| both.narrow(2, i, 1)?.squeeze(2);
        let stack = |numbers: &[f32], [n, k]: [usize; 2]| {
            upload(&context, DType::F16, numbers, &[experts, n, k])
        };
        let whole = [stack(&gate, [f, h]), stack(&up, [f, h]), stack(&down, [h, f])];
        let turned = |w: &Tensor| w.transpose(1, 2)?.contiguous()?.transpose(1, 2);
        let [gate, up, down] = &whole;
        let [apart, alternate, turned] = [
            MoeLayer::new(gate, up, down, 2),
            MoeLayer::new(&half(0)?, &half(1)?, down, 2),
            MoeLayer::new(&turned(gate)?, &turned(up)?, &turned(down)?, 2),
        ]
        .map(|layer| layer.forward(&x, &logits).and_then(|y| y.read_bytes_blocking()));
        let apart = apart?;
        assert!(apart.iter().any(|&byte| byte != 0), "nothing was computed");
        assert_eq!(apart, alternate?, "{context:?}");
        assert_eq!(apart, turned?, "{context:?}");
    }
    Ok(())
}
