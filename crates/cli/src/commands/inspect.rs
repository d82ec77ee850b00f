//! `tilewise inspect`.

use crate::args::InspectArgs;
use crate::array::shape_text;
use crate::failure::{Result, warn};
use crate::matrix::meant;
use crate::table::{Column, NUMBER, TEXT, table};
use serde_json::{Map, Value as Json, json};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use tilewise_files::{Error, Model, TensorKind, TensorView, Value};

pub(super) fn run(args: &InspectArgs, out: &mut dyn Write) -> Result<()> {
    let model = args.model.model()?;
    let expected = meant(&model, args.known.expected(args.format), &args.model)?;
    let mut tensors = match args.model.name() {
        Some(name) => vec![model.get(name)?],
        None => model.tensors().collect(),
    };
    let mut unclear = BTreeMap::new();
    for tensor in
        tensors.iter_mut().filter(|tensor| matches!(tensor.kind(), TensorKind::Unclear(_)))
    {
        match model.get_as(tensor.name(), &expected) {
            Ok(found) => *tensor = found,
            Err(error) => _ = unclear.insert(tensor.name(), error),
        }
        if let TensorKind::Unclear(error) = tensor.kind() {
            unclear.entry(tensor.name()).or_insert_with(|| error.clone());
        }
    }
    warn_of_unclear(&unclear, tensors.len());
    warn_of_strays(&tensors);
    if let Some(method) = model.unread_quantization() {
        warn(&format!("{method}, which is not read: its tensors are shown as they are stored"));
    }
    if args.json {
        writeln!(out, "{:#}", to_json(&model, &tensors, &unclear))?;
        return Ok(());
    }
    for file in model.files() {
        writeln!(out, "file     {file}")?;
    }
    if let Some((number, count)) = model.shard() {
        writeln!(out, "shard    {number} of {count}; the tensors of the others are not shown")?;
    }
    if let Some(version) = model.gguf_version() {
        let value = |key| {
            model.gguf_value(key).map_or_else(|| "none".to_owned(), |value| value.to_string())
        };
        let (architecture, name) = (value("general.architecture"), value("general.name"));
        writeln!(out, "gguf     version {version}, architecture {architecture}, name {name}")?;
    }
    if args.metadata {
        for (key, value) in model.gguf_values() {
            writeln!(out, "metadata {key} = {value}")?;
        }
        for (key, value) in model.metadata() {
            writeln!(out, "metadata {key} = {value:?}")?;
        }
    }
    writeln!(out, "\n{}", tensor_table(&tensors, model.files().len() > 1))?;
    let (known, bytes) = (known(&tensors), total_bytes(&tensors));
    let (elements, bits) = (known.elements, known.bits_text());
    let unsized_too = match tensors.iter().filter(|tensor| !tensor.is_sized()).count() {
        0 => String::new(),
        some => format!("; {some} of a type whose size is not known are not counted"),
    };
    let count = tensors.len();
    writeln!(
        out,
        "total    {count} tensors, {bytes} bytes; {elements} elements of {bits} bits{unsized_too}"
    )?;
    for error in tensors.iter().filter_map(|tensor| unclear.get(tensor.name())) {
        writeln!(out, "unclear  {error}")?;
    }
    Ok(())
}

/// Warns of unclear tensors: how many there are, and how to say the formats that are left open.
fn warn_of_unclear(unclear: &BTreeMap<&str, Error>, count: usize) {
    if unclear.is_empty() {
        return;
    }
    let open = unclear.values().filter(|error| matches!(error, Error::Misuse(_))).count();
    let hint = match open {
        0 => String::new(),
        _ => format!(
            "; the formats of {open} are left open: name them by --format, or --bits, --group and \
             --mode"
        ),
    };
    warn(&format!("{} of {count} tensors are unclear{hint}", unclear.len()));
}

fn tensor_table(tensors: &[TensorView<'_>], with_files: bool) -> String {
    let mut columns: Vec<Column> = vec![
        ("tensor", TEXT),
        ("shape", TEXT),
        ("format", TEXT),
        ("bytes", NUMBER),
        ("bits/weight", NUMBER),
    ];
    columns.extend(with_files.then_some(("file", TEXT)));
    let row = |tensor: &TensorView<'_>| {
        let name =
            Path::new(tensor.file()).file_name().unwrap_or_default().to_string_lossy().into_owned();
        let shape = shape(tensor).map_or_else(|| "-".to_owned(), shape_text);
        let format = match tensor.stored() {
            "gguf" | "safetensors" => tensor.kind().to_string(),
            stored => format!("{} from {stored}", tensor.kind()),
        };
        let mut row = vec![
            tensor.name().to_owned(),
            shape,
            format,
            sized_bytes(tensor).map_or_else(|| "-".to_owned(), |bytes| bytes.to_string()),
            known([tensor]).bits_text(),
        ];
        row.extend(with_files.then_some(name));
        row
    };
    table(&columns, tensors.iter().map(row).collect())
}

/// The dimensions, unless the tensor is unclear.
fn shape<'a>(tensor: &'a TensorView<'_>) -> Option<&'a [usize]> {
    (!matches!(tensor.kind(), TensorKind::Unclear(_))).then(|| tensor.shape())
}

/// The bytes of a tensor, unless the size of its type is not known.
fn sized_bytes(tensor: &TensorView<'_>) -> Option<u64> {
    tensor.is_sized().then(|| tensor.stored_bytes())
}

fn total_bytes(tensors: &[TensorView<'_>]) -> u64 {
    tensors.iter().filter_map(sized_bytes).sum()
}

/// The sum of the tensors' sizes, without unclear ones and types whose size is not known.
fn known<'a, 'm: 'a>(tensors: impl IntoIterator<Item = &'a TensorView<'m>>) -> Size {
    let is_known = |tensor: &&TensorView<'_>| {
        !matches!(tensor.kind(), TensorKind::Unclear(_)) && tensor.is_sized()
    };
    tensors.into_iter().filter(is_known).map(Size::of).sum()
}

/// Warns of planes of quantized weights that stand alone. Weights beside them are read as plain
/// numbers.
pub(super) fn warn_of_strays<'a, 'm: 'a>(tensors: impl IntoIterator<Item = &'a TensorView<'m>>) {
    /// The most names in the message.
    const SHOWN: usize = 4;
    let strays: Vec<&str> =
        tensors.into_iter().filter(|tensor| tensor.is_stray()).map(TensorView::name).collect();
    let more = if strays.len() > SHOWN { ", ..." } else { "" };
    let shown = strays.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
    let text =
        "tensors have names of planes of quantized weights, and the other planes are missing";
    match strays.len() {
        0 => {}
        count => warn(&format!("{count} {text}: {shown}{more}")),
    }
}

/// Elements, and the bytes that they take in files.
#[derive(Clone, Copy, Default)]
pub(super) struct Size {
    pub(super) elements: u64,
    pub(super) bytes: u64,
}

impl Size {
    pub(super) fn of(tensor: &TensorView<'_>) -> Self {
        // If an extent is 0, the product of the others may exceed any number.
        let elements = tensor
            .shape()
            .iter()
            .fold(1u64, |product, &extent| product.saturating_mul(extent as u64));
        Size { elements, bytes: tensor.stored_bytes() }
    }

    /// Bits per element, if there are elements.
    pub(super) fn bits(self) -> Option<f64> {
        (self.elements > 0).then(|| 8.0 * self.bytes as f64 / self.elements as f64)
    }

    pub(super) fn bits_text(self) -> String {
        self.bits().map_or_else(|| "-".to_owned(), |bits| format!("{bits:.2}"))
    }
}

impl std::iter::Sum for Size {
    fn sum<I: Iterator<Item = Size>>(sizes: I) -> Size {
        sizes.fold(Size::default(), |a, b| Size {
            elements: a.elements.saturating_add(b.elements),
            bytes: a.bytes + b.bytes,
        })
    }
}

/// The JSON of a model; `unclear` has the errors of unclear tensors.
fn to_json(model: &Model, tensors: &[TensorView<'_>], unclear: &BTreeMap<&str, Error>) -> Json {
    let tensor_json = |tensor: &TensorView<'_>| {
        let class = match tensor.kind() {
            TensorKind::Quantized(_) => "quantized",
            TensorKind::Dense(_) => "dense",
            TensorKind::Unclear(_) => "unclear",
            _ => "other",
        };
        json!({
            "name": tensor.name(),
            "shape": shape(tensor),
            "class": class,
            "format": tensor.kind().to_string(),
            "bytes": sized_bytes(tensor),
            "bits_per_weight": known([tensor]).bits(),
            "stored": tensor.stored(),
            "stray": tensor.is_stray(),
            "file": tensor.file(),
            "offset": tensor.offset(),
            "error": unclear.get(tensor.name()).map(Error::to_string),
        })
    };
    let gguf = model.gguf_values().map(|(key, value)| (key.to_owned(), value_json(&value)));
    let plain = model.metadata().map(|(key, value)| (key.to_owned(), value.into()));
    let known = known(tensors);
    json!({
        "files": model.files().collect::<Vec<_>>(),
        "shard": model.shard().map(|(number, count)| json!({ "number": number, "count": count })),
        "gguf_version": model.gguf_version(),
        "unread_quantization": model.unread_quantization(),
        "metadata": gguf.chain(plain).collect::<Map<String, Json>>(),
        "tensors": tensors.iter().map(tensor_json).collect::<Vec<_>>(),
        "elements": known.elements,
        "bytes": total_bytes(tensors),
        "bits_per_weight": known.bits(),
    })
}

/// A value as JSON. Numbers that JSON lacks are texts: `NaN`, `inf`, `-inf`.
pub(super) fn value_json(value: &Value<'_>) -> Json {
    match value {
        Value::I8(value) => (*value).into(),
        Value::I16(value) => (*value).into(),
        Value::I32(value) => (*value).into(),
        Value::I64(value) => (*value).into(),
        // The shortest decimal that gives the number of f32.
        Value::F32(number) if number.is_finite() => {
            number.to_string().parse::<f64>().unwrap_or(f64::NAN).into()
        }
        Value::F64(number) if number.is_finite() => (*number).into(),
        Value::F32(_) | Value::F64(_) => value.to_string().into(),
        Value::Bool(value) => (*value).into(),
        Value::Array(values) => values.iter().map(|value| value_json(&value)).collect(),
        other => match (other.as_str(), other.as_u64()) {
            (Some(text), _) => text.into(),
            (None, number) => number.into(),
        },
    }
}
