//! A tensor of a model.

use crate::identify::leaves;
use crate::layouts::{self, Decoder, Foreign};
use crate::model::Model;
use crate::raw::{Element, Raw, elements, unread};
use crate::stream::{Chunk, Sink, blocks, plain};
use crate::{gguf, header};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use tilewise_core::quant::Quantized;
use tilewise_core::{DType, Error, QuantFormat, Result};

/// The contents of a tensor.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum TensorKind {
    /// Numbers.
    Dense(DType),
    /// A matrix in a quantized format, or a stack of them. The file may store it in another way,
    /// and loading converts it to this format.
    Quantized(QuantFormat),
    /// Elements of another type, by its name. Their bytes are not converted.
    Other(String),
    /// A quantized matrix that contradicts itself or an expectation, or that several formats fit.
    /// Reading it gives this error, too.
    Unclear(Error),
}

impl fmt::Display for TensorKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TensorKind::Dense(dtype) => dtype.fmt(f),
            TensorKind::Quantized(format) => format.fmt(f),
            TensorKind::Other(name) => f.pad(name),
            TensorKind::Unclear(_) => f.pad("unclear"),
        }
    }
}

/// A tensor of a [`Model`]: dense, or quantized with all its planes.
#[derive(Clone)]
pub struct TensorView<'m> {
    pub(crate) model: &'m Model,
    pub(crate) name: &'m str,
    pub(crate) entry: std::borrow::Cow<'m, Entry>,
}

/// The description of a tensor.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) kind: TensorKind,
    pub(crate) shape: Vec<usize>,
    pub(crate) held: Held,
    /// All tensors of the file that belong to it.
    pub(crate) members: Vec<usize>,
    pub(crate) order: Option<usize>,
    pub(crate) factor: Option<f32>,
}

/// How a tensor lies in the file.
#[derive(Clone, Debug)]
pub(crate) enum Held {
    /// One tensor.
    Whole(usize),
    /// A tensor per plane, in the order of planes.
    Planes(Vec<usize>),
    /// Blocks of GGUF.
    Blocks(usize, QuantFormat),
    /// In a foreign layout.
    Foreign(Foreign, Arc<dyn Decoder>),
}

impl<'m> TensorView<'m> {
    /// The prefix of a quantized matrix, such as `model.layers.0.mlp.up_proj`; the name in the file
    /// of any other tensor.
    pub fn name(&self) -> &'m str {
        self.name
    }

    /// Its dimensions, slowest first. A quantized matrix is `[N, K]`, a stack of them `[E, N, K]`.
    pub fn shape(&self) -> &[usize] {
        &self.entry.shape
    }

    /// Its type or format.
    pub fn kind(&self) -> &TensorKind {
        &self.entry.kind
    }

    /// How it is stored: `gguf`, or a type of GGUF that becomes another format, such as `IQ3_S`; a
    /// foreign layout such as `gptq`, `awq` and `modelopt`; or `safetensors`.
    pub fn stored(&self) -> &'static str {
        match (&self.entry.held, &self.first().element) {
            (Held::Foreign(..), Element::Recoded(recoding)) => recoding.name,
            (Held::Foreign(foreign, _), _) => foreign.layout.name,
            _ if self.model.is_gguf() => "gguf",
            _ => "safetensors",
        }
    }

    /// Whether it is named as a plane of quantized weights (`X.scales`), and stands alone: the
    /// other planes are missing, or lie in another file of the model.
    pub fn is_stray(&self) -> bool {
        let leaf = self.name().rsplit('.').next().unwrap_or_default();
        let is_part = leaf != "weight" && leaves().contains(leaf) || layouts::is_part(self.name());
        is_part && !self.model.is_gguf() && !matches!(self.kind(), TensorKind::Quantized(_))
    }

    /// The file that holds it, or its first plane.
    pub fn file(&self) -> &'m str {
        self.model.file(self.first().file)
    }

    /// Where it, or its first plane, begins in that file.
    pub fn offset(&self) -> u64 {
        self.first().bytes.start as u64
    }

    /// Bytes of all its planes in the files.
    pub fn stored_bytes(&self) -> u64 {
        self.entry.members.iter().map(|&raw| self.model.raw(raw).bytes.len() as u64).sum()
    }

    /// Whether the size of its elements is known. If not, its bytes cannot be checked against its
    /// shape: in safetensors they are the range in the header, in GGUF all bytes up to the next
    /// tensor.
    pub fn is_sized(&self) -> bool {
        match self.kind() {
            TensorKind::Other(name) if self.model.is_gguf() => gguf::is_sized(name),
            TensorKind::Other(name) => header::bits(name).is_some(),
            _ => true,
        }
    }

    /// The name in the file of the tensor that holds its numbers or codes: `X.weight` of a
    /// quantized matrix `X`, `X.qweight` of one of GPTQ or AWQ.
    pub fn stored_name(&self) -> &'m str {
        let names = || self.entry.members.iter().map(|&raw| &*self.model.raw(raw).name);
        let holds_codes =
            |name: &&str| matches!(name.rsplit('.').next(), Some("weight" | "qweight" | "codes"));
        names().find(holds_codes).unwrap_or(&self.first().name)
    }

    fn first(&self) -> &'m Raw {
        self.model.raw(self.entry.members[0])
    }

    /// Rows and columns, with all dimensions but the last taken together as rows.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when the rows cannot be counted.
    pub fn matrix(&self) -> Result<(usize, usize)> {
        matrix(self.shape())
    }

    /// Bytes of each plane that [`stream`](Self::stream) gives.
    ///
    /// # Errors
    /// The error of [`TensorKind::Unclear`]; otherwise as [`matrix`](Self::matrix).
    pub fn sizes(&self) -> Result<Vec<usize>> {
        match self.kind() {
            TensorKind::Unclear(error) => Err(error.clone()),
            TensorKind::Quantized(format) => {
                let (n, k) = self.matrix()?;
                format.sizes(n, k)
            }
            TensorKind::Dense(_) | TensorKind::Other(_) => Ok(vec![self.first().bytes.len()]),
        }
    }

    /// Gives all bytes in chunks, each plane from its start. Memory stays below some tens of MiB
    /// beyond the file, and pages of a mapped file are given back when they have been streamed.
    ///
    /// # Errors
    /// The errors of [`sizes`](Self::sizes); [`File`](crate::Error) when `g_idx` names a group that
    /// does not exist, or gives one too many columns; `OutOfMemory`; every error of `sink`.
    pub fn stream(&self, sink: &mut Sink<'_>) -> Result<()> {
        if let TensorKind::Unclear(error) = self.kind() {
            return Err(error.clone());
        }
        let mut done = 0;
        let sink = &mut |chunk: Chunk<'_>| {
            sink(chunk)?;
            done += chunk.bytes.len();
            let end = chunk.offset as usize + chunk.bytes.len();
            match &self.entry.held {
                Held::Whole(raw) => self.model.release(*raw, end),
                Held::Planes(raws) => self.model.release(raws[chunk.plane], end),
                // Its planes have all bytes of the blocks.
                Held::Blocks(raw, _) => self.model.release(*raw, done),
                Held::Foreign(..) => {}
            }
            Ok(())
        };
        match &self.entry.held {
            Held::Whole(raw) => plain(0, self.model.bytes(*raw), sink),
            Held::Planes(raws) => raws
                .iter()
                .enumerate()
                .try_for_each(|(plane, raw)| plain(plane, self.model.bytes(*raw), sink)),
            Held::Blocks(raw, format) => blocks(*format, self.model.bytes(*raw), sink),
            Held::Foreign(foreign, decoder) => {
                foreign.stream(&**decoder, self.model.opened(), 0..self.matrix()?.0, sink)?;
                let whole = |&raw: &usize| self.model.release(raw, self.model.bytes(raw).len());
                self.entry.members.iter().for_each(whole);
                Ok(())
            }
        }
    }

    /// All bytes of each plane. `progress` is told the bytes that are done, and those in all.
    ///
    /// # Errors
    /// The errors of [`stream`](Self::stream); [`OutOfMemory`](crate::Error).
    pub fn planes(&self, progress: &mut dyn FnMut(u64, u64)) -> Result<Vec<Vec<u8>>> {
        let sizes = self.sizes()?;
        let mut planes = Vec::new();
        for size in &sizes {
            let mut plane: Vec<u8> = Vec::new();
            let room = plane.try_reserve_exact(*size);
            room.map_err(|why| Error::OutOfMemory(format!("{}: {size} bytes: {why}", self.name)))?;
            planes.push(plane);
        }
        let (mut done, total) = (0, sizes.iter().map(|&size| size as u64).sum());
        self.stream(&mut |chunk: Chunk<'_>| {
            planes[chunk.plane].extend_from_slice(chunk.bytes);
            done += chunk.bytes.len() as u64;
            progress(done, total);
            Ok(())
        })?;
        Ok(planes)
    }

    /// The quantized matrix. The matrices of a stack lie one after the other, as
    /// [`matrix`](Self::matrix) says.
    ///
    /// # Errors
    /// The errors of [`planes`](Self::planes); [`Unsupported`](crate::Error) when it is not
    /// quantized.
    pub fn quantized(&self) -> Result<Quantized> {
        match self.kind() {
            TensorKind::Quantized(format) => {
                let (n, k) = self.matrix()?;
                self.scaled(Quantized::from_planes(*format, n, k, self.planes(&mut |_, _| {})?)?)
            }
            _ => Err(self.not_quantized()),
        }
    }

    /// Some rows of the quantized matrix. Only their bytes are read.
    ///
    /// # Errors
    /// The errors of [`quantized`](Self::quantized); [`Shape`](crate::Error) for rows beyond the
    /// last.
    pub fn rows(&self, rows: Range<usize>) -> Result<Quantized> {
        let &TensorKind::Quantized(format) = self.kind() else { return Err(self.not_quantized()) };
        let (n, k) = self.matrix()?;
        if rows.start > rows.end || rows.end > n {
            return Err(Error::Shape(format!(
                "{}: rows {rows:?} of a matrix of {n} rows",
                self.name
            )));
        }
        // Without rows, there may be any number of columns: the bytes of a row could overflow.
        let sizes: Vec<usize> =
            format.sizes(n, k)?.into_iter().map(|size| size / n.max(1)).collect();
        let part = |bytes: &'m [u8], row: usize| &bytes[rows.start * row..rows.end * row];
        self.scaled(match &self.entry.held {
            Held::Blocks(raw, _) => Quantized::from_blocks(
                format,
                rows.len(),
                k,
                part(self.model.bytes(*raw), sizes.iter().sum()),
            ),
            Held::Foreign(foreign, decoder) => {
                let mut planes = vec![Vec::new(); sizes.len()];
                let mut sink = |chunk: Chunk<'_>| {
                    planes[chunk.plane].extend_from_slice(chunk.bytes);
                    Ok(())
                };
                foreign.stream(&**decoder, self.model.opened(), rows.clone(), &mut sink)?;
                Quantized::from_planes(format, rows.len(), k, planes)
            }
            Held::Planes(raws) => {
                let plane =
                    |(raw, row): (&usize, usize)| part(self.model.bytes(*raw), row).to_vec();
                Quantized::from_planes(
                    format,
                    rows.len(),
                    k,
                    raws.iter().zip(sizes).map(plane).collect(),
                )
            }
            Held::Whole(_) => Err(self.not_quantized()),
        }?)
    }

    fn scaled(&self, read: Quantized) -> Result<Quantized> {
        match self.factor() {
            Some(factor) => read.with_factor(factor),
            None => Ok(read),
        }
    }

    fn not_quantized(&self) -> Error {
        match self.kind() {
            TensorKind::Unclear(error) => error.clone(),
            TensorKind::Other(_) => self.unread(),
            _ if self.codes().is_some() => self.unread(),
            kind => Error::Unsupported(format!(
                "{}: {} is {kind}, not quantized",
                self.file(),
                self.name
            )),
        }
    }

    /// Why it holds codes that are not read, if it does.
    fn codes(&self) -> Option<String> {
        self.model.codes(self.entry.members[0])
    }

    /// The error of elements of a type that is none of ours, and of codes.
    fn unread(&self) -> Error {
        let why = self.codes().unwrap_or_else(|| unread(self.first(), self.model.is_gguf()));
        Error::Unsupported(format!("{}: {why}{}", self.file(), self.model.others()))
    }

    /// The bytes of a dense tensor, unchanged.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error) when it is quantized, when its type is none of [`DType`], or
    /// when it holds codes of quantized weights that are not read; the error of
    /// [`TensorKind::Unclear`].
    pub fn dense(&self) -> Result<(DType, &'m [u8])> {
        match (self.kind(), &self.entry.held) {
            (TensorKind::Dense(_), _) if self.codes().is_some() => Err(self.unread()),
            (TensorKind::Dense(dtype), Held::Whole(raw)) => Ok((*dtype, self.model.bytes(*raw))),
            (TensorKind::Unclear(error), _) => Err(error.clone()),
            (TensorKind::Other(_), _) => Err(self.unread()),
            (kind, _) => {
                let text = format!(
                    "{}: {} is {kind}, not dense of f32, f16, bf16, i32 or u32",
                    self.file(),
                    self.name
                );
                Err(Error::Unsupported(text))
            }
        }
    }

    /// The number that all weights are multiplied with, if the file has one.
    pub fn factor(&self) -> Option<f32> {
        self.entry.factor
    }

    /// The order of the stored columns, if it differs from W's: stored column i is column
    /// `order[i]` of W. A product takes its activations in this order.
    ///
    /// # Errors
    /// [`File`](crate::Error) when the file's order does not name every column once; the error of
    /// [`TensorKind::Unclear`].
    pub fn order(&self) -> Result<Option<Vec<u32>>> {
        if let TensorKind::Unclear(error) = self.kind() {
            return Err(error.clone());
        }
        if let Held::Foreign(foreign, decoder) = &self.entry.held {
            return decoder.order(&foreign.parts(self.model.opened()));
        }
        let Some(raw) = self.entry.order else { return Ok(None) };
        let part = self.model.opened().part(raw);
        let order: Vec<u32> = (0..part.bytes.len() / 4).map(|i| part.word(i)).collect();
        let mut seen = vec![false; order.len()];
        for (i, &column) in order.iter().enumerate() {
            match seen.get_mut(column as usize) {
                Some(seen) if !*seen => *seen = true,
                _ => {
                    let most = order.len();
                    let text = format!("column {column} is there twice, or is not below {most}");
                    return Err(part.bad(4 * i, text));
                }
            }
        }
        Ok(Some(order))
    }
}

/// Rows and columns, with all dimensions but the last taken together as rows.
pub(crate) fn matrix(shape: &[usize]) -> Result<(usize, usize)> {
    let (k, rows) = shape.split_last().map_or((1, &[][..]), |(&k, rows)| (k, rows));
    let n = elements(rows).ok_or_else(|| {
        Error::Shape(format!("overflow: the rows of {shape:?} cannot be counted"))
    })?;
    Ok((n, k))
}

impl fmt::Debug for TensorView<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {:?}", self.name, self.kind(), self.shape())
    }
}
