//! Why this kernel and not another, as text.

use super::limits::binding_limit;
use super::{Considered, Cut, Forced, Late, Pass, Plan, considered};
use crate::caps::{Caps, DeviceClass};
use crate::error::Result;
use crate::kernel::Library;
use crate::problem::{Dimension, Precision, Problem, Traits};
use std::fmt::Write;

/// Said of a precision that permits less than f32, if the plan would be the same without it.
pub const UNUSED: &str = "as with precision f32: nothing here makes use of less";

/// The plan of a problem with every candidate's estimate or the reason against it, and the passes
/// with their part files and bindings.
///
/// # Errors
/// The errors of [`plan`](super::plan()).
pub fn explain(
    problem: &Problem,
    caps: &Caps,
    library: &Library,
    forced: Option<&Forced>,
) -> Result<String> {
    let Considered { plan, ranges, candidates, .. } = considered(problem, caps, library, forced)?;
    let mut out = describe(&plan.problem, caps);
    let Some(choice) = &plan.choice else {
        out.push_str("nothing to do: the output has no elements\n");
        return Ok(out);
    };
    let first = if plan.cuts.is_empty() { "" } else { " for the first piece" };
    if !plan.cuts.is_empty() {
        let _ = writeln!(out, "cut     {}", cut(&plan, ranges, caps));
    }
    out.push_str(&late(&plan, caps));
    let _ = writeln!(out, "chosen  {choice}  ~{}{first}", time(choice.cost));
    if plan.copies_rows {
        out.push_str("        the rows of A are copied by index before\n");
    }
    if caps.class == DeviceClass::Cpu && forced.is_none() {
        out.push_str("        a software device: kernels that compile fast are preferred\n");
    }
    let exact = Problem { precision: Precision::F32, ..*problem };
    if problem.precision != exact.precision
        && considered(&exact, caps, library, forced)
            .is_ok_and(|exact| exact.plan.passes == plan.passes)
    {
        let _ = writeln!(out, "        {UNUSED}");
    }
    for edge in &plan.edges {
        let _ = writeln!(out, "edge    {edge}  ~{}", time(edge.cost));
    }
    for (index, pass) in plan.passes.iter().enumerate() {
        let _ = writeln!(out, "pass {}  {}", index + 1, described(pass, &plan));
    }
    if plan.scratch_bytes > 0 {
        let _ = writeln!(out, "scratch {} bytes", plan.scratch_bytes);
    }
    let _ = writeln!(out, "candidates{first}, by estimate");
    for candidate in &candidates.accepted {
        let name = candidate.choice().to_string();
        let _ = write!(out, "  {name:<24} ~{}", time(candidate.cost));
        if candidate.compiling > 0.0 {
            let _ = write!(out, " + {} for compiling", time(candidate.compiling));
        }
        out.push('\n');
    }
    for (reason, names) in candidates.reasons() {
        let _ = writeln!(out, "  no: {reason}\n      {names}");
    }
    Ok(out)
}

/// The grid of a pass, its files and its bindings, a line each.
fn described(pass: &Pass, plan: &Plan) -> String {
    let [x, y] = pass.grid;
    let counted = match pass {
        Pass { indirect: Some(_), .. } => "as counted, at most ",
        Pass { strides: true, .. } => "striding over the tiles, ",
        _ => "",
    };
    let files = pass.parts.iter().map(|part| {
        let name = part.file.rsplit_once('.').map_or(part.file, |(name, _)| name);
        part.operand.map_or_else(|| name.to_owned(), |operand| format!("{operand}:{name}"))
    });
    let bindings = pass.bindings.iter().map(|b| {
        let start = if b.start > 0 { format!(" from {}", b.start) } else { String::new() };
        let name = match b.role.plane() {
            0 => b.role.name().to_owned(),
            plane => format!("b {}", plan.problem.b.format.planes()[plane].name),
        };
        format!("{}:{name} {}B{start}", b.role.binding(), b.bytes)
    });
    let Pass { label, threads, workgroup_bytes, .. } = pass;
    format!(
        "{label}  grid {counted}{x}×{y}, {threads} invocations, {workgroup_bytes} bytes of \
         workgroup memory\n  files     {}\n  bindings  {}",
        files.collect::<Vec<_>>().join(" "),
        bindings.collect::<Vec<_>>().join(", ")
    )
}

/// The problem, its epilogue and the device, a line each.
pub fn describe(problem: &Problem, caps: &Caps) -> String {
    let mut out = String::new();
    let Problem { m, n, k, batch, .. } = *problem;
    let (a, b, c) = (problem.a.format, problem.b.format, problem.c.format);
    let _ = write!(
        out,
        "problem C[{m},{n}] = A[{m},{k}]·B[{k},{n}]  {}  {a}·{b}→{c}",
        problem.layout()
    );
    let Traits { shares_rows, words, .. } = problem.grouping.traits();
    if shares_rows {
        let _ = write!(out, "  {words}: {}", problem.entries());
    } else {
        let sizes = problem.grouping.levels(batch, [0; 4]).map(|(size, _)| size);
        let sizes: Vec<_> =
            sizes.iter().filter(|size| **size != 1).map(ToString::to_string).collect();
        if !sizes.is_empty() {
            let _ = write!(out, "  batch {}", sizes.join("×"));
        }
        out.push_str(words);
    }
    if let Some(gathered) = problem.gathered {
        let _ = write!(out, "  rows of A by index, of {}", gathered.rows);
    }
    if problem.precision != Precision::F32 {
        let _ = write!(out, "  precision {}", problem.precision.name());
    }
    let epilogue = &problem.epilogue;
    let _ = write!(out, "\nepilogue alpha {} beta {}", epilogue.alpha, epilogue.beta);
    if let Some(bias) = epilogue.bias {
        let _ = write!(out, " bias along {:?} ({})", bias.axis, bias.operand.format);
    }
    let _ = write!(out, " activation {}", epilogue.activation.name());
    if let Some(residual) = epilogue.residual {
        let name = if epilogue.gated { "of the gate" } else { "residual" };
        let _ = write!(out, " {name} ({})", residual.format);
    }
    if epilogue.columns() > 1 {
        out.push_str(" of even columns, the gates");
    }
    let _ = writeln!(out, "\ndevice  {}", caps.name);
    if let Some(version) = caps.msl_version {
        let _ = writeln!(out, "metal   {}.{}", version / 100, version / 10 % 10);
    }
    out
}

fn along(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Entries => "entries",
        Dimension::M => "rows",
        Dimension::N => "columns",
        Dimension::K => "K",
    }
}

/// Says into which submissions a product was cut, and which of them take longer than the bound.
fn late(plan: &Plan, caps: &Caps) -> String {
    let pieces = || plan.passes.iter().filter_map(|pass| pass.piece_seconds);
    let bound = caps.max_submission_seconds;
    let mut out = String::new();
    if !plan.late.is_empty() {
        let reasons = plan.late.iter().map(|Late { dimension, seconds }| {
            format!("{} because one would take {}", along(*dimension), time(*seconds))
        });
        let _ = writeln!(
            out,
            "cut     into {} submissions: of {}; one may take {}",
            pieces().count(),
            reasons.collect::<Vec<_>>().join(", of "),
            time(bound)
        );
    }
    let longest = pieces().fold(0.0, f64::max);
    if longest > bound {
        let whole = if plan.problem.grouping.traits().listed {
            "products of a list are not cut in time"
        } else {
            "it is not cut further"
        };
        let _ = writeln!(
            out,
            "        a submission takes ~{}, more than {}: {whole}",
            time(longest),
            time(bound)
        );
    }
    out
}

/// Text on the pieces that a product was cut into, and why.
fn cut(plan: &Plan, ranges: u64, caps: &Caps) -> String {
    let reason = |cut: &Cut| {
        if cut.bytes == 0 {
            return format!("{}, which share words of {}", along(cut.dimension), cut.operand);
        }
        format!("{} because {} has {}", along(cut.dimension), cut.operand, size(cut.bytes))
    };
    let reasons: Vec<_> = plan.cuts.iter().map(reason).collect();
    let limit = size(binding_limit(caps).0);
    format!("into {ranges} ranges: of {}; a binding holds at most {limit}", reasons.join(", of "))
}

/// Bytes as a whole number of the largest measure that allows it.
fn size(bytes: u64) -> String {
    let measures = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    let measure = measures
        .into_iter()
        .find(|(shift, _)| bytes >> shift > 0 && bytes.trailing_zeros() >= *shift);
    measure.map_or_else(
        || format!("{bytes} bytes"),
        |(shift, name)| format!("{} {name}", bytes >> shift),
    )
}

/// Milliseconds with three significant digits: an estimate has no more.
fn time(seconds: f64) -> String {
    let ms = seconds * 1e3;
    let digits = if ms == 0.0 { 0.0 } else { 2.0 - ms.abs().log10().floor() };
    let digits = digits.clamp(0.0, 6.0) as usize;
    format!("{ms:.digits$} ms")
}
