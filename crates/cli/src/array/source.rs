//! Where an array is read from: `FILE.npy` or `FILE.safetensors#TENSOR`.

use super::safetensors::TensorFile;
use super::{Array, Raw, npy};
use crate::failure::{Failure, Result};
use crate::progress;
use std::fs::File;
use std::path::{Path, PathBuf};
use tilewise_core::quant::{QuantFormat, Quantized};

/// A file, and for safetensors the tensor in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(super) path: PathBuf,
    pub(super) tensor: Option<String>,
}

impl std::str::FromStr for Source {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        const MARK: &str = ".safetensors#";
        // A `#` elsewhere belongs to the name of the file.
        Ok(match text.find(MARK) {
            Some(at) => {
                Source { path: text[..at + MARK.len() - 1].into(), tensor: Some(text[at + MARK.len()..].to_string()) }
            }
            None => Source { path: text.into(), tensor: None },
        })
    }
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.path.display())?;
        self.tensor.iter().try_for_each(|tensor| write!(f, "#{tensor}"))
    }
}

impl Source {
    /// Reads floats; f64 is narrowed to f32 with a warning on stderr.
    pub(crate) fn read(&self) -> Result<Array> {
        self.raw()?.into_array(&self.to_string())
    }

    /// Reads group offsets: u32, i32 or i64.
    pub(crate) fn read_offsets(&self) -> Result<Vec<u32>> {
        self.raw()?.into_offsets(&self.to_string())
    }

    /// The file without its extension and folders, for naming what is made from it.
    pub(crate) fn stem(&self) -> String {
        self.tensor.clone().unwrap_or_else(|| self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
    }

    fn raw(&self) -> Result<Raw> {
        let (file, len) = open(&self.path)?;
        let file = progress::of_reading(len, &self.path).wrap_read(file);
        let raw = match extension(&self.path) {
            "npy" => npy::read(file, len),
            "safetensors" => TensorFile::open(file, len).and_then(|mut file| match &self.tensor {
                Some(tensor) => file.raw(tensor),
                None => match file.names().as_slice() {
                    [only] => file.raw(only),
                    names => Err(format!("{} tensors; name one as {}#TENSOR", names.len(), self.path.display())),
                },
            }),
            _ => Err("the extension is neither .npy nor .safetensors".into()),
        };
        raw.map_err(|text| Failure::Other(format!("{}: {text}", self.path.display())))
    }
}

/// Reads quantized weights in MLX's naming, in the format that is expected or that the file tells.
/// Without a prefix after `#`, the file must hold one quantized matrix.
pub(crate) fn read_quantized(source: &Source, expected: Option<QuantFormat>) -> Result<Quantized> {
    let (file, len) = open(&source.path)?;
    let failed = |text: String| Failure::Other(format!("{}: {text}", source.path.display()));
    let mut file = TensorFile::open(progress::of_reading(len, &source.path).wrap_read(file), len).map_err(failed)?;
    let prefix = match &source.tensor {
        Some(prefix) => prefix.clone(),
        None => tilewise_files::planes::only_prefix(file.names().iter().map(String::as_str))
            .map_err(|error| failed(error.to_string()))?
            .to_string(),
    };
    file.quantized(&prefix, expected).map_err(failed)
}

/// Opens a regular file, and tells its length.
fn open(path: &Path) -> Result<(File, u64)> {
    let failed = |error: std::io::Error| Failure::Other(format!("{}: {error}", path.display()));
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(Failure::Other(format!("{}: not a regular file", path.display())));
    }
    Ok((File::open(path).map_err(failed)?, metadata.len()))
}

/// The extension, or nothing.
pub(super) fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_mark_after_the_extension_names_a_tensor() {
        let source = |path: &str, tensor: Option<&str>| Source { path: path.into(), tensor: tensor.map(String::from) };
        for (text, expected) in [
            ("a.npy", source("a.npy", None)),
            ("a#b.npy", source("a#b.npy", None)),
            ("a.safetensors", source("a.safetensors", None)),
            ("d/a.safetensors#w.0#x", source("d/a.safetensors", Some("w.0#x"))),
            ("a#1.safetensors#w", source("a#1.safetensors", Some("w"))),
        ] {
            assert_eq!(text.parse::<Source>(), Ok(expected.clone()));
            assert_eq!(expected.to_string(), text);
        }
    }
}
