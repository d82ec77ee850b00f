//! Outputs that are the caller's.

use super::*;
use std::ops::Range;

/// Runs a call and checks it. The sanitizer must find nothing and change nothing, and its outputs
/// must be those that the run then leaves in the caller's tensors.
#[track_caller]
pub(super) fn run_and_check(kernel: &Kernel, call: &Call, given: &[&Tensor]) {
    let bytes = |tensor: &Tensor| tensor.read_bytes_blocking().unwrap();
    let before: Vec<_> = given.iter().map(|tensor| bytes(tensor)).collect();
    let check =
        kernel.check_blocking(call, Default::default()).unwrap_or_else(|error| panic!("{error}"));
    assert!(check.is_clean(), "{}", check.render(false));
    assert_eq!(given.iter().map(|tensor| bytes(tensor)).collect::<Vec<_>>(), before);
    let outputs = kernel.run(call).unwrap_or_else(|error| panic!("{error}"));
    let (checked, run): (Vec<_>, Vec<_>) =
        check.outputs.iter().zip(&outputs).map(|(c, r)| (bytes(c), bytes(r))).unzip();
    assert_eq!(checked, run);
    let held: Vec<_> = given.iter().map(|tensor| bytes(tensor)).collect();
    assert!(given.is_empty() || held == run, "{call:?}");
}

/// Views of a tensor of 7×12: one where a binding cannot start, a transposed one, and every second
/// row.
fn cuts(tensor: &Tensor) -> Vec<(&'static str, Tensor)> {
    let slice = |rows: Range<usize>, columns: Range<usize>| tensor.slice(&[rows, columns]).unwrap();
    vec![
        ("all", tensor.clone()),
        ("transposed", tensor.t()),
        ("rows", slice(2..5, 0..12)),
        ("a row", slice(3..4, 1..8)),
        ("a block", slice(1..6, 3..8)),
        ("its transpose", slice(1..6, 3..8).t()),
        ("one element", slice(6..7, 5..6)),
        ("none", slice(2..2, 3..8)),
    ]
}

/// Every view as an output and in place, in elements of 4 and of 2 bytes. The rest of the buffer
/// stays unchanged.
#[test]
fn into_views() {
    for context in contexts() {
        let data = ramp(84);
        let wide = || Tensor::upload(&context, &data, &[7, 12]).unwrap();
        let halves: Vec<bf16> = data.iter().map(|&x| bf16::from_f32(x)).collect();
        let half = || Tensor::upload(&context, &halves, &[7, 12]).unwrap();
        for contiguous in [true, false] {
            for at in 0..cuts(&wide()).len() {
                let whole = wide();
                let (name, view) = cuts(&whole).swap_remove(at);
                let n = view.elem_count();
                let strided = "let j = global_id.x / out_shape[1] * out_strides[0] + global_id.x % \
                               out_shape[1] * out_strides[1];";
                let place = if contiguous { "let j = global_id.x;" } else { strided };
                let fill = Kernel::new("fill").outputs(["out"]).ensure_contiguous(contiguous);
                let add = fill.clone().source(format!("{place} out[j] += 1000.0;"));
                let fill = fill.source(format!("{place} out[j] = -f32(global_id.x);"));
                let call = Call::new(&context).grid([n as u32, 1, 1]);

                let was = view.read_blocking::<f32>().unwrap();
                run_and_check(&add, &call.clone().inout(&view), &[&view]);
                let more: Vec<f32> = was.iter().map(|x| x + 1000.0).collect();
                assert_eq!(view.read_blocking::<f32>().unwrap(), more, "{name} on {context:?}");
                let outside = |tensor: &Tensor| {
                    let all = tensor.read_f32_blocking().unwrap();
                    all.into_iter().filter(|x| (0.0..84.0).contains(x)).count()
                };
                assert_eq!(outside(&whole), 84 - n, "{name} on {context:?}");
                run_and_check(&fill, &call.clone().output_into(&view), &[&view]);
                let less: Vec<f32> = (0..n).map(|i| -(i as f32)).collect();
                assert_eq!(view.read_blocking::<f32>().unwrap(), less, "{name} on {context:?}");

                // Words hold two elements, which strides do not separate.
                if !contiguous {
                    continue;
                }
                let whole = half();
                let view = cuts(&whole).swap_remove(at).1;
                let body = "out[global_id.x] = out[global_id.x] ^ 0x80008000u;";
                let negate = Kernel::new("negate").outputs(["out"]).source(body);
                let words = n.div_ceil(2) as u32;
                let call = Call::new(&context).inout(&view).grid([words, 1, 1]);
                run_and_check(&negate, &call, &[&view]);
                let negative = whole
                    .read_f32_blocking()
                    .unwrap()
                    .iter()
                    .filter(|x| x.is_sign_negative())
                    .count();
                assert_eq!(negative, n, "{name} of bf16 on {context:?}");
            }
        }
    }
}

/// Several tensors in place, beside an output that the call makes. Outputs are in the order of the
/// names.
#[test]
fn adam() {
    let kernel = Kernel::new("adam").inputs(["g"]).outputs(["w", "norm", "m"]).source(
        "let i = global_id.x; let x = mix(g[i], m[i], 0.75); m[i] = x; w[i] -= 0.5 * x;
         norm[i] = x * x;",
    );
    for context in contexts() {
        let upload = |data: &[f32]| Tensor::upload(&context, data, &[data.len()]).unwrap();
        let (g, w, m) = (upload(&[4.0, 8.0, -4.0]), upload(&[1.0, 2.0, 3.0]), upload(&[0.0; 3]));
        let call = Call::of(&g).inout(&w).output(DType::F32, &[3]).inout(&m).grid([3, 1, 1]);
        for step in 1..4 {
            let outputs = kernel.run(&call).unwrap();
            let left: Vec<_> =
                outputs.iter().map(|tensor| tensor.read_blocking::<f32>().unwrap()).collect();
            assert_eq!(left[0], w.read_blocking::<f32>().unwrap());
            assert_eq!(left[2], m.read_blocking::<f32>().unwrap());
            let moment = [1.0, 1.75, 2.3125][step - 1];
            assert_eq!(left[2], [moment, 2.0 * moment, -moment], "{context:?}");
            assert_eq!(left[1], [moment, 2.0 * moment, -moment].map(|x| x * x));
        }
        assert_eq!(w.read_blocking::<f32>().unwrap(), [-1.53125, -3.0625, 5.53125]);
        // An initial value for the output that the call makes.
        let filled = call.init_value(7.0).grid([0, 1, 1]);
        let outputs = kernel.run(&filled).unwrap();
        assert_eq!(outputs[1].read_blocking::<f32>().unwrap(), [7.0; 3]);
        assert_eq!(outputs[0].read_blocking::<f32>().unwrap(), [-1.53125, -3.0625, 5.53125]);
    }
}

/// A cache: rows are read and the next row is written in the same buffer.
#[test]
fn disjoint_ranges_of_one_buffer() {
    for context in contexts() {
        for columns in [64, 3] {
            let cache = Tensor::zeros(&context, DType::F32, &[5, columns]).unwrap();
            let kernel = from_a("let i = global_id.x; out[i] = a[i] + 1.0;");
            for row in 0..4 {
                let rows = |row| cache.slice(&[row..row + 1, 0..columns]).unwrap();
                let call = Call::of(&rows(row)).output_into(&rows(row + 1));
                run_and_check(&kernel, &call.grid([columns as u32, 1, 1]), &[&rows(row + 1)]);
            }
            let want: Vec<f32> = (0..5 * columns).map(|i| (i / columns) as f32).collect();
            assert_eq!(cache.read_blocking::<f32>().unwrap(), want, "{context:?}");
        }
    }
}

/// Calls in passes of the caller's: each call sees what the one before left in place.
#[test]
fn in_place_in_one_pass() {
    for adapter in adapters() {
        let context = &adapter.context;
        let (device, queue) = (context.device().unwrap(), context.queue().unwrap());
        let all = Tensor::upload(context, &ramp(20), &[4, 5]).unwrap();
        let double = Kernel::new("double").outputs(["x"]).source("x[global_id.x] *= 2.0;");
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            for view in [&all, &all.t(), &all.slice(&[1..3, 2..4]).unwrap()] {
                let call = Call::new(context).inout(view).grid([view.elem_count() as u32, 1, 1]);
                let x = double.record_one(&mut pass, &call).unwrap();
                assert_eq!(x.shape(), view.shape());
            }
        }
        let row = all.slice(&[0..1, 0..5]).unwrap();
        double.record_one(&mut encoder, &Call::new(context).inout(&row).grid([5, 1, 1])).unwrap();
        queue.submit([encoder.finish()]);
        let want = (0..20).map(|i| {
            let inner = (5..15).contains(&i) && (2..4).contains(&(i % 5));
            let times = 4 * if i < 5 || inner { 2 } else { 1 };
            (i * times) as f32
        });
        assert!(all.read_blocking::<f32>().unwrap().into_iter().eq(want), "{}", adapter.name());
    }
}

/// Values that change from call to call: each recording has its own, in whatever order they are
/// submitted.
#[test]
fn values() {
    for context in contexts() {
        let body = "let i = global_id.x; if flip { out[i] = f32(i32(i + n) + shift) * rate; }";
        let kernel = Kernel::new("values").outputs(["out"]).source(body);
        let call = |n: u32, shift: i32, rate: f32| {
            let call = Call::new(&context).value("n", n).value("shift", shift).value("rate", rate);
            call.value("flip", true).value("unused", 1u32).output(DType::F32, &[2]).grid([2, 1, 1])
        };
        for (n, shift, rate) in [(1, -3, 0.5), (1 << 24, i32::MIN, -1.0), (0, 0, f32::INFINITY)] {
            let want = [0, 1].map(|i| (i + n as i32 + shift) as f32 * rate);
            let call = call(n, shift, rate);
            let check = kernel.check_blocking(&call, Default::default()).unwrap();
            assert!(check.is_clean(), "{}", check.render(false));
            for got in [run::<f32>(&kernel, &call), check.outputs[0].read_blocking().unwrap()] {
                let same = got.iter().zip(want).all(|(got, want)| *got == want || want.is_nan());
                assert!(same, "{got:?}, not {want:?}");
            }
        }
        let text = |n| kernel.wgsl(&call(n, 0, 1.0)).unwrap();
        assert_eq!(text(1), text(2));
        let still = call(1, 0, 1.0).value("n", 2u32);
        let error = kernel.run(&still).unwrap_err();
        assert!(error.to_string().contains("a value has it already"), "{error}");
    }
    for adapter in adapters() {
        let context = &adapter.context;
        let body = "x[global_id.x] = x[global_id.x] * 31u + by * row;";
        let kernel = Kernel::new("hash").outputs(["x"]).source(body);
        const ROWS: usize = 30;
        let x = Tensor::zeros(context, DType::U32, &[ROWS, 64]).unwrap();
        // There are more values than are kept, in several uniform buffers, in encoders that are
        // submitted in reverse order.
        let steps = 1..170u32;
        let mut encoders = Vec::new();
        for step in steps.clone() {
            let mut encoder = context.device().unwrap().create_command_encoder(&Default::default());
            {
                let mut pass = encoder.begin_compute_pass(&Default::default());
                for row in 0..ROWS {
                    let cut = x.slice(&[row..row + 1, 0..64]).unwrap();
                    let call = Call::new(context).inout(&cut).grid([64, 1, 1]);
                    let call = call.value("by", step).value("row", row as u32);
                    kernel.record_one(&mut pass, &call).unwrap();
                }
            }
            encoders.push(encoder.finish());
        }
        context.queue().unwrap().submit(encoders.into_iter().rev());
        let hash = |row: u32| {
            steps.clone().rev().fold(0u32, |x, by| x.wrapping_mul(31).wrapping_add(by * row))
        };
        let want = (0..ROWS as u32).flat_map(|row| [hash(row); 64]);
        assert!(x.read_blocking::<u32>().unwrap().into_iter().eq(want), "{}", adapter.name());
    }
}

/// A kernel without inputs compiles.
#[test]
fn no_inputs() {
    for context in contexts() {
        let kernel = Kernel::new("one").inputs([]).outputs(["out"]).source("out[0] = 1u;");
        let call = Call::new(&context).output(DType::U32, &[1]).grid([1, 1, 1]);
        assert_eq!(run::<u32>(&kernel, &call), [1]);
    }
}
