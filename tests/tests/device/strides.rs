//! Places of operands: row strides, offsets, batches apart, interleaved and broadcast.

use tilewise_tests::{Suite, themes};

#[test]
fn nested_batches() {
    let some: Vec<_> = themes::nested().into_iter().step_by(2).collect();
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &some, 5));
}

#[test]
fn offsets_strides_and_batches() {
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &themes::strided(), 5));
}
