//! Rows of A by index: read from where they lie, or copied first.

use super::{Choice, Forced, Plan};
use crate::caps::Caps;
use crate::cost;
use crate::error::Result;
use crate::kernel::Library;
use crate::problem::{Format, Operand, Problem};

/// Plans the product of the copied rows, and takes its kernel for rows where they lie, if it can
/// read them there and takes no longer. Thus rows have the same sums, bit for bit, whether they are
/// found by index or stand in their order.
pub(super) fn planned(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Result<Plan> {
    let in_place = super::planned(problem, caps, library, forced);
    let copied = super::planned(&copied(problem), caps, library, forced);
    match (in_place, copied) {
        (Ok((plan, _)), Err(_)) => Ok(plan),
        (Ok((plan, _)), Ok(_)) if forced.is_some() => Ok(plan),
        (Ok((plan, weight)), Ok((other, copied)))
            if kernels(&plan).eq(kernels(&other))
                && weight <= copied + cost::copying_rows(problem, caps) =>
        {
            Ok(plan)
        }
        (_, copied) => Ok(Plan { copies_rows: true, ..copied?.0 }),
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
