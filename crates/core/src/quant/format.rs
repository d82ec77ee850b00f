//! A quantized format: data, and the few functions that define its numbers.

use super::FAMILIES;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::lanes;
use std::fmt;
use std::hash::{Hash, Hasher};

/// The definition of a format: everything that the library knows about it outside its loaders.
///
/// Weights `[n, k]` are stored row after row, each row as k / `block` blocks. A plane holds its
/// share of every block, in the same order.
pub struct FormatDef {
    /// Name in lower case: unique, and the same everywhere.
    pub name: &'static str,
    /// The loader that reads it: formats of one family differ by `constants` alone.
    pub family: &'static str,
    /// Elements along K that are stored together. K, offsets and strides are multiples of it.
    pub block: u64,
    /// The planes of its blocks, at most four. Each has its own buffer.
    pub planes: &'static [Plane],
    /// Values for the constants of the family's loader.
    pub constants: &'static [(&'static str, u32)],
    /// Decodes its blocks.
    pub codec: &'static dyn Codec,
    /// Its quantizer; none for formats that are only read.
    pub encoder: Option<&'static dyn Encoder>,
    /// The largest number that a block holds, if matrices may have a factor.
    pub factor_of: Option<f32>,
    /// Its number among the types of GGUF. A block in a file then is its share of each of
    /// `planes`, in their order.
    pub gguf: Option<u32>,
}

/// One of the buffers that a format is stored in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plane {
    /// Name; a safetensors file has the plane as the tensor `PREFIX.NAME`.
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

/// The elements of a plane.
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
    /// Size of one element in bytes.
    pub const fn bytes(self) -> u64 {
        match self {
            Stored::Bytes => 1,
            Stored::Words => 4,
            Stored::Numbers(dtype) => dtype.bytes(),
        }
    }
}

/// The [`Codec::error`] of an element: 0 if `error` is not finite, as the block's own numbers then
/// are not.
pub(super) fn of_finite(error: f64) -> f64 {
    if error.is_finite() { error } else { 0.0 }
}

/// Decodes a format, one block at a time. `block` holds the block's bytes in each
/// plane, in the order of [`FormatDef::planes`].
pub trait Codec: Sync {
    /// The block's elements, computed in f32.
    fn decode(&self, block: &[&[u8]], out: &mut [f32]);

    /// Decodes the blocks at the start of `planes` into `out`. If the compiler inlines `decode`,
    /// its loops use the widest vectors of this machine.
    fn decode_all(&self, format: &FormatDef, planes: &[&[u8]], out: &mut [f32]) {
        lanes::widest(
            #[inline(always)]
            || match *planes {
                [a] => decode_planes(self, [a], format, out),
                [a, b] => decode_planes(self, [a, b], format, out),
                [a, b, c] => decode_planes(self, [a, b, c], format, out),
                [a, b, c, d] => decode_planes(self, [a, b, c, d], format, out),
                _ => unreachable!("a format has one to four planes"),
            },
        );
    }

    /// Like [`decode`](Self::decode), under a factor of the whole matrix
    /// ([`FormatDef::factor_of`]).
    fn decode_by(&self, factor: f32, block: &[&[u8]], out: &mut [f32]) {
        self.decode(block, out);
        out.iter_mut().for_each(|out| *out *= factor);
    }

    /// The smallest and the largest magnitude of a code's number that is not 0, if an element is
    /// number · scale and the last plane has the scales in f32.
    fn magnitudes(&self) -> Option<[f32; 2]> {
        None
    }

    /// How far a kernel's element may lie from [`decode`](Self::decode)'s: a kernel may fuse a
    /// product with a sum, and may take any subnormal number for zero. It is infinite if an
    /// intermediate number overflows that is finite in the other order. It is 0 if the block's own
    /// numbers are infinite or NaN: the element then is, too, in any order.
    fn error(&self, block: &[&[u8]], out: &mut [f64]);

    /// Stores a block of -1, 0 and 1, drawn from the numbers that `random` gives: products with
    /// them are exact.
    fn integers(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]);

    /// Stores a block of random codes with scales that keep its elements about as large as 1.
    fn sample(&self, random: &mut dyn FnMut() -> u32, block: &mut [&mut [u8]]);

    /// Replaces the block's scale and, if it has one, its second number: a bias, a least element or
    /// the scale of what is subtracted. Each is rounded to the type that it is stored in.
    fn rescale(&self, numbers: [f32; 2], block: &mut [&mut [u8]]);
}

/// [`Codec::decode_all`] for a number of planes that the compiler knows.
#[inline(always)]
pub(super) fn decode_planes<const N: usize>(
    codec: &(impl Codec + ?Sized),
    planes: [&[u8]; N],
    format: &FormatDef,
    out: &mut [f32],
) {
    let sizes: [usize; N] = lanes::array(|plane| format.planes[plane].bytes as usize);
    for (i, out) in out.chunks_exact_mut(format.block as usize).enumerate() {
        let block: [&[u8]; N] =
            lanes::array(|plane| &planes[plane][i * sizes[plane]..][..sizes[plane]]);
        codec.decode(&block, out);
    }
}

/// Quantizes weights, one block at a time; `block` is laid out as for [`Codec`].
pub trait Encoder: Sync {
    /// Stores `weights`, one block of finite numbers.
    ///
    /// # Errors
    /// Why they cannot be stored, in words.
    fn encode(&self, weights: &[f32], block: &mut [&mut [u8]]) -> std::result::Result<(), String>;

    /// Like [`encode`](Self::encode), for weights times `inverse`, the inverse of the whole
    /// matrix's factor.
    ///
    /// # Errors
    /// The errors of [`encode`](Self::encode).
    fn encode_by(
        &self,
        inverse: f32,
        weights: &[f32],
        block: &mut [&mut [u8]],
    ) -> std::result::Result<(), String> {
        let _ = inverse;
        self.encode(weights, block)
    }

    /// How far [`encode`](Self::encode) leaves a weight from the block's element, at most.
    fn step(&self, block: &[&[u8]]) -> f64;
}

/// A way of storing weights in a few bits each: one of those in [`FAMILIES`].
///
/// Every format is reached by its name, which parsing takes (`"q4_k".parse()`), and by
/// [`all`](Self::all); affine formats also by their numbers ([`affine`](Self::affine)). Constants
/// are there for formats that programs quantize to most: [`MXFP4`](Self::MXFP4),
/// [`MXFP8`](Self::MXFP8), [`NVFP4`](Self::NVFP4), [`Q4_0`](Self::Q4_0), [`Q8_0`](Self::Q8_0).
///
/// ```
/// use tilewise_core::{DType, QuantFormat};
///
/// # fn main() -> tilewise_core::Result<()> {
/// let format: QuantFormat = "affine-4bit-g64-f16".parse()?;
/// assert_eq!(format, QuantFormat::affine(4, 64, DType::F16)?);
/// assert_eq!("mxfp4".parse(), Ok(QuantFormat::MXFP4));
/// assert!(!"q4_k".parse::<QuantFormat>()?.quantizes());
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
pub struct QuantFormat(&'static FormatDef);

/// A distance of rows, in bytes, whose multiples are avoided.
const MEETING: u64 = 512;
/// Bytes of a row beside which a gap is little.
const LONG: u64 = 1024;
/// Bytes of a gap, at least: a sector of memory.
const GAP: u64 = 32;

impl QuantFormat {
    /// Every format.
    pub fn all() -> impl Iterator<Item = QuantFormat> + Clone {
        FAMILIES.iter().copied().flatten().map(QuantFormat)
    }

    /// One format of each kind: formats of a kind differ only in groups and the type of scales.
    /// Tests that are too slow for all formats use these. Groups and types take turns.
    #[doc(hidden)]
    pub fn kinds() -> Vec<QuantFormat> {
        let kind = |format: &QuantFormat| {
            let constants = format
                .def()
                .constants
                .iter()
                .filter(|(name, _)| !["X_BLOCK", "X_SCALE"].contains(name));
            (format.def().family, constants.copied().collect::<Vec<_>>())
        };
        let mut kinds: Vec<(_, Vec<QuantFormat>)> = Vec::new();
        for format in Self::all() {
            match kinds.iter_mut().find(|(known, _)| *known == kind(&format)) {
                Some((_, formats)) => formats.push(format),
                None => kinds.push((kind(&format), vec![format])),
            }
        }
        kinds
            .iter()
            .enumerate()
            .map(|(i, (_, formats))| formats[(i * 4 + 1) % formats.len()])
            .collect()
    }

    pub(super) const fn new(def: &'static FormatDef) -> Self {
        QuantFormat(def)
    }

    /// The format of a tensor in a GGUF file, by the number of its type.
    pub fn from_gguf(number: u32) -> Option<Self> {
        Self::all().find(|format| format.gguf() == Some(number))
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

    /// The planes of its blocks. Each has its own buffer.
    pub const fn planes(self) -> &'static [Plane] {
        self.0.planes
    }

    /// Its number among the types of GGUF, if it is one.
    pub const fn gguf(self) -> Option<u32> {
        self.0.gguf
    }

    /// Whether [`quantize`](super::quantize()) makes it. Others are only read.
    pub const fn quantizes(self) -> bool {
        self.0.encoder.is_some()
    }

    /// Bytes of a block, in all planes.
    pub fn block_bytes(self) -> u64 {
        self.planes().iter().map(|plane| plane.bytes).sum()
    }

    /// Bits that it takes to store a weight, scales and all.
    pub fn bits_per_weight(self) -> f64 {
        8.0 * self.block_bytes() as f64 / self.block() as f64
    }

    /// Weights from the start of a row of `k` to the start of the next, as this library stores
    /// them: `k`, or a little more. A tile reads many rows at a time. Rows that lie a multiple of
    /// 512 bytes apart would meet in few places of a GPU's first cache. If rows of the largest
    /// plane do, and have 1 KiB or more, blocks of at least 32 bytes follow each row. Formats with
    /// blocks of more than 64 bytes gain nothing, and have no gaps.
    pub fn pitch(self, k: u64) -> u64 {
        let block = self.planes().iter().map(|plane| plane.bytes).max().unwrap_or(0).max(1);
        let row = (k / self.block()).saturating_mul(block);
        let meets = row >= LONG && row.is_multiple_of(MEETING) && k.is_multiple_of(self.block());
        let gap = if meets && block <= 2 * GAP { GAP.div_ceil(block) } else { 0 };
        k.saturating_add(gap * self.block())
    }

    /// Bytes of each plane of a matrix `[n, k]`, without gaps between its rows.
    ///
    /// # Errors
    /// [`Shape`](crate::Error) when k is no multiple of [`block`](Self::block), or a count does not
    /// fit.
    pub fn sizes(self, n: usize, k: usize) -> Result<Vec<usize>> {
        let block = self.block() as usize;
        if !k.is_multiple_of(block) {
            return Err(Error::Shape(format!(
                "K = {k} is not a multiple of {block}, the block of {self}"
            )));
        }
        let overflow = || Error::Shape(format!("overflow: {self} weights of {n} by {k} elements"));
        let elements = n.checked_mul(k).ok_or_else(overflow)?;
        let bytes = |plane: &Plane| {
            (elements / block).checked_mul(plane.bytes as usize).ok_or_else(overflow)
        };
        self.planes().iter().map(bytes).collect()
    }
}

impl PartialEq for QuantFormat {
    fn eq(&self, other: &Self) -> bool {
        // Names are compared, not addresses: a table that a constant of another crate points into
        // may be there twice.
        self.0.name == other.0.name
    }
}

impl Eq for QuantFormat {}

impl Hash for QuantFormat {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
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
            let nearest = nearest(&name.to_lowercase(), Self::all().map(Self::name)).join(", ");
            Error::Unsupported(format!(
                "no format is named {name:?}; the nearest names are {nearest}"
            ))
        })
    }
}

/// Three of `names`: names that begin with `name` come first, then the fewest edits of a character.
/// Case does not count.
pub fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let name = name.to_ascii_lowercase();
    let distance = |other: &str| {
        let other = other.to_ascii_lowercase();
        (name.is_empty() || !other.starts_with(&name), edits(&name, &other))
    };
    let mut all: Vec<_> = names.into_iter().map(|other| (distance(other), other)).collect();
    all.sort_by_key(|(distance, _)| *distance);
    all.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Characters that are put in, taken out or changed to make one word of the other (V. I.
/// Levenshtein, 1965).
fn edits(from: &str, to: &str) -> usize {
    let mut row: Vec<usize> = (0..=to.chars().count()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut before = std::mem::replace(&mut row[0], i + 1);
        for (j, b) in to.chars().enumerate() {
            let changed = before + usize::from(a != b);
            before = row[j + 1];
            row[j + 1] = changed.min(before + 1).min(row[j] + 1);
        }
    }
    row[to.chars().count()]
}
