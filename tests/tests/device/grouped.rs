//! Grouped products: ragged segments of rows, dense and quantized, with ends that are right and
//! ends that are not.

use tilewise::DType;
use tilewise_tests::case::Groups;
use tilewise_tests::{Case, Suite, floor, kernels, themes};

#[test]
fn segments() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = themes::sampled(adapter, &themes::grouped(&themes::ends(), false), 3);
        cases.extend(themes::on(&[floor(adapter)], &themes::grouped(&themes::ends(), true)));
        cases
    });
}

/// Ends that a faulty shader left on the device: rows outside their clamped segments stay as they
/// are, whatever the ends.
#[test]
fn bad_ends_on_the_device() {
    Suite::on_every_adapter(|adapter| {
        themes::sampled(adapter, &themes::grouped(&themes::bad_ends(), true), 3)
    });
}

/// Segments that begin and end around the edges of every kernel's tile.
#[test]
fn every_kernel_around_its_edges() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in kernels(adapter) {
            let bm = kernel.variant.bm;
            let lengths = [bm, 1, 0, bm + 1, bm.max(2) - 1, 2 * bm];
            let ends: Vec<_> = lengths
                .iter()
                .scan(0, |end, length| {
                    Some({
                        *end += length;
                        *end
                    })
                })
                .collect();
            let size = [ends[5] as usize + 3, kernel.variant.bn as usize + 4, 20];
            let case = Case {
                groups: Some(Groups { ends, on_device: true }),
                ..Case::new(size, [DType::F32; 3])
            };
            cases.push(case.clone().kernel(&kernel.name));
            cases.push(case.integers().kernel(&kernel.name));
        }
        cases
    });
}
