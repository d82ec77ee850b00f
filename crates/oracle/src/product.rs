//! The sums over K: Σ a·b, and what its error bound is made of.

use super::{at, flushed};
use std::ops::Range;
use tilewise_core::convert;
use tilewise_core::problem::{DType, Gathered, Operand, Problem};

/// Numbers of one operand that are gathered at a time, so that a large one is not held twice.
const PANEL: usize = 1 << 21;
/// Results that are computed at a time.
const BLOCK: usize = 1 << 18;
/// Numbers of B that every row meets before the next ones: what a core's cache holds.
const TILE: usize = 1 << 15;
/// Multiplications below which starting threads costs more than it saves.
const WORTH_THREADS: usize = 1 << 20;

/// λ of the probabilistic bound: it fails with a probability below 3·10⁻¹⁴·K per element.
const LAMBDA: f64 = 8.0;

/// One sum over K.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Dot {
    /// Σ a·b.
    pub(super) sum: f64,
    /// Σ |a·b|.
    pub(super) magnitude: f64,
    /// How much the sum may change by errors admitted in the elements themselves.
    pub(super) input_error: f64,
    /// If the sum or its errors are not finite: Σ |a·b| of the products that are, with their
    /// admitted errors; infinite if an admitted error is. Otherwise 0.
    pub(super) finite: f64,
    /// Whether a and b are both constant along K: the rounding errors of such a sum do not cancel.
    pub(super) constant: bool,
}

impl Dot {
    /// Largest error of this sum of a problem.
    pub(super) fn error(&self, problem: &Problem) -> f64 {
        let sums = problem.accumulation();
        let u = sums.unit_roundoff();
        // Three products stand for one, and the product of the low terms is left out.
        let (products, larger, left_out) =
            if problem.may_split() { (3, 2f64.powi(-9), 2f64.powi(-22)) } else { (1, 0.0, 0.0) };
        let k = (products * problem.k) as f64;
        let worst = if k * u < 1.0 { k * u / (1.0 - k * u) } else { f64::INFINITY };
        let likely = (LAMBDA * k.sqrt() * u + k * u * u).exp_m1();
        // A kernel that keeps partial sums apart adds a zero or two more; they are exact, one
        // rounding is allowed for safety.
        let gamma = u + if self.constant { worst } else { worst.min(likely) };
        // Every product and every partial sum may underflow or be flushed.
        let underflow = 2.0 * k * convert::min_normal(sums);
        if k == 0.0 {
            0.0
        } else {
            (gamma * (1.0 + larger) + left_out) * self.magnitude
                + (1.0 + gamma) * self.input_error
                + underflow
        }
    }
}

/// One operand of the product, read in lines along K: rows of A, columns of B.
pub(super) struct Side<'a> {
    /// Content of its storage.
    pub(super) values: &'a [f64],
    /// Indices that give the row of the matrix for each line. None if lines are rows.
    pub(super) indices: Option<(&'a [u32], Gathered)>,
    /// Errors admitted in the elements of its storage.
    pub(super) errors: Option<&'a [f64]>,
    /// Where the entry lies, as a matrix `[K, lines]`.
    pub(super) operand: Operand,
    /// The changes that a kernel may make to its lines.
    pub(super) admits: Admits,
    /// Signed bytes in which a kernel may multiply its elements as whole numbers
    /// ([`Problem::activation_bytes`]).
    pub(super) counted: Option<u32>,
}

/// The changes that kernels may make to lines of an operand, which lose digits.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Admits {
    Nothing,
    /// Divide them by powers of two and round them to f16 ([`Problem::may_scale`]).
    Scaling,
    /// Split them in two f16 terms as well ([`Problem::may_split`]).
    Splitting,
}

/// Lines of one operand, one after the other.
#[derive(Default)]
struct Lines {
    values: Vec<f64>,
    /// Admitted errors, as long as `values`; empty when all are zero.
    errors: Vec<f64>,
    constant: Vec<bool>,
}

impl Side<'_> {
    fn gather(&self, lines: Range<u64>, k: usize) -> Lines {
        let len = (lines.end - lines.start) as usize * k;
        let (mut values, mut errors) = (vec![0.0; len], vec![0.0; len]);
        let mut erroneous = false;
        // Eight elements of every line in turn: whichever way the storage runs, both sides are
        // touched in whole cache lines.
        for eight in blocks(0..k as u64, 8) {
            for (first, line) in (0..).step_by(k).zip(lines.clone()) {
                let line = match self.indices {
                    None => line,
                    Some((indices, Gathered { rows, offset, step, .. })) => {
                        match u64::from(indices[(offset + line * step) as usize]) {
                            row if row < rows => row,
                            // An index beyond the matrix stands for a row of zeros.
                            _ => continue,
                        }
                    }
                };
                for i in eight.clone() {
                    let (from, to) = (at(&self.operand, i, line), first + i as usize);
                    values[to] = self.values[from];
                    let error = self.errors.map_or(0.0, |e| e[from])
                        + flushed(self.operand.format, values[to]);
                    if error != 0.0 {
                        errors[to] = error;
                        erroneous = true;
                    }
                }
            }
        }
        if self.admits != Admits::Nothing {
            for (line, errors) in values.chunks(k.max(1)).zip(errors.chunks_mut(k.max(1))) {
                erroneous |= admit(self.admits, line, errors);
            }
        }
        if let Some(bytes) = self.counted {
            for (line, errors) in values.chunks(k.max(1)).zip(errors.chunks_mut(k.max(1))) {
                erroneous |= admit_counting(bytes, line, errors);
            }
        }
        if !erroneous {
            errors.clear();
        }
        let constant =
            values.chunks(k.max(1)).map(|line| line.iter().all(|v| v == &line[0])).collect();
        Lines { values, errors, constant }
    }
}

/// Admits the errors of dividing a line by a power of two and rounding it to f16, or to two f16.
/// Returns whether there are any.
fn admit(admits: Admits, line: &[f64], errors: &mut [f64]) -> bool {
    let finite = line.iter().map(|value| value.abs()).filter(|value| value.is_finite());
    let largest = finite.fold(0.0, f64::max);
    if largest == 0.0 {
        return false;
    }
    // The numbers that become 1 when they are divided.
    let exponent = (largest.to_bits() >> 52) as i32 - 1023;
    if admits == Admits::Splitting {
        let one = 2f64.powi(exponent - 14);
        for (value, error) in line.iter().zip(errors).filter(|(value, _)| **value != 0.0) {
            *error += 2f64.powi(-23) * value.abs().max(one);
        }
        return true;
    }
    let one = 2f64.powi(exponent - 15);
    let (normal, step) = (one * convert::min_normal(DType::F16), one * 2f64.powi(-24));
    let mut erroneous = false;
    for (value, error) in
        line.iter().zip(errors).filter(|(value, _)| **value != 0.0 && value.abs() < normal)
    {
        *error = error.max(value.abs()).max(step);
        erroneous = true;
    }
    erroneous
}

/// Admits the errors of taking a line's elements for whole numbers of three signed bytes or fewer
/// times a power of two, 32 elements at a time. Returns whether there are any.
pub(super) fn admit_counting(bytes: u32, line: &[f64], errors: &mut [f64]) -> bool {
    // Kernels round so, too. Added to the bits of the largest number, this carries into the
    // exponent if the fraction would be rounded beyond 127, 127·257 or 127·65793.
    let beyond = [0x10000, 0x10100, 0x10101][bytes as usize - 1];
    let mut erroneous = false;
    for (group, errors) in line.chunks(32).zip(errors.chunks_mut(32)) {
        let largest = group.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let exponent = ((largest as f32).to_bits() + beyond) >> 23;
        let one = 2f64.powi(exponent as i32 - 125 - 8 * bytes as i32);
        for (value, error) in group.iter().zip(errors).filter(|(value, _)| value.is_finite()) {
            let lost = ((value / one).round_ties_even() * one - value).abs();
            *error += lost;
            erroneous |= lost > 0.0;
        }
    }
    erroneous
}

impl Lines {
    fn line(&self, i: usize, k: usize) -> &[f64] {
        &self.values[i * k..(i + 1) * k]
    }

    /// The errors of a line; none when all are zero.
    fn errors(&self, i: usize, k: usize) -> Option<&[f64]> {
        (!self.errors.is_empty()).then(|| &self.errors[i * k..(i + 1) * k])
    }
}

/// Calls `f(row, col, dot)` for every row of `rows` and every one of `n` columns.
pub(super) fn for_each(
    a: &Side<'_>,
    b: &Side<'_>,
    rows: Range<u64>,
    n: u64,
    k: usize,
    mut f: impl FnMut(u64, u64, Dot),
) {
    let lines = (PANEL / k.max(1)).clamp(1, BLOCK);
    let mut dots = Vec::new();
    for cols in blocks(0..n, lines) {
        let columns = b.gather(cols.clone(), k);
        let width = (cols.end - cols.start) as usize;
        for rows in blocks(rows.clone(), (BLOCK / width).clamp(1, lines)) {
            let height = (rows.end - rows.start) as usize;
            dots.clear();
            dots.resize(height * width, Dot::default());
            multiply(&a.gather(rows.clone(), k), &columns, k, width, &mut dots);
            for (row, dots) in rows.zip(dots.chunks_exact(width)) {
                for (col, dot) in cols.clone().zip(dots) {
                    f(row, col, *dot);
                }
            }
        }
    }
}

fn blocks(range: Range<u64>, size: usize) -> impl Iterator<Item = Range<u64>> {
    range.clone().step_by(size).map(move |start| start..(start + size as u64).min(range.end))
}

/// Fills `dots`, row after row of `width`.
fn multiply(rows: &Lines, columns: &Lines, k: usize, width: usize, dots: &mut [Dot]) {
    let height = dots.len() / width;
    // The web has no threads to start.
    let threads = if dots.len() * k < WORTH_THREADS || cfg!(target_family = "wasm") {
        1
    } else {
        std::thread::available_parallelism().map_or(1, usize::from)
    };
    let share = height.div_ceil(threads);
    let work = |first: usize, dots: &mut [Dot]| {
        for tile in blocks(0..width as u64, (TILE / k.max(1)).max(1)) {
            for (i, dots) in dots.chunks_exact_mut(width).enumerate() {
                for j in tile.clone() {
                    dots[j as usize] = dot(rows, first + i, columns, j as usize, k);
                }
            }
        }
    };
    if threads == 1 {
        return work(0, dots);
    }
    std::thread::scope(|scope| {
        for (i, dots) in dots.chunks_mut(share * width).enumerate() {
            let work = &work;
            scope.spawn(move || work(i * share, dots));
        }
    });
}

fn dot(rows: &Lines, i: usize, columns: &Lines, j: usize, k: usize) -> Dot {
    let (a, b) = (rows.line(i, k), columns.line(j, k));
    // Independent partial sums, so that the compiler may use vectors and the additions do not wait
    // for each other.
    let (mut sums, mut magnitudes) = ([0.0; 4], [0.0; 4]);
    let (a4, b4) = (a.as_chunks::<4>(), b.as_chunks::<4>());
    for (a, b) in a4.0.iter().zip(b4.0) {
        for lane in 0..4 {
            let product = a[lane] * b[lane];
            sums[lane] += product;
            magnitudes[lane] += product.abs();
        }
    }
    for (a, b) in a4.1.iter().zip(b4.1) {
        sums[0] += a * b;
        magnitudes[0] += (a * b).abs();
    }
    let input_error = match (rows.errors(i, k), columns.errors(j, k)) {
        (None, None) => 0.0,
        (Some(ea), None) => ea.iter().zip(b).map(|(ea, b)| ea * b.abs()).sum(),
        (None, Some(eb)) => a.iter().zip(eb).map(|(a, eb)| a.abs() * eb).sum(),
        (Some(ea), Some(eb)) => {
            let errors = ea.iter().zip(eb);
            a.iter()
                .zip(b)
                .zip(errors)
                .map(|((a, b), (ea, eb))| a.abs() * eb + ea * b.abs() + ea * eb)
                .sum()
        }
    };
    let magnitude: f64 = magnitudes.iter().sum();
    let errors = [rows.errors(i, k), columns.errors(j, k)];
    let finite = if magnitude.is_finite() && input_error.is_finite() {
        0.0
    } else {
        finite_part(a, b, errors)
    };
    let constant = k > 0 && rows.constant[i] && columns.constant[j];
    Dot { sum: sums.iter().sum(), magnitude, input_error, finite, constant }
}

/// Computes [`Dot::finite`]. Errors that an infinite number is multiplied with are left out: the
/// product is infinite.
fn finite_part(a: &[f64], b: &[f64], errors: [Option<&[f64]>; 2]) -> f64 {
    let mut sum = 0.0;
    for (l, (a, b)) in a.iter().zip(b).enumerate() {
        let [ea, eb] = errors.map(|errors| errors.map_or(0.0, |errors| errors[l]));
        if ea.is_infinite() || eb.is_infinite() {
            return f64::INFINITY;
        }
        let most = (a.abs() + ea) * (b.abs() + eb);
        sum += if most.is_finite() { most } else { 0.0 };
    }
    sum
}
