//! Operands with their lines in another order. The kit has one file that says where a line lies;
//! here are texts of it for that order. If a kernel still gives the oracle's results, it asks only
//! that file where a line is.

use crate::case::LAYOUTS;
use crate::cases::Table;
use crate::runner::Stored;
use crate::sanitized::{Failure, Job};
use crate::{Case, Filled};
use tilewise::DType;
use tilewise_core::quant::Quantized;
use tilewise_core::{Caps, Operand, Variant};

/// The file in WGSL, for lines that are exchanged in pairs.
pub const IN_WGSL: &str = include_str!("lines.wgsl");

/// The file in MSL.
pub const IN_MSL: &str = include_str!("lines.metal");

/// One variant of every kernel, in every layout, in vectors and in single elements. The numbers of
/// rows and columns are even.
pub fn cases(table: Table) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.one_of_each() {
        let Variant { bm, bn, bk, .. } = *kernel.variant;
        let [m, n, k] = [bm, bn, bk].map(|size| size.next_multiple_of(8) as usize);
        for layout in LAYOUTS {
            let case = |size| Case::new(size, [DType::F32; 3]).layout(layout).kernel(&kernel.name);
            cases.extend([case([m + 8, n + 8, 2 * k]), case([m + 2, n + 6, k + 3]).odd()]);
        }
    }
    cases
}

/// A case in which the lines of A and B are exchanged in pairs, if they are stored along K.
///
/// # Errors
/// `Refused`, when the planner has no plan.
pub fn exchanged(case: &Case, caps: &Caps) -> Result<Job, Failure> {
    let mut job = Job::new(case, caps)?;
    let [m, n, k] = case.size;
    let Filled { a, b, weights, .. } = &mut job.filled;
    for matrix in weights.iter_mut().flatten() {
        *matrix = exchanged_rows(matrix, case.margin());
    }
    if !a.operand.transposed {
        exchange(a, m, k);
    }
    if b.operand.transposed {
        exchange(b, n, k);
    }
    Ok(job)
}

/// Weights whose rows are exchanged in pairs, from row `first` on.
fn exchanged_rows(matrix: &Quantized, first: usize) -> Quantized {
    let planes = matrix.planes().iter().map(|plane| {
        let row = plane.len() / matrix.n();
        let (margin, rows) = plane.split_at(first * row);
        let pairs = rows
            .chunks(2 * row)
            .flat_map(|pair| [&pair[pair.len().min(row)..], &pair[..row]].concat());
        margin.iter().copied().chain(pairs).collect()
    });
    Quantized::from_planes(matrix.format(), matrix.n(), matrix.k(), planes.collect())
        .expect("as many rows")
}

fn exchange(stored: &mut Stored, lines: usize, k: usize) {
    let Operand { offset, ld, format, .. } = stored.operand;
    let [offset, ld, size] = [offset, ld, format.planes()[0].bytes].map(|number| number as usize);
    for line in (0..lines).step_by(2) {
        let (first, second) = stored.bytes[(offset + line * ld) * size..].split_at_mut(ld * size);
        first[..k * size].swap_with_slice(&mut second[..k * size]);
    }
}
