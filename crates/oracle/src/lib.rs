//! The oracle: what a [`Problem`] gives in f64, and how far a correct kernel may lie from it.
//!
//! The bound of each element follows the kernel's arithmetic from the product to the stored number,
//! whatever its order: the sum over K in `product`, the steps after it in `epilogue`.
//!
//! Summed dimension: an f32 sum of K products in any order errs by at most γ·Σ|a·b|, where γ ≈ K·u
//! in the worst case and γ ≈ λ·√K·u with a probability of at least 1 − 2K·exp(−λ²/2) when the
//! rounding errors are independent with mean zero (N. J. Higham and T. Mary, "A new approach to
//! probabilistic rounding error analysis", SIAM J. Sci. Comput. 41(5), 2019). We take the smaller
//! of the two, with λ = 8. Sums of equal terms are the known exception: their rounding errors all
//! point the same way, so they get the worst case. If a problem permits sums in f16, all this
//! holds with f16's u.
//!
//! Subnormals: WGSL lets a device read or write zero for any subnormal number (section "Floating
//! point evaluation"), so every one of them, read, computed or written, may be off by its whole
//! size.
//!
//! bf16 on matrix units of f16: a line along K, a row of A or a column of B, is divided by the
//! power of two that brings its largest number between 2¹⁵ and 2¹⁶. (If that is an infinity or a
//! NaN, so are all sums.) Numbers that are then below 2⁻¹⁴ are subnormal in f16. A device may take
//! them for zero; otherwise they are cut to a multiple of 2⁻²⁴ that is not zero. All others keep
//! their value, since bf16 has fewer digits than f16.
//!
//! Quantized weights: a kernel may round 32 elements of a row of A to whole numbers times one power
//! of two. The numbers have 24 bits, or by permission 16 or 8 ([`Problem::activation_bytes`]). An
//! element is then off by half of the last bit at most. The kernel takes the smallest power of two
//! under which the largest of the 32 fits: twice the largest would be rounded beyond three signed
//! bytes, two or one. So the largest is at least 4,177,855.75 last bits, 16,319.75 or 63.75, and
//! half of the last bit is at most 1/8,355,711.5 of it, 1/32,639.5 or 1/127.5: some 2⁻²³, 2⁻¹⁵ or
//! 2⁻⁷. With 24 bits, elements of f16 down to 2⁻¹² of the largest, and of bf16 down to 2⁻¹⁵, are
//! exact.
//! - Products of whole numbers and codes, and their sums, are exact integers. The kernel makes f32
//!   of them in two parts. The sum with the highest bytes is exact. The rest is rounded with codes
//!   of 8 bits: by 2u of 1.01·Σ|code·number| at most, as the rest of a number is at most 1.01 of
//!   it. Adding the two rounds by u.
//! - It rounds the sum of the elements by 2u. Powers of two round nothing. Scale and bias are
//!   multiplied and added at once.
//! - So each term of a sum is off by at most 3.1u, and a group of 32 takes two additions along K. γ
//!   has 32 of them.
//!
//! f32 in two f16 terms, by permission: each line is divided by a power of two that brings its
//! largest number between 2¹⁴ and 2¹⁵. For a number x of the line, h is the nearest f16 of x, and l
//! is the nearest f16 of x − h. The rest is r = x − h − l.
//! - |l| ≤ max(2⁻¹¹·|x|, 2⁻²⁴), and |r| ≤ max(2⁻²³·|x|, 2⁻²⁵): x − h has at most 13 digits, of
//!   which l keeps 11, or as many as reach 2⁻²⁴.
//! - The kernel computes l·h' + h·l' + h·h'. Of x·y = (h + l + r)·(h' + l' + r') it leaves out r·y
//!   + x·r' − r·r' + l·l'.
//! - We admit the error e = 2⁻²³·max(|x|, 1) in x, likewise e' in y, and 2⁻²²·|x·y| besides. Both
//!   errors change a product by e·|y| + |x|·e' + e·e'.
//! - l·l' is within 2⁻²²·|x·y| if both are at least 2⁻¹³. If x is smaller, |l·l'| ≤
//!   2⁻²⁴·max(2⁻¹¹·|y|, 2⁻²⁴). The error e has room for that, since r takes a quarter of it at
//!   most.
//! - Three products stand for one. Their magnitudes add up to (1 + 2⁻⁹)·|x·y| at most, except for
//!   small numbers, whose errors hold the difference.
//! - The matrix unit must multiply subnormal numbers of f16. The suite fails on one that takes them
//!   for zero.

mod epilogue;
mod functions;
pub mod moe;
mod product;
#[cfg(test)]
mod tests;
mod weights;

pub use epilogue::{erf_gelu, silu, tanh_gelu};
pub use functions::{binary, swiglu_oai, unary};
pub use weights::{any_error, rounded_error, summed_error};

use epilogue::Terms;
use product::{Admits, Side};
use std::collections::HashMap;
use tilewise_core::convert;
use tilewise_core::problem::{
    Activation, Axis, DType, Dimension, Epilogue, Format, Operand, Problem, Segment,
};

/// Contents of the operands of a [`Problem`], each indexed by storage index as [`Operand`]
/// documents. A quantized operand is given dequantized: weights `[n, k]` are n·k numbers, and its
/// `ld` is k.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    /// A, or the matrix that has its rows.
    pub a: &'a [f64],
    /// The storage of A's row indices; needed when [`Problem::gathered`] says so.
    pub indices: &'a [u32],
    /// B.
    pub b: &'a [f64],
    /// Absolute error admitted in each element of B, as from
    /// [`Quantized::weight_error`](tilewise_core::quant::Quantized::weight_error).
    pub b_error: Option<&'a [f64]>,
    /// Old content of C's storage. What is missing at its end counts as zero.
    pub c: &'a [f64],
    /// The bias; needed when the epilogue has one.
    pub bias: Option<&'a [f64]>,
    /// The residual; needed when the epilogue has one.
    pub residual: Option<&'a [f64]>,
    /// Cumulative ends of the groups of a ragged product, `groups` of them. Each is clamped into
    /// what the group before left of M.
    pub offsets: &'a [u32],
}

/// Content of C's storage after the product. All three fields have the length of C's storage.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The exact result, not rounded to C's type; the old content if nothing is written.
    pub value: Vec<f64>,
    /// Largest |computed − value| of a correct kernel, the rounding to C's type included; 0 if
    /// nothing is written. Infinite if an intermediate may leave the range of its type (f32, or f16
    /// if permitted): nothing can be promised then.
    pub bound: Vec<f64>,
    /// Whether the product writes the element.
    pub written: Vec<bool>,
}

/// The first element that a kernel got wrong.
#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
#[error("element {index} of C is {computed:e}, expected {expected:e} within {bound:e}")]
pub struct Mismatch {
    /// Index in C's storage.
    pub index: usize,
    /// The kernel's result; NaN if it gave none.
    pub computed: f64,
    /// The oracle's result; NaN for an element beyond C's storage.
    pub expected: f64,
    /// The difference that was admitted.
    pub bound: f64,
}

impl Reference {
    /// Compares the content of C's storage, stored as `dtype`, with the oracle. Gives the largest
    /// error as a fraction of its bound.
    ///
    /// An element that is not written must keep its value (any NaN equals any other). A NaN must be
    /// a NaN, an infinity that infinity. A result that rounds to nothing finite in `dtype` may
    /// become the infinity or the largest number of its sign.
    pub fn check(&self, computed: &[f64], dtype: DType) -> Result<f64, Mismatch> {
        let mut worst = 0f64;
        for index in 0..self.value.len().max(computed.len()) {
            let at = |values: &[f64]| values.get(index).copied().unwrap_or(f64::NAN);
            let (got, expected) = (at(computed), at(&self.value));
            let bound = self.bound.get(index).copied().unwrap_or(0.0);
            let both = index < self.value.len() && index < computed.len();
            let same = got == expected || got.is_nan() && expected.is_nan();
            if both && (same || bound == f64::INFINITY) {
                continue;
            }
            let error = (got - expected).abs();
            if both && self.written[index] && error <= bound {
                worst = worst.max(error / bound);
            } else if !(both && self.written[index] && overflows(dtype, got, expected, bound)) {
                return Err(Mismatch { index, computed: got, expected, bound });
            }
        }
        Ok(worst)
    }
}

/// Whether `got` is what a finite `expected` becomes when it lies too near the end of `dtype`'s
/// range.
fn overflows(dtype: DType, got: f64, expected: f64, bound: f64) -> bool {
    let largest = convert::largest(dtype);
    // Numbers from half a step beyond the largest on round to infinity. The bound holds one such
    // half step already.
    let half_step = epilogue::half_ulp(dtype, largest);
    let reach = expected.abs() + bound - if dtype == DType::F32 { 0.0 } else { half_step };
    expected.is_finite()
        && reach >= largest + half_step
        && got.signum() == expected.signum()
        && got.abs() >= largest
}

/// Computes `problem` in f64, with the bound of each element.
///
/// # Panics
///
/// When an input is missing, or shorter than its operand reaches.
/// [`plan`](tilewise_core::plan()) checks what a problem says of its operands' lengths.
pub fn reference(problem: &Problem, inputs: &Inputs<'_>) -> Reference {
    let len = problem.c.len as usize;
    let mut value = inputs.c.to_vec();
    value.resize(len, 0.0);
    let mut result = Reference { value, bound: vec![0.0; len], written: vec![false; len] };
    add(problem, inputs, &mut result);
    result
}

/// Writes the results of a problem.
fn add(problem: &Problem, inputs: &Inputs<'_>, result: &mut Reference) {
    let Problem { m, k, batch, grouping, .. } = *problem;
    if grouping.traits().listed {
        return problem.listed(inputs.offsets).iter().for_each(|one| add(one, inputs, result));
    }
    for Segment { entry, group, rows, k } in grouping.segments([m, k], batch, inputs.offsets) {
        product_of(&problem.range(Dimension::K, k), inputs, entry, group, rows, result);
    }
}

/// Writes rows `rows` of batch entry `entry`, multiplied by entry `b_entry` of B.
fn product_of(
    problem: &Problem,
    inputs: &Inputs<'_>,
    entry: u64,
    b_entry: u64,
    rows: std::ops::Range<u64>,
    result: &mut Reference,
) {
    let epilogue = &problem.epilogue;
    let k = problem.k as usize;
    let [a_admits, b_admits] = [problem.a.format, problem.b.format].map(|format| match format {
        _ if problem.may_split() => Admits::Splitting,
        format if problem.may_scale(format) => Admits::Scaling,
        _ => Admits::Nothing,
    });
    let indices = problem.gathered.map(|gathered| (inputs.indices, gathered));
    let a = Side {
        values: inputs.a,
        indices,
        errors: None,
        operand: problem.entry(&problem.a, entry).t(),
        admits: a_admits,
        counted: problem.activation_bytes(),
    };
    let b = Side {
        values: inputs.b,
        indices: None,
        errors: inputs.b_error,
        operand: problem.entry(&problem.b, b_entry),
        admits: b_admits,
        counted: None,
    };
    let c = problem.entry(&problem.c, entry);
    let residual = epilogue.residual.map(|residual| problem.entry(&residual, entry));
    let bias = epilogue.bias.map(|bias| (bias.axis, problem.entry(&bias.operand, b_entry)));
    let per = epilogue.columns();
    // The gates, which even columns of pairs give, with their errors.
    let mut gates = HashMap::new();
    let plain = Epilogue { activation: Activation::None, gated: false, ..*epilogue };
    let single = Operand { format: Format::Dense(DType::F32), ..problem.c };
    let gate = Problem { epilogue: plain, c: single, ..*problem };
    product::for_each(&a, &b, rows, problem.n, k, |row, col, dot| {
        let index = at(&c, row, col / per);
        let stored = |values: Option<&[f64]>, operand: &Operand, index: usize| {
            let value = values.expect("the epilogue's inputs are given")[index];
            (value, flushed(operand.format, value))
        };
        let terms = Terms {
            old: if epilogue.beta == 0.0 {
                None
            } else {
                Some(stored(Some(&result.value), &c, index))
            },
            bias: bias.map(|(axis, operand)| {
                let i = if axis == Axis::M { row } else { col };
                stored(inputs.bias, &operand, (operand.offset + i * operand.ld) as usize)
            }),
            residual: residual
                .map(|operand| stored(inputs.residual, &operand, at(&operand, row, col))),
        };
        let terms = match per {
            1 => terms,
            _ if col % per == 0 => {
                gates.insert((row, col), epilogue::apply(&gate, &dot, &terms));
                return;
            }
            _ => Terms { residual: gates.remove(&(row, col - 1)), ..terms },
        };
        let (value, bound) = epilogue::apply(problem, &dot, &terms);
        result.value[index] = value;
        result.bound[index] = bound;
        result.written[index] = true;
    });
}

/// Storage index of an element of a single entry.
fn at(operand: &Operand, row: u64, col: u64) -> usize {
    let (row, col) = if operand.transposed { (col, row) } else { (row, col) };
    (operand.offset + row * operand.ld + col) as usize
}

/// By how much a `value` read from `format` changes when the device takes subnormals for zero.
fn flushed(format: Format, value: f64) -> f64 {
    convert::flushed(format.element().unwrap_or(DType::F32), value)
}
