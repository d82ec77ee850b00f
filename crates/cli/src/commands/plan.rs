//! `tilewise plan`.

use crate::args::{PlanArgs, Prepared};
use crate::failure::{Failure, Result};
use crate::product;
use std::io::Write;
use tilewise_core::Grouping;
use tilewise_core::caps::{Caps, RECORDED};
use tilewise_core::kernel::{Library, Role};
use tilewise_core::plan::{Forced, Table, explain, plan, prepare};
use tilewise_core::problem::{Format, Operand, Precision, Problem};

pub(super) fn run(args: &PlanArgs, out: &mut dyn Write) -> Result<()> {
    let mut problem = problem(args)?;
    let kernel = args.kernel.as_deref();
    let text = match &args.caps {
        Some(name) => {
            let forced: Option<Forced> = kernel.map(str::parse).transpose()?;
            // Apple's recorded adapters take MSL, as their devices do.
            let library = if name.starts_with("apple-") {
                tilewise_msl::LIBRARY
            } else {
                tilewise_shaders::LIBRARY
            };
            let caps = recorded(name)?;
            let prepared = prepared(args, &mut problem, &caps, &library)?;
            if let Some(forced) = &forced {
                forced.met_by(&plan(&problem, &caps, &library, Some(forced))?)?;
            }
            prepared + &explain(&problem, &caps, &library, forced.as_ref())?
        }
        None => {
            let context = product::open(args.adapter.as_deref())?;
            if context.is_cpu() {
                context.explain(&problem, kernel)? + "--caps NAME plans for a GPU\n"
            } else {
                let (caps, library) = (context.caps(), context.library());
                let prepared = prepared(args, &mut problem, caps, library)?;
                prepared + &context.explain(&problem, kernel)?
            }
        }
    };
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// The problem of packed operands with the given extents. Weights are laid out as the library
/// stores them.
fn problem(args: &PlanArgs) -> Result<Problem> {
    let PlanArgs { m, n, k, .. } = *args;
    let matrices = args.groups.unwrap_or(1);
    for (operand, entries, rows, cols) in [("A", 1, m, k), ("B", matrices, k, n), ("C", 1, m, n)] {
        if rows.checked_mul(cols).and_then(|one| one.checked_mul(entries)).is_none() {
            let stack = if entries > 1 { format!("{entries} by ") } else { String::new() };
            return Err(Failure::Other(format!(
                "{operand} of {stack}{rows} by {cols} has more elements than 64 bits can count"
            )));
        }
    }
    let format = Format::Dense(args.dtype.into());
    let operand = |transposed, entries, rows, cols| {
        if transposed {
            Operand::packed(format, entries, cols, rows).t()
        } else {
            Operand::packed(format, entries, rows, cols)
        }
    };
    let a = operand(args.transpose.a(), 1, m, k);
    let b = match args.format {
        Some(format) => Table::stored(format, matrices, n, k).operand.t(),
        None => operand(args.transpose.b(), matrices, k, n),
    };
    let grouping = match args.groups {
        Some(groups) => {
            Grouping::RaggedM { groups, first: 0, offset: 0, expected: args.expected_rows }
        }
        None => Grouping::Batched,
    };
    let dense = Problem::dense(args.dtype.into(), m, n, k);
    Ok(Problem { a, b, grouping, precision: args.precision, ..dense })
}

/// Prepares operands as the library does. Gives a line about each copy.
fn prepared(
    args: &PlanArgs,
    problem: &mut Problem,
    caps: &Caps,
    library: &Library,
) -> Result<String> {
    let mut said = String::new();
    for &role in args.prepared.map_or(&[][..], Prepared::roles) {
        let (operand, extent) = match role {
            Role::A => (problem.a, problem.m),
            _ => (problem.b, problem.n),
        };
        // The library prepares dense operands for one precision, and quantized weights for all.
        let precision = match operand.format {
            Format::Dense(_) => problem.precision,
            Format::Quantized(_) => Precision::F32,
        };
        let entries = if role == Role::B { args.groups.unwrap_or(1) } else { 1 };
        let sizes = [entries, extent, problem.k];
        let found = prepare(operand, role, sizes, precision, caps, library)?;
        let copied = match &found {
            Some(found) => format!("a copy of {} bytes", found.bytes),
            None => "no copy: kernels load it from where it lies".into(),
        };
        said += &format!("prepared {}  {copied}\n", role.name());
        problem.copies[usize::from(role == Role::B)] = found.map(|found| found.copy);
    }
    Ok(said)
}

fn recorded(name: &str) -> Result<Caps> {
    RECORDED.iter().find(|(known, _)| *known == name).map(|(_, caps)| caps()).ok_or_else(|| {
        let known: Vec<&str> = RECORDED.iter().map(|(known, _)| *known).collect();
        Failure::Other(format!("no caps are recorded as {name:?}; there are {}", known.join(", ")))
    })
}
