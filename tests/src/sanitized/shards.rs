//! Entries of B in shards, in the sanitizer.

use super::Failure;
use crate::runner::ranges;
use std::ops::Range;
use tilewise_core::plan::Cut;
use tilewise_core::{Dimension, Grouping, Plan, Problem};

/// The passes of all shards as pieces of the whole, which all lie in the storage of B.
pub(super) fn in_shards(
    problem: &Problem,
    shards: &[usize],
    plan: impl Fn(&Problem) -> Result<Plan, Failure>,
) -> Result<Plan, Failure> {
    let mut whole = plan(problem)?;
    whole.passes.clear();
    let dimension = Dimension::Entries;
    whole.cuts.push(Cut { dimension, operand: "B", bytes: 0 });
    for Range { start, end } in ranges(shards) {
        let mut shard = problem.range(dimension, start as u64..end as u64);
        let Grouping::RaggedM { first, .. } = &mut shard.grouping else {
            return Err(Failure::Refused(format!("shards of {:?}", problem.grouping)));
        };
        *first = start as u64;
        whole.passes.extend(plan(&shard)?.passes);
    }
    Ok(whole)
}
