//! Views that cannot exist, views that cannot be outputs, and numbers like NaN. They give errors or
//! documented results on every adapter and on the CPU. After an error nothing is written.

use tilewise::moe::Router;
use tilewise::{Call, Context, DType, Error, Gemm, Kernel, Result, Take, Tensor, ops};
use tilewise_tests::contexts;

/// Writes to an output.
type Write<'a> = Box<dyn Fn(&Tensor) -> Result<()> + 'a>;

/// All calls that write to tensors of the caller's, by name, with type and shape of the output. `x`
/// is \[4, 6\] of f32, and `keys` \[24\] of u32.
fn writers<'a>(
    x: &'a Tensor,
    keys: &'a Tensor,
) -> Vec<(&'static str, DType, Vec<usize>, Write<'a>)> {
    let context = x.context();
    let ones = |shape: &[usize]| {
        let ones = vec![1.0f32; shape.iter().product()];
        Tensor::upload(context, &ones, shape).unwrap()
    };
    let places = |count: u32| {
        let all: Vec<u32> = (0..count).collect();
        Tensor::upload(context, &all, &[count as usize]).unwrap()
    };
    let (row, pairs) = (ones(&[6]), ones(&[4, 3]));
    let (four, all, kept) = (places(4), places(24), ones(&[4, 2]));
    let order = Tensor::zeros(context, DType::U32, &[4, 2]).unwrap();
    let (sorted, moved) = (places(24), places(24));
    let keyed = keys.reshape(&[12, 2]).unwrap();
    let slots = Tensor::zeros(context, DType::U32, &[3, 24]).unwrap();
    let kernel = Kernel::new("copy").inputs(["a"]).outputs(["out"]);
    let kernel = kernel.source("out[global_id.x] = a[global_id.x];");
    let two = Tensor::upload(context, &[0u32, 3, 1, 1, 2, 9, 3, 0], &[4, 2]).unwrap();
    let (named, shares) = (two.clone(), ones(&[4, 2]));
    let (square, weights) = (ones(&[6, 6]), ones(&[6, 6]));
    let (f, u) = (DType::F32, DType::U32);
    macro_rules! rows {
        ($($name:literal $dtype:ident $shape:expr, |$out:ident| $write:expr;)*) => {
            vec![$(($name, $dtype, $shape.to_vec(), Box::new(move |$out: &Tensor| $write) as _),)*]
        };
    }
    let (weight, bias, cos, sin) = (row.clone(), row.clone(), pairs.clone(), pairs);
    let (indices, table, chosen) = (four.clone(), four, order.clone());
    let ([r, s, normed, summed], [w, v]) =
        ([(); 4].map(|()| ones(&[4, 6])), [(); 2].map(|()| row.clone()));
    let (cosines, sines, each) = (cos.clone(), sin.clone(), row.clone());
    let counters = keys.narrow(0, 0, 4).unwrap();
    rows! {
        "softmax" f [4, 6], |out| ops::softmax(x).run_into(out);
        "attention" f [4, 6], |out| ops::attention(x, x, x).run_into(out);
        "exp" f [4, 6], |out| ops::exp(x).run_into(out);
        "add" f [4, 6], |out| ops::add(x, &row).run_into(out);
        "layer_norm" f [4, 6], |out| ops::layer_norm(x, &weight, &bias, 0.0).run_into(out);
        "add_rms_norm" f [4, 6], |out| ops::add_rms_norm(x, &r, &w, 0.0).run_into([out, &normed]);
        "norm of a sum" f [4, 6], |out| ops::add_rms_norm(x, &s, &v, 0.0).run_into([&summed, out]);
        "rope" f [4, 6], |out| ops::rope(x, &cos, &sin).run_into(out);
        "rope of norms" f [4, 6], |out| {
            ops::rope(x, &cosines, &sines).rms_norm(&each, 0.0).run_into(out)
        };
        "append" f [9, 6], |out| ops::append(x, 9, 2).run_into(out);
        "sum" f [6], |out| ops::sum(x, 0).run_into(out);
        "max" f [4], |out| ops::max(x, 1).run_into(out);
        "copy" f [4, 6], |out| ops::copy(x).run_into(out);
        "copy_from" f [4, 6], |out| out.copy_from(x);
        "top_k" f [4, 2], |out| ops::top_k(x, 2).run_into([out, &order]);
        "choose" f [4, 2], |out| Router::new(2).choose(x).run_into([out, &chosen]);
        "scatter" f [4, 6], |out| ops::scatter(x, &indices, 4).run_into(out);
        "combine" f [4, 6], |out| ops::combine(x, &two, &shares).run_into(out);
        "take_along" f [4, 2], |out| ops::take_along(x, &named).run_into(out);
        "gemm" f [4, 6], |out| Gemm::new(x, &square).run_into(out);
        "kernel" f [4, 6], |out| {
            kernel.run(&Call::of(x).output_into(out).grid([24, 1, 1])).map(drop)
        };
        "take" f [4, 6], |out| Take::new(x).rows(&table).run_into(out);
        "alpha" f [4, 6], |out| {
            Gemm::new(x, &weights).alpha_tensor(&kept.slice(&[0..1, 0..1])?).run_into(out)
        };
        "sample" u [4], |out| ops::sample(x, 1).at(&counters).run_into(out);
        "histogram" u [8], |out| ops::histogram(keys, 8).run_into(out);
        "exclusive_scan" u [24], |out| ops::exclusive_scan(keys).run_into(out);
        "group" u [9], |out| ops::group(&keyed, 8).run_into([out, &slots]);
        "sort" u [24], |out| ops::sort(keys).run_into([out, &sorted]);
        "sort_by_key" u [24], |out| ops::sort_by_key(keys, &all).run_into([out, &moved]);
    }
}

fn packed(shape: &[usize]) -> Vec<usize> {
    let tail = |axis: usize| shape[axis + 1..].iter().product();
    (0..shape.len()).map(tail).collect()
}

/// A tensor of which `x` or `keys` is a view; it has room behind them.
fn storage(context: &Context, dtype: DType) -> Tensor {
    let numbers: Vec<u32> = (0..64).map(|i| i % 7).collect();
    let words = Tensor::upload(context, &numbers, &[64]).unwrap();
    words.cast(dtype).unwrap()
}

/// Outputs in which two elements share a place: repeated along the last axis, and with rows that
/// overlap.
#[test]
fn no_output_may_have_two_elements_in_one_place() {
    for context in &contexts() {
        let x = storage(context, DType::F32).as_strided(&[4, 6], &[6, 1], 0).unwrap();
        let keys = storage(context, DType::U32).narrow(0, 0, 24).unwrap();
        for (name, dtype, shape, write) in writers(&x, &keys) {
            let all = storage(context, dtype);
            let before = all.read_bytes_blocking().unwrap();
            let mut repeated = packed(&shape);
            *repeated.last_mut().unwrap() = 0;
            let overlapping = vec![1; shape.len()];
            for strides in [repeated, overlapping].into_iter().filter(|own| *own != packed(&shape))
            {
                let out = all.as_strided(&shape, &strides, 0).unwrap();
                let error = write(&out).unwrap_err();
                // A take needs a contiguous output in any case.
                let told = error.to_string().starts_with("strides: ") || name == "take";
                assert!(told, "{name}, {strides:?}: {error:?}");
                assert_eq!(all.read_bytes_blocking().unwrap(), before, "{name}, {strides:?}");
            }
            write(&all.as_strided(&shape, &packed(&shape), 0).unwrap()).unwrap();
        }
    }
}

/// Outputs that begin one element after the operand.
#[test]
fn no_output_may_overlap_an_operand() {
    for context in &contexts() {
        let [floats, words] = [DType::F32, DType::U32].map(|dtype| storage(context, dtype));
        let x = floats.as_strided(&[4, 6], &[6, 1], 0).unwrap();
        let keys = words.narrow(0, 0, 24).unwrap();
        let read = || [&floats, &words].map(|all| all.read_bytes_blocking().unwrap());
        let before = read();
        for (name, dtype, shape, write) in writers(&x, &keys) {
            let all = if dtype == DType::F32 { &floats } else { &words };
            let error = write(&all.as_strided(&shape, &packed(&shape), 1).unwrap()).unwrap_err();
            let aliased = error.to_string().starts_with("aliasing: ");
            assert!(aliased || matches!(error, Error::Misuse(_)), "{name}: {error:?}");
            assert!(read() == before, "{name} writes");
        }
    }
}

/// Strides that are negative in two's complement or overflow, and ranges beyond the buffer.
#[test]
fn views_beyond_the_buffer_are_refused() {
    for context in &contexts() {
        let x = storage(context, DType::F32);
        let minus = |stride: usize| stride.wrapping_neg();
        let beyond = |error: &Error| {
            let words = ["buffer too small: ", "overflow: "];
            words.iter().any(|word| error.to_string().starts_with(word))
        };
        for (shape, strides, offset) in [
            (&[64][..], &[1][..], 1),
            (&[65], &[1], 0),
            (&[1], &[1], 64),
            (&[1], &[1], usize::MAX),
            (&[2], &[minus(1)], 63),
            (&[4, 6], &[minus(6), 1], 18),
            (&[3], &[usize::MAX / 2], 0),
            (&[usize::MAX], &[usize::MAX], 0),
            (&[1 << 33, 1 << 33], &[0, 0], 0),
            (&[1 << 40, 1 << 23], &[0, 1], 0),
        ] {
            let error = x.as_strided(shape, strides, offset).unwrap_err();
            assert!(beyond(&error), "{shape:?} {strides:?} {offset}: {error:?}");
            let (Some((buffer, _)), Some(at)) = (x.buffer(), (offset as u64).checked_mul(4)) else {
                continue;
            };
            let (buffer, dtype) = (buffer.clone(), DType::F32);
            let view = Tensor::from_buffer_strided(context, buffer, at, dtype, shape, strides);
            let error = view.unwrap_err();
            assert!(beyond(&error), "{shape:?} {strides:?} {offset}: {error:?}");
        }
        // One element with any stride, and no element, are fine.
        assert_eq!(x.as_strided(&[1], &[usize::MAX], 63).unwrap().elem_count(), 1);
        let none = x.as_strided(&[0, 9], &[usize::MAX; 2], usize::MAX).unwrap();
        assert!(none.read_f32_blocking().unwrap().is_empty());
        assert_eq!(ops::exp(&none).run().unwrap().shape(), [0, 9]);
    }
}

/// Special numbers and indices have documented results. NaN counts as the largest, and the first of
/// several is taken. Keys and indices beyond the end do not count.
#[test]
fn numbers_with_a_stated_result() {
    for context in &contexts() {
        let words = |all: &[u32]| Tensor::upload(context, all, &[all.len()]).unwrap();
        let read = |tensor: Tensor| tensor.read_blocking::<u32>().unwrap();
        let numbers = [1.0, f32::INFINITY, -f32::NAN, 3.0, f32::NAN, f32::NEG_INFINITY];
        for dtype in DType::FLOATS {
            let x = Tensor::upload(context, &numbers, &[1, 6]).unwrap().cast(dtype).unwrap();
            assert_eq!(read(ops::arg_max(&x, 1).run().unwrap()), [2], "{dtype} on {context:?}");
            let [values, indices] = ops::top_k(&x, 6).run().unwrap();
            assert_eq!(read(indices), [2, 4, 1, 3, 0, 5], "{dtype} on {context:?}");
            let values = values.read_f32_blocking().unwrap();
            assert!(values[..2].iter().all(|value| value.is_nan()), "{values:?}");
            assert_eq!(values[2..], [f32::INFINITY, 3.0, 1.0, f32::NEG_INFINITY]);
            let rows = x.t().rows(&words(&[3, 6, u32::MAX, 0])).unwrap();
            let rows = rows.read_f32_blocking().unwrap();
            assert!((rows[0], rows[3]) == (3.0, 1.0) && rows[1].is_nan() && rows[2].is_nan());
        }
        let keys = words(&[3, 4, 0, u32::MAX, 3]);
        assert_eq!(read(ops::histogram(&keys, 4).run().unwrap()), [1, 0, 0, 2]);
        // Only the two lowest bits of keys count.
        let [sorted, order] = ops::sort(&keys).bits(2).run().unwrap();
        assert_eq!((read(sorted), read(order)), (vec![4, 0, 3, u32::MAX, 3], vec![1, 2, 0, 3, 4]));
        let rows = ops::scatter(&words(&[7, 8, 9, 10, 11]), &keys, 4).run().unwrap();
        assert_eq!(read(rows), [9, 0, 0, 11]);
    }
}
