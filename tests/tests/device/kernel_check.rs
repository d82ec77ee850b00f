//! Custom kernels under the sanitizer, from every kind of context. Mistakes are found and placed in
//! the user's text. Right kernels are clean, and give the outputs of a run.

use half::bf16;
use tilewise::sanitizer::{Kind, Options};
use tilewise::{Call, Context, DType, Edge, Kernel, Tensor};
use tilewise_tests::contexts;

fn kernel(body: &str) -> Kernel {
    Kernel::new("mine").inputs(["a"]).outputs(["out"]).source(body)
}

fn call(context: &Context, n: usize) -> Call {
    let data: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let a = Tensor::upload(context, &data, &[n]).unwrap();
    Call::new(context)
        .input(&a)
        .output(DType::F32, &[n])
        .grid([n as u32, 1, 1])
        .workgroup([32, 1, 1])
}

/// The kinds of findings, without repetition. The report must name a place in the body.
#[track_caller]
fn found(kernel: &Kernel, call: &Call) -> Vec<Kind> {
    let check =
        kernel.check_blocking(call, Default::default()).unwrap_or_else(|error| panic!("{error}"));
    let text = check.render(false);
    assert_eq!(check.is_clean(), text.is_empty(), "{text}");
    let mut kinds: Vec<_> = check.report.findings.iter().map(|finding| finding.kind).collect();
    // A finding about an element that was never written has no place.
    if kinds.iter().any(|&kind| kind != Kind::NeverWritten) {
        assert!(text.contains("mine (body):"), "{text}");
    }
    kinds.sort();
    kinds.dedup();
    kinds
}

#[test]
fn findings() {
    const REVERSE: &str = "var<workgroup> t: array<f32, 32>;
        let i = local_id.x;
        t[i] = a[global_id.x];
        BARRIER
        out[global_id.x] = t[31u - i];";
    for context in contexts() {
        let whole = call(&context, 64).edge(Edge::Whole);
        let clean: &[Kind] = &[];
        assert_eq!(
            found(&kernel(&REVERSE.replace("BARRIER", "workgroupBarrier();")), &whole),
            clean
        );
        assert_eq!(found(&kernel(&REVERSE.replace("BARRIER", "")), &whole), [Kind::Race]);

        let call = call(&context, 40);
        let copy = kernel("out[global_id.x] = a[global_id.x];");
        assert_eq!(found(&copy, &call), clean);
        assert_eq!(found(&copy, &call.clone().edge(Edge::Whole)), [Kind::OutOfBounds]);
        assert_eq!(
            found(&kernel("out[global_id.x] = a[global_id.x + 1u];"), &call),
            [Kind::OutOfBounds]
        );
        let beyond = kernel("out_store(global_id.x, a_load(global_id.x + 1u));");
        assert_eq!(found(&beyond, &call), [Kind::OutOfBounds]);
        let half = "if global_id.x % 2u == 0u { out[global_id.x] = a[global_id.x]; }";
        assert_eq!(found(&kernel(half), &call), [Kind::NeverWritten]);
        assert_eq!(found(&kernel(half), &call.clone().init_value(f32::NAN)), clean);
        let add = "out[global_id.x] += a[global_id.x];";
        assert_eq!(found(&kernel(add), &call), [Kind::Uninitialised]);
        assert_eq!(found(&kernel(add), &call.clone().init_value(1.0)), clean);
        assert_eq!(
            found(
                &kernel("out[global_id.x] = f32(global_id.x / a_shape[0] / (a_shape[0] - 40u));"),
                &call
            ),
            [Kind::DivisionByZero]
        );
    }
}

/// Elements outside a strided view cannot be reached, although the buffer goes on.
#[test]
fn views_are_what_is_declared() {
    for context in contexts() {
        let data: Vec<f32> = (0..48).map(|i| i as f32).collect();
        let all = Tensor::upload(&context, &data, &[6, 8]).unwrap();
        let view = all.slice(&[1..5, 2..5]).unwrap();
        let call = Call::new(&context)
            .input(&view)
            .output(DType::F32, &[4, 3])
            .grid([3, 4, 1])
            .workgroup([4, 4, 1]);
        let body = "out[global_id.y * 3u + global_id.x] = a[(global_id.y) * a_strides[0] + \
                    global_id.x + STEP];";
        let kernel = kernel(body).ensure_contiguous(false);
        let clean = kernel
            .check_blocking(&call.clone().constant("STEP", 0u32), Default::default())
            .unwrap();
        assert!(clean.is_clean(), "{}", clean.render(false));
        assert_eq!(
            clean.outputs[0].read_blocking::<f32>().unwrap(),
            view.read_blocking::<f32>().unwrap()
        );
        assert_eq!(clean.outputs[0].shape(), [4, 3]);
        assert_eq!(found(&kernel, &call.constant("STEP", 1u32)), [Kind::OutOfBounds]);
        // A row-major copy of the view is an array without gaps.
        let packed = Call::new(&context).input(&view).output(DType::F32, &[12]).grid([12, 1, 1]);
        let kernel = Kernel::new("mine")
            .inputs(["a"])
            .outputs(["out"])
            .source("out[global_id.x] = a[global_id.x];");
        assert_eq!(found(&kernel, &packed), []);
    }
}

/// Checking gives the outputs that running gives, in every type, and it counts.
#[test]
fn outputs_and_counters() {
    for context in contexts() {
        let call = call(&context, 40);
        let kernel =
            kernel("let x = a[global_id.x]; out[global_id.x] = fma(x, 0.1, sqrt(x + 2.0)) * x;");
        let mut traced = Options::default();
        traced.trace = true;
        let check = kernel.check_blocking(&call, traced).unwrap();
        let (checked, run) = (&check.outputs[0], &kernel.run(&call).unwrap()[0]);
        let (checked, run) =
            (checked.read_blocking::<f32>().unwrap(), run.read_blocking::<f32>().unwrap());
        for (checked, run) in checked.iter().zip(&run) {
            assert!((checked - run).abs() <= 1e-5 * run.abs(), "{checked} and {run}");
        }
        let counters = &check.report.counters;
        assert_eq!((counters.global_reads.total, counters.global_reads.max), (40, 1));
        assert_eq!((counters.global_writes.total, counters.global_writes.max), (40, 1));
        assert_eq!(
            check
                .report
                .trace
                .iter()
                .filter(|access| access.write && access.variable == "out")
                .count(),
            40
        );

        // Three elements of bf16 take two words.
        let data = [1.0f32, 2.0, 3.0].map(bf16::from_f32);
        let a = Tensor::upload(&context, &data, &[3]).unwrap();
        let call = Call::new(&context).input(&a).output(DType::BF16, &[3]).grid([2, 1, 1]);
        let kernel = Kernel::new("mine")
            .inputs(["a"])
            .outputs(["out"])
            .source("out[global_id.x] = a[global_id.x];");
        let check = kernel.check_blocking(&call, Default::default()).unwrap();
        assert!(check.is_clean(), "{}", check.render(false));
        assert_eq!(check.outputs[0].read_blocking::<bf16>().unwrap(), data);
    }
}

/// Half precision can be checked without a device that has it.
#[test]
fn half_precision() {
    for context in contexts() {
        let kernel = kernel("out[global_id.x] = f16(a[global_id.x]) * 2.0h;");
        let a = Tensor::upload(&context, &[1.0f32, 2.5, -3.0], &[3]).unwrap();
        let call = Call::new(&context).input(&a).output(DType::F16, &[3]).grid([3, 1, 1]);
        let check = kernel.check_blocking(&call, Default::default()).unwrap();
        assert!(check.is_clean(), "{}", check.render(false));
        assert_eq!(check.outputs[0].read_f32_blocking().unwrap(), [2.0, 5.0, -6.0]);
    }
}

#[test]
fn nothing_to_check() {
    for context in contexts() {
        let kernel = kernel("out[global_id.x] = a[0];");
        let call = call(&context, 1).init_value(2.0).grid([0, 1, 1]);
        let check = kernel.check_blocking(&call, Default::default()).unwrap();
        assert!(check.is_clean());
        assert_eq!(check.outputs[0].read_blocking::<f32>().unwrap(), [2.0]);

        // An output that is not filled and has elements must be written.
        let empty = self::call(&context, 3)
            .output(DType::F32, &[0])
            .output(DType::F32, &[1])
            .grid([0, 1, 1]);
        let kernel = kernel
            .outputs(["out", "none", "more"])
            .source("out[0] = a[0]; none[0] = a[0]; more[0] = a[0];");
        let check = kernel.check_blocking(&empty, Default::default()).unwrap();
        let found: Vec<_> =
            check.report.findings.iter().map(|f| (f.kind, f.variable.as_deref())).collect();
        assert_eq!(found, [(Kind::NeverWritten, Some("out")), (Kind::NeverWritten, Some("more"))]);
        assert!(check.render(false).contains("the output `more` is never written"));
        kernel.run(&empty).unwrap();
        let mut unchecked = Options::default();
        unchecked.checks = false;
        assert!(kernel.check_blocking(&empty, unchecked).unwrap().is_clean());
    }
}

/// Findings about outputs name them, because their declarations are not text of the user's.
#[test]
fn what_is_never_written_points_nowhere() {
    for context in contexts() {
        for body in
            ["if global_id.x > 3u { out[global_id.x] = a[0]; }", "let p = &out; let x = a[0];"]
        {
            let check =
                kernel(body).check_blocking(&call(&context, 40), Default::default()).unwrap();
            let text = check.render(false);
            assert!(text.contains("`out`") && text.contains("never written"), "{text}");
            assert!(!text.contains("generated"), "{text}");
        }
    }
}

/// An output that is filled need not be written.
#[test]
fn outputs_that_are_only_filled() {
    for context in contexts() {
        let kernel = Kernel::new("mine")
            .inputs(["a"])
            .outputs(["unused", "out"])
            .source("out[global_id.x] = a[0] + 1.0;");
        let a = Tensor::upload(&context, &[1.0f32], &[1]).unwrap();
        let call = Call::new(&context)
            .input(&a)
            .output(DType::I32, &[3])
            .output(DType::F32, &[2])
            .grid([2, 1, 1]);
        let filled = call.clone().init_value(7.0);
        let check = kernel.check_blocking(&filled, Default::default()).unwrap();
        assert!(check.is_clean(), "{}", check.render(false));
        for outputs in [check.outputs, kernel.run(&filled).unwrap()] {
            assert_eq!(outputs[0].read_blocking::<i32>().unwrap(), [7, 7, 7]);
            assert_eq!(outputs[1].read_blocking::<f32>().unwrap(), [2.0, 2.0]);
        }
        // By now the text is compiled. It is run without the filling.
        let error = kernel.run(&call).unwrap_err();
        assert!(error.to_string().contains("nothing writes the output \"unused\""), "{error}");
    }
}
