//! Runs the inputs that fuzzing has found. `cargo xtask fuzz` looks for more.

use std::path::Path;

/// Runs a target on its inputs.
fn replay(name: &str, target: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let mut inputs = 0;
    for entry in std::fs::read_dir(corpus).unwrap() {
        target(&std::fs::read(entry.unwrap().path()).unwrap());
        inputs += 1;
    }
    assert!(inputs > 10, "{inputs} inputs");
}

#[test]
fn safetensors() {
    replay("safetensors", crate::targets::safetensors);
}

#[test]
fn gguf() {
    replay("gguf", crate::targets::gguf);
}

#[test]
fn config() {
    replay("config", crate::targets::config);
}
