//! Where operands lie: row strides, offsets, batches apart, interleaved and broadcast.

use tilewise_tests::{Suite, themes};

#[test]
fn nested_batches() {
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &themes::nested(), 7));
}

#[test]
fn offsets_strides_and_batches() {
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &themes::strided(), 5));
}
