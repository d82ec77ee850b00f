//! Executes the compiled form: runs workgroups in parallel, then finds what only shows between
//! workgroups.

mod access;
mod arith;
mod cost;
mod events;
mod findings;
mod mask;
mod memory;
mod ops;
mod pages;
mod shadow;
mod subgroup;
mod tally;
mod verdict;
mod worker;

pub use arith::to_odd;

use crate::program::{Program, Source, Space};
use crate::report::{Finding, Kind, Label};
use crate::{Error, Launch, Report, Shader};
use mask::MAX_INVOCATIONS;
use memory::{Bits, Memory};
use rayon::prelude::*;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use verdict::Verdict;
use worker::{Outcome, Worker};

/// Data that all workgroups share. Lists have an entry for each global variable.
pub(crate) struct Resources {
    grid: [u32; 3],
    memories: Vec<Memory>,
    logical: Vec<Option<Bits>>,
    poisoned: Vec<bool>,
    must_write: Vec<bool>,
    wide_atomics: Mutex<()>,
    /// The first workgroup with a loop that did not end. Later workgroups are not run, and their
    /// results are dropped: the report does not depend on who came first.
    endless: AtomicU32,
}

/// The coordinates of an index that counts along x first, then y, then z.
fn coordinates(index: u32, [x, y, _]: [u32; 3]) -> [u32; 3] {
    [index % x, index / x % y, index / x / y]
}

/// Workgroups whose shadows are kept at the same time, before they are merged.
const BATCH: u32 = 64;

pub(crate) fn run(launch: &Launch<'_>, program: &Program) -> Result<Report, Error> {
    limits(launch, program)?;
    let resources = bind(launch, program)?;
    let options = &launch.options;
    let [x, y, z] = launch.grid.map(u64::from);
    let workgroups = u32::try_from(x * y * z).map_err(|_| {
        Error::Limit(format!("a grid of {:?} workgroups: more than {}", launch.grid, u32::MAX))
    })?;

    let mut verdict = Verdict::new(program, &resources, options);
    let mut sequential = Worker::new(program, &resources, options);
    for start in (0..workgroups).step_by(BATCH as usize) {
        let batch = start..workgroups.min(start.saturating_add(BATCH));
        if options.parallel && batch.len() > 1 {
            let outcomes: Vec<Outcome> = batch
                .into_par_iter()
                .map_init(
                    || Worker::new(program, &resources, options),
                    |worker, workgroup| worker.run(workgroup),
                )
                .collect();
            let last = resources.endless.load(Relaxed);
            (start..).zip(outcomes).filter(|(workgroup, _)| *workgroup <= last).for_each(
                |(_, outcome)| {
                    if !verdict.is_known() {
                        verdict.take(outcome);
                    }
                },
            );
        } else {
            for workgroup in batch {
                verdict.take(sequential.run(workgroup));
                if resources.endless.load(Relaxed) <= workgroup || verdict.is_known() {
                    break;
                }
            }
        }
        if resources.endless.load(Relaxed) != u32::MAX || verdict.is_known() {
            break;
        }
    }
    drop(sequential);
    let mut report = verdict.finish();
    for (global, memory) in program.globals.iter().zip(resources.memories) {
        if let Source::Binding(group, binding) = global.source {
            report.buffers.insert((group, binding), memory.into_bytes());
        }
    }
    unused(launch, program, &mut report);
    Ok(report)
}

/// Reports buffers that the entry point does not touch: they come back as they were, and outputs
/// among them were never written.
fn unused(launch: &Launch<'_>, program: &Program, report: &mut Report) {
    for (&(group, binding), buffer) in &launch.buffers {
        if program.globals.iter().any(|global| global.source == Source::Binding(group, binding)) {
            continue;
        }
        report.buffers.insert((group, binding), buffer.bytes.clone());
        if launch.options.checks && buffer.must_write && !buffer.bytes.is_empty() {
            let variable = declared(launch.shader, group, binding);
            let name = variable.and_then(|(variable, _)| variable.name.clone()).unwrap_or_default();
            report.findings.push(Finding {
                kind: Kind::NeverWritten,
                message: format!("the output `{name}` is never written"),
                labels: vec![Label {
                    span: variable.and_then(|(_, span)| span.to_range()),
                    text: "the entry point does not use it".to_owned(),
                    place: None,
                }],
                notes: Vec::new(),
                variable: Some(name),
                occurrences: 1,
            });
        }
    }
}

/// The variable that a shader declares for a binding, used or not.
fn declared(
    shader: &Shader,
    group: u32,
    binding: u32,
) -> Option<(&naga::GlobalVariable, naga::Span)> {
    let variables = &shader.module().global_variables;
    let here = |variable: &naga::GlobalVariable| {
        variable.binding.is_some_and(|b| (b.group, b.binding) == (group, binding))
    };
    let (handle, variable) = variables.iter().find(|(_, variable)| here(variable))?;
    Some((variable, variables.get_span(handle)))
}

fn limits(launch: &Launch<'_>, program: &Program) -> Result<(), Error> {
    let invocations =
        program.workgroup_size.iter().try_fold(1u32, |product, &size| product.checked_mul(size));
    if invocations
        .is_none_or(|invocations| invocations == 0 || invocations as usize > MAX_INVOCATIONS)
    {
        return Err(Error::Limit(format!(
            "a workgroup of {:?} invocations; at most {MAX_INVOCATIONS} are run",
            program.workgroup_size
        )));
    }
    if launch.grid.iter().any(|&size| size > 65_535) {
        return Err(Error::Limit(format!(
            "a grid of {:?} workgroups; WebGPU allows 65,535 in each direction",
            launch.grid
        )));
    }
    let size = launch.options.subgroup_size;
    if !size.is_power_of_two() || size > 128 {
        return Err(Error::Limit(format!(
            "a subgroup size of {size}; it must be a power of two up to 128"
        )));
    }
    if let Some(model) = launch.options.costs
        && (!model.segment_bytes.is_power_of_two() || model.banks == 0)
    {
        return Err(Error::Limit(format!(
            "{} bytes a segment and {} banks; a segment must be a power of two, and there must be \
             banks",
            model.segment_bytes, model.banks
        )));
    }
    let shared: u64 = program
        .globals
        .iter()
        .filter(|g| g.space == Space::Workgroup)
        .map(|g| u64::from(g.bytes))
        .sum();
    if shared > 1 << 20 {
        return Err(Error::Limit(format!(
            "{shared} bytes of workgroup memory; at most {} are run",
            1 << 20
        )));
    }
    Ok(())
}

fn bind(launch: &Launch<'_>, program: &Program) -> Result<Resources, Error> {
    let mut resources = Resources {
        grid: launch.grid,
        memories: Vec::new(),
        logical: Vec::new(),
        poisoned: Vec::new(),
        must_write: Vec::new(),
        wide_atomics: Mutex::new(()),
        endless: AtomicU32::new(u32::MAX),
    };
    for global in &program.globals {
        let (mut memory, mut logical, mut poisoned, mut must_write) =
            (Memory::default(), None, false, false);
        match global.source {
            Source::Workgroup => {}
            Source::Immediates => {
                if launch.immediates.len() < global.bytes as usize {
                    return Err(Error::Limit(format!(
                        "`{}` needs {} bytes of immediates, {} are given",
                        global.name,
                        global.bytes,
                        launch.immediates.len()
                    )));
                }
                memory = Memory::new(&launch.immediates);
            }
            Source::Binding(group, binding) => {
                let fail = |why: String| Error::Binding {
                    group,
                    binding,
                    name: Some(global.name.clone()),
                    why,
                };
                let buffer = launch
                    .buffers
                    .get(&(group, binding))
                    .ok_or_else(|| fail("the shader uses it and nothing is bound".to_owned()))?;
                let len = buffer.bytes.len();
                if len < global.bytes as usize {
                    return Err(fail(format!(
                        "the shader needs at least {} bytes, {len} are bound",
                        global.bytes
                    )));
                }
                if len >= u32::MAX as usize {
                    return Err(fail(format!("{len} bytes; addresses have 32 bits")));
                }
                memory = Memory::new(&buffer.bytes);
                logical = memory::logical(buffer, global.granule).map_err(fail)?;
                poisoned = buffer.poisoned;
                must_write = buffer.must_write && global.writable;
            }
        }
        resources.memories.push(memory);
        resources.logical.push(logical);
        resources.poisoned.push(poisoned);
        resources.must_write.push(must_write);
    }
    for &(group, binding) in launch.buffers.keys() {
        if declared(launch.shader, group, binding).is_none() {
            let why = "bound, but the shader declares nothing there".to_owned();
            return Err(Error::Binding { group, binding, name: None, why });
        }
    }
    Ok(resources)
}
