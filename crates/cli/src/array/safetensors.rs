//! One tensor out of a `.safetensors` file, without reading the others.

use super::{Raw, Scalar, read_bytes};
use safetensors::tensor::{Dtype, Metadata, TensorView};
use std::io::{Read, Seek, SeekFrom};
use tilewise_core::problem::DType;
use tilewise_core::quant::{QuantFormat, Quantized};
use tilewise_files::planes::{Found, identify, tensor_name};

/// Bytes before the header: its length as a u64.
const PREFIX: u64 = 8;
/// As the `safetensors` crate limits it.
const MAX_HEADER: u64 = 100_000_000;

/// A file whose header has been read and found to describe the file exactly.
pub(super) struct TensorFile<F> {
    file: F,
    metadata: Metadata,
    data_start: u64,
}

impl<F: Read + Seek> TensorFile<F> {
    /// Reads and checks the header of a file of `len` bytes.
    pub(super) fn open(mut file: F, len: u64) -> Result<Self, String> {
        let mut prefix = [0; PREFIX as usize];
        file.read_exact(&mut prefix).map_err(|_| format!("truncated: {len} bytes are no safetensors file"))?;
        let header_len = u64::from_le_bytes(prefix);
        if header_len > len - PREFIX {
            return Err(format!("truncated: a header of {header_len} bytes is declared in a file of {len} bytes"));
        }
        if header_len > MAX_HEADER {
            return Err(format!("a header of {header_len} bytes; at most {MAX_HEADER} are taken"));
        }
        let mut header = vec![0; header_len as usize];
        file.read_exact(&mut header).map_err(|error| format!("reading a header of {header_len} bytes: {error}"))?;
        // Deserializing also checks that the tensors follow each other without gap, each as long as its shape says.
        let metadata: Metadata =
            serde_json::from_slice(&header).map_err(|error| format!("malformed safetensors header: {error}"))?;
        let (data_start, declared) = (PREFIX + header_len, metadata.data_len() as u64);
        let held = len - data_start;
        if held != declared {
            let verb = if held < declared { "truncated" } else { "too long" };
            return Err(format!("{verb}: the header declares {declared} bytes of tensors; {held} bytes follow it"));
        }
        Ok(TensorFile { file, metadata, data_start })
    }

    /// Names of the tensors, in alphabetical order.
    pub(super) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.metadata.tensors().into_keys().collect();
        names.sort();
        names
    }

    /// The quantized matrix of this prefix.
    pub(super) fn quantized(&mut self, prefix: &str, expected: Option<QuantFormat>) -> Result<Quantized, String> {
        let words = |error: tilewise::Error| error.to_string();
        let metadata = self.metadata.metadata().as_ref();
        let Found { format, n, k } = identify(prefix, expected, metadata, |name| {
            let info = self.metadata.info(name)?;
            Some((info.dtype.to_string(), info.shape.clone()))
        })
        .map_err(words)?;
        let plane = |plane| Ok(self.tensor(&tensor_name(prefix, plane))?.2);
        let planes = format.planes().iter().map(plane).collect::<Result<_, String>>()?;
        Quantized::from_planes(format, n, k, planes).map_err(words)
    }

    /// The tensor's type, shape and bytes.
    pub(super) fn tensor(&mut self, name: &str) -> Result<(Dtype, Vec<usize>, Vec<u8>), String> {
        let info = self.metadata.info(name).ok_or_else(|| self.missing(name))?;
        let (start, end) = info.data_offsets;
        let (dtype, shape) = (info.dtype, info.shape.clone());
        let bytes = self
            .file
            .seek(SeekFrom::Start(self.data_start + start as u64))
            .and_then(|_| read_bytes(&mut self.file, end - start))
            .map_err(|error| format!("reading {} bytes of tensor {name:?}: {error}", end - start))?;
        Ok((dtype, shape, bytes))
    }

    /// As [`tensor`](Self::tensor), of a type that the program knows.
    pub(super) fn raw(&mut self, name: &str) -> Result<Raw, String> {
        let (dtype, shape, bytes) = self.tensor(name)?;
        let scalar = match dtype {
            Dtype::F32 => Scalar::Float(DType::F32),
            Dtype::F16 => Scalar::Float(DType::F16),
            Dtype::BF16 => Scalar::Float(DType::BF16),
            Dtype::F64 => Scalar::F64,
            Dtype::U32 => Scalar::U32,
            Dtype::I32 => Scalar::I32,
            Dtype::I64 => Scalar::I64,
            other => {
                return Err(format!(
                    "tensor {name:?} has elements {other}; known are F32, F16, BF16 and F64, and U32, I32 and I64 for offsets"
                ));
            }
        };
        Ok(Raw { scalar, shape, bytes })
    }

    fn missing(&self, name: &str) -> String {
        const SHOWN: usize = 8;
        let names = self.names();
        let rest = names.len().saturating_sub(SHOWN);
        let more = if rest > 0 { format!(" and {rest} more") } else { String::new() };
        format!(
            "no tensor {name:?}; there are {} tensors: {}{more}",
            names.len(),
            names[..names.len() - rest].join(", ")
        )
    }
}

/// A file that holds one tensor.
pub(super) fn one_tensor(name: &str, dtype: DType, shape: &[usize], bytes: &[u8]) -> Result<Vec<u8>, String> {
    let dtype = match dtype {
        DType::F32 => Dtype::F32,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::I32 => Dtype::I32,
        DType::U32 => Dtype::U32,
    };
    let view = TensorView::new(dtype, shape.to_vec(), bytes).map_err(|error| error.to_string())?;
    safetensors::serialize([(name, view)], None).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    fn open(bytes: &[u8]) -> Result<TensorFile<Cursor<&[u8]>>, String> {
        TensorFile::open(Cursor::new(bytes), bytes.len() as u64)
    }

    fn with_header(header: &str, data: &[u8]) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), data].concat()
    }

    fn refusal(bytes: &[u8]) -> String {
        open(bytes).err().expect("the file should be refused")
    }

    #[test]
    fn what_is_written_is_read_back() {
        let bytes = one_tensor("c", DType::BF16, &[2, 1], &[1, 2, 3, 4]).unwrap();
        let mut file = open(&bytes).unwrap();
        assert_eq!(file.names(), ["c"]);
        let expected = Raw { scalar: Scalar::Float(DType::BF16), shape: vec![2, 1], bytes: vec![1, 2, 3, 4] };
        assert_eq!(file.raw("c"), Ok(expected));
        assert_eq!(file.raw("d").unwrap_err(), "no tensor \"d\"; there are 1 tensors: c");
    }

    #[test]
    fn lies_are_refused_with_their_numbers() {
        let good = one_tensor("c", DType::F32, &[2], &[0; 8]).unwrap();
        assert!(refusal(&good[..7]).contains("7 bytes"));
        assert!(refusal(&good[..20]).contains("in a file of 20 bytes"));
        assert!(refusal(&good[..good.len() - 1]).contains("declares 8 bytes of tensors; 7 bytes"));
        assert!(refusal(&[&good[..], &[0]].concat()).contains("too long"));
        assert!(refusal(&[0xff; 64]).contains("header of 18446744073709551615 bytes"));
        assert!(refusal(&with_header("{", &[])).contains("malformed"));
        let shape = r#"{"c":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}"#;
        assert!(refusal(&with_header(shape, &[0; 8])).contains("malformed"));
        let huge = r#"{"c":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,8]}}"#;
        assert!(refusal(&with_header(huge, &[0; 8])).contains("overflow"));
    }

    #[test]
    fn no_damage_of_one_byte_is_taken_for_more_than_it_holds() {
        let good = one_tensor("c", DType::F16, &[3, 10], &[1; 60]).unwrap();
        for at in 0..good.len() - 60 {
            for byte in 0..=255 {
                let mut bad = good.clone();
                bad[at] = byte;
                if let Ok(raw) = open(&bad).and_then(|mut file| file.raw("c")) {
                    assert_eq!(raw.scalar.bytes_of(&raw.shape), Some(60), "byte {at} as {byte}");
                }
            }
        }
    }
}
