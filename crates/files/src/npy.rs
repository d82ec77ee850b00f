//! The `.npy` format, versions 1 to 3, as `numpy.lib.format` documents it: magic, version, length
//! of a header, the header (a Python dictionary of exactly three entries), the elements.
//!
//! The header is read by hand: it is three entries, and a parser of general Python literals would
//! recurse as deep as the file likes.

use crate::signature::{self, Kind, LOOK, NUMPY};
use std::fmt;
use std::io::{self, Read};
use tilewise_core::{DType, Error, Result};

/// Bytes that are read at a time.
const PIECE: usize = 16 << 20;

/// The type of an array's elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Scalar {
    /// A type of tensors.
    Dense(DType),
    /// IEEE 754 binary64.
    F64,
    /// Signed 64-bit integer.
    I64,
    /// Unsigned 64-bit integer.
    U64,
}

impl Scalar {
    /// Size of one element in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Scalar::Dense(dtype) => dtype.bytes() as usize,
            Scalar::F64 | Scalar::I64 | Scalar::U64 => 8,
        }
    }

    /// Size in bytes of an array of this shape; `None` when it does not fit.
    fn bytes_of(self, shape: &[usize]) -> Option<usize> {
        shape.iter().try_fold(self.bytes(), |product, &extent| product.checked_mul(extent))
    }
}

impl fmt::Display for Scalar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Scalar::Dense(dtype) => dtype.fmt(f),
            Scalar::F64 => f.pad("f64"),
            Scalar::I64 => f.pad("i64"),
            Scalar::U64 => f.pad("u64"),
        }
    }
}

/// An array of an `.npy` file.
///
/// ```
/// use tilewise_core::DType;
/// use tilewise_files::Npy;
///
/// let header = Npy::header(DType::F32, &[2]).ok_or("numpy has no such type")?;
/// let file = [header, [1.5f32, -2.0].iter().flat_map(|x| x.to_le_bytes()).collect()].concat();
/// let array = Npy::read(&file[..], file.len() as u64)?;
/// assert_eq!((&array.shape[..], array.bytes.len()), (&[2][..], 8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Npy {
    /// Type of the elements.
    pub scalar: Scalar,
    /// Size of each dimension, the slowest first.
    pub shape: Vec<usize>,
    /// The elements, little-endian, row-major.
    pub bytes: Vec<u8>,
}

/// The numbers of the header.
#[derive(Debug, PartialEq)]
struct Header {
    scalar: Scalar,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<usize>,
}

impl Npy {
    /// Reads an array from a file of `len` bytes: floats of 16, 32 and 64 bits, integers of 32 bits
    /// and signed ones of 64, in either order of bytes and of dimensions. Nothing is allocated that
    /// the file does not hold.
    ///
    /// # Errors
    /// [`File`](crate::Error) for a file that is not `.npy`, is cut short or too long, and for
    /// other types.
    pub fn read(file: impl Read, len: u64) -> Result<Npy> {
        read(file, len).map_err(Error::file)
    }

    /// The bytes that precede the elements of a row-major array. `None` for a type that numpy lacks
    /// (bf16).
    pub fn header(dtype: DType, shape: &[usize]) -> Option<Vec<u8>> {
        header(dtype, shape)
    }
}

fn read(mut file: impl Read, len: u64) -> Result<Npy, String> {
    let (header, header_len) = read_header(&mut file, len)?;
    let held = len - header_len;
    let declared =
        header.scalar.bytes_of(&header.shape).filter(|&bytes| isize::try_from(bytes).is_ok());
    let Some(declared) = declared else {
        let (shape, name) = (shape_text(&header.shape), header.scalar);
        return Err(format!(
            "the header declares shape {shape} of {name}, more bytes than can be addressed"
        ));
    };
    if declared as u64 != held {
        let (shape, name) = (shape_text(&header.shape), header.scalar);
        let verb = if held < declared as u64 { "truncated" } else { "too long" };
        return Err(format!(
            "{verb}: the header declares shape {shape} of {name}, {declared} bytes; {held} bytes \
             follow it"
        ));
    }
    let mut bytes = read_bytes(&mut file, declared)
        .map_err(|error| format!("reading {declared} bytes of elements: {error}"))?;
    let size = header.scalar.bytes();
    if header.big_endian {
        bytes.chunks_exact_mut(size).for_each(<[u8]>::reverse);
    }
    if header.fortran_order {
        bytes = to_row_major(&bytes, &header.shape, size);
    }
    Ok(Npy { scalar: header.scalar, shape: header.shape, bytes })
}

fn header(dtype: DType, shape: &[usize]) -> Option<Vec<u8>> {
    let descr = match dtype {
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::I32 => "<i4",
        DType::U32 => "<u4",
        DType::BF16 => return None,
    };
    let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
    let mut text = format!(
        "{{'descr': '{descr}', 'fortran_order': False, 'shape': ({}), }}",
        extents.trim_end()
    );
    // The elements start at a multiple of 64 bytes; a newline ends the padding.
    let unpadded = NUMPY.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let len = u16::try_from(text.len()).ok()?;
    Some([NUMPY, &[1, 0][..], &len.to_le_bytes(), text.as_bytes()].concat())
}

/// The next `count` bytes, which the file is known to hold; in pieces, so that a progress bar
/// moves.
fn read_bytes(mut file: impl Read, count: usize) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; count];
    bytes.chunks_mut(PIECE).try_for_each(|piece| file.read_exact(piece))?;
    Ok(bytes)
}

/// A shape as messages write it: `[2,3]`.
fn shape_text(shape: &[usize]) -> String {
    let extents: Vec<String> = shape.iter().map(usize::to_string).collect();
    format!("[{}]", extents.join(","))
}

/// The header, and how many bytes precede the elements.
fn read_header(file: &mut impl Read, len: u64) -> Result<(Header, u64), String> {
    let short = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("truncated: {len} bytes end inside the header"),
        _ => error.to_string(),
    };
    let mut start = Vec::new();
    file.take(8).read_to_end(&mut start).map_err(short)?;
    if !start.starts_with(NUMPY) {
        // A file that cannot be read further is judged by what there is.
        _ = file.take(LOOK as u64).read_to_end(&mut start);
        let plain = || match start.len() {
            len @ ..8 => format!("truncated: {len} bytes end inside the header"),
            _ => "not an .npy file: it does not begin with \\x93NUMPY".into(),
        };
        return Err(signature::foreign(&start, Kind::Npy).unwrap_or_else(plain));
    }
    let start: [u8; 8] =
        start.try_into().map_err(|_| short(io::ErrorKind::UnexpectedEof.into()))?;
    let (text_len, prefix_len) = match start[6..] {
        [1, 0] => {
            let mut field = [0; 2];
            file.read_exact(&mut field).map_err(short)?;
            (u64::from(u16::from_le_bytes(field)), 10)
        }
        [2 | 3, 0] => {
            let mut field = [0; 4];
            file.read_exact(&mut field).map_err(short)?;
            (u64::from(u32::from_le_bytes(field)), 12)
        }
        _ => {
            return Err(format!(
                "version {}.{} of the .npy format; known are 1.0, 2.0 and 3.0",
                start[6], start[7]
            ));
        }
    };
    if prefix_len + text_len > len {
        return Err(format!(
            "truncated: a header of {text_len} bytes is declared in a file of {len} bytes"
        ));
    }
    let mut text = Vec::new();
    file.take(text_len).read_to_end(&mut text).map_err(short)?;
    let text =
        std::str::from_utf8(&text).map_err(|error| format!("the header is not text: {error}"))?;
    Ok((parse(text)?, prefix_len + text_len))
}

/// Parses the dictionary, entries in any order.
fn parse(text: &str) -> Result<Header, String> {
    let mut scanner = Scanner { rest: text };
    let (mut element, mut fortran_order, mut shape) = (None, None, None);
    scanner.expect("{")?;
    while !scanner.accept("}") {
        let key = scanner.quoted()?;
        scanner.expect(":")?;
        match key {
            "descr" => element = Some(parse_descr(scanner.quoted()?)?),
            "fortran_order" if scanner.accept("True") => fortran_order = Some(true),
            "fortran_order" => {
                scanner.expect("False")?;
                fortran_order = Some(false);
            }
            "shape" => shape = Some(scanner.tuple()?),
            other => return Err(format!("the header has an unknown entry {other:?}")),
        }
        if !scanner.accept(",") {
            scanner.expect("}")?;
            break;
        }
    }
    scanner.end()?;
    match (element, fortran_order, shape) {
        (Some((scalar, big_endian)), Some(fortran_order), Some(shape)) => {
            Ok(Header { scalar, big_endian, fortran_order, shape })
        }
        _ => Err("the header lacks one of descr, fortran_order and shape".into()),
    }
}

/// Element type and whether it is big-endian.
fn parse_descr(descr: &str) -> Result<(Scalar, bool), String> {
    let big_endian = match descr.chars().next() {
        Some('<') => false,
        Some('>') => true,
        Some('=') => cfg!(target_endian = "big"),
        _ => return Err(unknown_type(descr)),
    };
    let scalar = match &descr[1..] {
        "f2" => Scalar::Dense(DType::F16),
        "f4" => Scalar::Dense(DType::F32),
        "f8" => Scalar::F64,
        "u4" => Scalar::Dense(DType::U32),
        "i4" => Scalar::Dense(DType::I32),
        "i8" => Scalar::I64,
        "u8" => Scalar::U64,
        _ => return Err(unknown_type(descr)),
    };
    Ok((scalar, big_endian))
}

fn unknown_type(descr: &str) -> String {
    format!("element type {descr:?}; known are f2, f4 and f8; u4, i4, u8 and i8")
}

/// Reads tokens from the front of a text, skipping white space before each.
struct Scanner<'a> {
    rest: &'a str,
}

impl<'a> Scanner<'a> {
    fn accept(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let found = self.rest.strip_prefix(token);
        self.rest = found.unwrap_or(self.rest);
        found.is_some()
    }

    fn expect(&mut self, token: &str) -> Result<(), String> {
        if self.accept(token) { Ok(()) } else { Err(self.unexpected(&format!("{token:?}"))) }
    }

    /// A string without escapes; numpy writes none for the types that we know.
    fn quoted(&mut self) -> Result<&'a str, String> {
        let quote = if self.accept("\"") { '"' } else { '\'' };
        if quote == '\'' && !self.accept("'") {
            return Err(self.unexpected("a quoted name"));
        }
        let (content, rest) = self
            .rest
            .split_once(quote)
            .ok_or_else(|| self.unexpected("the end of a quoted name"))?;
        self.rest = rest;
        Ok(content)
    }

    /// A tuple of extents.
    fn tuple(&mut self) -> Result<Vec<usize>, String> {
        self.expect("(")?;
        let mut extents = Vec::new();
        while !self.accept(")") {
            extents.push(self.extent()?);
            // Files of Python 2 mark long integers.
            self.accept("L");
            if !self.accept(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(extents)
    }

    fn extent(&mut self) -> Result<usize, String> {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        if digits.is_empty() {
            return Err(self.unexpected("an extent"));
        }
        self.rest = rest;
        digits
            .parse()
            .map_err(|_| format!("an extent of {digits} does not fit {} bits", usize::BITS))
    }

    fn end(&self) -> Result<(), String> {
        if self.rest.trim().is_empty() { Ok(()) } else { Err(self.unexpected("the end")) }
    }

    fn unexpected(&self, wanted: &str) -> String {
        let found: String = self.rest.chars().take(20).collect();
        format!("malformed header: {wanted} expected at {found:?}")
    }
}

/// The elements of a column-major array in row-major order.
fn to_row_major(bytes: &[u8], shape: &[usize], size: usize) -> Vec<u8> {
    let strides: Vec<usize> = shape
        .iter()
        .scan(size, |stride, &extent| {
            let current = *stride;
            *stride *= extent;
            Some(current)
        })
        .collect();
    let mut out = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    while out.len() < bytes.len() {
        out.extend_from_slice(&bytes[at..at + size]);
        // Count up like an odometer, the last axis fastest.
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests;
