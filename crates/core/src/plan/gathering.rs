//! Rows of A by index: read from where they lie, or copied first.

use super::{Choice, Considered, Forced, Plan, in_order};
use crate::caps::Caps;
use crate::cost;
use crate::error::Result;
use crate::kernel::Library;
use crate::problem::{Format, Operand, Problem};

/// Plans the product of the copied rows, and takes its kernel for rows where they lie, if it can
/// read them there and takes no longer. Thus rows have the same sums, bit for bit, whether they are
/// found by index or stand in their order.
pub(super) fn considered(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Result<Considered> {
    let in_place = in_order(problem, caps, library, forced);
    let copied = in_order(&copied(problem), caps, library, forced);
    match (in_place, copied) {
        (Ok(own), Err(_)) => Ok(own),
        (Ok(own), Ok(_)) if forced.is_some() => Ok(own),
        (Ok(own), Ok(other))
            if kernels(&own.plan).eq(kernels(&other.plan))
                && own.weight <= other.weight + cost::copying_rows(problem, caps) =>
        {
            Ok(own)
        }
        (_, copied) => {
            let mut copied = copied?;
            copied.plan.copies_rows = true;
            Ok(copied)
        }
    }
}

/// The product of the rows in their order, once they are copied.
fn copied(problem: &Problem) -> Problem {
    let Problem { m, k, a, .. } = *problem;
    let format: Format = a.format;
    let a = Operand { batch_stride: 0, ..Operand::packed(format, 1, m, k) };
    Problem { a, gathered: None, ..*problem }
}

/// All choices, without their estimates.
fn kernels(plan: &Plan) -> impl Iterator<Item = Choice> {
    let all = plan.choice.iter().chain(&plan.edges);
    all.map(|choice| Choice { cost: 0.0, ..choice.clone() })
}
