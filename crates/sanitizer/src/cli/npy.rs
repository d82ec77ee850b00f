//! The files of numpy.

use super::dtype::DType;
use npyz::{Endianness, NpyHeader, Order, TypeChar, WriteOptions, WriterBuilder};

/// The elements, little-endian and in C order, with their type and shape.
#[derive(Debug, PartialEq)]
pub(crate) struct Array {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

/// Reads a file's bytes.
pub(crate) fn read(file: &[u8]) -> Result<Array, String> {
    let not_npy = |why: String| format!("not a usable .npy file: {why}");
    check_header(file).map_err(not_npy)?;
    let mut rest = file;
    let header = NpyHeader::from_reader(&mut rest).map_err(|error| not_npy(error.to_string()))?;
    let (dtype, big_endian) = element(&header).map_err(not_npy)?;
    let declared = header.len().checked_mul(dtype.bytes() as u64);
    if declared != Some(rest.len() as u64) {
        let (shape, name, held) = (header.shape(), dtype.name(), rest.len());
        return Err(not_npy(format!(
            "the header declares shape {shape:?} of {name}; {held} bytes follow it"
        )));
    }
    let mut bytes = rest.to_vec();
    if big_endian {
        bytes.chunks_exact_mut(dtype.bytes()).for_each(<[u8]>::reverse);
    }
    if header.order() == Order::Fortran {
        bytes = to_c_order(&bytes, header.shape(), header.strides(), dtype.bytes());
    }
    Ok(Array { dtype, shape: header.shape().to_vec(), bytes })
}

/// Makes a file of these little-endian elements in C order.
pub(crate) fn write(dtype: DType, shape: &[u64], bytes: &[u8]) -> Result<Vec<u8>, String> {
    let descr = dtype.numpy().parse().map_err(|error| format!("{error}"))?;
    let mut file = Vec::new();
    WriteOptions::new_header_only()
        .dtype(npyz::DType::new_scalar(descr))
        .shape(shape)
        .writer(&mut file)
        .write_header_only()
        .map_err(|error| error.to_string())?;
    file.extend(bytes);
    Ok(file)
}

/// Checks that npyz can read the header. npyz parses it as any Python literal, however deeply
/// nested, and multiplies the extents unchecked.
fn check_header(file: &[u8]) -> Result<(), String> {
    let (length, start) = match *file {
        [0x93, b'N', b'U', b'M', b'P', b'Y', 1, _, a, b, ..] => {
            (usize::from(u16::from_le_bytes([a, b])), 10)
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', 2 | 3, _, a, b, c, d, ..] => {
            (u32::from_le_bytes([a, b, c, d]) as usize, 12)
        }
        [0x93, b'N', b'U', b'M', b'P', b'Y', major, minor, ..] => {
            return Err(format!("version {major}.{minor} of the format"));
        }
        _ => return Err("it does not begin with \\x93NUMPY".to_owned()),
    };
    let text = file[start..]
        .get(..length)
        .ok_or_else(|| format!("it ends inside its header of {length} bytes"))?;
    let text = std::str::from_utf8(text).map_err(|_| "the header is not UTF-8".to_owned())?;
    // Remove the only allowed word with an underscore, because an underscore could also stand in a
    // number.
    let text = text.replacen("fortran_order", "", 1);
    if text.bytes().filter(|byte| b"([{".contains(byte)).count() > 2
        || text.contains(['\\', '_', '+', '-'])
    {
        return Err("the header is not that of a plain array".to_owned());
    }
    let words = text.split(|character: char| !character.is_ascii_alphanumeric());
    let mut product = 1u64;
    for number in words.filter(|word| word.starts_with(|first: char| first.is_ascii_digit())) {
        let extent: u64 =
            number.parse().map_err(|_| format!("the header has an extent of {number}"))?;
        let more = || "the header declares more elements than can be counted".to_owned();
        product = product.checked_mul(extent.max(1)).ok_or_else(more)?;
    }
    Ok(())
}

/// The type of the elements, and whether they are big-endian.
fn element(header: &NpyHeader) -> Result<(DType, bool), String> {
    let npyz::DType::Plain(descr) = header.dtype() else {
        return Err("its elements are records".to_owned());
    };
    let dtype = match (descr.type_char(), descr.size_field()) {
        (TypeChar::Int, 1) => DType::I8,
        (TypeChar::Uint | TypeChar::RawData, 1) => DType::U8,
        (TypeChar::Int, 2) => DType::I16,
        (TypeChar::Uint | TypeChar::RawData, 2) => DType::U16,
        (TypeChar::Float, 2) => DType::F16,
        (TypeChar::Int, 4) => DType::I32,
        (TypeChar::Uint | TypeChar::RawData, 4) => DType::U32,
        (TypeChar::Float, 4) => DType::F32,
        (TypeChar::Int, 8) => DType::I64,
        (TypeChar::Uint | TypeChar::RawData, 8) => DType::U64,
        (TypeChar::Float, 8) => DType::F64,
        _ => {
            return Err(format!(
                "its elements are of type {descr}; known are integers and floats of up to 8 bytes: \
                 convert it with astype"
            ));
        }
    };
    Ok((dtype, descr.endianness() == Endianness::Big))
}

/// Puts elements that lie at these strides (in elements) into C order.
fn to_c_order(bytes: &[u8], shape: &[u64], strides: &[u64], size: usize) -> Vec<u8> {
    let mut ordered = Vec::with_capacity(bytes.len());
    let mut index = vec![0; shape.len()];
    for _ in 0..bytes.len() / size {
        let at: u64 = index.iter().zip(strides).map(|(index, stride)| index * stride).sum();
        ordered.extend(&bytes[at as usize * size..][..size]);
        for (index, extent) in index.iter_mut().zip(shape).rev() {
            *index += 1;
            if *index < *extent {
                break;
            }
            *index = 0;
        }
    }
    ordered
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: &[u8]) -> Vec<u8> {
        [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data]
            .concat()
    }

    fn header(descr: &str, fortran: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n")
    }

    #[test]
    fn byte_order_and_axes_become_ours() {
        let data: Vec<u8> =
            [1u16, 2, 3, 4, 5, 6].iter().flat_map(|value| value.to_be_bytes()).collect();
        let array = read(&file(&header(">u2", "True", "(2, 3)"), &data)).unwrap();
        let expected: Vec<u8> =
            [1u16, 3, 5, 2, 4, 6].iter().flat_map(|value| value.to_le_bytes()).collect();
        assert_eq!(array, Array { dtype: DType::U16, shape: vec![2, 3], bytes: expected });
    }

    #[test]
    fn scalars_and_empty_arrays() {
        assert_eq!(read(&file(&header("<f4", "False", "()"), &[0; 4])).unwrap().bytes.len(), 4);
        assert_eq!(read(&file(&header("<f4", "True", "(0, 3)"), &[])).unwrap().bytes.len(), 0);
    }

    #[test]
    fn what_is_written_is_read_back() {
        for dtype in ["i8", "u8", "i16", "u16", "i32", "u32", "i64", "u64", "f16", "f32", "f64"] {
            let dtype = DType::parse(dtype).unwrap();
            let array = Array { dtype, shape: vec![2, 3], bytes: dtype.random(6, 1) };
            assert_eq!(read(&write(dtype, &array.shape, &array.bytes).unwrap()).unwrap(), array);
        }
        assert_eq!(read(&write(DType::Bf16, &[1], &[1, 2]).unwrap()).unwrap().dtype, DType::U16);
    }

    #[test]
    fn broken_files_are_errors() {
        let deep = format!(
            "{{'descr': '<f4', 'fortran_order': False, 'shape': {}1{}}}",
            "(".repeat(20_000),
            ")".repeat(20_000)
        );
        let cases = [
            (vec![], "NUMPY"),
            (b"\x93NUMPY\x01\x00".to_vec(), "version 1.0"),
            (b"\x93NUMPY\x07\x00\x00\x00".to_vec(), "version 7.0"),
            (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{}".to_vec(), "ends inside"),
            (file("{", &[]), "usable"),
            (file(&header("<f4", "False", "(3,)"), &[0; 8]), "8 bytes follow"),
            (file(&header("<f4", "False", "(1,)"), &[0; 8]), "8 bytes follow"),
            (file(&header("<f4", "False", "(4294967296, 4294967296)"), &[]), "more elements"),
            (file(&header("<f4", "False", "(0, 4294967296, 4294967296)"), &[]), "more elements"),
            (file(&header("<f4", "False", "(0x7fffffffffffffff, 16)"), &[]), "extent of 0x7f"),
            (file(&header("<f4", "False", "(4611686018427387904,)"), &[]), "follow"),
            (file(&header("<c8", "False", "(1,)"), &[0; 8]), "c8"),
            (file(&header("|O", "False", "(1,)"), &[0; 8]), "|O"),
            (file(&header("|b1", "False", "(1,)"), &[1]), "|b1"),
            (file(&header("<M8[s]", "False", "(1,)"), &[0; 8]), "usable"),
            (file(&header("<U1", "False", "(1,)"), &[0; 4]), "U1"),
            (
                file("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", &[0; 4]),
                "plain array",
            ),
            (file(&deep, &[]), "plain array"),
        ];
        for (bytes, expected) in cases {
            let error = read(&bytes).unwrap_err();
            assert!(error.contains(expected), "{error} lacks {expected}");
        }
    }
}
