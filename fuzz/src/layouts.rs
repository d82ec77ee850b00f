//! See `targets::layouts`.
#![no_main]

#[path = "../../crates/files/tests/suite/targets.rs"]
#[allow(dead_code)]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    targets::layouts(bytes);
});
