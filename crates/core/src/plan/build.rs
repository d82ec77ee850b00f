//! From a chosen candidate to passes: loaders, stores, bindings, parameters, grids.

use super::{Binding, Candidate, Choice, Part, Pass, check};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{Constant, Library, OperandDef, Params, Reject, Role, ScheduleDef, StoreDef, Variant};
use crate::problem::{Activation, Axis, DType, Format, Operand, Problem};

/// What a candidate would need.
pub(super) struct Layout {
    pub(super) workgroups: u64,
    pub(super) storage_buffers: u64,
    pub(super) scratch_bytes: u64,
    pub(super) two_passes: bool,
    tiles_m: u64,
    tiles_n: u64,
    splits: u64,
    k_split: u64,
    schedule: &'static ScheduleDef,
    a: Option<&'static OperandDef>,
    b: Option<&'static OperandDef>,
    bias: Option<&'static OperandDef>,
    residual: Option<&'static OperandDef>,
    store: &'static StoreDef,
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
    let k_split = problem.k.div_ceil(splits).next_multiple_of(variant.bk.into()).max(variant.bk.into());
    let splits = problem.k.div_ceil(k_split).max(1);

    // With K = 0 there is no element of A or B to bind.
    let present = problem.k > 0;
    // Where the storage of an operand runs along the tile, vectors must not straddle the tile's start either.
    let row_step = if schedule.aligned_rows { variant.bm.into() } else { 1 };
    let a_step = if problem.a.transposed { row_step } else { 0 };
    let b_step = if problem.b.transposed { 0 } else { variant.bn.into() };
    let a = present.then(|| loader(library, caps, &problem.a, [problem.m, problem.k], a_step)).transpose()?;
    let b = present.then(|| loader(library, caps, &problem.b, [problem.k, problem.n], b_step)).transpose()?;
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

/// The first loader that reads the format and whose vectors fit the operand and the steps in which tiles start along its storage.
fn loader(
    library: &Library,
    caps: &Caps,
    operand: &Operand,
    [rows, cols]: [u64; 2],
    step: u64,
) -> Result<&'static OperandDef, Reject> {
    let extent = if operand.transposed { rows } else { cols };
    let numbers = [operand.offset, operand.ld, operand.batch_stride, extent, step];
    let aligned = |vector: u64| numbers.iter().all(|number| number.is_multiple_of(vector));
    let found = library.operands.iter().find(|o| (o.accepts)(operand.format, caps) && aligned(o.vector));
    found.ok_or_else(|| Reject(format!("no loader for {}", operand.format)))
}

/// A loader for single elements, as the epilogue wants them.
fn scalar_loader(library: &Library, caps: &Caps, operand: &Operand) -> Result<&'static OperandDef, Reject> {
    let found = library.operands.iter().find(|o| (o.accepts)(operand.format, caps) && o.vector == 1);
    found.ok_or_else(|| Reject(format!("no loader for {}", operand.format)))
}

/// Whether four neighbouring columns of any row may be stored by one invocation without touching a word of another's.
fn stores_tiles(store: &StoreDef, problem: &Problem) -> bool {
    let c = &problem.c;
    [c.offset, c.ld, c.batch_stride].iter().all(|number| number.is_multiple_of(store.vector))
        && (!store.whole || problem.n.is_multiple_of(store.vector))
}

/// The passes of one kernel, and the bytes of scratch they share.
pub(super) fn build(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    choice: Choice,
    candidate: &Candidate,
) -> Result<(Choice, Vec<Pass>, u64)> {
    let layout = layout(problem, caps, library, candidate.variant, candidate.splits)
        .map_err(|reject| Error::NoKernel(reject.0))?;
    let choice = Choice { splits: layout.splits, ..choice };
    let mut passes = vec![mainloop(problem, caps, library, &layout, candidate)];
    if layout.two_passes {
        passes.push(finish(problem, caps, library, &layout)?);
    }
    Ok((choice, passes, layout.scratch_bytes))
}

/// A pass under construction.
struct Builder {
    pass: Pass,
}

impl Builder {
    fn new(label: String, params: Params, threads: u32, workgroup_bytes: u32) -> Self {
        let (parts, bindings) = (Vec::new(), Vec::new());
        Builder { pass: Pass { label, parts, f16: false, params, grid: [0; 2], threads, workgroup_bytes, bindings } }
    }

    fn part(&mut self, file: &'static str, operand: Option<&'static str>, constants: Vec<Constant>) {
        self.pass.parts.push(Part { file, operand, constants });
    }

    fn bind(&mut self, role: Role, writable: bool, bytes: u64, element_bytes: u64) {
        let bytes = bytes.max(element_bytes).next_multiple_of(4);
        self.pass.bindings.push(Binding { role, writable, bytes, element_bytes });
    }

    /// A loader instantiated for an operand, with its bindings; the absent one where there is none.
    fn load(
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
    fn finish(mut self, workgroups: u64, caps: &Caps) -> Pass {
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
    let mut builder = Builder::new(label, params(problem, layout), variant.threads, variant.workgroup_bytes);
    for file in library.common {
        builder.part(file, None, Vec::new());
    }
    builder.schedule(problem, layout.schedule);
    let Problem { m, n, k, batch, .. } = *problem;
    let operands = [
        ("a", Role::A, layout.a, &problem.a, [m, k], batch, !problem.a.transposed),
        ("b", Role::B, layout.b, &problem.b, [k, n], problem.entries(), problem.b.transposed),
    ];
    for (name, role, loader, operand, [rows, cols], entries, k_contiguous) in operands {
        let elements = check::span(operand, rows, cols, entries).unwrap_or(0);
        builder.load(library, name, role, loader, Some((operand, elements)));
        builder.part(library.block, Some(name), vec![("X_K_CONTIGUOUS", u32::from(k_contiguous))]);
        for file in kernel.operand_files {
            builder.part(file, Some(name), Vec::new());
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
