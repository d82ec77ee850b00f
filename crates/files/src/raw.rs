//! A tensor as a file describes it; `group.rs` gives it a meaning.

use crate::gguf::{self, Recoding};
use crate::identify::name_of;
use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use tilewise_core::{DType, QuantFormat};

/// A tensor of a file.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) name: String,
    pub(crate) element: Element,
    /// Slowest first.
    pub(crate) shape: Vec<usize>,
    /// Number of its file.
    pub(crate) file: usize,
    /// Its bytes in the file. They have been checked to lie in it.
    pub(crate) bytes: Range<usize>,
}

impl fmt::Display for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Raw { name, element, shape, bytes, .. } = self;
        write!(f, "{name} {} {shape:?} at byte {}", element.name(), bytes.start)
    }
}

/// The types of safetensors that are read by themselves.
const READ: [&str; 5] = ["F32", "F16", "BF16", "I32", "U32"];

/// The type of a tensor's elements.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Element {
    Dense(DType),
    Blocks(QuantFormat),
    /// Blocks of GGUF that become another format.
    Recoded(Recoding),
    /// Another, by its name.
    Other(Cow<'static, str>),
}

impl Element {
    /// Name of the type, as safetensors and GGUF write it.
    pub(crate) fn name(&self) -> &str {
        match self {
            Element::Dense(dtype) => name_of(*dtype),
            Element::Blocks(format) => format.name(),
            Element::Recoded(recoding) => recoding.name,
            Element::Other(name) => name,
        }
    }
}

/// Says that a type is not read, and which types are.
pub(crate) fn unread(raw: &Raw, is_gguf: bool) -> String {
    let read = if is_gguf { gguf::read_types() } else { READ.to_vec() };
    let (name, kind, read) = (&raw.name, raw.element.name(), read.join(", "));
    format!("{name} is of type {kind}, which is not read; {read} are")
}

/// The number of elements, if it can be counted.
pub(crate) fn elements(shape: &[usize]) -> Option<usize> {
    // A zero makes the product zero, whatever else overflows.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1usize, |product, &dimension| product.checked_mul(dimension))
}
