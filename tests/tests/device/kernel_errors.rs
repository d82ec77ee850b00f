//! Custom kernels that cannot run. Each kind of mistake gives its own error, the same on every
//! device, with line and column of the user's own text or with the numbers. Mistakes never panic or
//! reach the driver.

mod outputs;
mod texts;

use tilewise::{Call, Context, DType, Edge, Error, Kernel, Tensor, wgpu};
use tilewise_tests::{adapters, contexts};

fn kernel(body: &str) -> Kernel {
    Kernel::new("mine").inputs(["a"]).outputs(["out"]).source(body)
}

fn call(context: &Context) -> Call {
    let a = Tensor::zeros(context, DType::F32, &[4]).unwrap();
    Call::new(context).input(&a).output(DType::F32, &[4]).grid([4, 1, 1])
}

const FINE: &str = "out[global_id.x] = a[global_id.x];";

/// Fails unless running and checking give the same error, of this kind and with all of these words.
#[track_caller]
fn refused(kernel: &Kernel, call: &Call, kind: fn(&Error) -> bool, words: &[&str]) {
    let error = kernel.run(call).expect_err("bad input must be refused");
    let text = error.to_string();
    assert!(kind(&error), "another kind of error than expected: {error:?}");
    let first = text.split("--> ").nth(1).unwrap_or_default();
    assert!(!first.starts_with("generated"), "points into what the user did not write: {text}");
    assert!(words.iter().all(|word| text.contains(word)), "{text:?} lacks one of {words:?}");
    assert_eq!(
        kernel.check_blocking(call, Default::default()).expect_err("nor can it be checked"),
        error
    );
}

macro_rules! kind {
    ($pattern:ident) => {
        |error: &Error| matches!(error, Error::$pattern { .. })
    };
}
use kind;

#[test]
fn names_and_numbers_of_tensors() {
    for context in contexts() {
        let call = call(&context);
        let named = |input: &str, output: &str| {
            Kernel::new("mine").inputs([input]).outputs([output]).source(FINE)
        };
        refused(&named("a b", "out"), &call, kind!(Misuse), &["\"a b\"", "identifier"]);
        refused(&named("while", "out"), &call, kind!(Misuse), &["\"while\"", "keyword"]);
        refused(&named("array", "out"), &call, kind!(Misuse), &["\"array\""]);
        refused(&named("global_id", "out"), &call, kind!(Misuse), &["\"global_id\""]);
        refused(&named("a", "a"), &call, kind!(Misuse), &["\"a\" of an output", "an input has it"]);
        refused(&named("a", "a_shape"), &call, kind!(Misuse), &["\"a_shape\""]);
        refused(&kernel(FINE), &call.clone().constant("out", 1u32), kind!(Misuse), &["\"out\""]);
        refused(
            &kernel(FINE),
            &call.clone().constant("N", 1u32).dtype("N", DType::F32),
            kind!(Misuse),
            &["\"N\""],
        );
        refused(&kernel(FINE).inputs(["a", "b"]), &call, kind!(Shape), &["\"b\"", "1"]);
        refused(&kernel(FINE).outputs(["out", "o2", "o3"]), &call, kind!(Shape), &["\"o3\"", "1"]);
        let none = Kernel::new("mine").inputs(["a"]).source("let x = a[0];");
        let a = Tensor::zeros(&context, DType::F32, &[1]).unwrap();
        refused(
            &none,
            &Call::new(&context).input(&a).grid([1, 1, 1]),
            kind!(Shape),
            &["no outputs"],
        );
        refused(
            &kernel("let x = a[0];"),
            &call,
            kind!(Misuse),
            &["nothing writes the output \"out\""],
        );
        refused(&kernel("let x = a[0]; // out"), &call, kind!(Misuse), &["\"out\""]);
        for name in ["", "a\nb", "\u{1b}[31m"] {
            let kernel = Kernel::new(name).inputs(["a"]).outputs(["out"]).source(FINE);
            refused(&kernel, &call, kind!(Misuse), &[&format!("{name:?}"), "control characters"]);
        }
    }
}

#[test]
fn templates_and_types() {
    for context in contexts() {
        let call = call(&context);
        let t = kernel("out[0] = f32(T(1));");
        refused(&t, &call.clone().dtype("T", DType::BF16), kind!(Unsupported), &["T = bf16"]);
        for value in [f32::NAN, f32::INFINITY] {
            let words = ["N = ", &value.to_string()];
            refused(
                &kernel("out[0] = N;"),
                &call.clone().constant("N", value),
                kind!(Misuse),
                &words,
            );
        }
        let atomic = kernel("atomicAdd(&out[0], 1);").atomic_outputs(true);
        refused(&atomic, &call, kind!(Unsupported), &["\"out\" is f32", "i32 or u32"]);
        refused(
            &kernel(FINE),
            &call.clone().init_value(1.0).output(DType::F32, &[1]),
            kind!(Shape),
            &["2"],
        );
    }
}

/// Functions of a tensor are for floats, and for 16-bit types they are the only way.
#[test]
fn functions_that_do_not_fit() {
    for context in contexts() {
        let tensor = |dtype| Tensor::zeros(&context, dtype, &[4]).unwrap();
        let load = kernel("out[0] = f32(a_load(0u));");
        let call = |dtype| {
            Call::of(&tensor(dtype)).output(DType::F32, &[4]).grid([1, 1, 1]).init_value(0.0)
        };
        for dtype in [DType::I32, DType::U32] {
            refused(
                &load,
                &call(dtype),
                kind!(Unsupported),
                &["a is", dtype.name(), "a_load", "a[i]"],
            );
        }
        let both = kernel("out[0] = a_load2(0u).x + f32(arrayLength(&a));");
        both.run(&call(DType::F32)).unwrap();
        for dtype in [DType::F16, DType::BF16] {
            refused(&both, &call(dtype), kind!(Unsupported), &["a is", dtype.name(), "a_load2"]);
        }
        refused(
            &kernel("a_store(0u, 1.0); out[0] = 1.0;"),
            &call(DType::F32),
            kind!(Misuse),
            &["mine (body):1:1"],
        );
        let header = kernel(FINE).header("fn out_store(i: u32) {}");
        refused(
            &header,
            &call(DType::F32),
            kind!(Misuse),
            &["out_store", "a function of a tensor"],
        );
    }
}

/// Parts of a module that a kernel must not bring along.
#[test]
fn headers_that_reach_beyond() {
    for context in contexts() {
        let call = call(&context);
        let header = |text: &str| kernel(FINE).header(text);
        let binding = "@group(0) @binding(9) var<storage, read_write> other: array<f32>;";
        refused(&header(binding), &call, kind!(Misuse), &["other"]);
        refused(&header("override SIZE = 4u;"), &call, kind!(Misuse), &["SIZE", "override"]);
        let entry = "@compute @workgroup_size(1) fn second() {}";
        refused(&header(entry), &call, kind!(Misuse), &["second", "entry point"]);
    }
}

#[test]
fn grids_and_workgroups() {
    for context in contexts() {
        let (call, fine) = (call(&context), kernel(FINE));
        let a = Tensor::zeros(&context, DType::F32, &[1]).unwrap();
        refused(
            &fine,
            &Call::new(&context).input(&a).output(DType::F32, &[1]),
            kind!(Misuse),
            &["no grid", "Call::grid"],
        );
        refused(&fine, &call.clone().workgroup([4, 0, 1]), kind!(Misuse), &["[4, 0, 1]"]);
        let limits = context.device().map_or_else(wgpu::Limits::defaults, wgpu::Device::limits);
        let most = limits.max_compute_workgroups_per_dimension;
        for (axis, grid) in
            [("x", [most * 8 + 1, 1, 1]), ("y", [1, most + 1, 1]), ("z", [1, 1, u32::MAX])]
        {
            let needed = [grid[0].div_ceil(8), grid[1], grid[2]].into_iter().max().unwrap();
            let words = [&format!("along {axis}") as &str, &needed.to_string(), &most.to_string()];
            refused(
                &fine,
                &call.clone().grid(grid).workgroup([8, 1, 1]),
                kind!(DeviceLimit),
                &words,
            );
        }
        let x = limits.max_compute_workgroup_size_x;
        let words = [&(x + 1).to_string() as &str, &x.to_string(), "max_compute_workgroup_size_x"];
        refused(&fine, &call.clone().workgroup([x + 1, 1, 1]), kind!(DeviceLimit), &words);
        let z = limits.max_compute_workgroup_size_z;
        refused(
            &fine,
            &call.clone().workgroup([1, 1, z + 1]),
            kind!(DeviceLimit),
            &["max_compute_workgroup_size_z"],
        );
        let invocations = limits.max_compute_invocations_per_workgroup;
        let words =
            [&(invocations * 2).to_string() as &str, &invocations.to_string(), "invocations"];
        let workgroup = [limits.max_compute_workgroup_size_x.min(invocations), 2, 1];
        refused(&fine, &call.clone().workgroup(workgroup), kind!(DeviceLimit), &words);
    }
}

#[test]
fn memory_and_bindings() {
    for context in contexts() {
        let call = call(&context);
        let limits = context.device().map_or_else(wgpu::Limits::defaults, wgpu::Device::limits);
        let bytes = limits.max_compute_workgroup_storage_size;
        let tile = |bytes: u32| {
            kernel(&format!(
                "var<workgroup> t: array<f32, {}>; t[0] = a[0]; out[0] = t[0];",
                bytes / 4
            ))
        };
        tile(bytes).run(&call).unwrap();
        let words = [
            &(bytes + 16).to_string() as &str,
            &bytes.to_string(),
            "max_compute_workgroup_storage_size",
        ];
        refused(&tile(bytes + 4), &call, kind!(DeviceLimit), &words);

        let most = limits.max_storage_buffers_per_shader_stage;
        if most > 64 {
            // This text would have too many names. The device that has these limits is tested below
            // with fewer names.
            continue;
        }
        refused_bindings(&context, most);
    }
    for adapter in adapters() {
        refused_bindings(
            &adapter.with_limits(|limits| limits.max_storage_buffers_per_shader_stage = 8),
            8,
        );
    }
}

fn refused_bindings(context: &Context, most: u32) {
    let a = Tensor::zeros(context, DType::F32, &[4]).unwrap();
    let sum = |inputs: u32| {
        let names: Vec<_> = (0..inputs).map(|i| format!("a{i}")).collect();
        let terms: Vec<_> = names.iter().map(|name| format!("{name}[0]")).collect();
        let call = names.iter().fold(Call::new(context), |call, _| call.input(&a));
        let call = call.output(DType::F32, &[1]).grid([1, 1, 1]);
        (
            Kernel::new("mine")
                .inputs(names.iter().map(String::as_str))
                .outputs(["out"])
                .source(format!("out[0] = {};", terms.join(" + "))),
            call,
        )
    };
    let (kernel, call) = sum(most - 1);
    kernel.run(&call).unwrap();
    let (kernel, call) = sum(most);
    let words = [
        &(most + 1).to_string() as &str,
        &most.to_string(),
        "max_storage_buffers_per_shader_stage",
    ];
    refused(&kernel, &call, kind!(DeviceLimit), &words);
}

#[test]
fn outputs_beyond_the_device() {
    for adapter in adapters() {
        let context =
            adapter.with_limits(|limits| limits.max_storage_buffer_binding_size = 1 << 16);
        let a = Tensor::zeros(&context, DType::F32, &[1 << 15]).unwrap();
        let b = Tensor::zeros(&context, DType::F32, &[4]).unwrap();
        let large = Call::new(&context).input(&b).output(DType::F32, &[1 << 15]).grid([1, 1, 1]);
        let too_large = |call: &Call| match kernel(FINE).run(call) {
            Err(Error::DeviceLimit(text)) if text.contains("131072 bytes, the limit is 65536") => {}
            other => panic!("{other:?}"),
        };
        too_large(&large);
        too_large(&large.init_value(1.0));
        too_large(&Call::new(&context).input(&a).output(DType::F32, &[4]).grid([1, 1, 1]));
    }
    for context in contexts() {
        let shape = [usize::MAX, 2];
        let a = Tensor::zeros(&context, DType::F32, &[4]).unwrap();
        let call = Call::new(&context).input(&a).output(DType::F32, &shape).grid([1, 1, 1]);
        refused(&kernel(FINE), &call, kind!(Shape), &[&format!("{shape:?}")]);
    }
}

#[test]
fn other_contexts() {
    for adapter in adapters() {
        let (context, other) = (&adapter.context, adapter.another());
        let a = Tensor::zeros(&other, DType::F32, &[4]).unwrap();
        for context in [context.clone(), Context::cpu()] {
            let call = Call::new(&context).input(&a).output(DType::F32, &[4]).grid([4, 1, 1]);
            refused(
                &kernel(FINE),
                &call,
                kind!(Misuse),
                &["wrong context: ", "a and the rest of the call", "one Context"],
            );
        }
    }
}

/// An endless loop does not hang the CPU executor.
#[test]
fn endless_loops_on_the_cpu() {
    let context = Context::cpu();
    let error = kernel("loop { if out[0] > 1.0 { break; } }").run(&call(&context)).unwrap_err();
    let words = ["mine (body):1", "still running after 1000000", "Call::max_iterations"];
    let told = |text: &str| words.iter().all(|word| text.replace(',', "").contains(word));
    assert!(matches!(&error, Error::Misuse(text) if told(text)), "{error}");
}

/// A call sets the bound on loops, for running and for checking.
#[test]
fn long_loops_on_the_cpu() {
    let context = Context::cpu();
    let kernel = kernel(
        "var n = 0u; for (var i = 0u; i < 1500000u; i++) { n += 1u; } out[global_id.x] = f32(n);",
    );
    let call = call(&context).grid([1, 1, 1]).init_value(0.0).workgroup([1, 1, 1]);
    assert!(matches!(kernel.run(&call), Err(Error::Misuse(_))));
    assert!(!kernel.check_blocking(&call, Default::default()).unwrap().is_clean());
    let longer = call.clone().max_iterations(1_500_001);
    assert_eq!(kernel.run(&longer).unwrap()[0].read_blocking::<f32>().unwrap()[0], 1.5e6);
    let check = kernel.check_blocking(&longer, Default::default()).unwrap();
    assert!(check.is_clean(), "{}", check.render(false));
    let short = call.max_iterations(1000);
    let error = kernel.run(&short).unwrap_err();
    let told = "still running after 1000 iterations";
    assert!(
        matches!(&error, Error::Misuse(text) if text.replace(',', "").contains(told)),
        "{error}"
    );
    let check = kernel.check_blocking(&short, Default::default()).unwrap();
    assert!(check.render(false).replace(',', "").contains(told), "{}", check.render(false));
}

/// Sizes that the CPU cannot address are refused before memory is allocated.
#[test]
fn beyond_the_addresses_of_the_cpu() {
    let context = Context::cpu();
    for init in [None, Some(1.0)] {
        let call = call(&context).output(DType::F32, &[1 << 30]);
        let call = init.iter().fold(call, |call, &value: &f64| call.init_value(value));
        let kernel = Kernel::new("mine")
            .inputs(["a"])
            .outputs(["small", "out"])
            .source("small[0] = 1.0; out[0] = a[0];");
        match kernel.run(&call) {
            Err(error @ Error::DeviceLimit(_)) => {
                let told = error.to_string().contains("4294967296 bytes, the limit is 4294967292");
                assert!(told, "{error}");
                assert_eq!(
                    kernel.check_blocking(&call, Default::default()).expect_err("checked"),
                    error
                );
            }
            other => panic!("{:?}", other.map(|_| ())),
        }
    }
}

/// Long expressions fit the usual stack of a thread, although naga's parser is recursive.
#[test]
fn long_expressions_on_a_small_stack() {
    for context in contexts() {
        if context.backend_name() == "dx12" {
            // DXC has a limit here, and its words are the error.
            eprintln!("skipped: DXC takes 256 brackets within each other");
            continue;
        }
        let work = || {
            let body = format!("out[global_id.x] = a[0]{};", " + a[global_id.x]".repeat(6000));
            let a = Tensor::upload(&context, &[1.0f32, 2.0], &[2]).unwrap();
            let call = Call::new(&context).input(&a).output(DType::F32, &[2]).grid([2, 1, 1]);
            let outputs = kernel(&body).run(&call).unwrap();
            assert_eq!(
                outputs[0].read_blocking::<f32>().unwrap(),
                [6001.0, 12001.0],
                "{context:?}"
            );
            assert!(kernel(&body).msl(&call).unwrap().contains("kernel void main_"));
        };
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().stack_size(2 << 20).spawn_scoped(scope, work);
            thread.unwrap().join().unwrap();
        });
    }
}

/// Products refuse integers by the operand's name, and never read a tensor as another type.
#[test]
fn integers_in_products() {
    use tilewise::{Activation, Gemm, QuantFormat};
    for context in contexts() {
        let float = Tensor::zeros(&context, DType::F32, &[4, 4]).unwrap();
        for dtype in [DType::I32, DType::U32] {
            let integer = Tensor::zeros(&context, dtype, &[4, 4]).unwrap();
            let vector = Tensor::zeros(&context, dtype, &[4]).unwrap();
            let plain = Gemm::new(&float, &float).activation(Activation::None);
            for (product, operand) in [
                (Gemm::new(&integer, &float), "A is"),
                (Gemm::new(&float, &integer), "B is"),
                (plain.clone().bias(&vector), "bias is"),
                (plain.clone().residual(&integer), "residual is"),
                (plain.clone().out_dtype(dtype), "C is"),
            ] {
                for error in [product.run().unwrap_err(), product.explain().unwrap_err()] {
                    let words = [operand, dtype.name(), "f32, f16 and bf16"];
                    let text = error.to_string();
                    assert!(matches!(error, Error::Unsupported(_)), "{text}");
                    assert!(
                        words.iter().all(|word| text.contains(word)),
                        "{text:?} lacks one of {words:?}"
                    );
                }
            }
            let error = QuantFormat::affine(4, 64, dtype).unwrap_err();
            assert!(
                matches!(&error, Error::Unsupported(text) if text.contains(dtype.name())),
                "{error}"
            );
            assert!(matches!(integer.read_blocking::<f32>(), Err(Error::Misuse(_))));
        }
        let i = Tensor::upload(&context, &[-3i32, i32::MAX], &[2]).unwrap();
        assert_eq!(i.read_blocking::<i32>().unwrap(), [-3, i32::MAX]);
        assert_eq!(i.read_f32_blocking().unwrap(), [-3.0, 2147483648.0]);
    }
}
