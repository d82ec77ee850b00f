//! The right values of some elements of a product.

use super::storage::Values;
use crate::shapes::{Part, Shape, Sharing};
use tilewise::DType;
use tilewise_core::{Precision, Problem};
use tilewise_oracle::silu;

/// Elements of each timed product that are compared with an f64 sum.
pub(super) const CHECKED: usize = 64;

/// An element of the output, which is taken as one matrix of all its rows.
#[derive(Debug)]
pub(super) struct Expected {
    pub(super) row: usize,
    pub(super) col: usize,
    pub(super) value: f64,
    /// The bounds for kernels that take weights exactly, and for kernels that round them.
    pub(super) bounds: [f64; 2],
}

/// Numbers of operands, in the order of storage; each list repeats.
pub(super) struct Sources<'a> {
    pub(super) a: &'a [f32],
    /// The row of A for each row of the product, if they differ.
    pub(super) rows: Option<&'a [u32]>,
    pub(super) b: &'a Values,
    pub(super) gate: Option<&'a [f32]>,
}

/// Elements spread over the output, all corners among them, as sums in f64. Rows beyond the counts
/// of a masked product are among them, as zeros.
pub(super) fn expected(
    shape: &Shape,
    numbers: &[u32],
    precision: Precision,
    sources: &Sources<'_>,
) -> Vec<Expected> {
    let parts = shape.parts(numbers);
    let storage = shape.storage(numbers.len())[2];
    let problem = Problem { precision, ..shape.problem() };
    let spread = |at: usize, tried: usize, len: usize| {
        if tried < 2 { 0 } else { at * (len - 1) / (tried - 1) }
    };
    let rows: usize = parts.iter().map(|part| part.mnk[0]).sum();
    let tried_rows = rows.min((CHECKED / shape.mnk[1]).max(8));
    let mut expected = Vec::new();
    let (mut part, mut before) = (0, 0);
    for i in 0..tried_rows {
        let row = spread(i, tried_rows, rows);
        while row - before >= parts[part].mnk[0] {
            before += parts[part].mnk[0];
            part += 1;
        }
        let n = parts[part].mnk[1];
        let tried_cols = n.min(CHECKED / tried_rows);
        for j in 0..tried_cols {
            let at = [row - before, spread(j, tried_cols, n)];
            expected.push(element(&parts[part], at, storage[2], &problem, sources));
        }
    }
    // Rows beyond the counts of masked entries belong to no product.
    let is_masked =
        shape.experts.is_some_and(|experts| matches!(experts.sharing, Sharing::Masked(_)));
    let parts = parts.iter().enumerate();
    let fewer = parts.filter(|(_, part)| is_masked && part.mnk[0] < storage[1]);
    let beyond = fewer.flat_map(|(entry, part)| {
        [part.mnk[0], storage[1] - 1].map(|row| entry * storage[1] + row)
    });
    let zero = |row| Expected { row, col: 0, value: 0.0, bounds: [0.0; 2] };
    expected.extend(beyond.take(CHECKED).map(zero));
    expected
}

/// An element of a part. The bound covers a sum of K products in the type of the problem's sums and
/// one rounding, as in the oracle. It also covers activations that are taken in bytes.
fn element(
    part: &Part,
    [row, col]: [usize; 2],
    columns: usize,
    problem: &Problem,
    sources: &Sources<'_>,
) -> Expected {
    let (sums, lost) = (problem.accumulation(), problem.activation_error());
    let Sources { a, rows, b, gate } = sources;
    let ([_, _, k], [a_place, b_place, c_place]) = (part.mnk, part.places);
    let place = c_place.at(row, col);
    let output = problem.c.format.element().unwrap_or(DType::F32);
    let a_of = |l: usize| {
        let own = match rows {
            // A has one matrix here, and the part begins with it.
            Some(rows) => a_place.row * rows[place / columns] as usize + l * a_place.col,
            None => a_place.at(row, l),
        };
        f64::from(a[own % a.len()])
    };
    let (mut sum, mut size, mut errors, mut largest) = (0.0, 0.0, [0.0; 2], 0.0);
    for l in 0..k {
        if lost > 0.0 && l % 32 == 0 {
            largest = (l..k.min(l + 32)).map(|l| a_of(l).abs()).fold(0.0, f64::max);
        }
        let (a, at) = (a_of(l), b_place.at(l, col) % b.numbers.len());
        let term = a * f64::from(b.numbers[at]);
        (sum, size) = (sum + term, size + f64::abs(term));
        if let Some(of) = &b.errors {
            let weight = f64::from(b.numbers[at].abs());
            errors = [0, 1]
                .map(|which| errors[which] + a.abs() * of[which][at] + lost * largest * weight);
        }
    }
    let gamma = (k as f64).min(8.0 * (k as f64).sqrt()) * 2.0 * sums.unit_roundoff();
    let rounding = output.unit_roundoff();
    let factor = gate.map_or(1.0, |gate| silu(f64::from(gate[place % gate.len()])));
    let value = sum * factor;
    let bound = |error: f64| {
        let inner = gamma * size + (1.0 + gamma) * error;
        let rounded = rounding * (value.abs() + factor.abs() * error) + 1e-30;
        let off = if gate.is_some() { GATE_ERROR * factor.abs() } else { 0.0 };
        let before = factor.abs() * inner + off * (sum.abs() + inner);
        let reach = value.abs() + before;
        // A device may flush subnormal numbers to zero.
        let flushed = if gate.is_some() { reach.min(min_normal(output)) } else { 0.0 };
        before + rounded + flushed
    };
    Expected { row: place / columns, col: place % columns, value, bounds: errors.map(bound) }
}

/// The error of silu of a gate up to 1, and of the product with it. WGSL's exponential may be off
/// by five units in the last place, of which the quotient keeps three quarters. The rest adds four
/// and a half.
const GATE_ERROR: f64 = 8.5 * 2.0 * DType::F32.unit_roundoff();

/// The smallest normal number of a type.
fn min_normal(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 1.0 / f64::from(1 << 14),
        _ => f64::from(f32::MIN_POSITIVE),
    }
}
