//! Destinations of results. A result is written whole, or not at all.

use super::Array;
use super::source::{Source, extension, folder};
use crate::failure::{Failure, Result};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use tilewise_core::problem::DType;
use tilewise_files::{Chunk, Error, Npy, Output, TensorKind};

/// Kinds of files that results are written as.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    Npy,
    Safetensors,
}

/// Name of a tensor if the command line gives none.
const UNNAMED: &str = "c";

/// The destination of a result.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sink {
    path: PathBuf,
    kind: Kind,
    tensor: Option<String>,
}

impl std::str::FromStr for Sink {
    type Err = String;

    /// `FILE.npy`, `FILE.safetensors` or `FILE.safetensors#TENSOR`; a tensor without a name is
    /// called `c`.
    fn from_str(text: &str) -> std::result::Result<Self, String> {
        Self::of_kinds(text, &[("npy", Kind::Npy), ("safetensors", Kind::Safetensors)])
    }
}

impl Sink {
    /// `FILE.safetensors` or `FILE.safetensors#TENSOR`.
    pub(crate) fn safetensors(text: &str) -> std::result::Result<Self, String> {
        Self::of_kinds(text, &[("safetensors", Kind::Safetensors)])
    }

    fn of_kinds(text: &str, kinds: &[(&str, Kind)]) -> std::result::Result<Self, String> {
        let Source { path, tensor } = Source::by_extension(text);
        let Some((_, kind)) = kinds.iter().find(|(end, _)| extension(&path) == *end) else {
            let ends: Vec<String> = kinds.iter().map(|(end, _)| format!(".{end}")).collect();
            return Err(format!("the extension must be {}", ends.join(" or ")));
        };
        if tensor.as_deref() == Some("") {
            return Err("no name of a tensor after #".into());
        }
        Ok(Sink { path, kind: *kind, tensor })
    }

    /// The file.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The tensor's name on the command line.
    pub(crate) fn tensor(&self) -> Option<&str> {
        self.tensor.as_deref()
    }

    /// This destination; a tensor without a name gets `name`.
    pub(crate) fn or_named(self, name: &str) -> Self {
        Sink { tensor: self.tensor.or_else(|| Some(name.to_owned())), ..self }
    }

    /// Checks that the file can hold elements of `dtype`. Call it before anything is computed.
    pub(crate) fn admit(&self, dtype: DType) -> std::result::Result<(), String> {
        if self.kind == Kind::Npy && Npy::header(dtype, &[]).is_none() {
            return Err(format!(
                "{}: .npy has no {dtype}; name a .safetensors file, or another element type",
                self.path.display()
            ));
        }
        Ok(())
    }

    /// Fails, before any work is done, if the file cannot be written. It must not replace a file
    /// that an input is read from.
    pub(crate) fn probe<'a>(&self, inputs: impl IntoIterator<Item = &'a Source>) -> Result<()> {
        self.writable()?;
        let Ok(own) = std::fs::canonicalize(&self.path) else { return Ok(()) };
        match inputs.into_iter().find(|input| input.holds(&own)) {
            Some(input) => Err(Failure::Other(format!(
                "{}: {input} is read from it; name another output",
                self.path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Fails if the file cannot be written: its folder is missing, or it is itself a folder.
    fn writable(&self) -> Result<()> {
        let refuse = |text: String| Err(Failure::Other(format!("{}: {text}", self.path.display())));
        let folder = folder(&self.path);
        if !folder.is_dir() {
            return refuse(format!("there is no folder {}", folder.display()));
        }
        // Nobody means to replace a device or a pipe by a file.
        match std::fs::metadata(&self.path) {
            Ok(metadata) if metadata.is_dir() => refuse("is a folder".into()),
            Ok(metadata) if !metadata.is_file() => {
                refuse("exists and is not a regular file".into())
            }
            _ => Ok(()),
        }
    }

    /// Writes an array.
    pub(crate) fn write(&self, array: &Array) -> Result<()> {
        let whole = |sink: &mut tilewise_files::Sink<'_>| {
            sink(Chunk { plane: 0, offset: 0, bytes: &array.bytes })
        };
        self.stream(array.dtype, &array.shape, whole)
    }

    /// Writes an array whose bytes `fill` gives, each chunk from the end of the one before.
    pub(crate) fn stream(
        &self,
        dtype: DType,
        shape: &[usize],
        fill: impl FnOnce(&mut tilewise_files::Sink<'_>) -> tilewise_files::Result<()>,
    ) -> Result<()> {
        self.admit(dtype).map_err(Failure::Other)?;
        match self.kind {
            Kind::Npy => {
                let header = Npy::header(dtype, shape).ok_or_else(|| {
                    let (path, count) = (self.path.display(), shape.len());
                    let text = format!("{path}: {count} dimensions do not fit the header of .npy");
                    Failure::Other(format!("{text}; name a .safetensors file"))
                })?;
                Ok(tilewise_files::replace(&self.path, |file| {
                    let mut put = |bytes: &[u8]| {
                        file.write_all(bytes).map_err(|why| Error::io(why.to_string(), why))
                    };
                    put(&header)?;
                    fill(&mut |chunk: Chunk<'_>| put(chunk.bytes))
                })?)
            }
            Kind::Safetensors => {
                let name = self.tensor().unwrap_or(UNNAMED);
                let output = Output::streamed(name, TensorKind::Dense(dtype), shape, fill);
                Ok(tilewise_files::write(
                    &self.path,
                    vec![output],
                    &BTreeMap::new(),
                    &mut |_, _| {},
                )?)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(dtype: DType) -> Array {
        Array { dtype, shape: vec![1, 2], bytes: vec![0; 2 * dtype.bytes() as usize] }
    }

    fn entries(folder: &Path) -> usize {
        std::fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn destinations_are_told_by_their_extension() {
        let sink: Sink = "d/c.safetensors#y".parse().unwrap();
        assert_eq!((sink.kind, sink.tensor()), (Kind::Safetensors, Some("y")));
        assert_eq!("c.safetensors".parse::<Sink>().unwrap().tensor(), None);
        for text in ["c", "c.bin", "npy", "c.safetensors#", ".npy"] {
            assert!(text.parse::<Sink>().is_err(), "{text}");
        }
        assert_eq!(Sink::safetensors("d/c.safetensors#y"), Ok(sink));
        assert_eq!(Sink::safetensors("c.npy"), Err("the extension must be .safetensors".into()));
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let sink = |name: &str| folder.path().join(name).to_str().unwrap().parse::<Sink>().unwrap();
        assert!(sink("c.npy").write(&array(DType::BF16)).is_err());
        assert!(sink("none/c.npy").write(&array(DType::F32)).is_err());
        let deep = Array { shape: vec![1; 30_000], ..array(DType::F16) };
        assert!(
            sink("c.npy")
                .write(&deep)
                .is_err_and(|why| why.line().unwrap().contains("c.npy: 30000 dimensions"))
        );
        assert_eq!(entries(folder.path()), 0);
        std::fs::create_dir(folder.path().join("d.npy")).unwrap();
        assert!(sink("d.npy").write(&array(DType::F32)).is_err());
        assert_eq!(entries(folder.path()), 1);
    }

    #[test]
    fn a_file_is_replaced_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.safetensors");
        std::fs::write(&path, [7; 9999]).unwrap();
        let sink: Sink = path.to_str().unwrap().parse().unwrap();
        sink.write(&array(DType::BF16)).unwrap();
        let source: Source = format!("{}#c", path.display()).parse().unwrap();
        assert_eq!(source.read().unwrap(), array(DType::BF16));
        assert_eq!(entries(folder.path()), 1);
    }

    #[cfg(unix)]
    #[test]
    fn permissions_are_those_of_a_plain_file() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (ours, plain) = (folder.path().join("c.npy"), folder.path().join("plain"));
        ours.to_str().unwrap().parse::<Sink>().unwrap().write(&array(DType::F16)).unwrap();
        std::fs::write(&plain, []).unwrap();
        let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&ours), mode(&plain));
    }
}
