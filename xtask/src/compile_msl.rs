//! `cargo xtask compile-msl`: compiles every MSL text of the suite with Apple's compiler, in every
//! version of the language. It needs Xcode on a Mac, and no GPU.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::process::{Result, capture};
use crate::sanitize_msl;

/// Versions, as the compiler's option names them, and whether they have bf16.
const VERSIONS: [(&str, bool); 5] = [
    ("macos-metal2.4", false),
    ("metal3.0", false),
    ("metal3.1", true),
    ("metal3.2", true),
    ("metal4.0", true),
];

/// Where the texts are written.
const FOLDER: &str = "target/msl";

/// Most complaints to show for each version.
const TOLD: usize = 20;

/// The command: tries all versions; afterwards it is an error if one of them refused a text. A
/// version that the compiler does not know is printed; with `every_version` it is an error.
pub(crate) fn main(every_version: bool) -> Result {
    let folder = Path::new(FOLDER);
    // Texts of an earlier run have other names.
    if folder.exists() {
        fs::remove_dir_all(folder).map_err(|why| format!("{FOLDER}: {why}"))?;
    }
    sanitize_msl::main(&["--texts".to_owned(), FOLDER.to_owned()])?;
    let texts = texts(folder)?;
    let nothing = folder.join("nothing.metal");
    fs::write(&nothing, "kernel void nothing() {}\n")
        .map_err(|why| format!("{}: {why}", nothing.display()))?;
    if let Err(why) = capture(Command::new("xcrun").args(["-sdk", "macosx", "metal", "--version"]))
    {
        return Err(format!("no Metal compiler: it is a part of Xcode on a Mac ({why})"));
    }
    let (mut unknown, mut complaints) = (Vec::new(), Vec::new());
    for (version, has_bf16) in VERSIONS {
        if let Err(why) = compile(version, &nothing) {
            println!("{version}: not known here: {}", why.lines().next().unwrap_or_default());
            unknown.push(version);
            continue;
        }
        let wanted: Vec<_> = texts.iter().filter(|text| has_bf16 || !is_bf16(text)).collect();
        let refused = refused(version, &wanted);
        println!("{version}: {} texts, {} refused", wanted.len(), refused.len());
        complaints.extend(refused.into_iter().take(TOLD));
    }
    if unknown.len() == VERSIONS.len() || every_version && !unknown.is_empty() {
        complaints.push(format!("the compiler does not know {}", unknown.join(", ")));
    }
    if complaints.is_empty() { Ok(()) } else { Err(complaints.join("\n")) }
}

/// The texts that were written, in their order.
fn texts(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).map_err(|why| format!("{}: {why}", folder.display()))?;
    let paths = entries.flatten().map(|entry| entry.path());
    let mut texts: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|it| it == "metal")).collect();
    texts.sort();
    Ok(texts)
}

fn is_bf16(text: &Path) -> bool {
    text.file_stem().is_some_and(|name| name.to_string_lossy().ends_with("-bf16"))
}

/// Compiles texts side by side, and returns the complaints.
fn refused(version: &str, texts: &[&PathBuf]) -> Vec<String> {
    let (next, complaints) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    let work = || {
        while let Some(text) = texts.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = compile(version, text) {
                complaints
                    .lock()
                    .expect("nobody panics")
                    .push(format!("{version}: {}\n{why}", text.display()));
            }
        }
    };
    let threads = std::thread::available_parallelism().map_or(2, usize::from);
    std::thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(work))));
    complaints.into_inner().expect("nobody panics")
}

fn compile(version: &str, text: &Path) -> Result {
    let mut command = Command::new("xcrun");
    command
        .args(["-sdk", "macosx", "metal", &format!("-std={version}"), "-Werror", "-c"])
        .arg(text);
    let output = command
        .arg("-o")
        .arg(text.with_extension("air"))
        .output()
        .map_err(|why| format!("xcrun: {why}"))?;
    if output.status.success() {
        Ok(())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
