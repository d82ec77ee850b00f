//! The tensors of a foreign matrix.

use super::rows::{e8m0, number, word};
use crate::error::bad;
use crate::opening::Opened;
use crate::raw::{Element, Raw, elements};
use tilewise_core::{DType, Error, Result};

/// The tensors of a matrix, by what follows its prefix.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'a> {
    pub(super) opened: &'a Opened,
    pub(super) tensors: &'a [(&'static str, usize)],
}

/// A tensor and its bytes.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub(crate) raw: &'a Raw,
    pub(crate) bytes: &'a [u8],
    file: &'a str,
}

impl<'a> Parts<'a> {
    /// A tensor that may be there.
    pub(crate) fn get(&self, leaf: &str) -> Option<Part<'a>> {
        let (_, raw) = self.tensors.iter().find(|(own, _)| *own == leaf)?;
        Some(self.opened.part(*raw))
    }

    /// A tensor that the layout needs.
    pub(crate) fn need(&self, leaf: &str) -> Result<Part<'a>> {
        self.get(leaf).ok_or_else(|| self.refuse(format!("{leaf} is missing")))
    }

    /// The tensors, with what follows the prefix: codes first.
    pub(crate) fn iter(&self) -> impl ExactSizeIterator<Item = (&'static str, Part<'a>)> + use<'a> {
        let opened = self.opened;
        self.tensors.iter().map(move |(leaf, raw)| (*leaf, opened.part(*raw)))
    }

    /// The error of tensors that are malformed.
    pub(crate) fn refuse(&self, why: impl Into<String>) -> Error {
        Error::file(self.told(why.into()))
    }

    /// The error of tensors that are not as someone says.
    pub(crate) fn contradiction(&self, why: impl Into<String>) -> Error {
        self.refuse(format!("contradiction: {}", why.into()))
    }

    /// The error of tensors that are sound, and not read.
    pub(crate) fn unread(&self, why: impl Into<String>) -> Error {
        Error::Unsupported(self.told(why.into()))
    }

    fn told(&self, why: String) -> String {
        let shown = self.iter().map(|(_, part)| part.raw.to_string());
        format!("{why}: {}", shown.collect::<Vec<_>>().join(", "))
    }
}

impl Opened {
    /// A tensor and its bytes.
    pub(crate) fn part(&self, raw: usize) -> Part<'_> {
        let raw = &self.raws[raw];
        let source = &self.sources[raw.file];
        Part { raw, bytes: &source.bytes[raw.bytes.clone()], file: &source.name }
    }
}

impl Part<'_> {
    pub(crate) fn shape(&self) -> &[usize] {
        &self.raw.shape
    }

    /// The type, by its name in safetensors.
    pub(crate) fn kind(&self) -> &str {
        self.raw.element.name()
    }

    pub(crate) fn is_words(&self) -> bool {
        matches!(self.raw.element, Element::Dense(DType::I32 | DType::U32))
    }

    pub(crate) fn is_float(&self) -> bool {
        matches!(self.raw.element, Element::Dense(dtype) if dtype.is_float())
    }

    /// Whether it has numbers that scale others: floats, or powers of two as e8m0.
    pub(crate) fn is_scale(&self) -> bool {
        self.is_float() || matches!(self.kind(), "F8_E8M0" | "U8")
    }

    /// A number that scales others.
    pub(crate) fn scale(&self, at: usize) -> f32 {
        if self.is_float() { self.number(at) } else { e8m0(self.bytes[at]) }
    }

    /// All numbers of a short list of integers, if none is negative.
    pub(crate) fn integers(&self) -> Option<Vec<usize>> {
        let size = match self.kind() {
            "I64" => 8,
            "I32" => 4,
            _ => return None,
        };
        let one = |bytes: &[u8]| {
            let mut number = [if bytes[size - 1] < 0x80 { 0 } else { 0xff }; 8];
            number[..size].copy_from_slice(bytes);
            usize::try_from(i64::from_le_bytes(number)).ok()
        };
        let is_short = self.raw.shape.len() == 1 && self.bytes.len() <= 8 * size;
        is_short.then(|| self.bytes.chunks_exact(size).map(one).collect())?
    }

    /// A word, if the tensor holds words.
    pub(crate) fn word(&self, at: usize) -> u32 {
        word(self.bytes, at)
    }

    /// A number, if the tensor holds floats.
    pub(crate) fn number(&self, at: usize) -> f32 {
        match self.raw.element {
            Element::Dense(dtype) => number(self.bytes, at, dtype),
            _ => f32::NAN,
        }
    }

    /// The only number of a tensor: a factor.
    pub(crate) fn factor(&self) -> Result<f32> {
        if elements(&self.raw.shape) != Some(1) || self.raw.element != Element::Dense(DType::F32) {
            return Err(Error::file(format!("{}; one F32 is expected", self.raw)));
        }
        let value = self.number(0);
        if value.is_finite() {
            return Ok(value);
        }
        Err(Error::file(format!("{} is {value}", self.raw)))
    }

    /// The error of an element.
    pub(crate) fn bad(&self, at: usize, why: String) -> Error {
        bad(self.file, format!("{} at byte {}: {why}", self.raw.name, self.raw.bytes.start + at))
    }
}
