//! Writes safetensors files, in MLX's naming, from streams: whole or not at all.

use crate::group::{FACTOR, ORDER};
use crate::header::{self, METADATA};
use crate::identify::{element_of, joined, name_of, tensor_name};
use crate::model::FORMAT;
use crate::opening;
use crate::raw::elements;
use crate::replace::{folder, replace};
use crate::source::Files;
use crate::stream::{Chunk, Sink, plain};
use crate::tensor::{TensorKind, TensorView};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;
use tilewise_core::quant::{Plane, Quantized};
use tilewise_core::{DType, Error, QuantFormat, Result};

/// Where headers end: a multiple of this, so that numbers are aligned in a mapped file.
const ALIGNMENT: usize = 8;

/// A tensor to be written.
pub struct Output<'a> {
    name: String,
    kind: TensorKind,
    shape: Vec<usize>,
    order: Option<Vec<u32>>,
    factor: Option<f32>,
    /// Bytes of elements whose size is not known.
    size: Option<u64>,
    fill: Box<Fill<'a>>,
}

/// Gives the bytes of the planes.
type Fill<'a> = dyn FnOnce(&mut Sink<'_>) -> Result<()> + 'a;

impl<'a> Output<'a> {
    /// A tensor whose planes `fill` gives, each from its start and without a gap, as
    /// [`TensorView::stream`] does. The name of a quantized one is its prefix; a vector, which GGUF
    /// may have, is written as a matrix of one row.
    pub fn streamed(
        name: &str,
        kind: TensorKind,
        shape: &[usize],
        fill: impl FnOnce(&mut Sink<'_>) -> Result<()> + 'a,
    ) -> Self {
        let shape = match (&kind, shape) {
            (TensorKind::Quantized(_), &[k]) => vec![1, k],
            _ => shape.to_vec(),
        };
        Output {
            name: name.to_owned(),
            kind,
            shape,
            order: None,
            factor: None,
            size: None,
            fill: Box::new(fill),
        }
    }

    /// A dense tensor.
    pub fn dense(name: &str, dtype: DType, shape: &[usize], bytes: &'a [u8]) -> Self {
        Self::streamed(name, TensorKind::Dense(dtype), shape, move |sink| plain(0, bytes, sink))
    }

    /// A quantized matrix, with its factor.
    pub fn quantized(prefix: &str, weights: &'a Quantized) -> Self {
        let kind = TensorKind::Quantized(weights.format());
        let made = Self::streamed(prefix, kind, &[weights.n(), weights.k()], move |sink| {
            weights
                .planes()
                .iter()
                .enumerate()
                .try_for_each(|(plane, bytes)| plain(plane, bytes, sink))
        });
        if weights.factor() == 1.0 { made } else { made.with_factor(weights.factor()) }
    }

    /// A tensor of a model, under its own name, with its factor and the order of its columns.
    /// Elements of an unknown type are copied from a safetensors file, and refused from GGUF.
    ///
    /// # Errors
    /// The errors of [`TensorView::order`].
    pub fn tensor(tensor: &TensorView<'a>) -> Result<Self> {
        let own = tensor.clone();
        let made =
            Self::streamed(tensor.name(), tensor.kind().clone(), tensor.shape(), move |sink| {
                own.stream(sink)
            });
        let size = (!tensor.model.is_gguf()).then(|| tensor.stored_bytes());
        Ok(Output { order: tensor.order()?, factor: tensor.factor(), size, ..made })
    }

    /// This tensor with the order of its columns: column i is column `order[i]` of W.
    #[must_use]
    pub fn with_order(self, order: Vec<u32>) -> Self {
        Output { order: Some(order), ..self }
    }

    /// This tensor with a number that all weights are multiplied with.
    #[must_use]
    pub fn with_factor(self, factor: f32) -> Self {
        Output { factor: Some(factor), ..self }
    }

    /// The tensors of the file that hold its planes.
    fn planes(&self) -> Result<Vec<Planned>> {
        let overflow = || Error::Shape(format!("overflow: {}: {:?}", self.name, self.shape));
        match &self.kind {
            TensorKind::Unclear(error) => Err(error.clone()),
            TensorKind::Quantized(format) => {
                let (&k, rows) = self.shape.split_last().ok_or_else(overflow)?;
                let sizes = format.sizes(elements(rows).ok_or_else(overflow)?, k)?;
                let plane = |(plane, size): (&Plane, usize)| {
                    let columns =
                        k / format.block() as usize * (plane.bytes / plane.of.bytes()) as usize;
                    let (name, shape) =
                        (tensor_name(&self.name, plane), [rows, &[columns]].concat());
                    Planned::new(
                        name,
                        element_of(plane).into(),
                        shape,
                        size as u64,
                        plane.of.bytes(),
                    )
                };
                Ok(format.planes().iter().zip(sizes).map(plane).collect())
            }
            TensorKind::Dense(dtype) => {
                let count = elements(&self.shape).ok_or_else(overflow)?;
                let size = (count as u64).checked_mul(dtype.bytes()).ok_or_else(overflow)?;
                let element = name_of(*dtype).to_owned();
                Ok(vec![Planned::new(
                    self.name.clone(),
                    element,
                    self.shape.clone(),
                    size,
                    dtype.bytes(),
                )])
            }
            TensorKind::Other(element) => {
                let count = elements(&self.shape).ok_or_else(overflow)? as u64;
                let (size, alignment) = match (header::bits(element).map(u64::from), self.size) {
                    (Some(bits), _) => {
                        (count.checked_mul(bits).ok_or_else(overflow)? / 8, bits / 8)
                    }
                    (None, Some(size)) => (size, 1),
                    (None, None) => {
                        let text = format!(
                            "{}: {element} is not read, and safetensors has no such type",
                            self.name
                        );
                        let hint =
                            "let another program, such as llama-quantize, write it as F16 first";
                        return Err(Error::Unsupported(format!("{text}; {hint}")));
                    }
                };
                Ok(vec![Planned::new(
                    self.name.clone(),
                    element.clone(),
                    self.shape.clone(),
                    size,
                    alignment,
                )])
            }
        }
    }

    /// The tensors of the file that hold the order and the factor, with their bytes.
    fn extras(&self) -> Vec<(Planned, Vec<u8>)> {
        let order = self.order.as_ref().map(|order| {
            let bytes: Vec<u8> = order.iter().flat_map(|column| column.to_le_bytes()).collect();
            (
                Planned::new(
                    joined(&self.name, ORDER),
                    "U32".into(),
                    vec![order.len()],
                    bytes.len() as u64,
                    4,
                ),
                bytes,
            )
        });
        let factor = self.factor.map(|factor| {
            let bytes = factor.to_le_bytes().to_vec();
            (
                Planned::new(
                    joined(&self.name, FACTOR),
                    "F32".into(),
                    Vec::new(),
                    bytes.len() as u64,
                    4,
                ),
                bytes,
            )
        });
        order.into_iter().chain(factor).collect()
    }
}

/// A tensor of the file to be.
struct Planned {
    name: String,
    element: String,
    shape: Vec<usize>,
    size: u64,
    /// A divisor of its offset.
    alignment: u64,
    /// Bytes of the file before it.
    offset: u64,
    /// Bytes written.
    done: u64,
}

impl Planned {
    fn new(name: String, element: String, shape: Vec<usize>, size: u64, alignment: u64) -> Self {
        Planned { name, element, shape, size, alignment, offset: 0, done: 0 }
    }
}

/// Writes a file, whole or not at all, as [`replace()`] does. `metadata` is kept in it; the formats
/// of `outputs` take the place of its entries that name formats. `progress` is told how many bytes
/// are done, and how many there are.
///
/// # Errors
/// The errors of [`write_to`]; [`File`](crate::Error) when the system refuses; `Unsupported` when
/// `config.json` beside the file names another format of a matrix.
pub fn write(
    path: impl AsRef<Path>,
    outputs: Vec<Output<'_>>,
    metadata: &BTreeMap<String, String>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let path = path.as_ref();
    agrees_with_config(path, &outputs)?;
    replace(path, |file| write_to(file, outputs, metadata, progress))
}

/// Fails if `config.json` beside the file says something else of a matrix: the file could be
/// written, but not opened.
fn agrees_with_config(path: &Path, outputs: &[Output<'_>]) -> Result<()> {
    let quantized = |output: &Output<'_>| match output.kind {
        TensorKind::Quantized(format) => Some((output.name.clone(), format)),
        _ => None,
    };
    let mut quantized = outputs.iter().filter_map(quantized).peekable();
    if quantized.peek().is_none() {
        return Ok(());
    }
    let config = opening::config(&mut Files::Folder(folder(path).to_owned()).into());
    for (name, format) in quantized {
        if let Some(claim) = config.claim(&name)?
            && !claim.says.admits(format)
        {
            let text = format!(
                "{name:?} would be {format}, but {} beside it says {}",
                claim.by, claim.says
            );
            let shown = path.display();
            return Err(Error::Unsupported(format!("{shown}: {text}: name another folder")));
        }
    }
    Ok(())
}

/// Writes the bytes of a file.
///
/// # Errors
/// [`Misuse`](crate::Error) when two tensors have one name; `Shape` for a K that is not a multiple
/// of the block; `Unsupported` for a type, a name or a header that safetensors does not have;
/// `File` when `file` refuses, or a stream is not as long as its shape says; every error of a
/// stream.
pub fn write_to<W: Write + Seek>(
    file: &mut W,
    outputs: Vec<Output<'_>>,
    metadata: &BTreeMap<String, String>,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    // The tensors of each output: planes, then extras.
    let mut planned: Vec<Planned> = Vec::new();
    let mut first = Vec::new();
    for output in &outputs {
        first.push(planned.len());
        planned.extend(output.planes()?);
        planned.extend(output.extras().into_iter().map(|(extra, _)| extra));
    }
    let header = lay_out(&mut planned, named(&outputs, metadata))?;
    let total = planned.iter().map(|tensor| tensor.size).sum();
    let io = |why: std::io::Error| Error::io(why.to_string(), why);
    file.write_all(&header).map_err(io)?;
    let (mut at, mut done) = (header.len() as u64, 0);
    let mut put = |planned: &mut Planned, offset: u64, bytes: &[u8]| {
        let Planned { name, size, done: own, .. } = planned;
        let length = bytes.len() as u64;
        if offset != *own || *size - *own < length {
            let text = format!(
                "{name}: {length} bytes for offset {offset}, but {own} of {size} are written so far"
            );
            return Err(Error::file(text));
        }
        let to = planned.offset + offset;
        if to != at {
            file.seek(SeekFrom::Start(to)).map_err(io)?;
        }
        file.write_all(bytes).map_err(io)?;
        planned.done += length;
        at = to + length;
        done += length;
        progress(done, total);
        Ok(())
    };
    for (output, first) in outputs.into_iter().zip(first) {
        let (extras, name) = (output.extras(), output.name);
        let planes = match &output.kind {
            TensorKind::Quantized(format) => format.planes().len(),
            _ => 1,
        };
        (output.fill)(&mut |chunk: Chunk<'_>| {
            if chunk.plane >= planes {
                return Err(Error::file(format!("{name}: plane {} of {planes}", chunk.plane)));
            }
            put(&mut planned[first + chunk.plane], chunk.offset, chunk.bytes)
        })?;
        for (i, (_, bytes)) in extras.iter().enumerate() {
            put(&mut planned[first + planes + i], 0, bytes)?;
        }
    }
    match planned.iter().find(|tensor| tensor.done != tensor.size) {
        Some(Planned { name, done, size, .. }) => {
            Err(Error::file(format!("{name}: the stream ended after {done} of {size} bytes")))
        }
        None => Ok(()),
    }
}

/// Adds the format: one entry if all matrices share it, otherwise one per matrix. Older entries
/// that name formats go: they are of other files.
fn named(outputs: &[Output<'_>], metadata: &BTreeMap<String, String>) -> BTreeMap<String, String> {
    let stale = |key: &str| key.rsplit('.').next() == Some(FORMAT);
    let kept = metadata.iter().filter(|(key, _)| !stale(key));
    let mut metadata: BTreeMap<String, String> =
        kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    let format = |output: &Output<'_>| match output.kind {
        TensorKind::Quantized(format) => Some(format),
        _ => None,
    };
    let formats: BTreeSet<&str> =
        outputs.iter().filter_map(format).map(QuantFormat::name).collect();
    for output in outputs {
        if let Some(format) = format(output) {
            let key =
                if formats.len() == 1 { FORMAT.to_owned() } else { joined(&output.name, FORMAT) };
            metadata.insert(key, format.to_string());
        }
    }
    metadata
}

/// Gives each tensor its place, and returns the bytes before them all.
fn lay_out(planned: &mut [Planned], metadata: BTreeMap<String, String>) -> Result<Vec<u8>> {
    let mut order: Vec<usize> = (0..planned.len()).collect();
    // The widest come first, so that all are aligned.
    order.sort_by_key(|&i| std::cmp::Reverse(planned[i].alignment));
    let mut header = Map::new();
    if !metadata.is_empty() {
        header.insert(METADATA.to_owned(), json!(metadata));
    }
    let mut end = 0u64;
    for i in order {
        let tensor = &mut planned[i];
        tensor.offset = end;
        let size = tensor.size;
        end = end
            .checked_add(size)
            .ok_or_else(|| Error::Shape(format!("overflow: {}: {size} bytes", tensor.name)))?;
        if tensor.name == METADATA {
            return Err(Error::Unsupported(format!(
                "safetensors has no tensor of the name {METADATA:?}"
            )));
        }
        let entry = json!({
            "dtype": tensor.element,
            "shape": tensor.shape,
            "data_offsets": [tensor.offset, end],
        });
        if header.insert(tensor.name.clone(), entry).is_some() {
            let text = format!("two tensors to be written are named {:?}", tensor.name);
            return Err(Error::Misuse(text));
        }
    }
    let mut text = Value::Object(header).to_string().into_bytes();
    text.resize(text.len().next_multiple_of(ALIGNMENT), b' ');
    if text.len() as u64 > header::MOST {
        let (length, most) = (text.len(), header::MOST);
        return Err(Error::Unsupported(format!(
            "a header of {length} bytes; safetensors has at most {most}"
        )));
    }
    let bytes = [&(text.len() as u64).to_le_bytes(), &text[..]].concat();
    if end.checked_add(bytes.len() as u64).is_none() {
        return Err(Error::Shape(format!(
            "overflow: {end} bytes of tensors and {} of the header are more than a file can have",
            bytes.len()
        )));
    }
    for tensor in planned {
        tensor.offset += bytes.len() as u64;
    }
    Ok(bytes)
}
