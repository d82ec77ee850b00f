//! `tilewise plan`.

use crate::args::PlanArgs;
use crate::failure::{Failure, Result};
use crate::product;
use std::io::Write;
use tilewise_core::caps::{Caps, RECORDED};
use tilewise_core::plan::{Forced, explain};
use tilewise_core::problem::{Format, Operand, Problem};

pub(super) fn run(args: &PlanArgs, out: &mut dyn Write) -> Result<()> {
    let problem = problem(args)?;
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
            explain(&problem, &recorded(name)?, &library, forced.as_ref())?
        }
        None => {
            let context = product::open(args.adapter.as_deref())?;
            let text = context.explain(&problem, kernel)?;
            if context.is_cpu() { text + "--caps NAME plans for a GPU\n" } else { text }
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

fn recorded(name: &str) -> Result<Caps> {
    RECORDED.iter().find(|(known, _)| *known == name).map(|(_, caps)| caps()).ok_or_else(|| {
        let known: Vec<&str> = RECORDED.iter().map(|(known, _)| *known).collect();
        Failure::Other(format!("no caps are recorded as {name:?}; there are {}", known.join(", ")))
    })
}
