//! Devices that are lost or destroyed.

use super::{kind, refused, zeros};
use tilewise::{Context, ContextOptions, DType, Error, Gemm, Tensor};
use tilewise_tests::adapters;

/// A lost device makes every call an error, before and after the loss is noticed.
#[test]
fn a_device_of_the_library() {
    for adapter in adapters() {
        let context = adapter.another();
        let (a, b) = (zeros(&context, &[8, 8]), zeros(&context, &[8, 8]));
        let c = context.matmul(&a, &b).unwrap();
        context.wait_blocking().unwrap();
        context.device().unwrap().destroy();
        for _ in 0..2 {
            refused(context.matmul(&a, &b), kind!(DeviceLost), &[]);
            refused(Gemm::new(&a, &b).bias(&a).run(), |error| !error.to_string().is_empty(), &[]);
            refused(c.read_blocking::<f32>(), kind!(DeviceLost), &[]);
            refused(Tensor::zeros(&context, DType::F32, &[4]), kind!(DeviceLost), &[]);
            refused(Tensor::upload(&context, &[1.0f32], &[1]), kind!(DeviceLost), &[]);
            refused(context.wait_blocking(), kind!(DeviceLost), &[]);
            refused(pollster::block_on(context.wait()), kind!(DeviceLost), &[]);
            refused(Gemm::new(&a, &b).run_into(&c), kind!(DeviceLost), &[]);
        }
        // Another context on the same adapter still works.
        adapter
            .context
            .matmul(&zeros(&adapter.context, &[2, 2]), &zeros(&adapter.context, &[2, 2]))
            .unwrap();
    }
}

/// A device of the caller's has the caller's handlers. The first call that waits, reads or makes a
/// buffer finds the loss, whichever it is. So do all later calls.
#[test]
fn a_device_of_the_callers() {
    type Use = fn(&Context, &Tensor) -> Result<(), Error>;
    let uses: [Use; 6] = [
        |context, _| context.wait_blocking(),
        |context, _| pollster::block_on(context.wait()),
        |_, a| a.read_blocking::<f32>().map(drop),
        |_, a| Gemm::new(a, a).run().map(drop),
        |context, _| Tensor::upload(context, &[1.0f32], &[1]).map(drop),
        |_, a| Gemm::new(a, a).run().and_then(|c| c.read_blocking::<f32>()).map(drop),
    ];
    for adapter in adapters() {
        for first in uses {
            let (device, queue) = adapter.device(|_| {});
            let options = ContextOptions::default();
            let context = Context::from_device(device.clone(), queue.clone(), &options).unwrap();
            let a = zeros(&context, &[8, 8]);
            device.destroy();
            for call in std::iter::once(first).chain(uses) {
                refused(call(&context, &a), kind!(DeviceLost), &["lost"]);
            }
            let late = Context::from_device(device, queue, &options);
            refused(late, kind!(DeviceLost), &["destroyed"]);
        }
    }
}
