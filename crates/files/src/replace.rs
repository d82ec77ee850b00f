//! Files are written whole, or not at all.

use crate::error::refused;
use std::fs::File;
use std::path::Path;
use tilewise_core::{Error, Result};

/// Replaces the file at `path` by a new one. `fill` writes it under another name beside it; it
/// takes the name when it is whole. A link stays, and leads to the new file.
///
/// # Errors
/// `File` when the system refuses, and for a device or a pipe; those of `fill`.
pub fn replace(path: impl AsRef<Path>, fill: impl FnOnce(&mut File) -> Result<()>) -> Result<()> {
    let path = path.as_ref();
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    if std::fs::metadata(&target).is_ok_and(|there| !there.is_file()) {
        return Err(refused(path, "exists and is not a regular file"));
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".tilewise-");
    // The permissions that a plain file would get.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut draft = builder.tempfile_in(folder).map_err(|why| refused(path, why))?;
    fill(draft.as_file_mut()).map_err(|error| match error {
        Error::File(why) => refused(path, why),
        other => other,
    })?;
    draft.as_file().sync_all().map_err(|why| refused(path, why))?;
    draft.persist(&target).map_err(|failed| refused(path, failed.error))?;
    Ok(())
}
