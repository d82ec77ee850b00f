//! Where operands lie: row strides, offsets, batches apart, interleaved and broadcast.

use tilewise_tests::{Suite, one_of_each, themes};

#[test]
fn offsets_strides_and_batches() {
    Suite::on_every_adapter(|adapter| themes::on(&one_of_each(adapter), &themes::strided()));
}
