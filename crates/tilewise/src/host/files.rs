//! Files that are written whole or not at all.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// Writes a file whole or not at all: to a new file beside it, then by renaming. Makes the folder
/// if it does not exist.
pub(crate) fn replace(file: &Path, data: &[u8]) -> std::io::Result<()> {
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let (draft, mut writer) = draft(file)?;
    let written = writer.write_all(data);
    // Some systems do not rename open files.
    drop(writer);
    written.and_then(|()| std::fs::rename(&draft, file)).inspect_err(|_| {
        let _ = std::fs::remove_file(&draft);
    })
}

/// A new file that nobody else writes. Other threads use other numbers. A file that another process
/// with the same process id has made, in another container, is passed over.
fn draft(file: &Path) -> std::io::Result<(PathBuf, File)> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = file.with_extension(format!("{}-{number}.draft", std::process::id()));
        match File::create_new(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (path, file)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drafts_of_others_are_left_alone() {
        let folder = std::env::temp_dir().join(format!("tilewise-drafts-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join("kept.bin");
        // A process of the same number leaves such drafts, in another container.
        let theirs: Vec<_> = (0..40)
            .map(|n| file.with_extension(format!("{}-{n}.draft", std::process::id())))
            .collect();
        for path in &theirs {
            std::fs::write(path, "theirs").unwrap();
        }
        let contents: Vec<Vec<u8>> =
            (0..8u8).map(|writer| vec![writer; 100_000 + usize::from(writer)]).collect();
        std::thread::scope(|scope| {
            for data in &contents {
                scope.spawn(|| {
                    for _ in 0..20 {
                        replace(&file, data).unwrap();
                        assert!(
                            contents.contains(&std::fs::read(&file).unwrap()),
                            "a mixture of two"
                        );
                    }
                });
            }
        });
        assert!(theirs.iter().all(|path| std::fs::read(path).unwrap() == b"theirs"));
        // Neither writing nor failing leaves a draft.
        let folder_in_its_place = folder.join("folder");
        std::fs::create_dir(&folder_in_its_place).unwrap();
        assert!(replace(&folder_in_its_place, b"").is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), theirs.len() + 2);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
