//! The `.npy` format, versions 1 to 3, as `numpy.lib.format` documents it: magic, version, length
//! of a header, the header (a Python dictionary of exactly three entries), the elements.
//!
//! The header is read by hand: it is three entries, and a parser of general Python literals would
//! recurse as deep as the file likes.

use super::{Raw, Scalar, read_bytes, shape_text};
use std::io::{self, Read};
use tilewise_core::problem::DType;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// What the header says.
#[derive(Debug, PartialEq)]
struct Header {
    scalar: Scalar,
    big_endian: bool,
    fortran_order: bool,
    shape: Vec<usize>,
}

/// Reads an array from a file of `len` bytes. Nothing is allocated that the file does not hold.
pub(super) fn read(mut file: impl Read, len: u64) -> Result<Raw, String> {
    let (header, header_len) = read_header(&mut file, len)?;
    let held = len - header_len;
    let declared =
        header.scalar.bytes_of(&header.shape).filter(|&bytes| isize::try_from(bytes).is_ok());
    let Some(declared) = declared else {
        let (shape, name) = (shape_text(&header.shape), header.scalar.name());
        return Err(format!(
            "the header declares shape {shape} of {name}, more bytes than can be addressed"
        ));
    };
    if declared as u64 != held {
        let (shape, name) = (shape_text(&header.shape), header.scalar.name());
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
    Ok(Raw { scalar: header.scalar, shape: header.shape, bytes })
}

/// The bytes that precede the elements of a row-major array. `None` for a type that numpy has not
/// (bf16).
pub(super) fn header(dtype: DType, shape: &[usize]) -> Option<Vec<u8>> {
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
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(' ', unpadded.next_multiple_of(64) - unpadded));
    text.push('\n');
    let len = u16::try_from(text.len()).ok()?;
    Some([MAGIC, &[1, 0][..], &len.to_le_bytes(), text.as_bytes()].concat())
}

/// The header, and how many bytes precede the elements.
fn read_header(file: &mut impl Read, len: u64) -> Result<(Header, u64), String> {
    let short = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => format!("truncated: {len} bytes end inside the header"),
        _ => error.to_string(),
    };
    let mut start = [0; 8];
    file.read_exact(&mut start).map_err(short)?;
    if !start.starts_with(MAGIC) {
        return Err("not an .npy file: it does not begin with \\x93NUMPY".into());
    }
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
        "f2" => Scalar::Float(DType::F16),
        "f4" => Scalar::Float(DType::F32),
        "f8" => Scalar::F64,
        "u4" => Scalar::U32,
        "i4" => Scalar::I32,
        "i8" => Scalar::I64,
        _ => return Err(unknown_type(descr)),
    };
    Ok((scalar, big_endian))
}

fn unknown_type(descr: &str) -> String {
    format!("element type {descr:?}; known are f2, f4 and f8, and u4, i4 and i8 for offsets")
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
mod tests {
    use super::*;

    fn file(version: u8, header: &str, elements: &[u8]) -> Vec<u8> {
        let mut bytes = [MAGIC, &[version, 0][..]].concat();
        match version {
            1 => bytes.extend((header.len() as u16).to_le_bytes()),
            _ => bytes.extend((header.len() as u32).to_le_bytes()),
        }
        bytes.extend(header.as_bytes());
        bytes.extend(elements);
        bytes
    }

    fn parsed(bytes: &[u8]) -> Result<Raw, String> {
        read(bytes, bytes.len() as u64)
    }

    #[test]
    fn written_headers_are_read_back() {
        for shape in [vec![], vec![5], vec![2, 3], vec![2, 0, 7]] {
            for dtype in [DType::F32, DType::F16] {
                let mut bytes = header(dtype, &shape).unwrap();
                assert_eq!(bytes.len() % 64, 0);
                let elements = vec![7; dtype.bytes() as usize * shape.iter().product::<usize>()];
                bytes.extend(&elements);
                assert_eq!(
                    parsed(&bytes),
                    Ok(Raw { scalar: Scalar::Float(dtype), shape: shape.clone(), bytes: elements })
                );
            }
        }
        assert_eq!(header(DType::BF16, &[1]), None);
    }

    #[test]
    fn all_versions_byte_orders_and_entry_orders() {
        for version in [1, 2, 3] {
            let bytes = file(
                version,
                "{\"shape\": (2L,), 'fortran_order':False,'descr':'>i4'}\n",
                &[0, 0, 0, 1, 0, 0, 2, 0],
            );
            let raw = parsed(&bytes).unwrap();
            assert_eq!(
                raw,
                Raw { scalar: Scalar::I32, shape: vec![2], bytes: vec![1, 0, 0, 0, 0, 2, 0, 0] }
            );
        }
        assert!(parsed(&file(4, "{}", &[])).unwrap_err().contains("version 4.0"));
    }

    #[test]
    fn fortran_order_is_undone() {
        // Element (i, j, k) of shape [2, 3, 2] holds its row-major rank.
        let mut column_major = vec![0u8; 24];
        for (rank, (i, j, k)) in (0..2)
            .flat_map(|i| (0..3).flat_map(move |j| (0..2).map(move |k| (i, j, k))))
            .enumerate()
        {
            column_major[2 * (i + 2 * j + 6 * k)] = rank as u8;
        }
        let bytes =
            file(1, "{'descr': '<f2', 'fortran_order': True, 'shape': (2, 3, 2), }", &column_major);
        let expected: Vec<u8> = (0..12).flat_map(|rank| [rank, 0]).collect();
        assert_eq!(parsed(&bytes).unwrap().bytes, expected);
        let empty = file(1, "{'descr': '<f2', 'fortran_order': True, 'shape': (2, 0), }", &[]);
        assert_eq!(parsed(&empty).unwrap().shape, [2, 0]);
    }

    #[test]
    fn lies_are_refused_with_their_numbers() {
        let with = |shape: &str, len| {
            parsed(&file(
                1,
                &format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}}}"),
                &vec![0; len],
            ))
            .unwrap_err()
        };
        let truncated = with("(3, 4)", 47);
        assert!(truncated.contains("[3,4] of f32, 48 bytes; 47 bytes"), "{truncated}");
        assert!(with("(3, 4)", 49).contains("too long"));
        assert!(with("(4611686018427387904, 4)", 0).contains("more bytes than can be addressed"));
        assert!(
            with("(4294967296, 4294967296, 0)", 4).contains("more bytes than can be addressed")
        );
        assert!(with("(99999999999999999999999,)", 4).contains("does not fit"));
        assert!(with("(-1, 4)", 4).contains("an extent expected at \"-1"));
        assert!(with(&"(".repeat(9000), 4).contains("an extent expected"));
    }

    #[test]
    fn malformed_headers_are_refused() {
        for (header, part) in [
            ("", "expected"),
            ("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", "quoted name"),
            ("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "<c8"),
            ("{'descr': 'é4', 'fortran_order': False, 'shape': (1,)}", "é4"),
            ("{'descr': '', 'fortran_order': False, 'shape': (1,)}", "element type"),
            ("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}", "False"),
            ("{'descr': '<f4', 'shape': (1,)}", "lacks"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 'y'}", "\"x\""),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} 7", "the end"),
            ("{'descr': '<f4', 'fortran_order': False, 'shape': (1", "expected"),
            ("{'descr': '<f4", "end of a quoted name"),
        ] {
            let error = parsed(&file(2, header, &[0; 4])).unwrap_err();
            assert!(error.contains(part), "{header}: {error}");
        }
        let mut lying = file(2, "{}", &[]);
        lying[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(
            parsed(&lying)
                .unwrap_err()
                .contains("header of 4294967295 bytes is declared in a file of 14 bytes")
        );
        for len in 0..12 {
            assert!(parsed(&lying[..len]).is_err());
        }
    }

    #[test]
    fn no_damage_of_one_byte_is_taken_for_more_than_it_holds() {
        let good = [header(DType::F16, &[3, 10]).unwrap(), vec![1; 60]].concat();
        for at in 0..good.len() - 60 {
            for byte in 0..=255 {
                let mut bad = good.clone();
                bad[at] = byte;
                if let Ok(raw) = parsed(&bad) {
                    assert_eq!(raw.scalar.bytes_of(&raw.shape), Some(60), "byte {at} as {byte}");
                }
            }
        }
    }
}
