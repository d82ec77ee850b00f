//! From a chosen candidate to passes: loaders, stores, bindings, parameters, grids.

use super::builder::Builder;
use super::fetch::{Fetch, fetch, scalar_loader};
use super::pack::Side;
use super::ranges::Piece;
use super::{Candidate, Choice, Pass, check};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{Access, Kit, Load, OperandDef, Params, Reject, Role, ScheduleDef, StoreDef, Variant};
use crate::problem::{DType, Format, Grouping, Operand, Problem};

/// The label of finishing passes.
const FINISH: &str = "finish";
/// Parts of K that an invocation of a finishing pass reads at once, at most.
const MAX_AHEAD: u64 = 8;

/// The range of an operand's storage that a pass binds.
#[derive(Clone, Copy, Default)]
pub(super) struct Window {
    /// Elements of the storage before it. A binding starts there, at a multiple of the device's alignment; and of 16 bytes, so that vectors keep
    /// theirs.
    pub(super) start: u64,
    /// Elements in it.
    pub(super) elements: u64,
}

/// What to bind of an operand that ends at an element.
pub(super) fn window(operand: &Operand, end: u64, caps: &Caps) -> Window {
    let alignment = u64::from(caps.storage_alignment).next_multiple_of(16);
    // All planes start with the same block, each at a multiple of the alignment, which is a power of two.
    let blocks = operand.format.planes().iter().map(|plane| alignment >> plane.bytes.trailing_zeros());
    let step = operand.format.block() * blocks.map(|blocks| blocks.max(1)).max().unwrap_or(1);
    let start = operand.offset / step * step;
    Window { start, elements: end.saturating_sub(start) }
}

/// What a candidate would need for one pass over K.
pub(super) struct Layout {
    /// The pass's product, with offsets from where its bindings start.
    pub(super) problem: Problem,
    pub(super) kit: &'static Kit,
    pub(super) windows: [Window; Role::COUNT],
    pub(super) workgroups: u64,
    pub(super) storage_buffers: u64,
    pub(super) scratch_bytes: u64,
    pub(super) packed_bytes: u64,
    pub(super) two_passes: bool,
    /// Whether C can be stored four columns of a row at a time.
    by_tiles: bool,
    tiles_m: u64,
    tiles_n: u64,
    splits: u64,
    k_split: u64,
    /// Which range of K it is, and parts of K in scratch memory: those of the first range, to which later ones add.
    step: u64,
    parts: u64,
    pub(super) schedule: &'static ScheduleDef,
    a: Option<Fetch>,
    b: Option<Fetch>,
    pub(super) bias: Option<&'static OperandDef>,
    pub(super) residual: Option<&'static OperandDef>,
    pub(super) store: &'static StoreDef,
}

impl Layout {
    /// Which operands are packed, and the bytes that each then takes.
    pub(super) fn packed(&self) -> impl Iterator<Item = (Role, u64)> {
        let sides = [(Role::A, self.a), (Role::B, self.b)].into_iter();
        sides.filter_map(|(role, fetch)| Some((role, fetch?.packing?.bytes)))
    }
}

pub(super) fn layout(
    piece: &Piece,
    step: u64,
    caps: &Caps,
    kit: &'static Kit,
    variant: &Variant,
    splits: u64,
) -> Result<Layout, Reject> {
    // Strides that play a part in the whole only must not keep a piece from vector loads, nor be too long for 32 bits.
    let mut problem = check::normal(&piece.step(step));
    let schedule = kit
        .schedules
        .iter()
        .find(|schedule| (schedule.serves)(problem.grouping))
        .ok_or_else(|| Reject(format!("no schedule for {:?}", problem.grouping)))?;
    let mut windows = [Window::default(); Role::COUNT];
    let whole = problem;
    for (role, operand, strides) in problem.operands() {
        let end = check::span(&whole, operand, &strides).unwrap_or(0);
        windows[role as usize] = window(operand, end, caps);
        operand.offset -= windows[role as usize].start;
    }
    let problem = &problem;
    let tiles_m = problem.grouping.tiles_m(problem.m, variant.bm.into());
    let tiles_n = problem.n.div_ceil(variant.bn.into());
    let bk = u64::from(variant.bk);
    let k_split = piece.k_step.div_ceil(splits).next_multiple_of(bk).max(bk);
    let in_parts = |k: u64| k.div_ceil(k_split).max(1);
    let splits = in_parts(problem.k);
    let parts = in_parts(piece.step(0).k);

    // With K = 0 there is no element of A or B to bind.
    let present = problem.k > 0;
    // Where the storage of an operand runs along the tile, vectors must not straddle the tile's start either.
    let row_step = if problem.grouping.has_aligned_rows() { variant.bm.into() } else { 1 };
    let a_step = if problem.a.transposed { row_step } else { 0 };
    let b_step = if problem.b.transposed { 0 } else { variant.bn.into() };
    let sides = Side::both(problem);
    let a = present.then(|| fetch(kit, caps, variant, &sides[0], a_step, 0)).transpose()?;
    let packed = |fetch: Option<Fetch>| fetch.and_then(|fetch| fetch.packing).map_or(0, |packing| packing.end());
    let b = present.then(|| fetch(kit, caps, variant, &sides[1], b_step, packed(a))).transpose()?;
    let epilogue = &problem.epilogue;
    let bias = epilogue.bias.map(|bias| scalar_loader(kit, caps, &bias.operand)).transpose()?;
    let residual = epilogue.residual.map(|residual| scalar_loader(kit, caps, &residual)).transpose()?;

    let dtype = check::dense_type(&problem.c);
    let direct = kit.stores.iter().find(|s| (s.accepts)(dtype, caps) && stores_tiles(s, problem));
    let by_tiles = direct.is_some();
    let two_passes = parts > 1 || piece.steps() > 1 || !by_tiles;
    let by_words = || kit.stores.iter().find(|s| (s.accepts)(dtype, caps) && s.words);
    let store = direct.or_else(by_words).ok_or_else(|| Reject(format!("no store for {dtype}")))?;

    let planes = |fetch: Option<Fetch>, operand: &Operand| fetch.map_or(0, |_| operand.format.planes().len() as u64);
    let operands = planes(a, &problem.a) + planes(b, &problem.b);
    let ends = u64::from(bias.is_some()) + u64::from(residual.is_some()) + 1;
    let offsets = problem.grouping.operands().count() as u64;
    let storage_buffers = if two_passes { (operands + 1).max(ends + 1) } else { operands + ends } + offsets;
    let scratch_bytes = if two_passes {
        let row = problem.n.next_multiple_of(4);
        let elements = u128::from(parts) * u128::from(problem.batch) * u128::from(problem.m) * u128::from(row);
        u64::try_from(elements * 4).unwrap_or(u64::MAX)
    } else {
        0
    };
    let workgroups = tiles_m.saturating_mul(tiles_n).saturating_mul(problem.batch).saturating_mul(splits);
    Ok(Layout {
        problem: *problem,
        kit,
        windows,
        workgroups,
        storage_buffers,
        scratch_bytes,
        packed_bytes: packed(a).max(packed(b)),
        two_passes,
        by_tiles,
        tiles_m,
        tiles_n,
        splits,
        k_split,
        step,
        parts,
        schedule,
        a,
        b,
        bias,
        residual,
        store,
    })
}

/// Whether four neighbouring columns of any row may be stored by one invocation without touching a word of another's.
fn stores_tiles(store: &StoreDef, problem: &Problem) -> bool {
    let c = &problem.c;
    [c.offset, c.ld, c.batch_stride].iter().all(|number| number.is_multiple_of(store.vector))
        && (!store.whole || problem.n.is_multiple_of(store.vector))
}

/// One kernel, ready to run.
pub(super) struct Built {
    pub(super) choice: Choice,
    pub(super) passes: Vec<Pass>,
    pub(super) scratch_bytes: u64,
    pub(super) packed_bytes: u64,
}

/// The passes of one kernel. `whole` is the grouping of the whole product.
pub(super) fn build(
    piece: &Piece,
    whole: Grouping,
    caps: &Caps,
    choice: Choice,
    candidate: &Candidate,
) -> Result<Built> {
    let layout = |step| {
        layout(piece, step, caps, candidate.kernel.kit, &candidate.variant, candidate.splits)
            .map_err(|reject| Error::NoKernel(reject.0))
    };
    let first = layout(0)?;
    let choice = Choice { splits: first.splits, ..choice };
    let (mut passes, mut packed_bytes) = (Vec::new(), 0);
    for step in 0..piece.steps() {
        let layout = layout(step)?;
        for (side, fetch) in Side::both(&layout.problem).iter().zip([layout.a, layout.b]) {
            if let Some(packing) = fetch.and_then(|fetch| fetch.packing) {
                passes.push(packing.pass(side, caps, params(piece, &layout), &layout)?);
            }
        }
        packed_bytes = packed_bytes.max(layout.packed_bytes);
        passes.push(mainloop(piece, whole, caps, &layout, candidate));
    }
    if first.two_passes {
        passes.push(finish(piece, whole, caps, &first)?);
    }
    Ok(Built { choice, passes, scratch_bytes: first.scratch_bytes, packed_bytes })
}

fn mainloop(piece: &Piece, whole: Grouping, caps: &Caps, layout: &Layout, candidate: &Candidate) -> Pass {
    let (kernel, variant, problem, kit) = (candidate.kernel, &candidate.variant, &layout.problem, layout.kit);
    let label = format!("{}/{}", kernel.name, variant.name);
    let workgroup_bytes = (kernel.workgroup_bytes)(variant, problem);
    let mut builder = Builder::new(label, params(piece, layout), variant.threads, workgroup_bytes, layout);
    builder.schedule(whole);
    if let Some(unit) = variant.unit() {
        builder.unit(unit);
    }
    for (side, fetch) in Side::both(problem).iter().zip([layout.a, layout.b]) {
        let name = Some(side.name);
        match fetch {
            Some(Fetch { loader, packing: Some(packing) }) => {
                builder.part(loader.file, name, vec![("X_BINDING", side.role.binding())]);
                builder.packed(side.role, false, &packing, loader.element_bytes);
                builder.pass.params.relocate(side.role, packing.place());
                builder.pass.params.k = side.k.next_multiple_of(variant.bk.into()) as u32;
            }
            fetch => {
                let loader = fetch.map(|fetch| fetch.loader);
                builder.load(side.name, side.role, loader, Some(&side.operand));
            }
        }
        builder.part(kit.lines, name, Vec::new());
        builder.axes(side);
        let has_eights = fetch.is_some_and(|fetch| fetch.loader.loads.contains(&Load::Eights));
        match variant.access {
            Access::Elements => builder.part_if_any(kit.block, name),
            Access::Eights { .. } if !has_eights => builder.part_if_any(kit.pair, name),
            Access::Eights { .. } | Access::Words { .. } => {}
        }
        for file in kernel.operand_files {
            builder.part(file, name, (kernel.operand_constants)(side.along_k, side.operand.transposed));
        }
    }
    if layout.two_passes {
        builder.part(kit.partial, None, vec![("ADD", u32::from(layout.step > 0))]);
        builder.bind(Role::Scratch, true, [0, layout.scratch_bytes], 16);
    } else {
        builder.epilogue();
        builder.part(kit.direct, None, Vec::new());
    }
    builder.part(kernel.file, None, (kernel.constants)(variant));
    builder.finish(layout.workgroups, caps)
}

/// The pass that adds up the parts of K: by tiles as mainloops have them, or by words where rows of C share them.
fn finish(piece: &Piece, whole: Grouping, caps: &Caps, layout: &Layout) -> Result<Pass> {
    let (problem, kit) = (&layout.problem, layout.kit);
    let [bm, bn] = kit.finish_tile;
    let tiles_m = problem.grouping.tiles_m(problem.m, bm.into());
    let tiles_n = problem.n.div_ceil(bn.into());
    let end = layout.windows[Role::C as usize].elements;
    let words = end.div_ceil(2) - problem.c.offset / 2;
    let params = Params {
        splits: 1,
        tiles_m: tiles_m as u32,
        tiles_n: tiles_n as u32,
        c_words: words as u32,
        ..params(piece, layout)
    };
    let (file, constants, threads, workgroups) = match kit.finish_words.filter(|_| !layout.by_tiles) {
        None => (kit.finish, vec![("BM", bm), ("BN", bn)], bm * bn / 4, tiles_m * tiles_n * problem.batch),
        Some(file) => {
            let threads = kit.finish_threads;
            (file, vec![("THREADS", threads)], threads, words.div_ceil(threads.into()))
        }
    };
    let allowed = u64::from(caps.max_workgroups).pow(2);
    if workgroups > allowed {
        return Err(Error::NoKernel(format!("the finishing pass needs {workgroups} workgroups, {allowed} allowed")));
    }
    let mut builder = Builder::new(FINISH.into(), params, threads, 0, layout);
    builder.schedule(whole);
    builder.part(kit.parts, None, vec![("AHEAD", layout.parts.next_power_of_two().min(MAX_AHEAD) as u32)]);
    builder.bind(Role::Scratch, false, [0, layout.scratch_bytes], 16);
    builder.epilogue();
    if layout.by_tiles {
        builder.part(kit.direct, None, Vec::new());
    }
    builder.part(file, None, constants);
    Ok(builder.finish(workgroups, caps))
}

/// The numbers of a pass; `ranges` has seen that they fit.
fn params(piece: &Piece, layout: &Layout) -> Params {
    let problem = &layout.problem;
    let none =
        Operand { format: Format::Dense(DType::F32), transposed: false, offset: 0, ld: 0, batch_stride: 0, len: 0 };
    let (a, b, c) = (&problem.a, &problem.b, &problem.c);
    let bias = problem.epilogue.bias.map_or(none, |bias| bias.operand);
    let residual = problem.epilogue.residual.unwrap_or(none);
    Params {
        m: problem.m as u32,
        n: problem.n as u32,
        k: problem.k as u32,
        entries: problem.entries() as u32,
        a_offset: a.offset as u32,
        a_ld: a.ld as u32,
        a_batch: a.batch_stride as u32,
        b_offset: b.offset as u32,
        b_ld: b.ld as u32,
        b_batch: b.batch_stride as u32,
        c_offset: c.offset as u32,
        c_ld: c.ld as u32,
        c_batch: c.batch_stride as u32,
        bias_offset: bias.offset as u32,
        bias_ld: bias.ld as u32,
        bias_batch: bias.batch_stride as u32,
        residual_offset: residual.offset as u32,
        residual_ld: residual.ld as u32,
        residual_batch: residual.batch_stride as u32,
        alpha: problem.epilogue.alpha.to_bits(),
        beta: problem.epilogue.beta.to_bits(),
        tiles_m: layout.tiles_m as u32,
        tiles_n: layout.tiles_n as u32,
        splits: layout.splits as u32,
        k_split: layout.k_split as u32,
        grid_x: 0,
        c_words: 0,
        parts: layout.parts as u32,
        first_row: piece.first_row as u32,
        first_group: piece.first_group as u32,
        pad0: 0,
        pad1: 0,
    }
}
