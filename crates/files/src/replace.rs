//! Files are written whole, or not at all.

use crate::error::{refused, unfit};
use std::fs::File;
use std::path::{Path, PathBuf};
use tilewise_core::{Error, Result};

/// Replaces the file at `path` by a new one. `fill` writes the new file beside it, under another
/// name. When it is whole, it takes the name of the old one. A link stays, and leads to the new
/// file. The new file has the permissions of the old one, if there is one.
///
/// # Errors
/// [`File`](crate::Error) when the system refuses, and for a device or a pipe; every error of
/// `fill`.
pub fn replace(path: impl AsRef<Path>, fill: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let path = path.as_ref();
    let target = target(path)?;
    let old = std::fs::metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(unfit(path, "exists and is not a regular file"));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tilewise-");
    // The permissions that a plain file would get.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut draft = builder.tempfile_in(folder(&target)).map_err(|why| refused(path, why))?;
    fill(draft.as_file_mut()).map_err(|error| match error {
        // The draft refuses; the errors of what is read name their own files.
        Error::File { source: Some(_), .. } => {
            error.map_text(|text| format!("{}: {text}", path.display()))
        }
        _ => error,
    })?;
    if let Some(old) = old {
        draft.as_file().set_permissions(old.permissions()).map_err(|why| refused(path, why))?;
    }
    draft.as_file().sync_all().map_err(|why| refused(path, why))?;
    draft.persist(&target).map_err(|failed| refused(path, failed.error))?;
    Ok(())
}

/// The file that a path leads to through links, whether it exists or not.
fn target(path: &Path) -> Result<PathBuf> {
    /// Links that are followed, at most, as in Linux.
    const LINKS: usize = 40;
    let mut target = path.to_owned();
    for _ in 0..LINKS {
        let Ok(next) = std::fs::read_link(&target) else { return Ok(target) };
        target = folder(&target).join(next);
    }
    Err(unfit(path, format!("leads through more than {LINKS} links")))
}

/// The folder that holds a file.
pub(crate) fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
