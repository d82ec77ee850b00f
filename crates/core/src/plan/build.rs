//! From a chosen candidate to passes: loaders, stores, bindings, parameters, grids.

use super::pack::{Packing, Side};
use super::{Binding, Candidate, Choice, Part, Pass, check};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{Constant, Library, OperandDef, Params, Reject, Role, ScheduleDef, StoreDef, Unit, Variant};
use crate::problem::{Activation, Axis, DType, Format, Operand, Problem};

/// What a candidate would need.
pub(super) struct Layout {
    pub(super) workgroups: u64,
    pub(super) storage_buffers: u64,
    pub(super) scratch_bytes: u64,
    pub(super) packed_bytes: u64,
    pub(super) two_passes: bool,
    tiles_m: u64,
    tiles_n: u64,
    splits: u64,
    k_split: u64,
    schedule: &'static ScheduleDef,
    a: Option<Fetch>,
    b: Option<Fetch>,
    bias: Option<&'static OperandDef>,
    residual: Option<&'static OperandDef>,
    store: &'static StoreDef,
}

/// How a mainloop fetches an operand, packed or from where it lies.
#[derive(Clone, Copy)]
struct Fetch {
    loader: &'static OperandDef,
    packing: Option<Packing>,
}

impl Layout {
    /// Operands that are packed.
    pub(super) fn packings(&self) -> usize {
        [self.a, self.b].iter().flatten().filter(|fetch| fetch.packing.is_some()).count()
    }
}

pub(super) fn layout(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    variant: &Variant,
    splits: u64,
) -> Result<Layout, Reject> {
    let schedule = library
        .schedules
        .iter()
        .find(|schedule| (schedule.accepts)(problem))
        .ok_or_else(|| Reject(format!("no schedule for {:?}", problem.grouping)))?;
    let tiles_m = (schedule.tiles_m)(problem, variant.bm.into());
    let tiles_n = problem.n.div_ceil(variant.bn.into());
    let bk = u64::from(variant.bk);
    let k_split = problem.k.div_ceil(splits).next_multiple_of(bk).max(bk);
    let splits = problem.k.div_ceil(k_split).max(1);

    // With K = 0 there is no element of A or B to bind.
    let present = problem.k > 0;
    // Where the storage of an operand runs along the tile, vectors must not straddle the tile's start either.
    let row_step = if schedule.aligned_rows { variant.bm.into() } else { 1 };
    let a_step = if problem.a.transposed { row_step } else { 0 };
    let b_step = if problem.b.transposed { 0 } else { variant.bn.into() };
    let sides = Side::both(problem);
    let fetch = |side: &Side, step, start| match variant.unit {
        Some(_) => fetch_words(library, caps, side, step, bk, start),
        None => fetch_elements(library, caps, side, step),
    };
    let a = present.then(|| fetch(&sides[0], a_step, 0)).transpose()?;
    let packed = |fetch: Option<Fetch>| fetch.and_then(|fetch| fetch.packing).map_or(0, |packing| packing.end());
    let b = present.then(|| fetch(&sides[1], b_step, packed(a))).transpose()?;
    let epilogue = &problem.epilogue;
    let bias = epilogue.bias.map(|bias| scalar_loader(library, caps, &bias.operand)).transpose()?;
    let residual = epilogue.residual.map(|residual| scalar_loader(library, caps, &residual)).transpose()?;

    let dtype = problem.c.format.dtype();
    let direct = library.stores.iter().find(|s| (s.accepts)(dtype, caps) && stores_tiles(s, problem));
    let two_passes = splits > 1 || direct.is_none();
    let finishing = || library.stores.iter().find(|s| (s.accepts)(dtype, caps) && s.finish_elements > 0);
    let store = if two_passes { finishing() } else { direct };
    let store = store.ok_or_else(|| Reject(format!("no store for {dtype}")))?;

    let quantized = u64::from(matches!(problem.b.format, Format::Quantized(..)));
    let operands = u64::from(a.is_some()) + u64::from(b.is_some()) * (1 + 2 * quantized);
    let ends = u64::from(bias.is_some()) + u64::from(residual.is_some()) + 1;
    let offsets = u64::from(schedule.offsets);
    let storage_buffers = if two_passes { (operands + 1).max(ends + 1) } else { operands + ends } + offsets;
    let scratch_bytes = if two_passes {
        let elements = u128::from(splits) * u128::from(problem.batch) * u128::from(problem.m) * u128::from(problem.n);
        u64::try_from(elements * 4).unwrap_or(u64::MAX)
    } else {
        0
    };
    let workgroups = tiles_m.saturating_mul(tiles_n).saturating_mul(problem.batch).saturating_mul(splits);
    Ok(Layout {
        workgroups,
        storage_buffers,
        scratch_bytes,
        packed_bytes: packed(a).max(packed(b)),
        two_passes,
        tiles_m,
        tiles_n,
        splits,
        k_split,
        schedule,
        a,
        b,
        bias,
        residual,
        store,
    })
}

/// Whether vectors of so many elements fit the operand and the steps in which tiles start along its storage.
fn aligned(side: &Side, step: u64, vector: u64) -> bool {
    let Side { operand, extent, k, along_k, .. } = *side;
    let numbers = [operand.offset, operand.ld, operand.batch_stride, if along_k { k } else { extent }, step];
    numbers.iter().all(|number| number.is_multiple_of(vector))
}

/// By elements: the first loader that reads the format and fits.
fn fetch_elements(library: &Library, caps: &Caps, side: &Side, step: u64) -> Result<Fetch, Reject> {
    let fits = |o: &OperandDef| o.elements && aligned(side, step, o.vector);
    Ok(Fetch { loader: loader(library, caps, &side.operand, fits)?, packing: None })
}

/// By 16 bytes and whole steps along K; packed where that does not fit the storage.
fn fetch_words(library: &Library, caps: &Caps, side: &Side, step: u64, bk: u64, start: u64) -> Result<Fetch, Reject> {
    let loader = loader(library, caps, &side.operand, |o| o.words)?;
    if aligned(side, step, loader.vector) && side.k.is_multiple_of(bk) {
        return Ok(Fetch { loader, packing: None });
    }
    if !step.is_multiple_of(loader.vector) {
        return Err(Reject(format!("tiles begin anywhere along the storage of {}", side.name)));
    }
    let packing = Packing::new(side, scalar_loader(library, caps, &side.operand)?, loader.vector, bk, start)?;
    Ok(Fetch { loader, packing: Some(packing) })
}

/// A loader for single elements, as epilogues and packing want them.
fn scalar_loader(library: &Library, caps: &Caps, operand: &Operand) -> Result<&'static OperandDef, Reject> {
    loader(library, caps, operand, |o| o.elements && o.vector == 1)
}

fn loader(
    library: &Library,
    caps: &Caps,
    operand: &Operand,
    fits: impl Fn(&OperandDef) -> bool,
) -> Result<&'static OperandDef, Reject> {
    let found = library.operands.iter().find(|o| (o.accepts)(operand.format, caps) && fits(o));
    found.ok_or_else(|| Reject(format!("no loader for {}", operand.format)))
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

/// The passes of one kernel.
pub(super) fn build(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    choice: Choice,
    candidate: &Candidate,
) -> Result<Built> {
    let layout = layout(problem, caps, library, candidate.variant, candidate.splits)
        .map_err(|reject| Error::NoKernel(reject.0))?;
    let choice = Choice { splits: layout.splits, ..choice };
    let mut passes = Vec::new();
    for (side, fetch) in Side::both(problem).iter().zip([layout.a, layout.b]) {
        if let (Some(unit), Some(packing)) = (candidate.variant.unit, fetch.and_then(|fetch| fetch.packing)) {
            passes.push(packing.pass(side, library, unit, caps, params(problem, &layout))?);
        }
    }
    passes.push(mainloop(problem, caps, library, &layout, candidate));
    if layout.two_passes {
        passes.push(finish(problem, caps, library, &layout)?);
    }
    let Layout { scratch_bytes, packed_bytes, .. } = layout;
    Ok(Built { choice, passes, scratch_bytes, packed_bytes })
}

/// A pass under construction.
pub(super) struct Builder {
    pass: Pass,
}

impl Builder {
    pub(super) fn new(label: String, params: Params, threads: u32, workgroup_bytes: u32) -> Self {
        let pass = Pass {
            label,
            parts: Vec::new(),
            f16: false,
            coop: false,
            params,
            grid: [0; 2],
            threads,
            workgroup_bytes,
            bindings: Vec::new(),
        };
        Builder { pass }
    }

    pub(super) fn part(&mut self, file: &'static str, operand: Option<&'static str>, constants: Vec<Constant>) {
        self.pass.parts.push(Part { file, operand, constants });
    }

    /// A or B by its axes.
    pub(super) fn axes(&mut self, library: &Library, side: &Side) {
        self.part(library.axes, Some(side.name), vec![("X_K_CONTIGUOUS", u32::from(side.along_k))]);
    }

    /// The names of a matrix unit.
    pub(super) fn unit(&mut self, unit: &Unit) {
        self.part(unit.file, None, Vec::new());
        self.pass.coop = true;
        self.pass.f16 |= unit.matrix.operands == DType::F16;
    }

    fn bind(&mut self, role: Role, writable: bool, bytes: u64, element_bytes: u64) {
        let bytes = bytes.max(element_bytes).next_multiple_of(4);
        self.pass.bindings.push(Binding { role, from: role, start: 0, writable, bytes, element_bytes });
    }

    /// A packed operand, to be written as `Role::Packed` or read as A or B.
    pub(super) fn packed(&mut self, role: Role, writable: bool, packing: &Packing, element_bytes: u64) {
        let Packing { start, bytes, .. } = *packing;
        let bytes = bytes.max(element_bytes);
        self.pass.bindings.push(Binding { role, from: Role::Packed, start, writable, bytes, element_bytes });
    }

    /// A loader instantiated for an operand, with its bindings; the absent one where there is none.
    pub(super) fn load(
        &mut self,
        library: &Library,
        name: &'static str,
        role: Role,
        loader: Option<&OperandDef>,
        operand: Option<(&Operand, u64)>,
    ) {
        let (Some(loader), Some((operand, elements))) = (loader, operand) else {
            self.part(library.absent, Some(name), Vec::new());
            return;
        };
        let mut constants = (loader.constants)(operand.format);
        constants.push(("X_BINDING", role.binding()));
        self.part(loader.file, Some(name), constants);
        if loader.vector == 1 {
            self.part(library.single, Some(name), Vec::new());
        }
        self.pass.f16 |= loader.f16;
        self.bind(role, false, check::bytes(operand.format, elements), loader.element_bytes);
        if let Format::Quantized(format, scales) = operand.format {
            let bytes = elements.div_ceil(format.group_size()) * scales.bytes();
            self.bind(Role::BScales, false, bytes, 4);
            self.bind(Role::BBiases, false, bytes, 4);
        }
    }

    /// Everything between the sums and C: linear part, activation, store.
    fn epilogue(&mut self, problem: &Problem, library: &Library, layout: &Layout) {
        let epilogue = &problem.epilogue;
        let Problem { m, n, batch, .. } = *problem;
        let along_m = epilogue.bias.is_some_and(|bias| bias.axis == Axis::M);
        let bias_length = if along_m { m } else { n };
        let bias = epilogue
            .bias
            .as_ref()
            .map(|bias| (&bias.operand, check::span(&bias.operand, bias_length, 1, problem.entries()).unwrap_or(0)));
        let residual = epilogue.residual.as_ref().map(|r| (r, check::span(r, m, n, batch).unwrap_or(0)));
        self.load(library, "bias", Role::Bias, layout.bias, bias);
        self.load(library, "residual", Role::Residual, layout.residual, residual);
        self.part(
            library.linear,
            None,
            vec![
                ("USE_BETA", u32::from(epilogue.beta != 0.0)),
                ("USE_BIAS", u32::from(bias.is_some())),
                ("BIAS_ALONG_M", u32::from(along_m)),
                ("USE_RESIDUAL", u32::from(residual.is_some())),
            ],
        );
        let activation = match epilogue.activation {
            Activation::None => 0,
            Activation::Relu => 1,
            Activation::Gelu => 2,
            Activation::Silu => 3,
        };
        self.part(library.activation, None, vec![("ACTIVATION", activation)]);
        self.part(layout.store.file, None, (layout.store.constants)(problem.c.format.dtype()));
        if layout.store.vector < 4 {
            self.part(library.single, Some("c"), Vec::new());
        }
        self.pass.f16 |= layout.store.f16;
        let elements = check::span(&problem.c, m, n, batch).unwrap_or(0);
        self.bind(Role::C, true, check::bytes(problem.c.format, elements), layout.store.element_bytes);
    }

    fn schedule(&mut self, problem: &Problem, schedule: &ScheduleDef) {
        self.part(schedule.file, None, Vec::new());
        if schedule.offsets {
            self.bind(Role::Offsets, false, problem.entries() * 4, 4);
        }
    }

    /// Spreads the workgroups over x and y.
    pub(super) fn finish(mut self, workgroups: u64, caps: &Caps) -> Pass {
        let y = workgroups.div_ceil(caps.max_workgroups.into()).max(1);
        let x = workgroups.div_ceil(y);
        self.pass.grid = [x as u32, y as u32];
        self.pass.params.grid_x = x as u32;
        self.pass.bindings.sort_by_key(|binding| binding.role);
        self.pass
    }
}

fn mainloop(problem: &Problem, caps: &Caps, library: &Library, layout: &Layout, candidate: &Candidate) -> Pass {
    let (kernel, variant) = (candidate.kernel, candidate.variant);
    let label = format!("{}/{}", kernel.name, variant.name);
    let mut builder =
        Builder::new(label, params(problem, layout), variant.threads, (kernel.workgroup_bytes)(variant, problem));
    for file in library.common {
        builder.part(file, None, Vec::new());
    }
    builder.schedule(problem, layout.schedule);
    if let Some(unit) = variant.unit {
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
                builder.load(library, side.name, side.role, loader, Some((&side.operand, side.span())));
            }
        }
        builder.axes(library, side);
        if variant.unit.is_none() {
            builder.part(library.block, name, Vec::new());
        }
        for file in kernel.operand_files {
            builder.part(file, name, (kernel.operand_constants)(side.along_k, side.operand.transposed));
        }
    }
    if layout.two_passes {
        builder.part(library.partial, None, Vec::new());
        builder.bind(Role::Scratch, true, layout.scratch_bytes, 4);
    } else {
        builder.epilogue(problem, library, layout);
        builder.part(library.direct, None, Vec::new());
    }
    builder.part(kernel.file, None, variant.constants.to_vec());
    builder.finish(layout.workgroups, caps)
}

fn finish(problem: &Problem, caps: &Caps, library: &Library, layout: &Layout) -> Result<Pass> {
    let per_word = layout.store.finish_elements;
    let end = check::span(&problem.c, problem.m, problem.n, problem.batch).unwrap_or(0);
    let words = end.div_ceil(per_word) - problem.c.offset / per_word;
    let mut params = params(problem, layout);
    params.c_words = words as u32;
    let threads = library.finish_threads;
    let mut builder = Builder::new("finish".into(), params, threads, 0);
    for file in library.common {
        builder.part(file, None, Vec::new());
    }
    builder.schedule(problem, layout.schedule);
    builder.epilogue(problem, library, layout);
    builder.bind(Role::Scratch, false, layout.scratch_bytes, 4);
    builder.part(library.finish, None, vec![("THREADS", threads)]);
    let workgroups = words.div_ceil(threads.into());
    let allowed = u64::from(caps.max_workgroups).pow(2);
    if workgroups > allowed {
        return Err(Error::NoKernel(format!("the finishing pass needs {workgroups} workgroups, {allowed} allowed")));
    }
    Ok(builder.finish(workgroups, caps))
}

/// The numbers of the problem; `check` has seen that they fit.
fn params(problem: &Problem, layout: &Layout) -> Params {
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
        pad: 0,
    }
}
