//! Bad input: each kind gives its own error, with the numbers. Bad input never panics, reaches the
//! driver, or gives a result.

mod by_name;
mod driver;
mod formats;
mod lost;

use tilewise::wgpu::BufferUsages;
use tilewise::{
    Activation, Axis, Context, DType, Error, Gemm, GroupEnds, QuantFormat, Quantized,
    QuantizedTensor, Take, Tensor, wgpu,
};
use tilewise_core::plan::Forced;
use tilewise_core::quant::{quantize, quantize_to};
use tilewise_core::{Caps, Format, Grouping, Operand, Problem, plan};
use tilewise_shaders::LIBRARY;
use tilewise_tests::cases::devices;
use tilewise_tests::{adapters, contexts};

fn zeros(context: &Context, shape: &[usize]) -> Tensor {
    Tensor::zeros(context, DType::F32, shape).unwrap()
}

/// Fails unless `result` is this kind of error and its message has all of these words.
#[track_caller]
fn refused<T: std::fmt::Debug>(result: Result<T, Error>, kind: fn(&Error) -> bool, words: &[&str]) {
    let error = result.expect_err("bad input must be refused");
    let text = error.to_string();
    assert!(kind(&error), "another kind of error than expected: {error:?}");
    assert!(words.iter().all(|word| text.contains(word)), "{text:?} lacks one of {words:?}");
}

macro_rules! kind {
    ($pattern:ident) => {
        |error: &Error| matches!(error, Error::$pattern { .. })
    };
}
use kind;

const SHAPE: fn(&Error) -> bool = kind!(Shape);

#[test]
fn dimensions_that_do_not_fit() {
    for context in contexts() {
        let tensor = |shape: &[usize]| zeros(&context, shape);
        let [a, b] = [tensor(&[4, 5]), tensor(&[6, 7])];
        refused(context.matmul(&a, &b), SHAPE, &["4×5", "6×7"]);
        refused(context.matmul(&tensor(&[5]), &b), SHAPE, &["1×5", "6×7"]);
        refused(context.matmul(&tensor(&[]), &b), SHAPE, &["A", "[]"]);
        refused(context.matmul(&tensor(&[1; 5]), &b), SHAPE, &["[1, 1, 1, 1, 1]"]);
        refused(
            context.matmul(&tensor(&[2, 4, 6]), &tensor(&[3, 6, 7])),
            SHAPE,
            &["batch", "2", "3"],
        );
        let [a, b] = [tensor(&[4, 6]), tensor(&[6, 7])];
        let plain = Gemm::new(&a, &b);
        refused(plain.run_into(&tensor(&[4, 8])), SHAPE, &["C", "[4, 8]", "[4, 7]"]);
        refused(plain.run_into(&tensor(&[2, 4, 7])), SHAPE, &["C", "2"]);
        let bias = plain.clone().bias(&tensor(&[4])).run().unwrap_err();
        assert_eq!(bias.to_string(), "bias has shape [4], wanted [7]");
        refused(
            plain.clone().bias_along(&tensor(&[7]), Axis::M).run(),
            SHAPE,
            &["bias", "[7]", "[4]"],
        );
        refused(
            plain.clone().residual(&tensor(&[7, 4])).run(),
            SHAPE,
            &["residual", "[7, 4]", "[4, 7]"],
        );
        refused(plain.clone().add_to(&tensor(&[4, 6])).run(), SHAPE, &["[4, 6]", "[4, 7]"]);
        let gated = plain.clone().gated_by(&tensor(&[7, 4]), Activation::Silu);
        refused(gated.run(), SHAPE, &["gate", "[7, 4]", "[4, 7]"]);
        let twice = plain.clone().activation(Activation::Relu);
        refused(
            twice.gated_by(&tensor(&[4, 7]), Activation::Silu).run(),
            kind!(Misuse),
            &["relu", "silu"],
        );
        let pairs = |gemm: &Gemm| gemm.clone().glu(Activation::Silu);
        refused(pairs(&plain).run(), SHAPE, &["pair", "N = 7 is odd"]);
        let even = Gemm::new(&a, tensor(&[6, 8]));
        assert_eq!(pairs(&even).output_shape(), Ok(vec![4, 4]));
        refused(pairs(&even).run_into(&tensor(&[4, 8])), SHAPE, &["C", "[4, 8]", "[4, 4]"]);
        let old = pairs(&even).beta(0.5).run_into(&tensor(&[4, 4]));
        refused(old, kind!(Unsupported), &["beta", "pairs"]);
        let ends = GroupEnds::upload(&context, &[8]).unwrap();
        let turned = Gemm::ragged_n(tensor(&[1, 4, 6]), &tensor(&[6, 8]), &ends);
        refused(pairs(&turned).run(), kind!(Unsupported), &["glu()", "along N"]);
        let indices = Tensor::upload(&context, &[3u32, 0, 1], &[3]).unwrap();
        let rows = plain.clone().gather_rows(&indices);
        assert_eq!(rows.output_shape(), Ok(vec![3, 7]));
        refused(rows.run_into(&tensor(&[4, 7])), SHAPE, &["C", "[4, 7]", "[3, 7]"]);
        for (gemm, kind, words) in [
            (plain.clone().gather_rows(&a), "Unsupported", "row indices in f32"),
            (plain.clone().gather_rows(&indices.unsqueeze(0).unwrap()), "Shape", "[1, 3]"),
            (Gemm::new(&tensor(&[2, 4, 6]), &b).gather_rows(&indices), "Shape", "3 dimensions"),
            (Gemm::new(&tensor(&[6]), &b).gather_rows(&indices), "Shape", "1 dimensions"),
            (Gemm::new(&b.t(), a.t()).gather_rows(&indices), "Shape", "contiguous"),
        ] {
            let error = gemm.run().unwrap_err();
            let named = format!("{error:?}").starts_with(kind);
            assert!(named && error.to_string().contains(words), "{error:?}");
        }
        refused(
            plain.clone().out_dtype(DType::F16).run_into(&tensor(&[4, 7])),
            kind!(Misuse),
            &["f16", "f32"],
        );
        refused(
            plain.clone().add_to(&a).run_into(&tensor(&[4, 7])),
            kind!(Misuse),
            &["add_to() is for run"],
        );
        refused(plain.clone().beta(2.0).run(), kind!(Misuse), &["beta is 2"]);
        refused(
            Tensor::upload(&context, &[1.0f32; 5], &[2, 3]),
            SHAPE,
            &["[2, 3]", "6 elements", "20 bytes"],
        );
        refused(a.slice(&[0..5, 0..6]), SHAPE, &["0..5", "[4, 6]"]);
        refused(a.slice(std::slice::from_ref(&(0..4))), SHAPE, &["[4, 6]"]);
        refused(a.reshape(&[5, 5]), SHAPE, &["[4, 6]", "[5, 5]"]);
        refused(a.t().reshape(&[24]), SHAPE, &["strides: ", "[6, 4]"]);
        let kept = a.slice(&[0..4, 0..3]).unwrap();
        refused(kept.reshape(&[12]), SHAPE, &["strides: ", "[4, 3]", "[6, 1]"]);
        // Strides are lengths: there are no negative strides as in other languages.
        let back = 0usize.wrapping_sub(1);
        let words = ["from element 5 on", "strides cannot be negative"];
        refused(a.as_strided(&[4], &[back], 5), SHAPE, &words);
        refused(a.read_blocking::<half::f16>(), kind!(Misuse), &["f32", "f16"]);
    }
}

#[test]
fn numbers_that_overflow() {
    for context in contexts() {
        let huge = usize::MAX / 2;
        refused(Tensor::zeros(&context, DType::F32, &[huge, 3]), SHAPE, &["overflow: ", "shape"]);
        refused(
            Tensor::zeros(&context, DType::F32, &[usize::MAX / 3]),
            SHAPE,
            &["overflow", "f32"],
        );
    }
    // Also if the number of elements needs more than 64 bits.
    for context in contexts() {
        let huge = Problem::dense(DType::F32, 1 << 40, 1 << 40, 2);
        let words = ["M is 1099511627776"];
        refused(context.explain(&huge, None), SHAPE, &words);
        refused(context.warm_up_problems(&[huge]), SHAPE, &words);
        refused(context.tune_blocking(&huge), SHAPE, &words);
    }
    let caps =
        Caps { max_buffer_bytes: u64::MAX, max_binding_bytes: u64::MAX, ..Caps::webgpu_default() };
    let planned = |problem: &Problem| plan(problem, &caps, &LIBRARY, None);
    // M·K beyond 64 bits, and dimensions with more tiles than can be counted.
    let mut problem = Problem::dense(DType::F16, 4, 4, 4);
    problem.a = Operand { ld: u64::MAX / 2, len: u64::MAX, ..problem.a };
    refused(planned(&problem), SHAPE, &["overflow: ", "A", "2^58"]);
    refused(
        planned(&Problem::dense(DType::F32, (1 << 31) + 1, 0, 0)),
        SHAPE,
        &["overflow: ", "M", "2147483649"],
    );
    refused(
        planned(&Problem { batch: 1 << 40, ..Problem::dense(DType::F32, 1, 1, 1) }),
        SHAPE,
        &["overflow: ", "batch", "1099511627776"],
    );
}

#[test]
fn storage_that_is_too_small_or_too_large() {
    for adapter in adapters() {
        let context = &adapter.context;
        let (buffer, _) =
            zeros(context, &[100]).buffer().map(|(buffer, at)| (buffer.clone(), at)).unwrap();
        let len = (buffer.size() / 4).to_string();
        let view = |offset, shape: &[usize], strides: &[usize]| {
            Tensor::from_buffer_strided(context, buffer.clone(), offset, DType::F32, shape, strides)
        };
        refused(view(0, &[10, 10], &[11, 1]), SHAPE, &["buffer too small: ", "109", &len]);
        refused(view(8, &[10, 10], &[10, 1]), SHAPE, &["buffer too small: ", "102", &len]);
        refused(view(4000, &[1, 1], &[1, 1]), SHAPE, &["buffer too small: ", "1001", &len]);
        refused(view(0, &[3, 3], &[usize::MAX, 1]), SHAPE, &["overflow: ", "[3, 3]"]);
        refused(view(0, &[3, 3], &[3]), SHAPE, &["[3, 3]", "[3]"]);
        refused(view(2, &[3, 3], &[3, 1]), SHAPE, &["misaligned: ", "2", "f32"]);
        refused(
            Tensor::from_buffer(context, buffer.clone(), 3, DType::BF16, &[1]),
            SHAPE,
            &["misaligned: ", "3", "bf16"],
        );
        refused(
            GroupEnds::from_buffer(context, buffer.clone(), 0, 4000),
            SHAPE,
            &["buffer too small: ", "4000", &len],
        );
        refused(
            GroupEnds::from_buffer(context, buffer.clone(), 6, 1),
            SHAPE,
            &["misaligned: ", "byte offset 6", "u32"],
        );

        let limit = context.caps().max_buffer_bytes;
        let elements = (limit / 4 + 1) as usize;
        let needed = (elements * 4).to_string();
        refused(
            Tensor::zeros(context, DType::F32, &[elements]),
            kind!(DeviceLimit),
            &[&needed, &limit.to_string(), "max_buffer_size"],
        );

        // A device whose bindings are smaller than its buffers: bound operands of a product are
        // cut, but group ends are not.
        let small = adapter.with_limits(|limits| limits.max_storage_buffer_binding_size = 1 << 10);
        let [a, b] = [zeros(&small, &[4, 8]), zeros(&small, &[300, 8, 4])];
        let ends = GroupEnds::upload(&small, &[4; 300]).unwrap();
        let grouped = Gemm::grouped(&a, &b, &ends).run();
        refused(
            grouped,
            kind!(DeviceLimit),
            &["too large: ", "offsets", "1200", "1024", "max_storage_buffer_binding_size"],
        );
        let words = [1.0f32; 100];
        assert_eq!(
            Tensor::upload(&small, &words, &[100]).unwrap().read_blocking::<f32>().unwrap(),
            words
        );
    }
    let mut problem = Problem::dense(DType::F32, 4, 5, 6);
    problem.b.len -= 1;
    let short = plan(&problem, &Caps::webgpu_default(), &LIBRARY, None).unwrap_err();
    assert_eq!(short, Error::buffer_too_small("B", 30, 29));
}

#[test]
fn strides_that_no_kernel_follows() {
    for adapter in adapters() {
        let context = &adapter.context;
        let flat = zeros(context, &[4096]);
        let view = |shape: &[usize], strides: &[usize]| flat.as_strided(shape, strides, 0).unwrap();
        let b = zeros(context, &[6, 7]);
        refused(context.matmul(&view(&[4, 6], &[60, 2]), &b), SHAPE, &["strides: A", "[60, 2]"]);
        let a = zeros(context, &[4, 6]);
        let gemm = Gemm::new(&a, &b);
        refused(
            gemm.run_into(&view(&[4, 7], &[6, 1])),
            SHAPE,
            &["strides: ", "C", "6 apart", "7 columns"],
        );
        refused(gemm.run_into(&view(&[4, 7], &[1, 4])), SHAPE, &["strides: ", "C"]);
        let batch = zeros(context, &[3, 4, 6]);
        refused(
            Gemm::new(&batch, &b).run_into(&view(&[3, 4, 7], &[0, 7, 1])),
            SHAPE,
            &["strides: ", "C", "3 entries 0 apart"],
        );
    }
}

#[test]
fn outputs_that_alias() {
    for context in contexts() {
        let square = zeros(&context, &[8, 8]);
        let other = zeros(&context, &[8, 8]);
        let both = zeros(&context, &[16, 8]);
        let [top, bottom] = [0..8, 8..16].map(|rows| both.slice(&[rows, 0..8]).unwrap());
        refused(Gemm::new(&square, &other).run_into(&square), SHAPE, &["aliasing: ", "A"]);
        refused(Gemm::new(&other, &square).run_into(&square.t()), SHAPE, &["aliasing: ", "B"]);
        let middle = both.slice(&[7..15, 0..8]).unwrap();
        let texts = ["the output and A share bytes 224..256 of one buffer", "as run() does"];
        refused(Gemm::new(&top, &other).run_into(&middle), SHAPE, &texts);
        refused(Take::new(&top).run_into(&middle), SHAPE, &["the table share bytes"]);
        Gemm::new(&top, &other).run_into(&bottom).unwrap();
        refused(
            Gemm::new(&other, &other).residual(&square).run_into(&square),
            SHAPE,
            &["aliasing: ", "residual share bytes 0..256", "beta(1.0) adds"],
        );
        let bias = square.slice(&[0..1, 0..8]).unwrap().reshape(&[8]).unwrap();
        refused(
            Gemm::new(&other, &other).bias(&bias).run_into(&square),
            SHAPE,
            &["aliasing: ", "bias"],
        );
        // Inputs may share memory.
        Gemm::new(&other, &other).residual(&other).run_into(&square).unwrap();
    }
}

#[test]
fn group_offsets() {
    for context in contexts() {
        refused(
            GroupEnds::upload(&context, &[3, 7, 5]),
            SHAPE,
            &["group offsets: ", "number 2", "5", "7"],
        );
        let (a, b) = (zeros(&context, &[10, 6]), zeros(&context, &[2, 6, 7]));
        let ends = |ends: &[u32]| GroupEnds::upload(&context, ends).unwrap();
        refused(
            Gemm::grouped(&a, &b, &ends(&[3, 11])).run(),
            SHAPE,
            &["group offsets: ", "11", "10"],
        );
        refused(Gemm::grouped(&a, &b, &ends(&[3, 5, 8, 10])).run(), SHAPE, &["4", "2"]);
        // Rows of A are rows of groups, and no dimensions are flattened.
        for shape in [&[2, 10, 6][..], &[1, 10, 6], &[1, 1, 10, 6]] {
            let gemm = Gemm::grouped(&zeros(&context, shape), &b, &ends(&[3, 5]));
            let words = ["[M,K]", "2 groups", &format!("{shape:?}")];
            refused(gemm.run(), SHAPE, &words);
        }
    }
    let problem = Problem {
        batch: 2,
        grouping: Grouping::RaggedM { groups: 2, first: 0, offset: 0, expected: None },
        ..Problem::dense(DType::F32, 4, 4, 4)
    };
    refused(plan(&problem, &Caps::webgpu_default(), &LIBRARY, None), SHAPE, &["batch", "2"]);
}

#[test]
fn contexts_that_differ() {
    let cpu = Context::cpu();
    let here = zeros(&cpu, &[4, 4]);
    // The message has one name if both contexts have it, else both names.
    let both = ["B and the rest of the call", "both on CPU executor (cpu): make all"];
    refused(cpu.matmul(&here, &zeros(&Context::cpu(), &[4, 4])), kind!(Misuse), &both);
    for adapter in adapters() {
        let there = zeros(&adapter.context, &[4, 4]);
        refused(
            cpu.matmul(&here, &there),
            kind!(Misuse),
            &["wrong context: ", "B", adapter.name(), "and on CPU"],
        );
        refused(adapter.context.matmul(&here, &there), kind!(Misuse), &["wrong context: ", "A"]);
        refused(Gemm::new(&there, &there).run_into(&here), kind!(Misuse), &["wrong context: C"]);
        refused(
            Gemm::new(&there, &there).bias(&zeros(&cpu, &[4])).run(),
            kind!(Misuse),
            &["wrong context: ", "bias"],
        );
        refused(
            Gemm::new(&there, &there).residual(&here).run(),
            kind!(Misuse),
            &["wrong context: ", "residual"],
        );
        refused(
            Gemm::new(&there, &there).add_to(&here).run(),
            kind!(Misuse),
            &["wrong context: C"],
        );
        let (buffer, _) = there.buffer().unwrap();
        refused(
            Tensor::from_buffer(&cpu, buffer.clone(), 0, DType::F32, &[1]),
            kind!(Misuse),
            &["wrong context: ", "CPU"],
        );
        let mut encoder =
            adapter.context.device().unwrap().create_command_encoder(&Default::default());
        refused(
            Gemm::new(&here, &here).record(&mut encoder, &zeros(&cpu, &[4, 4])),
            kind!(Misuse),
            &["wrong context: ", "GPU"],
        );
    }
    refused(
        tilewise_tests::adapters::open("no such adapter"),
        kind!(Device),
        &["no adapter: ", "no such adapter", "cpu"],
    );
}

#[test]
fn buffers_without_the_usages() {
    for adapter in adapters() {
        let device = adapter.context.device().unwrap();
        let buffer = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 64,
                usage,
                mapped_at_creation: false,
            })
        };
        let view = |buffer| Tensor::from_buffer(&adapter.context, buffer, 0, DType::F32, &[4, 4]);
        refused(view(buffer(BufferUsages::COPY_SRC)), kind!(Misuse), &["STORAGE"]);
        let unreadable = view(buffer(BufferUsages::STORAGE)).unwrap();
        refused(unreadable.read_blocking::<f32>(), kind!(Misuse), &["COPY_SRC"]);
        refused(
            GroupEnds::from_buffer(&adapter.context, buffer(BufferUsages::COPY_DST), 0, 1),
            kind!(Misuse),
            &["STORAGE"],
        );
    }
}
