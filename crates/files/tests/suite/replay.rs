//! Runs the inputs that fuzzing has found. `cargo xtask fuzz` looks for more.

use std::collections::BTreeSet;
use std::path::Path;

/// Runs a target on its inputs. They must reach as far as reading matrices that are stored as
/// `reached`.
fn replay(name: &str, target: impl Fn(&[u8]) -> BTreeSet<&'static str>, reached: &[&str]) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name);
    let inputs = std::fs::read_dir(corpus)
        .unwrap()
        .map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let read: BTreeSet<_> = inputs.flat_map(|input| target(&input)).collect();
    assert!(reached.iter().all(|stored| read.contains(stored)), "only {read:?}");
}

#[test]
fn safetensors() {
    let reached = ["safetensors", "gptq", "awq", "in another order", "written"];
    replay("safetensors", crate::targets::safetensors, &reached);
}

#[test]
fn gguf() {
    let reached = ["gguf", "IQ2_XS", "IQ3_S", "IQ1_M", "TQ1_0", "NVFP4", "written"];
    replay("gguf", crate::targets::gguf, &reached);
}

#[test]
fn layouts() {
    let reached = ["gptq", "awq", "fp8", "int8", "compressed-tensors", "in another order"];
    let packages = ["awq-gemv", "awq-gemv-fast", "bitsandbytes", "hqq", "gpt-oss"];
    replay("layouts", crate::targets::layouts, &[&reached[..], &packages].concat());
}

#[test]
fn config() {
    let reached = ["safetensors", "gptq", "awq", "in another order", "written"];
    replay("config", crate::targets::config, &reached);
}
