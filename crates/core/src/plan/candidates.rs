//! The kernels that could compute a piece of a product, each with its estimate or the reason
//! against it.

use super::Choice;
use super::forced::{Forced, variants};
use super::limits::scratch_limit;
use super::piece::{Piece, Step, least_splits};
use super::setup::Setup;
use crate::caps::{Caps, PackedProducts};
use crate::cost;
use crate::kernel::{KernelDef, Library, Reject, Variant};
use crate::problem::Problem;

/// A kernel that serves a piece of a product, laid out.
#[derive(Clone)]
pub(super) struct Candidate {
    pub(super) piece: Piece,
    pub(super) kernel: &'static KernelDef,
    pub(super) variant: Variant,
    /// The padding that was asked for.
    pad: Option<u32>,
    /// The splits of K that were asked for.
    pub(super) splits: u64,
    /// Estimated seconds.
    pub(super) cost: f64,
    /// Seconds for compiling its texts, which count besides.
    pub(super) compiling: f64,
    /// One setup for each of [`Piece::kinds`].
    pub(super) setups: Vec<Setup>,
}

/// The candidates for a piece: the accepted ones, the cheapest first, and the others, with the
/// reasons.
#[derive(Default)]
pub(super) struct Candidates {
    pub(super) accepted: Vec<Candidate>,
    rejected: Vec<(Choice, Reject)>,
}

impl Candidate {
    /// Lays a kernel out with its cost, or says why it does not serve.
    fn new(
        piece: &Piece,
        steps: &[Step],
        caps: &Caps,
        kernel: &'static KernelDef,
        variant: Variant,
        splits: u64,
        forced: bool,
    ) -> Result<Self, Reject> {
        let problem = &piece.step(0);
        serves(problem, caps, kernel, &variant, splits)?;
        // Ranges of K after the first may have to be packed even if the first need not.
        let setups =
            steps.iter().map(|step| Setup::new(piece, step, caps, kernel.kit, &variant, splits));
        let setups = setups.collect::<Result<Vec<_>, _>>()?;
        fits(&setups, caps)?;
        if !forced {
            (kernel.admit)(problem, &variant, caps)?;
        }
        let setup = &setups[0];
        let pack = setups.iter().map(|setup| setup.fetches.packing_seconds(caps)).sum::<f64>();
        let decode = setup.fetches.b.map_or(0.0, |b| b.decode(&variant));
        let read = setup.fetches.read(&variant.multiplied(problem));
        let product = cost::seconds(&read, caps, &variant, splits, decode) + setup.scheduling.idle;
        let step = product + pack / setups.len() as f64;
        let cost = piece.steps() as f64 * step + setup.finishing_seconds(caps);
        let others = setup.finishes().len() + setup.fetches.packed().count();
        let compiling = cost::compiling(caps, kernel, &variant, others as u64);
        Ok(Candidate { piece: *piece, kernel, variant, pad: None, splits, cost, compiling, setups })
    }

    /// This kernel for another piece.
    pub(super) fn on(&self, piece: &Piece, caps: &Caps) -> Option<Self> {
        let Candidate { kernel, variant, splits, pad, .. } = *self;
        let other =
            Candidate::new(piece, &piece.kinds(caps), caps, kernel, variant, splits, true).ok()?;
        Some(Candidate { pad, ..other })
    }

    /// The estimate that the planner compares.
    pub(super) fn weight(&self) -> f64 {
        self.cost + self.compiling
    }

    pub(super) fn choice(&self) -> Choice {
        let Candidate { kernel, variant, pad, splits, cost, .. } = *self;
        Choice { kernel: kernel.name, variant: variant.name, pad, splits, cost }
    }
}

impl Candidates {
    /// Every kernel, variant and number of splits of K that is worth a look, or that is forced.
    pub(super) fn new(
        piece: &Piece,
        caps: &Caps,
        library: &Library,
        forced: Option<&Forced>,
    ) -> Self {
        let mut all = Candidates::default();
        let steps = piece.kinds(caps);
        let pad = forced.and_then(|forced| forced.pad);
        for (kernel, variant) in variants(library, forced) {
            let padded = pad.map_or(Ok(*variant), |pad| variant.padded(pad));
            for splits in split_counts(piece, caps, kernel, variant, forced) {
                let laid = padded.clone().and_then(|variant| {
                    Candidate::new(piece, &steps, caps, kernel, variant, splits, forced.is_some())
                });
                let (kernel, variant) = (kernel.name, variant.name);
                match laid {
                    Ok(candidate) => all.accepted.push(Candidate { pad, ..candidate }),
                    Err(reject) => all
                        .rejected
                        .push((Choice { kernel, variant, pad, splits, cost: 0.0 }, reject)),
                }
            }
        }
        all.accepted.sort_by(|a, b| a.weight().total_cmp(&b.weight()));
        all
    }

    /// Each reason against candidates, once, with their names: `gemv/1x4 1x8; coop/…`.
    pub(super) fn reasons(&self) -> Vec<(&str, String)> {
        let mut groups: Vec<(&str, String, &str)> = Vec::new();
        for (choice, Reject(why)) in &self.rejected {
            let name = choice.to_string();
            match groups.iter_mut().find(|(reason, ..)| reason == why) {
                Some((_, names, kernel)) if *kernel == choice.kernel => {
                    let variant = name.strip_prefix(*kernel).unwrap_or(&name);
                    *names += &format!(" {}", variant.trim_start_matches('/'));
                }
                Some((_, names, kernel)) => {
                    *names += &format!("; {name}");
                    *kernel = choice.kernel;
                }
                None => groups.push((why, name, choice.kernel)),
            }
        }
        groups.into_iter().map(|(reason, names, _)| (reason, names)).collect()
    }

    /// All reasons in one line.
    pub(super) fn rejections(&self) -> String {
        let named = |(reason, names): (&str, String)| format!("{reason}: {names}");
        self.reasons().into_iter().map(named).collect::<Vec<_>>().join("; ")
    }
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

fn limit(what: &str, needed: u64, allowed: u64) -> Result<(), Reject> {
    if needed <= allowed {
        Ok(())
    } else {
        Err(Reject(format!("{what}: {needed} needed, {allowed} allowed")))
    }
}

/// Refuses a kernel that the device lacks something for, or that computes something else.
fn serves(
    problem: &Problem,
    caps: &Caps,
    kernel: &KernelDef,
    variant: &Variant,
    splits: u64,
) -> Result<(), Reject> {
    let schedule_bytes = match variant.unit() {
        Some(_) => 0,
        None => kernel.kit.schedule_bytes(problem.grouping),
    };
    let loaders = kernel.kit.operands.iter().filter(|o| (o.accepts)(problem.b.format, caps));
    let loader_bytes = loaders.map(|loader| loader.workgroup_bytes).max().unwrap_or(0);
    limit(
        "bytes of workgroup memory",
        ((kernel.workgroup_bytes)(variant, problem, caps) + schedule_bytes + loader_bytes).into(),
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
        return Err(Reject(format!("it cannot split K ({splits} splits)")));
    }
    Ok(())
}

/// Refuses a layout that takes more than the device has.
fn fits(setups: &[Setup], caps: &Caps) -> Result<(), Reject> {
    let setup = &setups[0];
    limit(
        "workgroups",
        setup.scheduling.workgroups,
        u64::from(caps.max_workgroups).pow(2).min(u32::MAX.into()),
    )?;
    limit("storage buffers", setup.storage_buffers().into(), caps.max_storage_buffers.into())?;
    limit("bytes of scratch", setup.storing.scratch_bytes, scratch_limit(caps).0)?;
    limit("elements of scratch", setup.storing.scratch_bytes / 4, u32::MAX.into())?;
    for setup in setups {
        if let Some((_, needed, allowed)) = setup.fetches.unbound(caps) {
            limit("bytes of packed operands", needed, allowed)?;
        }
    }
    Ok(())
}
