//! Real models, which are tested where somebody has fetched them.

use std::path::{Path, PathBuf};

/// The folder of a model that `cargo xtask model` has fetched. If it has not, this is printed.
///
/// # Panics
/// When it is not there and `TILEWISE_REQUIRE` has `models`.
pub fn fetched(name: &str) -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/models").join(name);
    if folder.exists() {
        return Some(folder);
    }
    let required = std::env::var("TILEWISE_REQUIRE").unwrap_or_default();
    let why = format!("the model {name} is not there: `cargo xtask model {name}` fetches it");
    assert!(!required.split(',').any(|word| word.trim() == "models"), "{why}");
    eprintln!("skipped: {why}");
    None
}
