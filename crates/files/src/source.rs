//! Where bytes come from: files of a folder, read or mapped into memory, or held by the caller.

use crate::error::{refused, unfit};
use memmap2::Mmap;
#[cfg(unix)]
use memmap2::UncheckedAdvice;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tilewise_core::{Error, Result};

/// The files among which a model is looked for, by name.
#[non_exhaustive]
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
    /// Name in errors.
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

impl Bytes {
    /// Gives the memory of a mapped range back: these bytes will not be needed soon. The system
    /// reads them from the file again if they are.
    pub(crate) fn release(&self, range: &Range<usize>) {
        #[cfg(unix)]
        if let Bytes::Mapped(map) = self {
            // SAFETY: the map is shared with the file and only read, so its pages hold what the
            // file holds, now and when they are read again.
            let told = unsafe {
                map.unchecked_advise_range(UncheckedAdvice::DontNeed, range.start, range.len())
            };
            // It is advice: without it, the system takes the memory back when it must.
            told.ok();
        }
        #[cfg(not(unix))]
        let _ = range;
    }
}

/// Reads a file, or maps it into memory.
fn bytes(path: &Path, mapped: bool) -> Result<Bytes> {
    // The kind of file is asked first: opening a pipe would wait for its other end.
    let described = std::fs::metadata(path).map_err(|why| refused(path, why))?;
    if !described.is_file() {
        return Err(unfit(path, "is not a regular file"));
    }
    let file = File::open(path).map_err(|why| refused(path, why))?;
    // Some systems map no empty file.
    if !mapped || described.len() == 0 {
        return read(path, file, described.len());
    }
    // SAFETY: the mapping is only read. Nobody shortens the file or writes to it meanwhile: the
    // caller of `Model::map`, which alone sets `mapped`, has promised it.
    let mapped = unsafe { Mmap::map(&file) };
    mapped.map(Bytes::Mapped).map_err(|why| {
        Error::io(format!("{}: cannot be mapped into memory: {why}", path.display()), why)
    })
}

/// Reads a file of this length into memory that is known to be there.
fn read(path: &Path, mut file: File, length: u64) -> Result<Bytes> {
    let too_large = |why: String| Error::OutOfMemory(format!("{}: {why}", path.display()));
    let room = usize::try_from(length).map_err(|why| too_large(why.to_string()))?;
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(room).map_err(|why| {
        too_large(format!("no memory for its {length} bytes, which are read and not mapped: {why}"))
    })?;
    file.read_to_end(&mut bytes).map_err(|why| refused(path, why))?;
    Ok(Bytes::Held(bytes))
}

/// Files, and whether files of a folder are read or mapped.
pub(crate) struct Store {
    pub(crate) files: Files,
    /// Mapped into memory, not read. Only `Model::map`, which is unsafe, sets it.
    pub(crate) mapped: bool,
}

impl From<Files> for Store {
    fn from(files: Files) -> Self {
        Store { files, mapped: false }
    }
}

impl Store {
    /// The bytes of a file. They are taken out of memory, so a file is opened once.
    pub(crate) fn open(&mut self, name: &str) -> Result<Source> {
        match &mut self.files {
            Files::Folder(folder) => {
                let path = folder.join(name);
                let bytes = bytes(&path, self.mapped)?;
                Ok(Source { name: path.display().to_string(), bytes })
            }
            Files::Memory(files) => {
                let bytes = files
                    .remove(name)
                    .ok_or_else(|| Error::file(format!("{name}: there is no such file")))?;
                Ok(Source { name: name.to_owned(), bytes: Bytes::Held(bytes) })
            }
        }
    }

    /// Opens a file, if there is one of this name.
    pub(crate) fn open_optional(&mut self, name: &str) -> Result<Option<Source>> {
        let there = match &self.files {
            Files::Folder(folder) => folder.join(name).is_file(),
            Files::Memory(files) => files.contains_key(name),
        };
        if there { self.open(name).map(Some) } else { Ok(None) }
    }

    /// The names of all files, in alphabetical order. Names that are not Unicode are left out.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        match &self.files {
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

    /// The folder's name in errors.
    pub(crate) fn shown(&self) -> String {
        match &self.files {
            Files::Folder(folder) => folder.display().to_string(),
            Files::Memory(_) => "the files in memory".to_owned(),
        }
    }
}
