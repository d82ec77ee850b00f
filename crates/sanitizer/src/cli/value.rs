//! Values of `--bind`.

use super::args::Slot;
use super::dtype::DType;
use super::npy;
use std::fs::{self, File};
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tilewise_sanitizer::Buffer;

/// The largest buffer: offsets are 32 bits wide.
const MAX_BYTES: u64 = u32::MAX as u64;

/// A value as it was typed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    Npy(PathBuf),
    Raw(PathBuf),
    Made { fill: Fill, dtype: DType, count: usize },
    Numbers { dtype: DType, bytes: Vec<u8> },
}

/// Content of a made buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fill {
    Output,
    Poison,
    Zero,
    Random,
}

impl Value {
    /// Parses what stands behind the equals sign.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (head, rest) = text.split_once(':').unwrap_or((text, ""));
        let fill = match head {
            "out" => Fill::Output,
            "poison" => Fill::Poison,
            "zero" => Fill::Zero,
            "random" => Fill::Random,
            _ if text.ends_with(".npy") => return Ok(Value::Npy(text.into())),
            _ if text.ends_with(".bin") => return Ok(Value::Raw(text.into())),
            _ if head.len() == text.len() => {
                return Err(format!(
                    "{text:?} is none of FILE.npy, FILE.bin, DTYPE:V,V,... and out:DTYPE:COUNT or \
                     its like"
                ));
            }
            _ => {
                let dtype = DType::parse(head)?;
                return Ok(Value::Numbers { dtype, bytes: dtype.numbers(rest)? });
            }
        };
        let (dtype, count) =
            rest.split_once(':').ok_or_else(|| format!("{head}:DTYPE:COUNT was expected"))?;
        let dtype = DType::parse(dtype)?;
        let count: usize =
            count.parse().map_err(|_| format!("{count:?} is no number of elements"))?;
        match count.checked_mul(dtype.bytes()) {
            Some(bytes) if bytes as u64 <= MAX_BYTES => Ok(Value::Made { fill, dtype, count }),
            _ => Err(format!(
                "{count} elements of {} are more than the {MAX_BYTES} bytes a buffer can have",
                dtype.name()
            )),
        }
    }

    /// Reads or makes the contents.
    pub(crate) fn load(&self, slot: Slot) -> Result<Operand, String> {
        let in_file = |file: &Path, why: String| format!("{}: {why}", file.display());
        let plain = |dtype: DType, bytes: Vec<u8>| Operand {
            dtype,
            shape: vec![(bytes.len() / dtype.bytes()) as u64],
            count: (bytes.len() / dtype.bytes()) as u64,
            buffer: Buffer::new(bytes),
        };
        Ok(match self {
            Value::Npy(file) => {
                let array = read(file)
                    .and_then(|bytes| npy::read(&bytes))
                    .map_err(|why| in_file(file, why))?;
                Operand { shape: array.shape, ..plain(array.dtype, array.bytes) }
            }
            Value::Raw(file) => plain(DType::U8, read(file).map_err(|why| in_file(file, why))?),
            Value::Numbers { dtype, bytes } => plain(*dtype, bytes.clone()),
            Value::Made { fill, dtype, count } => {
                let bytes = match fill {
                    Fill::Output | Fill::Poison => vec![0xFF; count * dtype.bytes()],
                    Fill::Zero => vec![0; count * dtype.bytes()],
                    Fill::Random => {
                        dtype.random(*count, u64::from(slot.group) << 32 | u64::from(slot.binding))
                    }
                };
                let operand = plain(*dtype, bytes);
                let buffer = match fill {
                    Fill::Output => operand.buffer.poisoned().must_write(),
                    Fill::Poison => operand.buffer.poisoned(),
                    Fill::Zero | Fill::Random => operand.buffer,
                };
                Operand { buffer, ..operand }
            }
        })
    }
}

/// A buffer, and what its bytes mean.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) dtype: DType,
    shape: Vec<u64>,
    count: u64,
    buffer: Buffer,
}

impl Operand {
    /// The buffer, which is handed over.
    pub(crate) fn buffer(&mut self) -> Buffer {
        std::mem::take(&mut self.buffer)
    }

    /// Declares elements to be part of the operand.
    pub(crate) fn declare(&mut self, elements: Range<u64>) -> Result<(), String> {
        if elements.end > self.count {
            return Err(format!("the buffer has {} elements of {}", self.count, self.dtype.name()));
        }
        let size = self.dtype.bytes() as u64;
        self.buffer = self.buffer().range(elements.start * size..elements.end * size);
        Ok(())
    }

    /// Writes the buffer that the run left: to an .npy file with the element type and shape, to
    /// another file only the bytes.
    pub(crate) fn save(&self, file: &Path, bytes: &[u8]) -> Result<(), String> {
        let contents = match file.extension() {
            Some(extension) if extension == "npy" => &npy::write(self.dtype, &self.shape, bytes)?,
            _ => bytes,
        };
        fs::write(file, contents).map_err(|error| error.to_string())
    }
}

/// Reads a file, if it has no more bytes than a buffer can have.
pub(crate) fn read(file: &Path) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let mut limited = File::open(file).map_err(|error| error.to_string())?.take(MAX_BYTES + 1);
    match limited.read_to_end(&mut bytes) {
        Ok(length) if length as u64 > MAX_BYTES => Err(format!("more than {MAX_BYTES} bytes")),
        Ok(_) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms() {
        let made = |fill, dtype, count| Ok(Value::Made { fill, dtype, count });
        assert_eq!(Value::parse("out:f32:1024"), made(Fill::Output, DType::F32, 1024));
        assert_eq!(Value::parse("poison:bf16:0"), made(Fill::Poison, DType::Bf16, 0));
        assert_eq!(Value::parse("zero:u8:3"), made(Fill::Zero, DType::U8, 3));
        assert_eq!(Value::parse("random:f16:5"), made(Fill::Random, DType::F16, 5));
        assert_eq!(
            Value::parse("i8:1,-1"),
            Ok(Value::Numbers { dtype: DType::I8, bytes: vec![1, 255] })
        );
        assert_eq!(Value::parse("C:\\a.npy"), Ok(Value::Npy("C:\\a.npy".into())));
        assert_eq!(Value::parse("a.bin"), Ok(Value::Raw("a.bin".into())));
    }

    #[test]
    fn what_is_none_of_them() {
        for (text, expected) in [
            ("a.txt", "none of"),
            ("", "none of"),
            ("out:f32", "out:DTYPE:COUNT"),
            ("out:f31:4", "\"f31\""),
            ("f31:4", "\"f31\""),
            ("zero:f32:-1", "\"-1\""),
            ("zero:f32:1073741824", "1073741824 elements"),
            ("zero:f64:18446744073709551615", "elements"),
            ("u32:", "\"\" is no u32"),
        ] {
            let error = Value::parse(text).unwrap_err();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn ranges_lie_within_the_buffer() {
        let slot = Slot { group: 0, binding: 0 };
        let mut operand = Value::parse("zero:u16:8").unwrap().load(slot).unwrap();
        assert_eq!(operand.declare(2..8), Ok(()));
        assert!(operand.declare(2..9).unwrap_err().contains("8 elements of u16"));
    }
}
