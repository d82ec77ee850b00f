//! `tilewise convert`.

use super::inspect::{Size, value_json, warn_of_strays};
use crate::args::ConvertArgs;
use crate::array::shape_text;
use crate::failure::{Failure, Result, warn};
use crate::matrix::{Deviation, Matrix, meant, prefix, weight_name};
use crate::progress;
use crate::role::{Kept, is_scale_of, transposed};
use crate::table::{NUMBER, TEXT, table};
use crate::target::{Target, is_of_weights};
use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::Write;
use tilewise_files::{Error, Expected, Model, Output, Sink, TensorKind, TensorView, Value, write};

pub(super) fn run(args: &ConvertArgs, out: &mut dyn Write) -> Result<()> {
    if args.output.tensor().is_some() {
        let path = args.output.path().display();
        return Err(Failure::Usage(format!(
            "{path}: a whole model is written as FILE.safetensors, without #"
        )));
    }
    if let Some(name) = args.model.name() {
        return Err(Failure::Usage(format!(
            "{}: whole files are converted; --only {name} takes a part",
            args.model
        )));
    }
    args.format.admit()?;
    args.output.probe([&args.model])?;
    let model = args.model.model()?;
    if let Some((number, count)) = model.shard() {
        let path = args.model.path().display();
        let text = "whole models are converted: name the index, or the folder";
        return Err(Failure::Other(format!("{path}: shard {number} of {count}; {text}")));
    }
    for (option, texts) in [("only", &args.only), ("except", &args.except), ("skip", &args.skip)] {
        let unknown = |text: &&String| !model.tensors().any(|tensor| is_named(&tensor, text));
        if let Some(text) = texts.iter().find(unknown) {
            return Err(Failure::Usage(format!("--{option} {text}: no tensor's name contains it")));
        }
    }
    let model_type = args.model.model_type();
    let steps = steps(&model, args, &model_type)?;
    refuse_to_mix(&model, &steps, args)?;
    // A model that is already in the format is copied, unless the options leave out tensors that
    // could be converted.
    let is_in_it = |step: &Step<'_>| args.format.is(step.tensor.kind());
    let copied = steps.iter().any(is_in_it)
        && !model.tensors().any(|tensor| refusal(&tensor, args, &model_type).is_none());
    if !copied && steps.iter().all(|step| step.kept.is_some()) {
        return Err(Failure::Other(nothing(args, &steps)));
    }

    let outputs = steps.iter().map(|step| step.output(args.format)).collect::<Result<Vec<_>>>()?;
    let metadata = metadata(&model);
    let bar = progress::of_bytes("converting");
    let mut written = 0;
    let done = write(args.output.path(), outputs, &metadata, &mut |done, total| {
        bar.set_length(total);
        bar.set_position(done);
        written = total;
    });
    bar.finish_and_clear();
    done.map_err(|error| match error {
        // The writer's error names tensors, but not the file that they come from.
        Error::Unsupported(why) => {
            let other = steps
                .iter()
                .map(|step| &step.tensor)
                .filter(|tensor| matches!(tensor.kind(), TensorKind::Other(_)));
            let named =
                other.map(TensorView::name).find(|name| why.starts_with(&format!("{name}: ")));
            let hint =
                named.map_or_else(String::new, |name| format!(", or leave it out: --skip {name}"));
            Failure::Other(format!("{}: {why}{hint}", args.model.path().display()))
        }
        other => other.into(),
    })?;
    report(&steps, model.tensors().len(), args, written, out)
}

/// A tensor that is converted or copied.
struct Step<'m> {
    tensor: TensorView<'m>,
    /// Whether `--only` and `--except` leave it in.
    selected: bool,
    /// Why it is copied, if it is.
    kept: Option<Kept>,
    /// Its loss, once it is written.
    deviation: Cell<Deviation>,
}

/// Whether the name of a tensor contains a text: the name that `inspect` shows, or the name of its
/// numbers or codes in the file.
fn is_named(tensor: &TensorView<'_>, text: &str) -> bool {
    tensor.name().contains(text) || tensor.stored_name().contains(text)
}

/// Whether `--only` names a tensor by the end of its name, with or without `.weight`. Then its role
/// does not count.
fn is_overruled(tensor: &TensorView<'_>, args: &ConvertArgs) -> bool {
    let names = [tensor.name(), tensor.stored_name()].map(prefix);
    let ends = |text: &String| {
        let text = prefix(text);
        !matches!(text, "" | "weight") && names.iter().any(|name| name.ends_with(text))
    };
    args.only.iter().any(ends)
}

/// The reason to copy a tensor of a model of this type; `None` if it is converted.
fn refusal(tensor: &TensorView<'_>, args: &ConvertArgs, model_type: &str) -> Option<Kept> {
    let named = is_overruled(tensor, args);
    let is_blocked = matches!(args.format, Target::Quantized(_)) && !named;
    args.format.refusal(tensor, named).or_else(|| match tensor.kind() {
        TensorKind::Dense(_) if is_blocked => {
            transposed(model_type, tensor.stored_name(), tensor.shape())
        }
        _ => None,
    })
}

/// Fails if codes of another quantization would be kept beside new codes: codes that their names
/// and types tell, or those of the method that `config.json` names.
fn refuse_to_mix(model: &Model, steps: &[Step<'_>], args: &ConvertArgs) -> Result<()> {
    if matches!(args.format, Target::Dense(_)) {
        return Ok(());
    }
    let path = args.model.path().display();
    let mixed = "the file would mix two quantizations. Write the weights as f16 or bf16 first, by \
                 the program that quantized them";
    let is_coded = |step: &&Step<'_>| match step.tensor.kind() {
        TensorKind::Other(_) => step.selected,
        TensorKind::Dense(dtype) => step.selected && !dtype.is_float(),
        _ => false,
    };
    for step in steps.iter().filter(is_coded) {
        let codes = step.tensor.stored_name();
        let of_them = |other: &&Step<'_>| is_scale_of(other.tensor.stored_name(), codes);
        let Some(scales) = steps.iter().find(of_them) else { continue };
        let (name, kind, scales) = (step.tensor.name(), step.tensor.kind(), scales.tensor.name());
        return Err(Failure::Other(format!(
            "{path}: {name} holds {kind}, which is not read, and {scales} its scales: {mixed}; or \
             keep them knowingly: --except {name}"
        )));
    }
    let quantized = steps.iter().find(|step| step.kept.is_none() && args.only.is_empty());
    match (model.unread_quantization(), quantized) {
        (Some(method), Some(step)) => Err(Failure::Other(format!(
            "{path}: {method}, which is not read: {mixed}; or quantize others knowingly: --only {}",
            step.tensor.name()
        ))),
        _ => Ok(()),
    }
}

/// A step for each tensor that is not left out.
fn steps<'m>(model: &'m Model, args: &ConvertArgs, model_type: &str) -> Result<Vec<Step<'m>>> {
    let expected = meant(model, args.known.expected(None), &args.model)?;
    let named =
        |tensor: &TensorView<'m>, texts: &[String]| texts.iter().any(|text| is_named(tensor, text));
    let step = |tensor: TensorView<'m>| {
        let tensor = known(model, tensor, &expected)?;
        let left_out_by = if named(&tensor, &args.except) {
            Some("--except")
        } else if !args.only.is_empty() && !named(&tensor, &args.only) {
            Some("--only")
        } else {
            None
        };
        let kept = match left_out_by {
            Some(option) => Some(Kept::new("not selected", format!("not selected ({option})"))),
            None => refusal(&tensor, args, model_type),
        };
        Ok(Step { tensor, selected: left_out_by.is_none(), kept, deviation: Cell::default() })
    };
    model.tensors().filter(|tensor| !named(tensor, &args.skip)).map(step).collect()
}

/// The tensor, in the expected format if the file leaves its format open. It is an error if the
/// tensor stays unclear, whether it is selected or not: no tensor can be copied without its format.
fn known<'m>(
    model: &'m Model,
    tensor: TensorView<'m>,
    expected: &Expected,
) -> Result<TensorView<'m>> {
    let TensorKind::Unclear(error) = tensor.kind() else { return Ok(tensor) };
    let error = match model.get_as(tensor.name(), expected) {
        Ok(known) if !expected.is_empty() => return Ok(known),
        Ok(_) => error.clone(),
        Err(error) => error,
    };
    let is_open = expected.is_empty() && matches!(error, Error::Misuse(_));
    let hint = if is_open { "; --bits and --group say what the model has" } else { "" };
    let name = tensor.name();
    let is_unclear = |tensor: &TensorView<'_>| matches!(tensor.kind(), TensorKind::Unclear(_));
    let all = match model.tensors().filter(is_unclear).count() {
        1 => String::new(),
        count => format!(". `tilewise inspect` shows all {count} unclear tensors"),
    };
    Err(Failure::Other(format!("{error}{hint}; or leave it out: --skip {name}{all}")))
}

/// The error if no tensor can be converted.
fn nothing(args: &ConvertArgs, steps: &[Step<'_>]) -> String {
    /// The most reasons in the message.
    const SHOWN: usize = 3;
    // Selected tensors come first, and matrices before others: that a vector is no matrix is no
    // news.
    let mut ordered: Vec<_> = steps.iter().collect();
    ordered.sort_by_key(|step| Reverse((step.selected, is_of_weights(step.tensor.shape()))));
    let reason =
        |step: &Step<'_>| Some(format!("{}: {}", step.tensor.name(), step.kept.as_ref()?.why));
    let shown: Vec<String> = ordered.into_iter().filter_map(reason).take(SHOWN).collect();
    let more = if steps.len() > SHOWN {
        format!("; and {} more", steps.len() - SHOWN)
    } else {
        String::new()
    };
    let by_name = |step: &Step<'_>| step.kept.as_ref().is_some_and(|kept| kept.by_name);
    let hint = match steps.iter().find(|step| by_name(step)) {
        Some(step) => format!("; --only {} overrules the name", step.tensor.name()),
        None => String::new(),
    };
    let (path, format) = (args.model.path().display(), args.format);
    match steps.len() {
        0 if args.skip.is_empty() => format!("{path}: no tensors are in it"),
        0 => format!("{path}: --skip leaves out all tensors"),
        count => format!(
            "{path}: none of {count} tensors can become {format}: {}{more}{hint}",
            shown.join("; ")
        ),
    }
}

impl<'m> Step<'m> {
    fn output<'s>(&'s self, target: Target) -> Result<Output<'s>> {
        if self.kept.is_some() {
            return Ok(Output::tensor(&self.tensor)?);
        }
        let name = match (target, self.tensor.kind()) {
            (Target::Quantized(_), _) => prefix(self.tensor.name()).to_owned(),
            (Target::Dense(_), TensorKind::Quantized(_)) => weight_name(self.tensor.name()),
            (Target::Dense(_), _) => self.tensor.name().to_owned(),
        };
        let fill = move |sink: &mut Sink<'_>| self.transcode(target, sink);
        Ok(Output::streamed(&name, target.kind(), self.tensor.shape(), fill))
    }

    /// Gives the planes of the tensor in the new format.
    fn transcode(&self, target: Target, sink: &mut Sink<'_>) -> tilewise_files::Result<()> {
        Matrix::of(&self.tensor)?.transcode(target, sink, &mut |stored| {
            self.deviation.set(self.deviation.get().and(stored.values, stored.restored));
            Ok(())
        })
    }

    /// Bytes of the tensor in the new file.
    fn size_after(&self, target: Target) -> Result<u64> {
        if self.kept.is_some() {
            return Ok(self.tensor.sizes()?.iter().map(|&size| size as u64).sum());
        }
        let (n, k) = self.tensor.matrix()?;
        target.size(n, k)
    }
}

/// The old file's metadata; GGUF's arrays, such as a tokenizer's, are texts of JSON. The writer
/// drops entries about formats.
fn metadata(model: &Model) -> BTreeMap<String, String> {
    let plain = model.metadata().map(|(key, value)| (key.to_owned(), value.to_owned()));
    let text = |value: &Value<'_>| match (value, value.as_str()) {
        (Value::Array(_), _) => value_json(value).to_string(),
        (_, Some(text)) => text.to_owned(),
        _ => value.to_string(),
    };
    let gguf = model.gguf_values().map(|(key, value)| (key.to_owned(), text(&value)));
    plain.chain(gguf).collect()
}

/// Warns of losses that a table does not show at a glance.
fn warn_of_losses(steps: &[Step<'_>], args: &ConvertArgs) -> Result<()> {
    let counted = |of: fn(Deviation) -> u64| {
        let counts = steps.iter().map(|step| of(step.deviation.get())).filter(|&count| count > 0);
        counts.fold((0, 0), |(weights, tensors), count| (weights + count, tensors + 1))
    };
    let (weights, tensors) = counted(|deviation| deviation.beyond);
    if weights > 0 {
        let text = format!("beyond the range of {}, and became infinite or NaN", args.format);
        warn(&format!("{weights} weights of {tensors} tensors are {text}"));
    }
    let (weights, tensors) = counted(|deviation| deviation.undefined);
    if weights > 0 {
        warn(&format!(
            "{weights} weights of {tensors} tensors are infinite or NaN already; no error counts \
             them"
        ));
    }
    let private = private(steps)?;
    if private > 0 {
        warn(&format!(
            "{private} tensors have an order of columns or a factor. These are written, too, and \
             MLX does not read them"
        ));
    }
    Ok(())
}

/// The number of kept tensors with an order of columns or a factor, which only this library reads.
fn private(steps: &[Step<'_>]) -> Result<usize> {
    let mut private = 0;
    for step in steps.iter().filter(|step| step.kept.is_some()) {
        private += usize::from(step.tensor.order()?.is_some() || step.tensor.factor().is_some());
    }
    Ok(private)
}

/// Writes the report; `count` is the number of tensors in the model.
fn report(
    steps: &[Step<'_>],
    count: usize,
    args: &ConvertArgs,
    written: u64,
    out: &mut dyn Write,
) -> Result<()> {
    warn_of_losses(steps, args)?;
    warn_of_strays(steps.iter().map(|step| &step.tensor));
    let (mut rows, mut before, mut after) = (Vec::new(), Size::default(), Size::default());
    let mut kept: BTreeMap<&str, usize> = BTreeMap::new();
    for step in steps {
        let (tensor, size) = (&step.tensor, step.size_after(args.format)?);
        let deviation = step.deviation.get();
        let start =
            [tensor.name().to_owned(), shape_text(tensor.shape()), tensor.kind().to_string()];
        let end = match &step.kept {
            Some(why) => {
                *kept.entry(why.class).or_insert(0) += 1;
                let none = String::new;
                ["kept".to_owned(), size.to_string(), none(), none(), why.why.clone()]
            }
            None => {
                let old = Size::of(tensor);
                before = [before, old].into_iter().sum();
                after = [after, Size { bytes: size, ..old }].into_iter().sum();
                let (mut relative, mut largest) = (
                    format!("{:.3}%", 100.0 * deviation.relative()),
                    format!("{:.3e}", deviation.largest),
                );
                // Nothing is left to compare.
                if deviation.undefined > 0 && deviation.undefined == deviation.weights {
                    (relative, largest) = ("-".to_owned(), "-".to_owned());
                }
                [args.format.to_string(), size.to_string(), relative, largest, String::new()]
            }
        };
        rows.push([&start[..], &end].concat());
    }
    let converted = steps.iter().filter(|step| step.kept.is_none()).count();
    let columns = [
        ("tensor", TEXT),
        ("shape", TEXT),
        ("from", TEXT),
        ("to", TEXT),
        ("bytes", NUMBER),
        ("error", NUMBER),
        ("largest", NUMBER),
        ("why", TEXT),
    ];
    writeln!(out, "{}", table(&columns, rows))?;
    let all: Size = steps.iter().map(|step| Size::of(&step.tensor)).sum();
    let left_out = match count - steps.len() {
        0 => String::new(),
        some => format!(", {some} left out"),
    };
    let others = if kept.is_empty() { "" } else { ", the others kept" };
    writeln!(out, "tensors  {converted} of {count} converted{left_out}{others}")?;
    if !kept.is_empty() {
        let counts: Vec<String> =
            kept.iter().map(|(class, count)| format!("{class} {count}")).collect();
        writeln!(out, "kept     {}", counts.join(", "))?;
    }
    writeln!(out, "size     {written} bytes, {} before", all.bytes)?;
    writeln!(
        out,
        "bits     {} per converted weight, {} before",
        after.bits_text(),
        before.bits_text()
    )?;
    writeln!(out, "written  {}", args.output.path().display())?;
    if let Target::Quantized(format) = args.format
        && let Some(Expected { bits: Some(bits), group: Some(group), mode: Some(mode), .. }) =
            Expected::in_words(format)
    {
        let entry = format!(
            r#""quantization": {{"group_size": {group}, "bits": {bits}, "mode": "{mode}"}}"#
        );
        let line = match private(steps)? {
            0 => format!("MLX expects {entry} in a config.json beside it, which is not written"),
            some => format!(
                "none for MLX: it would read wrong weights of {some} tensors, without their order \
                 of columns or their factor; convert to f32 first, which has neither"
            ),
        };
        writeln!(out, "config   {line}")?;
    }
    Ok(())
}
