//! Where bytes come from: files of a folder, mapped into memory, or held by the caller.

use crate::error::{refused, unfit};
use memmap2::Mmap;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use tilewise_core::{Error, Result};

/// The files among which a model is looked for, by name.
pub enum Files {
    /// The files of a folder.
    Folder(PathBuf),
    /// Files in memory. Names are plain, without folders.
    Memory(BTreeMap<String, Vec<u8>>),
}

/// The bytes of a file.
pub(crate) enum Bytes {
    Mapped(Mmap),
    Held(Vec<u8>),
}

/// A file of a model.
pub(crate) struct Source {
    /// As errors show it.
    pub(crate) name: String,
    pub(crate) bytes: Bytes,
}

impl std::ops::Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Bytes::Mapped(map) => map,
            Bytes::Held(bytes) => bytes,
        }
    }
}

/// Maps a file into memory.
fn map(path: &Path) -> Result<Bytes> {
    // Asked first: opening a pipe would wait for its other end.
    let described = std::fs::metadata(path).map_err(|why| refused(path, why))?;
    if !described.is_file() {
        return Err(unfit(path, "is not a regular file"));
    }
    let file = File::open(path).map_err(|why| refused(path, why))?;
    // Some systems map no empty file.
    if described.len() == 0 {
        return Ok(Bytes::Held(Vec::new()));
    }
    // SAFETY: the mapping is read-only and private to this process's readers. As with every mapped
    // file, nobody may shorten the file or write to it while it is open. `Model::open` says so.
    let mapped = unsafe { Mmap::map(&file) };
    mapped.map(Bytes::Mapped).map_err(|why| {
        Error::file(format!("{}: cannot be mapped into memory: {why}", path.display()), why)
    })
}

impl Files {
    /// The bytes of a file. They are taken out of memory, so a file is opened once.
    pub(crate) fn open(&mut self, name: &str) -> Result<Source> {
        match self {
            Files::Folder(folder) => {
                let path = folder.join(name);
                Ok(Source { name: path.display().to_string(), bytes: map(&path)? })
            }
            Files::Memory(files) => {
                let bytes = files
                    .remove(name)
                    .ok_or_else(|| Error::NotFound(format!("{name}: there is no such file")))?;
                Ok(Source { name: name.to_owned(), bytes: Bytes::Held(bytes) })
            }
        }
    }

    /// Opens a file, if there is one of this name.
    pub(crate) fn open_optional(&mut self, name: &str) -> Result<Option<Source>> {
        let there = match self {
            Files::Folder(folder) => folder.join(name).is_file(),
            Files::Memory(files) => files.contains_key(name),
        };
        if there { self.open(name).map(Some) } else { Ok(None) }
    }

    /// The names of all files, in alphabetical order. Names that are not Unicode are left out.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        match self {
            Files::Folder(folder) => {
                let entries = std::fs::read_dir(folder).map_err(|why| refused(folder, why))?;
                let mut names: Vec<String> = entries
                    .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
                    .collect();
                names.sort();
                Ok(names)
            }
            Files::Memory(files) => Ok(files.keys().cloned().collect()),
        }
    }

    /// As errors show the folder.
    pub(crate) fn shown(&self) -> String {
        match self {
            Files::Folder(folder) => folder.display().to_string(),
            Files::Memory(_) => "the files in memory".to_owned(),
        }
    }
}
