//! From a chosen candidate to passes: files, bindings, parameters, grids.

use super::builder::Builder;
use super::fetch::Fetch;
use super::group_table::GroupTable;
use super::params::params;
use super::piece::{Piece, Step};
use super::setup::{Ends, Setup};
use super::side::Side;
use super::{Candidate, Part, Pass, Plan};
use crate::caps::{Caps, DeviceClass};
use crate::error::{Error, Result};
use crate::kernel::{Pack, Variant};
use crate::params::Params;
use crate::problem::Grouping;
use crate::role::Role;

/// The label of finishing passes.
const FINISH: &str = "finish";
/// Columns of C that an invocation of a finishing pass has.
const FINISHED: u32 = 4;
/// Splits of K that an invocation of a finishing pass reads at once, at most.
const MAX_AHEAD: u64 = 8;

/// Adds the passes of one kernel to a plan.
pub(super) fn build(candidate: &Candidate, caps: &Caps, plan: &mut Plan) -> Result<()> {
    let Candidate { piece, setups, .. } = candidate;
    let (whole, first) = (plan.problem.grouping, &setups[0]);
    let mut packed_bytes =
        setups.iter().map(|setup| setup.fetches.packed_bytes()).max().unwrap_or(0);
    let table = GroupTable::new(piece, first, packed_bytes);
    let mut passes = Vec::new();
    packed_bytes = table.map_or(packed_bytes, GroupTable::end);
    // A table is made anew for a pass whose tiles differ.
    let mut made: Option<Pass> = None;
    let mut with_table = |tile, mut reader: Pass| {
        let wanted = table.map(|table| table.pass(piece, whole, caps, first, tile, &reader.params));
        let new = wanted.filter(|wanted| made.replace(wanted.clone()).as_ref() != Some(wanted));
        let by_words = |part: &Part| first.kit.by_words.is_some_and(|own| own.finish == part.file);
        if !reader.strides && !reader.parts.iter().any(by_words) {
            reader.indirect = table.and_then(GroupTable::workgroups);
        }
        new.into_iter().chain([reader])
    };
    for index in 0..piece.steps() {
        let setup = match setups.iter().find(|setup| setup.step == index) {
            Some(setup) => *setup,
            // This range lies as one of the setups does, at other places.
            None => {
                let step = Step::new(piece, index, caps);
                let (kernel, variant) = (candidate.kernel, &candidate.variant);
                Setup::new(piece, &step, caps, kernel.kit, variant, candidate.splits)
                    .map_err(|reject| Error::DeviceLimit(reject.0))?
            }
        };
        let [a, b] = Side::both(&setup.problem);
        for (role, packing) in setup.fetches.packed() {
            let side = if role == Role::A { &a } else { &b };
            passes.push(packing.pass(side, caps, params(piece, &setup), &setup, whole)?);
        }
        let mainloop = mainloop(piece, (whole, table), caps, &setup, candidate);
        passes.extend(with_table([candidate.variant.bm, candidate.variant.bn], mainloop));
    }
    for &ends in first.finishes() {
        let finish = finish(piece, (whole, table), caps, first, ends)?;
        passes.extend(with_table(caps.tile(first.kit.finish_tile, FINISHED), finish));
    }
    if let Some(first) = passes.first_mut() {
        first.piece_seconds = Some(candidate.cost);
    }
    plan.passes.extend(passes);
    plan.scratch_bytes = plan.scratch_bytes.max(first.storing.scratch_bytes);
    plan.packed_bytes = plan.packed_bytes.max(packed_bytes);
    Ok(())
}

fn mainloop(
    piece: &Piece,
    (whole, table): (Grouping, Option<GroupTable>),
    caps: &Caps,
    setup: &Setup,
    candidate: &Candidate,
) -> Pass {
    let (kernel, variant, problem) = (candidate.kernel, &candidate.variant, &setup.problem);
    let label = format!("{}/{}", kernel.name, variant.name);
    let workgroup_bytes = (kernel.workgroup_bytes)(variant, problem, caps);
    let mut builder = Builder::new(
        label,
        params(piece, setup),
        variant.threads,
        workgroup_bytes,
        (setup.kit, setup.windows),
    );
    if let Some(unit) = variant.unit() {
        builder.unit(unit);
    }
    builder.schedule(setup, whole, table);
    for (side, fetch) in Side::both(problem).iter().zip([setup.fetches.a, setup.fetches.b]) {
        read(&mut builder, setup, variant, side, fetch.as_ref());
        if let Some(operand) = &kernel.operand {
            let constants = (operand.constants)(side.along_k, side.operand.transposed);
            builder.part(operand.file, Some(side.name), constants);
        }
    }
    if let Some(pack) = setup.kit.pack.as_ref().filter(|_| variant.unit().is_some()) {
        packed(&mut builder, setup, pack);
    }
    if setup.storing.two_passes {
        builder.part(setup.kit.partial, None, vec![("ADD", u32::from(setup.step > 0))]);
        builder.bind(Role::Scratch, true, [0, setup.storing.scratch_bytes], 16);
    } else {
        builder.epilogue(setup, Ends::All);
    }
    builder.part(kernel.file, None, (kernel.constants)(variant, problem, caps));
    builder.pass.strides = setup.scheduling.strides;
    let workgroups = match setup.scheduling.strides {
        true => setup.scheduling.workgroups.min(striding(caps)),
        false => setup.scheduling.workgroups,
    };
    builder.finish(Some(setup.mainloop_roles()), workgroups, caps)
}

/// Adds the loader of A or B, and where the operand has its lines.
fn read(
    builder: &mut Builder,
    setup: &Setup,
    variant: &Variant,
    side: &Side,
    fetch: Option<&Fetch>,
) {
    match fetch {
        Some(Fetch { loader, packing: Some(packing) }) => {
            builder.load_packed(side, loader, packing);
        }
        fetch => {
            let loader = fetch.map(|fetch| fetch.loader);
            builder.load(side.name, side.role, loader, Some(&side.operand));
            let groups = if side.role == Role::B { variant.groups(&setup.problem) } else { 1 };
            if groups > 1 {
                builder.constant(("X_GROUPS", groups));
            }
        }
    }
    if let Some(file) = setup.kit.gathered.filter(|_| side.gathered) {
        builder.gathered(side.name, file, &setup.problem);
    }
    builder.axes(side.name, side.along_k);
}

/// Adds what a mainloop of a matrix unit asks about packed operands: their slabs, and the powers of
/// two by which they were divided.
fn packed(builder: &mut Builder, setup: &Setup, pack: &Pack) {
    for (side, fetch) in Side::both(&setup.problem).iter().zip([setup.fetches.a, setup.fetches.b]) {
        let packing = fetch.and_then(|fetch| fetch.packing);
        builder.slabs(pack, side.name, packing.as_ref());
        if let Some(packing) = packing {
            builder.powers(pack, side, &packing);
            builder.pass.params.k = setup.tiling.k as u32;
        }
    }
    if setup.fetches.divided() {
        builder.part(pack.divided, None, Vec::new());
    }
}

/// Workgroups that stride over the tiles of a pass. A GPU holds fewer at a time, so that others
/// take the place of early ones. A software device has few cores, and each workgroup costs it time.
fn striding(caps: &Caps) -> u64 {
    if caps.class == DeviceClass::Cpu { 16 } else { 2048 }
}

/// The pass that adds up splits of K: by tiles as mainloops have them, or word by word if rows of C
/// share words.
fn finish(
    piece: &Piece,
    (whole, table): (Grouping, Option<GroupTable>),
    caps: &Caps,
    setup: &Setup,
    ends: Ends,
) -> Result<Pass> {
    let (problem, kit) = (&setup.problem, setup.kit);
    let [bm, bn] = caps.tile(kit.finish_tile, FINISHED);
    let tiles_m = problem.grouping.tiles_m(problem.m, bm.into());
    let tiles_n = problem.n.div_ceil(bn.into());
    let end = setup.windows[Role::C as usize].elements;
    let words = end.div_ceil(2) - problem.c.offset / 2;
    // If two passes finish, the first leaves one split.
    let splits = if ends == Ends::Residual { 1 } else { setup.tiling.scratch_splits };
    let by_tiles = setup.storing.by_tiles || ends == Ends::ButResidual;
    let params = Params {
        splits: 1,
        scratch_splits: splits as u32,
        tiles_m: tiles_m as u32,
        tiles_n: tiles_n as u32,
        shares: words as u32,
        ..params(piece, setup)
    };
    let (file, constants, threads, workgroups) = match kit.by_words.filter(|_| !by_tiles) {
        None => (
            kit.finish,
            vec![("BM", bm), ("BN", bn)],
            bm * bn / FINISHED,
            tiles_m * tiles_n * problem.batch,
        ),
        Some(by_words) => {
            let threads = by_words.threads.min(caps.max_threads());
            (by_words.finish, vec![("THREADS", threads)], threads, words.div_ceil(threads.into()))
        }
    };
    let allowed = u64::from(caps.max_workgroups).pow(2);
    if workgroups > allowed {
        return Err(Error::DeviceLimit(format!(
            "the finishing pass needs {workgroups} workgroups, {allowed} allowed"
        )));
    }
    let mut builder = Builder::new(FINISH.into(), params, threads, 0, (setup.kit, setup.windows));
    builder.schedule(setup, whole, table);
    builder.part(
        kit.k_splits,
        None,
        vec![("AHEAD", splits.next_power_of_two().min(MAX_AHEAD) as u32)],
    );
    let keeps = ends == Ends::ButResidual;
    if let Some(two) = kit.residual_pass.filter(|_| keeps) {
        builder.part(two.keep, None, Vec::new());
    }
    builder.bind(Role::Scratch, keeps, [0, setup.storing.scratch_bytes], 16);
    // The lines of A are plain here: mainloops have left out sums of rows that do not exist.
    builder.epilogue(setup, ends);
    builder.part(file, None, constants);
    Ok(builder.finish(Some(setup.finish_roles(ends)), workgroups, caps))
}
