//! `tilewise plan`.

use crate::args::{PlanArgs, Prepared};
use crate::failure::{Failure, Result};
use crate::product;
use std::io::Write;
use tilewise_core::caps::{Caps, RECORDED};
use tilewise_core::kernel::{Library, Role};
use tilewise_core::plan::{Forced, explain, plan, prepare};
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

/// Packed operands of the given extents.
fn problem(args: &PlanArgs) -> Result<Problem> {
    let PlanArgs { m, n, k, .. } = *args;
    for (operand, rows, cols) in [("A", m, k), ("B", k, n), ("C", m, n)] {
        if rows.checked_mul(cols).is_none() {
            return Err(Failure::Other(format!(
                "{operand} of {rows} by {cols} has more elements than 64 bits can count"
            )));
        }
    }
    let format = Format::Dense(args.dtype.into());
    let operand = |transposed, rows, cols| {
        if transposed {
            Operand::packed(format, 1, cols, rows).t()
        } else {
            Operand::packed(format, 1, rows, cols)
        }
    };
    let a = operand(args.transpose.a(), m, k);
    let b = match args.format {
        Some(format) => Operand::packed(Format::Quantized(format), 1, n, k).t(),
        None => operand(args.transpose.b(), k, n),
    };
    Ok(Problem { a, b, precision: args.precision, ..Problem::dense(args.dtype.into(), m, n, k) })
}

/// Prepares operands, as the library does, and says what was copied, a line for each.
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
        // The library prepares dense operands for a precision, and weights for all.
        let precision = match operand.format {
            Format::Dense(_) => problem.precision,
            Format::Quantized(_) => Precision::F32,
        };
        let sizes = [1, extent, problem.k];
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
