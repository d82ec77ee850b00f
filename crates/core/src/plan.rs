//! [`plan()`] makes everything that an executor needs from a problem and an adapter's capabilities.
//!
//! The planner knows no kernel by name. It checks the problem, walks the table, keeps the
//! candidates that the adapter's limits and the kernel's `admit` allow, and takes the cheapest by
//! [`cost::seconds`](crate::cost::seconds). It is a pure function, so every decision is tested
//! without a GPU.

mod build;
mod builder;
mod candidates;
mod check;
mod explain;
mod fetch;
mod forced;
mod gathering;
mod group_table;
mod groups;
mod indexed;
mod large;
mod late;
mod limits;
mod pack;
mod packing;
mod params;
mod pass;
mod peel;
mod piece;
mod prepare;
mod quantize;
mod ranges;
mod setup;
mod side;
mod table;
mod take;

pub use check::check;
pub use explain::{UNUSED, describe, explain};
pub use forced::Forced;
pub use indexed::by_index;
pub use large::by_groups;
pub use late::Late;
pub use pass::{Binding, Part, Pass, renamed};
pub use prepare::{Preparation, prepare};
pub use quantize::{Quantize, quantize};
pub use ranges::Cut;
pub use table::Table;
pub use take::{Index, Take, take};

use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{KernelDef, Library, Role, Variant};
use crate::problem::Problem;
use candidates::{Candidate, Candidates};
use std::collections::HashSet;

/// A kernel for a product, with its estimate.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The mainloop's name.
    pub kernel: &'static str,
    /// The variant's name.
    pub variant: &'static str,
    /// Elements between the lines of a slice in workgroup memory, if they were forced.
    pub pad: Option<u32>,
    /// How many splits K has.
    pub splits: u64,
    /// Estimated seconds.
    pub cost: f64,
}

impl std::fmt::Display for Choice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.kernel, self.variant)?;
        if let Some(pad) = self.pad {
            write!(f, "+pad{pad}")?;
        }
        if self.splits > 1 {
            write!(f, "+k{}", self.splits)?;
        }
        Ok(())
    }
}

/// Everything an executor needs. A product without elements has no choice and no passes.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The problem, with strides that play no part set to 0.
    pub problem: Problem,
    /// The choice for the first piece; none if there is nothing to do.
    pub choice: Option<Choice>,
    /// Why the product was cut into pieces, largest first; empty if it is computed as a whole.
    pub cuts: Vec<Cut>,
    /// Why pieces were cut further, so that none takes longer than a submission may: the first cut
    /// along each dimension. The choice is that from before the cut.
    pub late: Vec<Late>,
    /// The choices for the edges, if they are computed apart from the whole tiles.
    pub edges: Vec<Choice>,
    /// Dispatches, in order.
    pub passes: Vec<Pass>,
    /// Bytes of f32 scratch memory shared by the passes.
    pub scratch_bytes: u64,
    /// Bytes of memory for packed operands, shared by the passes.
    pub packed_bytes: u64,
    /// Whether the rows of A must be copied by their indices first ([`take`](crate::plan::take()),
    /// with zeros beyond). The passes then read that copy as A.
    pub copies_rows: bool,
}

impl Plan {
    /// A plan without passes: for a product without elements, or one that is computed otherwise.
    pub fn without_passes(problem: Problem) -> Self {
        Plan {
            problem,
            choice: None,
            cuts: Vec::new(),
            late: Vec::new(),
            edges: Vec::new(),
            passes: Vec::new(),
            scratch_bytes: 0,
            packed_bytes: 0,
            copies_rows: false,
        }
    }

    /// Estimated seconds of all passes.
    pub fn seconds(&self) -> f64 {
        self.passes.iter().filter_map(|pass| pass.piece_seconds).sum()
    }
}

/// Plans a product: checks it, chooses a kernel from `library`, and lays out passes, bindings and
/// parameters.
///
/// If an operand is larger than a binding can be, the product is cut into pieces that are planned
/// one by one ([`Plan::cuts`]). If a piece is estimated to take longer than a submission may
/// ([`Caps::max_submission_seconds`]), it is cut further ([`Plan::late`]).
///
/// `forced` names a kernel to use whatever its cost, for the whole product (no edges are peeled
/// off); the adapter's limits are still checked.
///
/// Rows of A by index ([`Problem::gathered`]) are read from where they lie, if the kernel that is
/// chosen for the copied rows can do so. Otherwise they must be copied first
/// ([`Plan::copies_rows`]).
///
/// # Errors
/// [`Shape`](crate::Error), `Unsupported` for a problem that no device can run; `Misuse` for a
/// forced name that is not in the table; `DeviceLimit` if every candidate was rejected, or not even
/// a piece of it can be bound on these `caps`.
pub fn plan(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Result<Plan> {
    Ok(considered(problem, caps, library, forced)?.plan)
}

/// A plan with the candidates that it was chosen from.
struct Considered {
    plan: Plan,
    /// The estimate by which plans are compared.
    weight: f64,
    /// Passes over K of all pieces.
    ranges: u64,
    /// The candidates for the first piece.
    candidates: Candidates,
}

fn considered(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Result<Considered> {
    let problem = check(problem)?;
    forced.map_or(Ok(()), |forced| forced.known(library))?;
    match problem.gathered {
        Some(_) => gathering::considered(&problem, caps, library, forced),
        None => in_order(&problem, caps, library, forced),
    }
}

/// Plans a checked problem whose rows of A, if it has an index of them, are read where they lie.
fn in_order(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Result<Considered> {
    let mut all = Considered {
        plan: Plan::without_passes(*problem),
        weight: 0.0,
        ranges: 0,
        candidates: Candidates::default(),
    };
    if problem.m == 0 || problem.n == 0 || problem.entries() == 0 {
        return Ok(all);
    }
    let (pieces, cuts) = ranges::cut(problem, caps, library, forced)?;
    all.plan.cuts = cuts;
    for piece in &pieces {
        let candidates = Candidates::new(piece, caps, library, forced);
        let Some(best) = candidates.accepted.first() else {
            let why = candidates.rejections();
            return Err(Error::DeviceLimit(format!("no kernel takes this problem here: {why}")));
        };
        let peeled = match forced {
            None if piece.steps() == 1 => peel::peel(best, caps, library),
            _ => None,
        };
        for (index, chosen) in peeled.unwrap_or_else(|| vec![best.clone()]).into_iter().enumerate()
        {
            all.weight += chosen.weight();
            let choice = Choice { splits: chosen.setups[0].tiling.splits, ..chosen.choice() };
            match index {
                0 => all.plan.choice = all.plan.choice.or(Some(choice)),
                _ => all.plan.edges.push(choice),
            }
            for candidate in late::cut(chosen, caps, &mut all.plan.late) {
                build::build(&candidate, caps, &mut all.plan)?;
            }
        }
        if all.ranges == 0 {
            all.candidates = candidates;
        }
        all.ranges += piece.steps();
    }
    for pass in &mut all.plan.passes {
        pass.beside_c =
            problem.beside_c && pass.bindings.iter().any(|binding| binding.role == Role::C);
    }
    Ok(all)
}

/// Every kernel, variant and number of splits of K that serves the problem, or the first piece of
/// one that is cut. The cheapest by estimate comes first. A tuner or a benchmark tries them. Each
/// can be forced by its name, `Choice::to_string()`; add `+k1` if K is to stay whole.
///
/// # Errors
/// The errors of [`plan`], but none when there is nothing to choose from.
pub fn choices(problem: &Problem, caps: &Caps, library: &Library) -> Result<Vec<Choice>> {
    let (pieces, _) = ranges::cut(&check(problem)?, caps, library, None)?;
    let all = Candidates::new(&pieces[0], caps, library, None);
    let k = pieces[0].step(0).k;
    // K is split at whole steps, so there may be fewer splits than were asked for.
    let choice = |candidate: &Candidate| {
        let choice = candidate.choice();
        let length = piece::split_length(k, choice.splits, candidate.variant.bk.into());
        Choice { splits: piece::splits_of(k, length), ..choice }
    };
    let mut accepted: Vec<_> = all.accepted.iter().map(choice).collect();
    accepted.sort_by(|a, b| a.cost.total_cmp(&b.cost));
    let mut met = HashSet::new();
    accepted.retain(|choice| met.insert(choice.to_string()));
    Ok(accepted)
}

/// Whether a kernel asked for by name takes the problem and is of use for it, as [`plan`] asks of
/// the candidates for its own choice.
pub fn admits(problem: &Problem, caps: &Caps, library: &Library, named: &Forced) -> bool {
    let mut kernels = library.kernels.iter().filter(|kernel| kernel.name == named.kernel);
    let is_named =
        |variant: &Variant| named.variant.as_deref().is_none_or(|name| name == variant.name);
    let of_use = |kernel: &KernelDef| {
        kernel
            .variants
            .iter()
            .any(|variant| is_named(variant) && (kernel.admit)(problem, variant, caps).is_ok())
    };
    kernels.any(of_use) && plan(problem, caps, library, Some(named)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_rename_prefixes_only() {
        let part = |operand| Part { file: "", operand, constants: Vec::new() };
        let text = "fn x_load(max_x: u32) { params.x_ld + X_K; }";
        assert_eq!(
            part(Some("bias")).instantiate(text),
            "fn bias_load(max_x: u32) { params.bias_ld + BIAS_K; }"
        );
        assert_eq!(part(None).instantiate(text), text);
    }
}
