//! [`plan()`] makes everything that an executor needs from a problem and an adapter's capabilities.
//!
//! The planner knows no kernel by name. It checks the problem, walks the table, keeps the
//! candidates that the adapter's limits and the kernel's `admit` allow, and takes the cheapest by
//! [`cost::seconds`]. It is a pure function, so every decision is tested without a GPU.

mod build;
mod builder;
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

use crate::caps::{Caps, PackedProducts};
use crate::cost;
use crate::error::{Error, Result};
use crate::kernel::{KernelDef, Library, Reject, Role, Variant};
use crate::problem::{Precision, Problem};
use peel::Peeled;
use piece::{Piece, Step};
use setup::Setup;
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

/// A candidate and what became of it.
#[derive(Clone)]
pub(crate) struct Candidate {
    pub(crate) kernel: &'static KernelDef,
    pub(crate) variant: Variant,
    /// The padding that was asked for.
    pub(crate) pad: Option<u32>,
    pub(crate) splits: u64,
    pub(crate) verdict: Result<Laid, Reject>,
}

/// How a candidate computes a piece.
#[derive(Clone)]
pub(crate) struct Laid {
    /// Estimated seconds.
    cost: f64,
    /// Seconds for compiling its texts, which count besides.
    compiling: f64,
    /// One setup for each of [`Piece::kinds`].
    setups: Vec<Setup>,
}

impl Laid {
    /// The estimate that the planner compares.
    fn weight(&self) -> f64 {
        self.cost + self.compiling
    }
}

impl Candidate {
    fn choice(&self, cost: f64) -> Choice {
        Choice {
            kernel: self.kernel.name,
            variant: self.variant.name,
            pad: self.pad,
            splits: self.splits,
            cost,
        }
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
/// `Shape`, `Strides`, `Overflow`, `BufferTooSmall`, `Unsupported` for a problem that cannot be
/// run; `TooLarge` if not even a piece of it can be bound on these `caps`; `UnknownKernel` for a
/// forced name that is not in the table; `NoKernel` if every candidate was rejected.
pub fn plan(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Result<Plan> {
    let problem = check(problem)?;
    forced.map_or(Ok(()), |forced| forced.known(library))?;
    match problem.gathered {
        Some(_) => gathering::planned(&problem, caps, library, forced),
        None => Ok(planned(&problem, caps, library, forced)?.0),
    }
}

/// The plan of a checked problem, and its weight.
fn planned(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Result<(Plan, f64)> {
    let (mut plan, mut weight) = (Plan::without_passes(*problem), 0.0);
    if problem.m == 0 || problem.n == 0 || problem.entries() == 0 {
        return Ok((plan, weight));
    }
    let (pieces, cuts) = ranges::cut(problem, caps, library, forced)?;
    plan.cuts = cuts;
    for piece in &pieces {
        let candidates = candidates(piece, caps, library, forced);
        let Some((candidate, laid)) = best(&candidates) else {
            return Err(Error::NoKernel(explain::rejections(&candidates)));
        };
        let peeled = match forced {
            None if piece.steps() == 1 => {
                peel::peel(&piece.problem, caps, library, &candidate.variant, laid.weight())
            }
            _ => None,
        };
        let whole =
            || vec![Peeled { piece: *piece, candidate: candidate.clone(), laid: laid.clone() }];
        for (index, Peeled { piece, candidate, laid }) in
            peeled.unwrap_or_else(whole).into_iter().enumerate()
        {
            weight += laid.weight();
            let choice = candidate.choice(laid.cost);
            let choice = Choice { splits: laid.setups[0].splits, ..choice };
            match index {
                0 => plan.choice = plan.choice.or(Some(choice)),
                _ => plan.edges.push(choice),
            }
            for (piece, laid) in late::cut(piece, laid, &candidate, caps, &mut plan.late) {
                let mut built = build::build(&piece, problem.grouping, caps, &candidate, &laid)?;
                if let Some(first) = built.passes.first_mut() {
                    first.piece_seconds = Some(laid.cost);
                }
                plan.passes.extend(built.passes);
                plan.scratch_bytes = plan.scratch_bytes.max(built.scratch_bytes);
                plan.packed_bytes = plan.packed_bytes.max(built.packed_bytes);
            }
        }
    }
    for pass in &mut plan.passes {
        pass.beside_c =
            problem.beside_c && pass.bindings.iter().any(|binding| binding.role == Role::C);
    }
    Ok((plan, weight))
}

/// Every kernel, variant and number of splits of K that serves the problem, or the first piece of
/// one that is cut. The cheapest by estimate comes first. A tuner or a benchmark tries them. Each
/// can be forced by its name, `Choice::to_string()`; add `+k1` if K is to stay whole.
///
/// # Errors
/// The errors of [`plan`], but none when there is nothing to choose from.
pub fn choices(problem: &Problem, caps: &Caps, library: &Library) -> Result<Vec<Choice>> {
    let (pieces, _) = ranges::cut(&check(problem)?, caps, library, None)?;
    let all = candidates(&pieces[0], caps, library, None);
    let k = pieces[0].step(0).k;
    // K is split at whole steps, so there may be fewer splits than were asked for.
    let choice = |candidate: &Candidate| {
        let choice = candidate.choice(candidate.verdict.as_ref().ok()?.cost);
        let length = piece::split_length(k, choice.splits, candidate.variant.bk.into());
        Some(Choice { splits: piece::splits_of(k, length), ..choice })
    };
    let mut accepted: Vec<_> = all.iter().filter_map(choice).collect();
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

/// The cheapest of the accepted candidates, compiling included.
fn best(candidates: &[Candidate]) -> Option<(&Candidate, &Laid)> {
    let accepted = candidates
        .iter()
        .filter_map(|candidate| Some((candidate, candidate.verdict.as_ref().ok()?)));
    accepted.min_by(|(_, a), (_, b)| a.weight().total_cmp(&b.weight()))
}

/// Every candidate with its cost or the reason against it.
fn candidates(
    piece: &Piece,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Vec<Candidate> {
    let mut all = Vec::new();
    let steps = piece.kinds(caps);
    let pad = forced.and_then(|forced| forced.pad);
    for (kernel, variant) in variants(library, forced) {
        let padded = pad.map_or(Ok(*variant), |pad| variant.padded(pad));
        for splits in split_counts(piece, caps, kernel, variant, forced) {
            let verdict = padded.clone().and_then(|variant| {
                lay(piece, &steps, caps, kernel, &variant, splits, forced.is_some())
            });
            let variant = *padded.as_ref().unwrap_or(variant);
            all.push(Candidate { kernel, variant, pad, splits, verdict });
        }
    }
    all
}

/// Every kernel and variant, or those that are forced.
fn variants(
    library: &Library,
    forced: Option<&Forced>,
) -> impl Iterator<Item = (&'static KernelDef, &'static Variant)> {
    let all = library
        .kernels
        .iter()
        .flat_map(|kernel| kernel.variants.iter().map(move |variant| (kernel, variant)));
    all.filter(move |(kernel, variant)| {
        forced.is_none_or(|f| {
            f.kernel == kernel.name && f.variant.as_deref().is_none_or(|name| name == variant.name)
        })
    })
}

/// The numbers of splits of K worth a look: powers of two, while each keeps several steps of work.
fn split_counts(
    piece: &Piece,
    caps: &Caps,
    kernel: &KernelDef,
    variant: &Variant,
    forced: Option<&Forced>,
) -> Vec<u64> {
    if let Some(splits) = forced.and_then(|f| f.splits) {
        return vec![splits];
    }
    let problem = &variant.multiplied(&piece.step(0));
    let least = least_splits(&piece.step(0), variant);
    let mut counts = vec![least];
    if kernel.splits {
        let tile = [variant.bm, variant.bn].map(u64::from);
        let tiles = problem.grouping.expected_tiles([problem.m, problem.n], 1, tile) as u64;
        let wanted = 4 * caps.rates().cores as u64;
        let mut splits = 2 * least;
        while splits <= 64
            && problem.k / splits >= 2 * u64::from(variant.bk)
            && tiles.saturating_mul(splits / 2) < wanted
        {
            counts.push(splits);
            splits *= 2;
        }
    }
    counts
}

/// The fewest splits of K that are as exact as the precision wants.
fn least_splits(problem: &Problem, variant: &Variant) -> u64 {
    let multiplied = variant.multiplied(problem);
    let split = multiplied.a.format != problem.a.format;
    let strict = split && problem.precision == Precision::SplitF32;
    let chains = multiplied.k.div_ceil(Precision::CHAIN);
    if strict && variant.chain() == 0 { chains.max(1) } else { 1 }
}

/// Lays a candidate out with its cost, or says why it does not serve.
fn lay(
    piece: &Piece,
    steps: &[Step],
    caps: &Caps,
    kernel: &KernelDef,
    variant: &Variant,
    splits: u64,
    forced: bool,
) -> Result<Laid, Reject> {
    let problem = &piece.step(0);
    let limit = |what: &str, needed: u64, allowed: u64| {
        if needed <= allowed {
            Ok(())
        } else {
            Err(Reject(format!("{what}: {needed} needed, {allowed} allowed")))
        }
    };
    let schedule_bytes = match variant.unit() {
        Some(_) => 0,
        None => kernel.kit.schedule_bytes(problem.grouping),
    };
    limit(
        "bytes of workgroup memory",
        ((kernel.workgroup_bytes)(variant, problem, caps) + schedule_bytes).into(),
        caps.max_workgroup_bytes.into(),
    )?;
    limit("invocations", variant.threads.into(), caps.max_threads().into())?;
    if let Some(unit) = variant.unit() {
        unit.serves(problem, caps)?;
    }
    if let (true, PackedProducts::Absent(why)) = (variant.multiplies_bytes(), caps.packed_products)
    {
        return Err(Reject(format!("its products of bytes are off: {why}")));
    }
    if caps.fxc && variant.is_beyond_fxc() {
        return Err(Reject("FXC takes too long to compile it; DXC does not".into()));
    }
    let least = least_splits(problem, variant);
    if splits < least {
        return Err(Reject(format!(
            "the precision split-f32 asks for K in {least} splits, which keep sums short"
        )));
    }
    if splits > 1 && !kernel.splits {
        return Err(Reject(format!("K cannot be split ({splits} splits) under this kernel")));
    }
    // Ranges of K after the first may have to be packed even if the first need not.
    let setups =
        steps.iter().map(|step| Setup::new(piece, step, caps, kernel.kit, variant, splits));
    let setups = setups.collect::<Result<Vec<_>, _>>()?;
    let setup = &setups[0];
    limit(
        "workgroups",
        setup.workgroups,
        u64::from(caps.max_workgroups).pow(2).min(u32::MAX.into()),
    )?;
    limit("storage buffers", setup.storage_buffers, caps.max_storage_buffers.into())?;
    limit("bytes of scratch", setup.scratch_bytes, limits::scratch_limit(caps).0)?;
    limit("elements of scratch", setup.scratch_bytes / 4, u32::MAX.into())?;
    for setup in &setups {
        if let Some((_, needed, allowed)) = ranges::unbound(&setup.fetches, caps) {
            limit("bytes of packed operands", needed, allowed)?;
        }
    }
    if !forced {
        (kernel.admit)(problem, variant, caps)?;
    }
    let rates = caps.rates();
    let finish = if setup.two_passes {
        // Partial sums are written and read again.
        let pass = 2.0 * setup.scratch_bytes as f64 / rates.bandwidth + rates.dispatch;
        if setup.two_finishes { 2.0 * pass } else { pass }
    } else {
        0.0
    };
    let pack = setups.iter().map(|setup| setup.fetches.packing_seconds(caps)).sum::<f64>();
    let decode = setup.fetches.b.map_or(0.0, |b| b.decode(variant));
    let read = setup.fetches.read(&variant.multiplied(problem));
    let product = cost::seconds(&read, caps, variant, splits, decode) + setup.idle;
    let step = product + pack / setups.len() as f64;
    let finishes = u64::from(setup.two_passes) + u64::from(setup.two_finishes);
    let others = finishes + setup.fetches.packed().count() as u64;
    let compiling = cost::compiling(caps, kernel, variant, others);
    Ok(Laid { cost: piece.steps() as f64 * step + finish, compiling, setups })
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
