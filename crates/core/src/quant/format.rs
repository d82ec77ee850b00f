//! What a quantized format is: data, and the few functions that define its numbers.

use super::FORMATS;
use crate::dtype::DType;
use crate::error::{Error, Result};
use std::fmt;
use std::hash::{Hash, Hasher};

/// The definition of a format: everything that the library knows about it outside its loaders.
///
/// Weights `[n, k]` are stored row after row, each row as k / `block` blocks. A plane holds its part
/// of every block, in the same order.
pub struct FormatDef {
    /// Name in lower case: unique, and the same everywhere.
    pub name: &'static str,
    /// The loader that reads it: formats of one family differ by `constants` alone.
    pub family: &'static str,
    /// Elements along K that are stored together. K, offsets and strides are multiples of it.
    pub block: u64,
    /// The parts of a block, at most four. Each part has its own buffer.
    pub planes: &'static [Plane],
    /// Values for the constants of the family's loader.
    pub constants: &'static [(&'static str, u32)],
    /// What the bytes mean.
    pub codec: &'static dyn Codec,
}

/// One of the buffers that a format is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plane {
    /// Name; in a safetensors file, of the tensor `PREFIX.NAME`.
    pub name: &'static str,
    /// Type of its numbers.
    pub of: Stored,
    /// Bytes of one block.
    pub bytes: u64,
}

impl Plane {
    /// Bytes that `elements` take, in blocks of `block`; the last block in full.
    pub const fn bytes_of(&self, block: u64, elements: u64) -> u64 {
        elements.div_ceil(block) * self.bytes
    }
}

/// What a plane is an array of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stored {
    /// Bytes.
    Bytes,
    /// Little-endian numbers of 32 bits.
    Words,
    /// Numbers of a type.
    Numbers(DType),
}

impl Stored {
    /// Size of one in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Stored::Bytes => 1,
            Stored::Words => 4,
            Stored::Numbers(dtype) => dtype.bytes(),
        }
    }
}

/// What the bytes of a format mean, one block at a time. `block` holds the block's bytes in each
/// plane, in the order of [`FormatDef::planes`].
pub trait Codec: Sync {
    /// The block's elements, computed in f32.
    fn decode(&self, block: &[&[u8]], out: &mut [f32]);

    /// Stores `weights`, one block of finite numbers.
    ///
    /// # Errors
    /// Why they cannot be stored, in words.
    fn encode(&self, weights: &[f32], block: &mut [&mut [u8]]) -> std::result::Result<(), String>;

    /// How far a kernel's element may lie from [`decode`](Self::decode)'s: a kernel may fuse a
    /// product with a sum, and may take any subnormal number for zero.
    fn error(&self, block: &[&[u8]], out: &mut [f64]);

    /// How far [`encode`](Self::encode) leaves a weight from the block's element, at most.
    fn step(&self, block: &[&[u8]]) -> f64;

    /// Stores a block of -1, 0 and 1, drawn from the numbers that `random` gives: products with them
    /// are exact.
    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]);
}

/// A way of storing weights in a few bits each: one of [`FORMATS`].
#[derive(Clone, Copy)]
pub struct QuantFormat(&'static FormatDef);

impl QuantFormat {
    /// Every format.
    pub fn all() -> impl ExactSizeIterator<Item = QuantFormat> {
        FORMATS.iter().copied().map(QuantFormat)
    }

    pub(super) const fn new(def: &'static FormatDef) -> Self {
        QuantFormat(def)
    }

    /// Its definition.
    pub const fn def(self) -> &'static FormatDef {
        self.0
    }

    /// The name that parsing takes: `affine-4bit-g64-f16`.
    pub const fn name(self) -> &'static str {
        self.0.name
    }

    /// Elements along K that are stored together.
    pub const fn block(self) -> u64 {
        self.0.block
    }

    /// The parts of a block. Each part has its own buffer.
    pub const fn planes(self) -> &'static [Plane] {
        self.0.planes
    }

    /// Bytes of each plane of a matrix `[n, k]`.
    ///
    /// # Errors
    /// `Shape` when k is no multiple of [`block`](Self::block), `Overflow` when a count does not fit.
    pub fn sizes(self, n: usize, k: usize) -> Result<Vec<usize>> {
        let block = self.block() as usize;
        if !k.is_multiple_of(block) {
            return Err(Error::Shape(format!("K = {k} is not a multiple of {block}, the block of {self}")));
        }
        let overflow = || Error::Overflow(format!("a {self} matrix of {n} by {k} elements"));
        let elements = n.checked_mul(k).ok_or_else(overflow)?;
        let bytes = |plane: &Plane| (elements / block).checked_mul(plane.bytes as usize).ok_or_else(overflow);
        self.planes().iter().map(bytes).collect()
    }
}

impl PartialEq for QuantFormat {
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for QuantFormat {}

impl Hash for QuantFormat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        std::ptr::from_ref(self.0).hash(state);
    }
}

impl fmt::Debug for QuantFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl fmt::Display for QuantFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl std::str::FromStr for QuantFormat {
    type Err = Error;

    /// A format by its name, in letters of either case.
    fn from_str(name: &str) -> Result<Self> {
        Self::all().find(|format| format.name().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let names: Vec<_> = Self::all().map(Self::name).collect();
            Error::Unsupported(format!("no format is named {name:?}; there are {}", names.join(", ")))
        })
    }
}
