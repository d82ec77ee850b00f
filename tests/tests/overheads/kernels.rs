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

/// Through Vulkan and Metal, views that move by whole rows share a bind group: the first call of a
/// row allocates no more than later ones. The results lie in their rows.
#[test]
fn views_that_move_share_a_bind_group() {
    for adapter in adapters() {
        let context = &adapter.another();
        if !["vulkan", "metal"].contains(&context.backend_name()) {
            continue;
        }
        let (x, cache) = (filled(context, &[1, 64], 2.0), zeros(context, &[16, 64]));
        let cache_of = |rows: [u32; 64]| Tensor::upload(context, &rows.repeat(16), &[16, 64]);
        let tokens = cache_of([3; 64]).unwrap();
        let table = Tensor::upload(context, &[0.0f32, 1.0, 2.0, 5.0].repeat(16), &[16, 4]).unwrap();
        let taken = zeros(context, &[1, 4]);
        let row = |at| cache.narrow(0, at, 1).unwrap();
        let token = |at: usize| tokens.slice(&[at..at + 1, 0..1]).unwrap().reshape(&[1]).unwrap();
        let double = Kernel::new("double").inputs(["a"]).outputs(["out"]);
        let double = double.source("let i = global_id.x; out[i] = 2.0 * a[i];");
        let mut encoder = encoder(context);
        let mut pass = encoder.begin_compute_pass(&Default::default());
        type Work<'a> = &'a dyn Fn(&mut wgpu::ComputePass<'_>, usize);
        let works: [(&str, Work<'_>); 4] = [
            ("add", &|pass, at| ops::add(&x, &x).record(pass, &row(at)).unwrap()),
            ("arg_max", &|pass, at| ops::arg_max(&x, 1).record(pass, &token(at)).unwrap()),
            ("take", &|pass, at| Take::new(&table).rows(&token(at)).record(pass, &taken).unwrap()),
            ("kernel", &|pass, at| {
                let call = Call::of(&x).output_into(&row(at)).grid([64, 1, 1]);
                drop(double.record(pass, &call).unwrap());
            }),
        ];
        for (name, work) in works {
            work(&mut pass, 0);
            // wgpu's own lists grow sometimes.
            let mut least = |rows: &mut dyn Iterator<Item = usize>| {
                let count = |at| allocation_counter::measure(|| work(&mut pass, at)).count_total;
                rows.map(count).min().unwrap()
            };
            let warm = least(&mut [0; 8].into_iter());
            assert_eq!(least(&mut (1..12)), warm, "{name} on {}", adapter.name());
        }
        drop(pass);
        context.queue().unwrap().submit([encoder.finish()]);
        assert_eq!(read(&cache), [vec![4.0; 12 * 64], vec![0.0; 4 * 64]].concat());
        let tokens = tokens.read_blocking::<u32>().unwrap();
        assert!((0..16).all(|at| tokens[at * 64] == if at < 12 { 0 } else { 3 }));
        assert_eq!(read(&taken), [0.0, 1.0, 2.0, 5.0]);
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
