//! Sources of arrays and weights: `FILE.npy`, or a tensor of a model, `MODEL#TENSOR`.

use super::{Array, Raw};
use crate::failure::{Failure, Result, dense};
use crate::progress;
use std::fs::File;
use std::path::{Path, PathBuf};
use tilewise_core::{Error, QuantFormat};
use tilewise_files::{Expected, Model, Npy, Scalar, TensorKind, TensorView};

/// Extensions of files with tensors. A `#` after them names a tensor.
const MODELS: [&str; 3] = ["safetensors", "gguf", "json"];

/// A file or a folder, and the tensor in it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Source {
    pub(super) path: PathBuf,
    pub(super) tensor: Option<String>,
}

impl std::str::FromStr for Source {
    type Err = std::convert::Infallible;

    /// A file that exists under the whole name wins. Folders have no extension: there the first `#`
    /// after something that exists separates the tensor.
    fn from_str(text: &str) -> std::result::Result<Self, Self::Err> {
        if Path::new(text).exists() {
            return Ok(Source { path: text.into(), tensor: None });
        }
        let by_extension = Source::by_extension(text);
        let folder = || text.match_indices('#').find(|(at, _)| Path::new(&text[..*at]).exists());
        Ok(match by_extension.tensor {
            Some(_) => by_extension,
            None => folder().map_or(by_extension, |(at, _)| Source::split(text, at)),
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
    /// The `model_type` of `config.json` beside the model; empty without one.
    pub(crate) fn model_type(&self) -> String {
        let folder = if self.path.is_dir() { &*self.path } else { folder(&self.path) };
        let config = std::fs::read(folder.join("config.json")).unwrap_or_default();
        let config: serde_json::Value = serde_json::from_slice(&config).unwrap_or_default();
        config["model_type"].as_str().unwrap_or_default().to_owned()
    }

    /// Whether an existing file, given by its canonical path, is this file, or one of the files of
    /// this model.
    pub(super) fn holds(&self, file: &Path) -> bool {
        let is_file = |path: &Path| std::fs::canonicalize(path).is_ok_and(|path| path == file);
        let others: &[&str] = match extension(&self.path) {
            _ if self.path.is_dir() => &MODELS,
            "json" => &MODELS,
            // Parts of a split file.
            "gguf" => &["gguf"],
            _ => &[],
        };
        let folder = if self.path.is_dir() { &*self.path } else { folder(&self.path) };
        // Files may be links that lead anywhere, such as those in Hugging Face's cache.
        let beside = std::fs::read_dir(folder)
            .into_iter()
            .flatten()
            .filter_map(|entry| Some(entry.ok()?.path()));
        is_file(&self.path)
            || beside.filter(|path| others.contains(&extension(path))).any(|path| is_file(&path))
    }

    /// The parts of a name whose `#` follows an extension. A `#` elsewhere belongs to the file.
    pub(super) fn by_extension(text: &str) -> Self {
        let marks =
            MODELS.iter().filter_map(|end| Some(text.find(&format!(".{end}#"))? + 1 + end.len()));
        match marks.min() {
            Some(at) => Self::split(text, at),
            None => Source { path: text.into(), tensor: None },
        }
    }

    fn split(text: &str, at: usize) -> Self {
        Source { path: text[..at].into(), tensor: Some(text[at + 1..].to_owned()) }
    }

    /// The file or folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The name after `#`.
    pub(crate) fn name(&self) -> Option<&str> {
        self.tensor.as_deref()
    }

    /// Reads floats; f64 is narrowed to f32 with a warning on stderr.
    pub(crate) fn read(&self) -> Result<Array> {
        self.raw()?.into_array(&self.to_string())
    }

    /// Reads group offsets: u32, i32, u64 or i64.
    pub(crate) fn read_offsets(&self) -> Result<Vec<u32>> {
        self.raw()?.into_words(&self.to_string(), ["offset", "offsets"])
    }

    /// Reads numbers of rows: u32, i32, u64 or i64.
    pub(crate) fn read_counts(&self) -> Result<Vec<u32>> {
        self.raw()?.into_words(&self.to_string(), ["count", "counts"])
    }

    /// Reads indices: u32, i32, u64 or i64.
    pub(crate) fn read_indices(&self) -> Result<Vec<u32>> {
        self.raw()?.into_words(&self.to_string(), ["index", "indices"])
    }

    /// Whether this is a file with one unnamed array.
    pub(crate) fn is_npy(&self) -> bool {
        extension(&self.path) == "npy"
    }

    /// A name for a result made of this source: the tensor's name, else the file's without
    /// extension and folders.
    pub(crate) fn stem(&self) -> String {
        self.tensor.clone().unwrap_or_else(|| {
            self.path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
        })
    }

    /// Opens the model that the file or folder holds.
    pub(crate) fn model(&self) -> Result<Model> {
        // SAFETY: whoever starts the program leaves its inputs alone while it runs, as with other
        // programs that map files. If an output is one of the inputs, it is first written under
        // another name, and then renamed.
        let model = unsafe { Model::map(&self.path) };
        model.map_err(|error| {
            let hint = match self.path.is_file() && !MODELS.contains(&extension(&self.path)) {
                true => "; the extension is none of .safetensors, .gguf and .json",
                false => "",
            };
            Failure::Other(format!("{error}{hint}"))
        })
    }

    /// The named tensor, or else the only matrix, quantized if there is a quantized one. If several
    /// formats fit it, and only one of them gives rows of length `k`, it is in that format.
    pub(crate) fn matrix<'m>(
        &self,
        model: &'m Model,
        expected: &Expected,
        k: Option<usize>,
    ) -> Result<TensorView<'m>> {
        let only;
        let name = match &self.tensor {
            Some(name) => name,
            None => {
                only = self.only_matrix(model)?;
                only.name()
            }
        };
        if !expected.is_empty() && matches!(model.get(name)?.kind(), TensorKind::Dense(_)) {
            return Err(dense(self, expected));
        }
        let found = model.get_as(name, expected);
        let unclear = match &found {
            Ok(tensor) => matches!(tensor.kind(), TensorKind::Unclear(Error::Misuse(_))),
            Err(error) => matches!(error, Error::Misuse(_)),
        };
        if let (true, Some(k)) = (unclear, k) {
            let of = |format| model.get_as(name, &expected.clone().format(format)).ok();
            let fits = |tensor: &TensorView<'_>| tensor.shape().last() == Some(&k);
            let mut fitting = QuantFormat::all().filter_map(of).filter(fits);
            if let (Some(tensor), None) = (fitting.next(), fitting.next()) {
                return Ok(tensor);
            }
        }
        Ok(found?)
    }

    /// The only quantized matrix, or else the only matrix.
    fn only_matrix<'m>(&self, model: &'m Model) -> Result<TensorView<'m>> {
        let of = |wanted: fn(&TensorView<'_>) -> bool| {
            model.tensors().filter(wanted).collect::<Vec<_>>()
        };
        let quantized =
            of(|tensor| matches!(tensor.kind(), TensorKind::Quantized(_) | TensorKind::Unclear(_)));
        match quantized.is_empty() {
            true => self.only(of(|tensor| {
                let is_float =
                    matches!(tensor.kind(), TensorKind::Dense(dtype) if dtype.is_float());
                is_float && tensor.shape().len() == 2 && !tensor.is_stray()
            })),
            false => self.only(quantized),
        }
    }

    /// The tensor, if there is only one.
    fn only<'m>(&self, tensors: Vec<TensorView<'m>>) -> Result<TensorView<'m>> {
        /// The most names in a message.
        const SHOWN: usize = 8;
        let file = self.path.display();
        let names: Vec<&str> = tensors.iter().map(TensorView::name).take(SHOWN).collect();
        match tensors.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(Failure::Other(format!(
                "{file}: no matrix is in it; `tilewise inspect {file}` lists its tensors"
            ))),
            _ => {
                let more = if tensors.len() > SHOWN { ", ..." } else { "" };
                let (count, names) = (tensors.len(), names.join(", "));
                Err(Failure::Other(format!(
                    "{file}: {count} tensors; name one as {file}#NAME: {names}{more}"
                )))
            }
        }
    }

    fn raw(&self) -> Result<Raw> {
        if self.is_npy() {
            let failed = |text: String| Failure::Other(format!("{}: {text}", self.path.display()));
            if let Some(tensor) = &self.tensor {
                return Err(failed(format!("one array, without names; no tensor {tensor:?}")));
            }
            let (file, len) = open(&self.path)?;
            let file = progress::of_reading(len, &self.path).wrap_read(file);
            let Npy { scalar, shape, bytes, .. } =
                Npy::read(file, len).map_err(|error| failed(error.to_string()))?;
            return Ok(Raw { scalar, shape, bytes });
        }
        let model = self.model()?;
        let tensor = match &self.tensor {
            Some(name) => model.get(name)?,
            None => self.only(model.tensors().collect())?,
        };
        let scalar = match tensor.kind() {
            TensorKind::Dense(dtype) => Scalar::Dense(*dtype),
            TensorKind::Other(name) if name == "F64" => Scalar::F64,
            TensorKind::Other(name) if name == "I64" => Scalar::I64,
            TensorKind::Other(name) if name == "U64" => Scalar::U64,
            TensorKind::Unclear(error) => return Err(error.clone().into()),
            TensorKind::Quantized(format) => {
                let hint = "`convert` writes another format, `qmatmul` and `dequantize` read it";
                return Err(Failure::Other(format!(
                    "{self}: quantized to {format} already; {hint}"
                )));
            }
            other => {
                return Err(Failure::Other(format!("{self}: elements of {other} are not read")));
            }
        };
        let bar = progress::of_reading(tensor.stored_bytes(), &self.path);
        let mut planes = tensor.planes(&mut |done, _| bar.set_position(done))?;
        Ok(Raw { scalar, shape: tensor.shape().to_vec(), bytes: planes.swap_remove(0) })
    }
}

/// Opens a regular file, and gives its length.
fn open(path: &Path) -> Result<(File, u64)> {
    let failed = |error: std::io::Error| Failure::Other(format!("{}: {error}", path.display()));
    let metadata = std::fs::metadata(path).map_err(failed)?;
    if !metadata.is_file() {
        return Err(Failure::Other(format!("{}: not a regular file", path.display())));
    }
    Ok((File::open(path).map_err(failed)?, metadata.len()))
}

/// The folder that holds `path`.
pub(super) fn folder(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The extension, or nothing.
pub(super) fn extension(path: &Path) -> &str {
    path.extension().and_then(|extension| extension.to_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(path: &str, tensor: Option<&str>) -> Source {
        Source { path: path.into(), tensor: tensor.map(String::from) }
    }

    #[test]
    fn a_mark_after_an_extension_names_a_tensor() {
        for (text, expected) in [
            ("a.npy", source("a.npy", None)),
            ("a#b.npy", source("a#b.npy", None)),
            ("a.safetensors", source("a.safetensors", None)),
            ("d/a.safetensors#w.0#x", source("d/a.safetensors", Some("w.0#x"))),
            ("a#1.safetensors#w", source("a#1.safetensors", Some("w"))),
            ("a.gguf#b.safetensors#w", source("a.gguf", Some("b.safetensors#w"))),
            ("model.safetensors.index.json#w", source("model.safetensors.index.json", Some("w"))),
        ] {
            assert_eq!(text.parse::<Source>(), Ok(expected.clone()));
            assert_eq!(expected.to_string(), text);
        }
    }

    #[test]
    fn files_that_exist_decide_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
        std::fs::create_dir(at("m#1")).unwrap();
        std::fs::write(at("a.safetensors#w"), []).unwrap();
        for (text, path, tensor) in [
            ("m#1", "m#1", None),
            ("m#1#w#x", "m#1", Some("w#x")),
            ("none#w", "none#w", None),
            ("a.safetensors#w", "a.safetensors#w", None),
            ("a.safetensors#v", "a.safetensors", Some("v")),
        ] {
            assert_eq!(at(text).parse::<Source>(), Ok(source(&at(path), tensor)), "{text}");
        }
    }
}
