//! The cost of recording a custom kernel.

use super::*;
use tilewise::{Call, Kernel};

fn add(name: &str) -> Kernel {
    Kernel::new(name)
        .inputs(["g"])
        .outputs(["w"])
        .source("let i = global_id.x; if i < w_shape[0] * w_strides[0] { w[i] += rate * g[i]; }")
}

fn call(g: &Tensor, w: &Tensor, rate: f32) -> Call {
    Call::of(g).inout(w).value("rate", rate).grid([w.elem_count() as u32, 1, 1])
}

/// When it is warm, a call allocates the list of its outputs, and for a new value what wgpu needs
/// to write it. A bind group would be more.
#[test]
fn little_is_allocated_once_warm() {
    for adapter in adapters() {
        let context = &adapter.another();
        let (g, w) = (filled(context, &[8, 8], 1.0), zeros(context, &[8, 8]));
        let (kernel, raw) = (add("add"), Raw::new(context, 1));
        let (mut encoder, mut raws) = (encoder(context), encoder(context));
        let mut pass = encoder.begin_compute_pass(&Default::default());
        let mut recorded = |call: &Call| {
            allocation_counter::measure(|| drop(kernel.record(&mut pass, call).unwrap()))
                .count_total
        };
        let theirs = {
            let mut pass = raws.begin_compute_pass(&Default::default());
            raw.record(&mut pass);
            allocation_counter::measure(|| raw.record(&mut pass)).count_total
        };
        let (first, second) = (call(&g, &w, 0.5), call(&g, &w, 0.25));
        // wgpu's own lists grow sometimes.
        let mut least = |call: &Call| (0..5).map(|_| recorded(call)).min().unwrap();
        let again = least(&first);
        assert!(again <= theirs + 2, "{again} allocations, not {theirs} on {}", adapter.name());
        assert_eq!(least(&second), again, "{}", adapter.name());
        assert!(recorded(&call(&g, &w, 0.125)) > again + 1, "its value is written");

        // Here a binding cannot start, but functions need no copy.
        let by_functions = Kernel::new("store")
            .inputs(["g"])
            .outputs(["w"])
            .source("w_store(global_id.x, rate * g_load(global_id.x));");
        let cut = |tensor: &Tensor| tensor.slice(&[3..4, 1..8]).unwrap();
        let call = call(&cut(&g), &cut(&w), 2.0);
        let mut recorded = || {
            let work = || drop(by_functions.record(&mut pass, &call).unwrap());
            allocation_counter::measure(work).count_total
        };
        let least = (0..5).map(|_| recorded()).min();
        assert_eq!(least, Some(again), "{}", adapter.name());
    }
}

/// New values and shapes compile nothing, nor does a kernel that is built anew.
#[test]
fn values_and_shapes_compile_nothing() {
    for adapter in adapters() {
        let context = &adapter.another();
        let (g, w) = (filled(context, &[16, 8], 1.0), zeros(context, &[16, 8]));
        let kernel = add("add");
        assert_eq!(compilations(|| drop(kernel.run(&call(&g, &w, 1.0)).unwrap())), 1);
        let more = compilations(|| {
            for rows in 1..16 {
                let rows = |tensor: &Tensor| tensor.slice(&[0..rows, 0..8]).unwrap();
                kernel.run(&call(&rows(&g), &rows(&w), rows(&g).elem_count() as f32)).unwrap();
                add("add").run(&call(&rows(&g), &rows(&w), 1.0)).unwrap();
            }
        });
        assert_eq!(more, 0, "{}", adapter.name());
        let want = (0..16).map(|row| 1 + (row + 1..16).map(|rows| 8 * rows + 1).sum::<usize>());
        let want = want.flat_map(|sum| [sum as f32; 8]);
        assert!(read(&w).into_iter().eq(want), "{}", adapter.name());
    }
}

/// One kernel runs on two devices by turns, and on a device that replaced another.
#[test]
fn a_kernel_on_several_devices() {
    let kernel = add("add");
    for adapter in adapters() {
        for round in 0..3 {
            let other = adapter.another();
            for context in [&adapter.context, &other, &adapter.context] {
                let (g, w) = (filled(context, &[4, 4], 1.0), zeros(context, &[4, 4]));
                kernel.run(&call(&g, &w, round as f32)).unwrap();
                assert_eq!(read(&w), [round as f32; 16], "{}", adapter.name());
            }
        }
    }
}
