//! Loads and stores of f32, f16 and bf16 by functions: one body for all types, on every device.

use super::outputs::run_and_check;
use super::*;
use std::ops::Range;

/// Every context; and every adapter without features, which therefore has no f16 in shaders.
fn all() -> Vec<Context> {
    let plain = adapters().iter().map(|adapter| adapter.with_limits(|_| ()));
    contexts().into_iter().chain(plain).collect()
}

const WIDTHS: [(usize, &str); 3] = [(1, ""), (2, "2"), (4, "4")];

fn same(got: f32, want: f32) -> bool {
    got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan()
}

/// All 65,536 patterns of both types, widened.
#[test]
fn every_half_is_widened() {
    for context in all() {
        let bits: Vec<u16> = (0..=u16::MAX).collect();
        for (dtype, widen) in [
            (DType::F16, (|bits| f16::from_bits(bits).to_f32()) as fn(u16) -> f32),
            (DType::BF16, |bits| bf16::from_bits(bits).to_f32()),
        ] {
            let bytes: &[u8] = bytemuck::cast_slice(&bits);
            let a = Tensor::from_bytes(&context, dtype, bytes, &[bits.len()]).unwrap();
            for (width, suffix) in WIDTHS {
                // The results are read as bits, which no device flushes.
                let body = format!(
                    "let x = a_load{suffix}(global_id.x * W);
                     for (var j = 0u; j < W; j++) {{ out[global_id.x * W + j] = {}; }}",
                    if width == 1 { "bitcast<u32>(x)" } else { "bitcast<u32>(x[j])" }
                );
                let call =
                    Call::of(&a).output(DType::U32, &[bits.len()]).constant("W", width as u32);
                let got =
                    run::<u32>(&from_a(&body), &call.grid([(bits.len() / width) as u32, 1, 1]));
                for (&bits, got) in bits.iter().zip(got) {
                    let (got, want) = (f32::from_bits(got), widen(bits));
                    assert!(
                        same(got, want),
                        "{dtype} {bits:#x}: {got:e}, not {want:e}: {context:?}"
                    );
                }
            }
        }
    }
}

/// Values of f32 are narrowed: every upper half, with ties of both types and the numbers just below
/// them.
#[test]
fn floats_are_narrowed_to_nearest_even() {
    let low = [0, 0xfff, 0x1000, 0x1001, 0x3000, 0x7fff, 0x8000, 0x8001];
    let grid: Vec<u32> = (0..1 << 16).flat_map(|high| low.map(|low| high << 16 | low)).collect();
    for context in all() {
        let a = Tensor::upload(&context, &grid, &[grid.len()]).unwrap();
        for (dtype, narrow, is_nan) in [
            (
                DType::F16,
                (|x| f16::from_f32(x).to_bits()) as fn(f32) -> u16,
                (|bits| f16::from_bits(bits).is_nan()) as fn(u16) -> bool,
            ),
            (DType::BF16, |x| bf16::from_f32(x).to_bits(), |bits| bf16::from_bits(bits).is_nan()),
        ] {
            for (width, suffix) in WIDTHS {
                // Narrowing one at a time is slow on the CPU, so it has fewer values.
                let n = if width == 1 { grid.len() / 8 } else { grid.len() };
                let element = |j| format!("bitcast<f32>(a[(i + {j}u) * STEP])");
                let elements: Vec<_> = (0..width).map(element).collect();
                let vector = match width {
                    1 => elements[0].clone(),
                    _ => format!("vec{width}<f32>({})", elements.join(", ")),
                };
                let body = format!("let i = global_id.x * W; out_store{suffix}(i, {vector});");
                let step = grid.len() / n;
                let call = Call::of(&a).output(dtype, &[n]).constant("STEP", step as u32);
                let call = call.constant("W", width as u32).grid([(n / width) as u32, 1, 1]);
                let out = from_a(&body).run_one(&call).unwrap();
                let out = out.read_bytes_blocking().unwrap();
                let got = out.chunks(2).map(|half| u16::from_le_bytes([half[0], half[1]]));
                for (&bits, got) in grid.iter().step_by(step).zip(got) {
                    let want = narrow(f32::from_bits(bits));
                    let same = got == want || is_nan(got) && is_nan(want);
                    assert!(same, "{dtype} of {bits:#x}: {got:#x}, not {want:#x}: {context:?}");
                }
            }
        }
    }
}

/// One body for three types. It runs through views that begin at odd halves, and in the caller's
/// tensors, beside which nothing changes. Reports are clean.
#[test]
fn one_body_for_all_types() {
    let ranges = [(0, 20), (1, 19), (3, 10), (5, 6), (64, 129), (65, 128), (7, 7)];
    for context in all() {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let data: Vec<f32> = (0..130).map(|i| (i % 40) as f32 - 8.0).collect();
            let upload = |data: &[f32]| {
                let bytes: Vec<u8> = match dtype {
                    DType::F32 => bytemuck::cast_slice(data).to_vec(),
                    DType::F16 => {
                        data.iter().flat_map(|&x| f16::from_f32(x).to_le_bytes()).collect()
                    }
                    _ => data.iter().flat_map(|&x| bf16::from_f32(x).to_le_bytes()).collect(),
                };
                Tensor::from_bytes(&context, dtype, &bytes, &[data.len()]).unwrap()
            };
            for (start, end) in ranges {
                let n = end - start;
                for (width, suffix) in WIDTHS {
                    let (a, out, more) = (upload(&data), upload(&data), upload(&data));
                    let range = [Range { start, end }];
                    let cut = |tensor: &Tensor| tensor.slice(&range).unwrap();
                    // The last elements are stored one by one if vectors do not fit.
                    let body = format!(
                        "let i = global_id.x * W;
                         if i + W <= a_shape[0] {{
                             out_store{suffix}(i, 2.0 * a_load{suffix}(i) + 1.0);
                             more_store{suffix}(i, more_load{suffix}(i) - 64.0);
                         }} else {{ for (var j = i; j < a_shape[0]; j++) {{
                             out_store(j, 2.0 * a_load(j) + 1.0);
                             more_store(j, more_load(j) - 64.0);
                         }} }}"
                    );
                    let kernel =
                        Kernel::new("all").inputs(["a"]).outputs(["out", "more"]).source(body);
                    let grid = [n.div_ceil(width) as u32, 1, 1];
                    let call = Call::of(&cut(&a)).output_into(&cut(&out)).inout(&cut(&more));
                    let call = call.constant("W", width as u32).grid(grid);
                    run_and_check(&kernel, &call, &[&cut(&out), &cut(&more)]);
                    let what = format!("{dtype} {start}..{end} by {width} on {context:?}");
                    let inside = |i: usize| (start..end).contains(&i);
                    let want = |change: fn(f32) -> f32| {
                        let changed = data.iter().enumerate();
                        changed.map(move |(i, &x)| if inside(i) { change(x) } else { x })
                    };
                    let read = |tensor: &Tensor| tensor.read_f32_blocking().unwrap().into_iter();
                    assert!(read(&out).eq(want(|x| 2.0 * x + 1.0)), "{what}");
                    assert!(read(&more).eq(want(|x| x - 64.0)), "{what}");
                    assert!(read(&a).eq(data.iter().copied()), "{what}");
                }
            }
        }
    }
}

/// Tensors may have names that variables of the functions could have, and the text is valid for
/// Metal.
#[test]
fn names_of_all_kinds() {
    for context in contexts() {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let ones = Tensor::zeros(&context, dtype, &[4]).unwrap();
            let call = Call::of(&ones).input(&ones).output(dtype, &[4]).output(dtype, &[4]);
            let call = call.output(dtype, &[4]).grid([1, 1, 1]).value("own", 1.5f32);
            let kernel = Kernel::new("k").inputs(["x", "i"]).outputs(["at", "word", "put"]).source(
                "at_store4(0u, x_load4(0u) + own);
                 word_store2(0u, i_load2(0u) + 2.0 * own); word_store2(2u, at_load2(1u));
                 for (var j = 0u; j < 4u; j++) { put_store(j, word_load(j) + x_load(j)); }",
            );
            let check = kernel.check_blocking(&call, Default::default()).unwrap();
            assert!(check.is_clean(), "{}", check.render(false));
            for outputs in [check.outputs, kernel.run(&call).unwrap()] {
                let [at, word, put] = [0, 1, 2].map(|i| outputs[i].read_f32_blocking().unwrap());
                assert_eq!((at, &word), (vec![1.5; 4], &vec![3.0, 3.0, 1.5, 1.5]), "{context:?}");
                assert_eq!(put, word);
            }
            assert!(kernel.msl(&call).unwrap().contains("kernel void main_"));
        }
    }
}

/// Elements by strides, and by functions of the header; inputs in the buffer of an output.
#[test]
fn strides_and_headers() {
    for context in all() {
        for dtype in [DType::F32, DType::F16, DType::BF16] {
            let all = Tensor::zeros(&context, dtype, &[9, 7]).unwrap();
            let rows = Kernel::new("rows").outputs(["out"]).header(
                "fn put(row: u32, column: u32, stride: u32) {
                    out_store(row * stride + column, f32(10u * row + column));
                }",
            );
            let rows = rows.ensure_contiguous(false);
            let rows = rows.source("put(global_id.y, global_id.x, out_strides[0]);");
            let block = all.slice(&[1..4, 2..5]).unwrap();
            run_and_check(&rows, &Call::new(&context).output_into(&block).grid([3, 3, 1]), &[]);
            let copy = Kernel::new("copy").inputs(["a"]).outputs(["out"]);
            let copy = copy.source("let i = global_id.x; out_store(i, 0.5 * a_load(i));");
            let below = all.slice(&[6..9, 1..4]).unwrap();
            run_and_check(&copy, &Call::of(&block).output_into(&below).grid([9, 1, 1]), &[&below]);
            let got = all.read_f32_blocking().unwrap();
            let want = (0..63).map(|i| {
                let (row, column) = (i / 7, i % 7);
                let number = |row, column| (10 * row + column) as f32;
                match (row, column) {
                    (1..4, 2..5) => number(row - 1, column - 2),
                    (6..9, 1..4) => 0.5 * number(row - 6, column - 1),
                    _ => 0.0,
                }
            });
            assert!(got.iter().copied().eq(want), "{dtype} on {context:?}: {got:?}");
        }
    }
}

/// Functions find the beginning of rows in views of any number of dimensions, in the body and in
/// the header.
#[test]
fn rows_are_found() {
    for context in contexts() {
        let x = Tensor::zeros(&context, DType::I32, &[2, 3, 4, 5]).unwrap();
        let views = [
            Tensor::zeros(&context, DType::I32, &[]).unwrap(),
            x.slice(&[1..2, 1..2, 2..3, 1..4]).unwrap().reshape(&[3]).unwrap(),
            x.slice(&[1..2, 1..2, 0..4, 1..4]).unwrap().reshape(&[4, 3]).unwrap().t(),
            x.permute(&[2, 0, 3, 1]).unwrap(),
        ];
        for a in views {
            let count = a.elem_count() / a.shape().last().copied().unwrap_or(1);
            let call = Call::of(&a).output(DType::U32, &[2, count]);
            let kernel = Kernel::new("rows")
                .inputs(["a"])
                .outputs(["out"])
                .ensure_contiguous(false)
                .header("fn twice(i: u32) -> u32 { return 2u * a_row(i); }")
                .source("let i = global_id.x; out[i] = a_row(i); out[grid.x + i] = twice(i);");
            let call = call.grid([count as u32, 1, 1]);
            let got = kernel.run_one(&call).unwrap().read_blocking::<u32>().unwrap();
            let row = |i: usize| {
                let outer = a.shape().len().saturating_sub(1);
                let (mut rest, mut place) = (i, 0);
                for axis in (0..outer).rev() {
                    place += rest % a.shape()[axis] * a.strides()[axis];
                    rest /= a.shape()[axis];
                }
                place as u32
            };
            let want = (0..count).map(row).chain((0..count).map(|i| 2 * row(i)));
            assert!(got.iter().copied().eq(want), "{:?} on {context:?}: {got:?}", a.shape());
            let check = kernel.check_blocking(&call, Default::default()).unwrap();
            assert!(check.is_clean(), "{}", check.render(false));
        }
    }
}
