//! The program: from the command line to the text it prints.

mod args;
mod costs;
mod dtype;
mod fit;
mod npy;
mod value;

pub(crate) use args::Args;
use args::{Form, Slot};
use costs::grouped;
use std::collections::BTreeMap;
use std::path::Path;
use tilewise_sanitizer::{Error, Launch, Report, Shader};
use value::Operand;

/// The mark that some editors put before UTF-8, and that WGSL does not have.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// Outcome of the program.
pub(crate) struct Outcome {
    /// For standard output.
    pub(crate) text: String,
    /// Whether there are findings.
    pub(crate) found: bool,
}

/// An error of the program as it is shown.
pub(crate) fn message(what: impl std::fmt::Display) -> String {
    format!("tilewise-sanitizer: {what}")
}

/// Runs the shader as the command line says. The error is a text for stderr.
pub(crate) fn run(args: &Args) -> Result<Outcome, String> {
    let shader =
        Shader::parse(&args.file.display().to_string(), &source(&args.file)?).map_err(refusal)?;
    fit::overrides(&shader, &args.overrides).map_err(message)?;
    fit::immediates(&shader, args.immediates.concat().len()).map_err(message)?;
    let mut operands = operands(args)?;
    for (slot, value) in &args.bindings {
        let what = |why: String| message(format!("--bind {slot}: {why}"));
        fit::binding(&shader, *slot, value, operands[slot].dtype).map_err(what)?;
    }
    let mut launch = Launch::new(&shader).grid(args.grid).options(args.options());
    if let Some(entry) = &args.entry {
        launch = launch.entry(entry);
    }
    for (name, value) in &args.overrides {
        launch = launch.constant(name, *value);
    }
    for (slot, operand) in &mut operands {
        launch = launch.bind(slot.group, slot.binding, operand.buffer());
    }
    let report =
        launch.immediates(args.immediates.concat()).run().map_err(|error| match error {
            Error::Override(_) => format!("{}{}", refusal(error), fit::given(&args.overrides)),
            other => refusal(other),
        })?;
    save(args, &operands, &report)?;
    let text = match args.report {
        Form::Json => report.to_json(&shader) + "\n",
        Form::Human => human(args, &report, &shader),
    };
    Ok(Outcome { text, found: !report.is_clean() })
}

fn source(file: &Path) -> Result<String, String> {
    let unreadable = |why: String| message(format!("{}: {why}", file.display()));
    let mut bytes = value::read(file).map_err(unreadable)?;
    if bytes.starts_with(BYTE_ORDER_MARK) {
        bytes.drain(..BYTE_ORDER_MARK.len());
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = 1 + error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count();
        unreadable(format!("line {line} is not UTF-8"))
    })
}

/// The text of an error. Errors in the source include a picture of it, and need no more.
fn refusal(error: Error) -> String {
    match error {
        Error::Invalid(picture) => picture,
        other => message(other),
    }
}

fn operands(args: &Args) -> Result<BTreeMap<Slot, Operand>, String> {
    let mut operands = BTreeMap::new();
    for (slot, value) in &args.bindings {
        let operand = value.load(*slot).map_err(|why| message(format!("--bind {slot}: {why}")))?;
        if operands.insert(*slot, operand).is_some() {
            return Err(message(format!("--bind {slot} is given twice")));
        }
    }
    for (slot, range) in &args.ranges {
        let what = format!("--range {slot}={}..{}", range.start, range.end);
        let operand = operands
            .get_mut(slot)
            .ok_or_else(|| message(format!("{what}: nothing is bound to {slot}")))?;
        operand.declare(range.clone()).map_err(|why| message(format!("{what}: {why}")))?;
    }
    for (slot, file) in &args.saves {
        if !operands.contains_key(slot) {
            return Err(message(format!(
                "--save {slot}={}: nothing is bound to {slot}",
                file.display()
            )));
        }
    }
    Ok(operands)
}

fn save(args: &Args, operands: &BTreeMap<Slot, Operand>, report: &Report) -> Result<(), String> {
    for (slot, file) in &args.saves {
        let (Some(operand), Some(bytes)) =
            (operands.get(slot), report.buffers.get(&(slot.group, slot.binding)))
        else {
            return Err(message(format!(
                "--save {slot}={}: the run left no such buffer",
                file.display()
            )));
        };
        operand.save(file, bytes).map_err(|why| message(format!("{}: {why}", file.display())))?;
    }
    Ok(())
}

fn human(args: &Args, report: &Report, shader: &Shader) -> String {
    let mut text = report.render(shader, args.colored());
    if report.is_clean() {
        let workgroups: u64 = args.grid.map(u64::from).iter().product();
        let plural = if workgroups == 1 { "" } else { "s" };
        let (each, operations) =
            (report.counters.invocations / workgroups.max(1), report.counters.operations);
        let (workgroups, each, operations) =
            (grouped(workgroups), grouped(each), grouped(operations));
        text += &format!(
            "clean: {workgroups} workgroup{plural} of {each} invocations, {operations} operations\n"
        );
    }
    if args.counters {
        text += &costs::table(&report.counters);
    }
    text
}
