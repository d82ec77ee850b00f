//! A layer of experts in f64, and how far a correct one may lie from it.

use crate::{Inputs, Mismatch, Reference, binary, reference, silu, swiglu_oai, unary};
use std::cmp::Ordering;
use tilewise::moe::Scoring;
use tilewise::ops::{Binary, Unary};
use tilewise_core::{Activation, Axis, Bias, DType, Epilogue, Format, Operand, Precision, Problem};

/// Relative distance between neighbours of f32.
const ULP: f64 = 1.0 / (1u64 << 23) as f64;

/// How much an activation grows at most when its argument grows by 1.
const SLOPE: f64 = 1.2;

/// Factor for the rounding of the errors themselves.
const MARGIN: f64 = 1.01;

/// Numbers, and how far each may be off. A number that may have any value has an infinite error.
#[derive(Clone, Debug, Default)]
pub struct Approx {
    /// The numbers in f64.
    pub value: Vec<f64>,
    /// Their errors.
    pub error: Vec<f64>,
}

impl Approx {
    fn push(&mut self, value: f64, error: f64) {
        let bounded = value.is_finite() && error.is_finite();
        self.value.push(value);
        self.error.push(if bounded { error } else { f64::INFINITY });
    }

    /// Numbers without an error.
    pub fn exact(values: &[f64]) -> Self {
        Approx { value: values.to_vec(), error: vec![0.0; values.len()] }
    }

    /// The given rows, each of this length.
    fn rows(&self, rows: &[usize], length: usize) -> Self {
        let of = |all: &[f64]| {
            rows.iter().flat_map(|row| all[row * length..][..length].to_vec()).collect()
        };
        Approx { value: of(&self.value), error: of(&self.error) }
    }

    /// The numbers rounded once more, to a type.
    pub fn rounded(self, dtype: DType) -> Self {
        let error = |(value, error): (&f64, &f64)| error + rounding(dtype, value.abs() + error);
        let error = self.value.iter().zip(&self.error).map(error).collect();
        Approx { error, ..self }
    }

    /// Compares computed numbers of a type, as [`Reference::check`] does: the largest error as a
    /// fraction of what is admitted.
    ///
    /// # Errors
    /// The first number that is wrong.
    pub fn check(&self, computed: &[f64], dtype: DType) -> Result<f64, Mismatch> {
        let Approx { value, error: bound } = self.clone();
        let written = vec![true; value.len()];
        Reference { value, bound, written }.check(computed, dtype)
    }
}

/// The error of rounding a number of this size to a type; infinite if it may leave the range.
fn rounding(dtype: DType, size: f64) -> f64 {
    let (least, largest) = match dtype {
        DType::F16 => (2f64.powi(-14), 65504.0),
        _ => (2f64.powi(-126), 3.3e38),
    };
    if size < largest { size * dtype.unit_roundoff() + least } else { f64::INFINITY }
}

/// Matrices \[N, K\] in one vector: one for each expert, or one.
#[derive(Clone, Copy, Debug)]
pub struct Stack<'a> {
    /// The numbers.
    pub values: &'a [f64],
    /// The error admitted in each.
    pub errors: Option<&'a [f64]>,
    /// Their type or quantized format.
    pub format: Format,
    /// The bias of the products: N numbers of f32 for each matrix.
    pub bias: Option<&'a [f64]>,
}

/// Gate and up \[F, H\], and down \[H, F\], of each expert.
#[derive(Clone, Copy, Debug)]
pub struct Ffn<'a> {
    /// Rows of gate.
    pub f: usize,
    /// Gate.
    pub gate: Stack<'a>,
    /// Up.
    pub up: Stack<'a>,
    /// Down.
    pub down: Stack<'a>,
}

/// A [`Router`](tilewise::moe::Router).
#[derive(Clone, Copy, Debug)]
pub struct Choice<'a> {
    /// Experts of a token.
    pub k: usize,
    /// How a logit becomes a score.
    pub scoring: Scoring,
    /// Whether weights are made to sum to 1.
    pub normalize: bool,
    /// Factor of the weights, a number of f32.
    pub scale: f64,
    /// Numbers of f32.
    pub bias: Option<&'a [f64]>,
    /// The number of groups of experts, and from how many of them a token chooses.
    pub groups: [usize; 2],
}

/// A layer.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Type of x and of all numbers between products.
    pub dtype: DType,
    /// Elements of a token.
    pub h: usize,
    /// How many experts there are.
    pub experts: usize,
    /// How a token's experts are chosen.
    pub choice: Choice<'a>,
    /// The function of gate's product.
    pub activation: Activation,
    /// Alpha and limit of [`swiglu_oai`](tilewise::ops::swiglu_oai), if it takes the place of the
    /// function.
    pub swiglu_oai: Option<[f64; 2]>,
    /// Precision of products, as for [`MoeLayer`](tilewise::moe::MoeLayer).
    pub precision: Precision,
    /// The experts.
    pub own: Ffn<'a>,
    /// The shared experts, as one.
    pub shared: Option<Ffn<'a>>,
}

/// x·wᵀ, \[rows, K\] by one matrix \[N, K\], rounded to a type.
pub fn product(x: &Approx, w: &Stack<'_>, [rows, n, k]: [usize; 3], types: Types) -> Approx {
    let problem = Problem {
        b: Operand::packed(w.format, 1, n as u64, k as u64).t(),
        c: Operand::packed(Format::Dense(types.out), 1, rows as u64, n as u64),
        precision: types.precision,
        ..Problem::dense(types.x, rows as u64, n as u64, k as u64)
    };
    let inputs = Inputs { a: &x.value, b: w.values, b_error: w.errors, ..Inputs::default() };
    let bias = w.bias.map(|_| Bias {
        axis: Axis::N,
        operand: Operand { ld: 1, ..Operand::packed(Format::Dense(DType::F32), 1, 1, n as u64) },
    });
    let epilogue = Epilogue { bias, ..problem.epilogue };
    let main = reference(&Problem { epilogue, ..problem }, &Inputs { bias: w.bias, ..inputs });
    let mut spread = vec![0.0; main.value.len()];
    if x.error.iter().any(|error| *error != 0.0) {
        let sizes: Vec<f64> = match w.errors {
            Some(errors) => w.values.iter().zip(errors).map(|(w, e)| w.abs() + e).collect(),
            None => w.values.iter().map(|w| w.abs()).collect(),
        };
        let of = Inputs { a: &x.error, b: &sizes, ..Inputs::default() };
        spread = reference(&problem, &of).value;
    }
    let mut out = Approx::default();
    for ((value, bound), spread) in main.value.iter().zip(main.bound).zip(spread) {
        out.push(*value, bound + MARGIN * spread);
    }
    out
}

/// The types of a product.
#[derive(Clone, Copy, Debug)]
pub struct Types {
    /// Type of x.
    pub x: DType,
    /// Type of the output.
    pub out: DType,
    /// Precision, as for [`Gemm`](tilewise::Gemm).
    pub precision: Precision,
}

impl Layer<'_> {
    /// The output for x \[T, H\] and logits \[T, E\], rounded to a type.
    pub fn forward(&self, x: &[f64], logits: &[f64], out: DType) -> Approx {
        let Layer { h, choice: Choice { k, .. }, .. } = *self;
        let x = Approx::exact(x);
        let routed: Vec<_> =
            logits.chunks(self.experts.max(1)).map(|row| self.choice.run(row)).collect();
        let slots: Vec<_> = routed.iter().flat_map(|row| row.iter().copied()).collect();
        let mut rows =
            Approx { value: vec![0.0; slots.len() * h], error: vec![0.0; slots.len() * h] };
        for expert in 0..self.experts {
            let own: Vec<_> = (0..slots.len()).filter(|&slot| slots[slot].0 == expert).collect();
            let tokens: Vec<_> = own.iter().map(|slot| slot / k).collect();
            let of = self.pass(&self.own, expert, (&x.rows(&tokens, h), tokens.len()), self.dtype);
            for (at, slot) in own.into_iter().enumerate() {
                rows.value[slot * h..][..h].copy_from_slice(&of.value[at * h..][..h]);
                rows.error[slot * h..][..h].copy_from_slice(&of.error[at * h..][..h]);
            }
        }
        let mut y = Approx::default();
        for (token, slots) in routed.iter().enumerate() {
            for i in 0..h {
                let (mut value, mut error) = (0.0, 0.0);
                for (j, &(_, weight, off)) in slots.iter().enumerate() {
                    let at = (token * k + j) * h + i;
                    let (row, row_error) = (rows.value[at], rows.error[at]);
                    value += weight * row;
                    let reach = (weight.abs() + off) * (row.abs() + row_error);
                    error += reach - (weight * row).abs() + k as f64 * ULP * reach;
                }
                y.push(value, error + 2f64.powi(-126) * k as f64);
            }
        }
        let Some(shared) = &self.shared else { return y.rounded(out) };
        // The type in which the two are added.
        let between = if out == DType::F32 { out } else { self.dtype };
        let y = y.rounded(between);
        let added = self.pass(shared, 0, (&x, routed.len()), between);
        let mut sum = Approx::default();
        for at in 0..y.value.len() {
            let error = MARGIN * (y.error[at] + added.error[at]);
            let size = y.value[at].abs() + added.value[at].abs() + error;
            sum.push(y.value[at] + added.value[at], error + 2.0 * ULP * size);
        }
        sum.rounded(between).rounded(out)
    }

    /// Rows through one expert.
    fn pass(
        &self,
        ffn: &Ffn<'_>,
        expert: usize,
        (x, rows): (&Approx, usize),
        out: DType,
    ) -> Approx {
        let (h, f) = (self.h, ffn.f);
        let types = Types { x: self.dtype, out: self.dtype, precision: self.precision };
        let one = |stack: &Stack<'_>, [n, k]: [usize; 2], x: &Approx, types: Types| {
            let part = expert * n * k..(expert + 1) * n * k;
            let errors = stack.errors.map(|errors| &errors[part.clone()]);
            let bias = stack.bias.map(|bias| &bias[expert * n..][..n]);
            let matrix = Stack { values: &stack.values[part], errors, bias, ..*stack };
            product(x, &matrix, [rows, n, k], types)
        };
        let gate = one(&ffn.gate, [f, h], x, types);
        let up = one(&ffn.up, [f, h], x, types);
        let mut inner = Approx::default();
        for at in 0..gate.value.len() {
            let ((g, g_off), (u, u_off)) =
                ((gate.value[at], gate.error[at]), (up.value[at], up.error[at]));
            if let Some(numbers) = self.swiglu_oai {
                // The slope for the gate is that of silu times up + 1, at most.
                let (value, error) = swiglu_oai(g, u, numbers);
                let [gate, up] = [(g, numbers[1]), (u + 1.0, numbers[1] + 1.0)]
                    .map(|(x, limit)| x.abs().min(limit));
                let spread = SLOPE * g_off * (up + u_off) + gate * u_off;
                inner.push(value, MARGIN * (error + spread) + 2f64.powi(-126));
                continue;
            }
            let (value, off) = self.activated(g, g_off);
            let error = match self.activation {
                Activation::Silu => MARGIN * binary(Binary::SiluMul, g, u).1,
                _ => ULP * (value.abs() + off) * (u.abs() + u_off),
            };
            let spread = value.abs() * u_off + u.abs() * off + off * u_off;
            inner.push(value * u, error + MARGIN * spread + 2f64.powi(-126));
        }
        one(&ffn.down, [h, f], &inner.rounded(self.dtype), Types { out, ..types })
    }

    /// The function of gate's product, and its error, with that of its rounding if it is stored by
    /// itself.
    fn activated(&self, x: f64, off: f64) -> (f64, f64) {
        let function = match self.activation {
            Activation::None => return (x, off),
            Activation::Silu => return (silu(x), SLOPE * off),
            Activation::Relu => Unary::Relu,
            Activation::Gelu => Unary::Gelu,
            _ => Unary::GeluErf,
        };
        let (value, error) = unary(function, x);
        let error = SLOPE * off + MARGIN * (error + 1.05e-5 * off);
        (value, error + rounding(self.dtype, value.abs() + error))
    }
}

impl Choice<'_> {
    /// Experts of a token, each with its weight and the error of that, from the largest down.
    pub fn run(&self, logits: &[f64]) -> Vec<(usize, f64, f64)> {
        let softmax = self.scoring == Scoring::Softmax;
        let scores = |logits: &[f64]| match softmax {
            true => scores_of(logits),
            false => logits
                .iter()
                .map(|&x| unary(Unary::Sigmoid, x))
                .map(|(score, error)| (score, error + 2f64.powi(-126)))
                .collect(),
        };
        let all = scores(logits);
        let key = |i: usize| match self.bias {
            Some(bias) => f64::from((all[i].0 + bias[i]) as f32),
            None => logits[i],
        };
        let mut order: Vec<usize> = (0..logits.len()).collect();
        let number = |i: usize| if key(i).is_nan() { (1u8, 0.0) } else { (0, key(i)) };
        let falling = |a: (u8, f64), b: (u8, f64)| b.partial_cmp(&a).unwrap_or(Ordering::Equal);
        order.sort_by(|&a, &b| falling(number(a), number(b)));
        let [n_group, topk_group] = self.groups;
        let group_of = |i: usize| i * n_group / logits.len();
        let score = |group: usize| {
            let mut own = order.iter().filter(|&&i| group_of(i) == group).map(|&i| number(i));
            match (own.next().unwrap_or_default(), own.next()) {
                ((0, one), Some((_, two))) if self.bias.is_some() && one < f64::INFINITY => {
                    (0, f64::from((one + two) as f32))
                }
                (one, _) => one,
            }
        };
        let mut groups: Vec<usize> = (0..n_group).collect();
        groups.sort_by(|&a, &b| falling(score(a), score(b)));
        groups.truncate(topk_group);
        order.retain(|&i| groups.contains(&group_of(i)));
        order.truncate(self.k);
        let own: Vec<f64> = order.iter().map(|&i| logits[i]).collect();
        let most = own.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // NaN of any logit makes all scores of a softmax NaN.
        let weights: Vec<(f64, f64)> = match self.normalize {
            true if softmax && !all[0].0.is_nan() => scores(&own),
            // Scores relative to the largest, because they may vanish otherwise.
            true if !softmax
                && most < 0.0
                && most.is_finite()
                && !own.iter().any(|x| x.is_nan()) =>
            {
                own.iter().map(|x| relative(x - most, *x)).collect()
            }
            _ => order.iter().map(|&i| all[i]).collect(),
        };
        let normalized = self.normalize && !softmax;
        let (sum, error) =
            weights.iter().fold((0.0, 0.0), |(sum, error), (w, e)| (sum + w, error + e));
        let error = error + (self.k as f64 / 8.0 + 8.0) * ULP * sum;
        let weight = |(w, e): (f64, f64)| match normalized {
            // Scores of 0 in f32.
            true if sum <= error => (f64::NAN, 0.0),
            true => (w / sum, MARGIN * (e + w / sum * error) / sum + 3.0 * ULP * w / sum),
            false => (w, e),
        };
        let with = |(i, own): (usize, (f64, f64))| {
            let (w, e) = weight(own);
            let rounding = if self.scale == 1.0 { 0.0 } else { ULP * w.abs() };
            (i, w * self.scale, (e + rounding) * self.scale.abs())
        };
        order.into_iter().zip(weights).map(with).collect()
    }
}

/// The sigmoid of `x`, divided by e^(x − below), and its error.
fn relative(below: f64, x: f64) -> (f64, f64) {
    let score = below.exp() / (1.0 + x.exp());
    (score, if score > 0.0 { (20.0 - 5.0 * below) * ULP * score } else { 0.0 } + 2f64.powi(-126))
}

/// The softmax of a row, each number with its error.
fn scores_of(row: &[f64]) -> Vec<(f64, f64)> {
    let finite = || row.iter().copied().filter(|x| x.is_finite());
    let (least, most) = (finite().fold(f64::MAX, f64::min), finite().fold(f64::MIN, f64::max));
    if row.iter().any(|x| x.is_nan() || *x == f64::INFINITY) {
        return vec![(f64::NAN, 0.0); row.len()];
    }
    if least > most {
        return vec![(0.0, 0.0); row.len()];
    }
    let sum: f64 = row.iter().map(|x| (x - most).exp()).sum();
    let error = (20.0 + 5.0 * (most - least) + row.len() as f64 / 2.0) * ULP;
    let score = |x: &f64| {
        let score = (x - most).exp() / sum;
        (score, error * score + 2f64.powi(-126))
    };
    row.iter().map(score).collect()
}
