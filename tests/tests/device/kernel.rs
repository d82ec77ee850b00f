//! Custom kernels: the same results on every adapter and on the CPU executor.

mod functions;
mod outputs;
mod views;

use half::{bf16, f16};
use tilewise::{Call, Context, DType, Edge, Element, Error, Kernel, Tensor, wgpu};
use tilewise_tests::{adapters, contexts};

/// Whether kernels may use f16 on a context.
fn has_f16(context: &Context) -> bool {
    context.is_cpu() || context.caps().f16
}

/// Runs a kernel and reads its only output.
#[track_caller]
fn run<T: Element>(kernel: &Kernel, call: &Call) -> Vec<T> {
    kernel.run_one(call).unwrap_or_else(|error| panic!("{error}")).read_blocking().unwrap()
}

/// A kernel from `a` to `out`.
fn from_a(body: &str) -> Kernel {
    Kernel::new("test").inputs(["a"]).outputs(["out"]).source(body)
}

fn ramp(n: usize) -> Vec<f32> {
    (0..n).map(|i| i as f32).collect()
}

#[test]
fn headers_templates_and_types() {
    for context in contexts() {
        let kernel = from_a(
            "let i = global_id.x; if FLIP { out[i] = T(twice(f32(a[i])) * SCALE) - T(SHIFT) + \
             T(N); }",
        )
        .header("fn twice(x: f32) -> f32 { return x + x; }");
        let a = Tensor::upload(&context, &[1.0f32, -2.5, 3.0], &[3]).unwrap();
        let call = |dtype| {
            let call =
                Call::new(&context).input(&a).output(dtype, &[3]).grid([3, 1, 1]).dtype("T", dtype);
            call.constant("N", 7u32)
                .constant("SHIFT", i32::MIN / 2)
                .constant("SCALE", 1e-1f32)
                .constant("FLIP", true)
        };
        let shift = 1 << 30;
        assert_eq!(run::<i32>(&kernel, &call(DType::I32)), [shift + 7, shift + 7, shift + 7]);
        let small = |dtype| call(dtype).constant("UNUSED", 1u32);
        let floats = from_a("let i = global_id.x; out[i] = T(twice(f32(a[i])) * 0.5);")
            .header("fn twice(x: f32) -> f32 { return x + x; }");
        assert_eq!(run::<f32>(&floats, &small(DType::F32)), [1.0, -2.5, 3.0]);
        if has_f16(&context) {
            assert_eq!(
                run::<f16>(&floats, &small(DType::F16)),
                [1.0, -2.5, 3.0].map(f16::from_f32)
            );
        } else {
            let error = floats.run(&small(DType::F16)).unwrap_err();
            assert!(
                matches!(
                    &error,
                    Error::DeviceLimit(text)
                        if text.contains("out is f16") && text.contains("shader-f16")
                ),
                "{error}"
            );
        }
        let extremes = from_a("out[global_id.x] = select(LOW, HIGH, global_id.x == 1u);");
        let call = Call::new(&context).input(&a).output(DType::I32, &[2]).grid([2, 1, 1]);
        let call = call.constant("LOW", i32::MIN).constant("HIGH", i32::MAX);
        assert_eq!(run::<i32>(&extremes, &call), [i32::MIN, i32::MAX]);
    }
}

/// Directives in a header come first. Integers of both kinds are inputs and outputs.
#[test]
fn integers_and_directives() {
    for context in contexts() {
        let kernel = Kernel::new("mix").inputs(["i", "u"]).outputs(["difference", "sum"]).header(
            "// a comment\n\
             diagnostic(off, derivative_uniformity);\n\
             fn add(x: u32) -> u32 { return x + 1u; }",
        );
        let kernel = kernel.source(
            "let at = global_id.x;\ndifference[at] = i[at] - i32(u[at]);\nsum[at] = add(u[at]);",
        );
        let i = Tensor::upload(&context, &[-5i32, i32::MAX], &[2]).unwrap();
        let u = Tensor::upload(&context, &[3u32, 7], &[2]).unwrap();
        let call = Call::new(&context)
            .input(&i)
            .input(&u)
            .output(DType::I32, &[2])
            .output(DType::U32, &[2]);
        let outputs = kernel.run(&call.grid([2, 1, 1])).unwrap();
        assert_eq!(outputs[0].read_blocking::<i32>().unwrap(), [-8, i32::MAX - 7]);
        assert_eq!(outputs[1].read_blocking::<u32>().unwrap(), [4, 8]);
    }
}

/// Shapes, strides and numbers of dimensions are mentioned one at a time and together.
#[test]
fn what_derives_from_tensors() {
    for context in contexts() {
        let a = Tensor::upload(&context, &ramp(24), &[2, 3, 4]).unwrap().t();
        let body = "for (var d = 0u; d < a_ndim; d++) { out[2u * d] = a_shape[d]; \
             out[2u * d + 1u] = a_strides[d]; }
            out[6] = out_shape[0] * 100u + out_ndim * 10u + out_strides[0];";
        let call = |shape: &[usize]| {
            Call::new(&context).input(&a).output(DType::U32, shape).grid([1, 1, 1])
        };
        let kernel = from_a(body);
        assert_eq!(run::<u32>(&kernel, &call(&[7])), [2, 12, 4, 3, 3, 1, 711]);
        assert_eq!(
            run::<u32>(&kernel.ensure_contiguous(false), &call(&[7])),
            [2, 12, 4, 1, 3, 4, 711]
        );
        // If `a` itself is not mentioned, nothing is bound for it.
        assert_eq!(run::<u32>(&from_a("out[0] = a_shape[2];"), &call(&[])), [3]);

        let scalar = Tensor::upload(&context, &[5.0f32], &[]).unwrap();
        let kernel =
            from_a("out[0] = u32(a[0]) * 1000u + a_ndim * 100u + a_shape[0] * 10u + a_strides[0];");
        let call = Call::new(&context).input(&scalar).output(DType::U32, &[]).grid([1, 1, 1]);
        assert_eq!(run::<u32>(&kernel, &call), [5011]);
    }
}

/// Every built-in is compared with a formula.
#[test]
fn built_ins() {
    let terms = ["global_id", "local_id", "workgroup_id", "num_workgroups", "grid"];
    for context in contexts() {
        for (term, expected) in terms.into_iter().zip([
            |i: [u32; 3], _: [u32; 3]| i,
            |i: [u32; 3], _: [u32; 3]| [i[0] % 2, i[1] % 3, i[2] % 2],
            |i: [u32; 3], _: [u32; 3]| [i[0] / 2, i[1] / 3, i[2] / 2],
            |_: [u32; 3], grid: [u32; 3]| {
                [grid[0].div_ceil(2), grid[1].div_ceil(3), grid[2].div_ceil(2)]
            },
            |_: [u32; 3], grid: [u32; 3]| grid,
        ]) {
            let kernel = from_a(&format!(
                "let at = ((global_id.z * out_shape[1] + global_id.y) * out_shape[2] + \
                 global_id.x) * 3u;
                out[at] = {term}.x; out[at + 1u] = {term}.y; out[at + 2u] = {term}.z;"
            ));
            let grid = [3u32, 4, 5];
            let a = Tensor::zeros(&context, DType::F32, &[1]).unwrap();
            let call = Call::new(&context)
                .input(&a)
                .output(DType::U32, &[5, 4, 3, 3])
                .grid(grid)
                .workgroup([2, 3, 2]);
            let got = run::<u32>(&kernel, &call);
            let mut want = Vec::new();
            for (z, y, x) in
                (0..5).flat_map(|z| (0..4).flat_map(move |y| (0..3).map(move |x| (z, y, x))))
            {
                want.extend(expected([x, y, z], grid));
            }
            assert_eq!(got, want, "{term} on {context:?}");
        }
        let a = Tensor::zeros(&context, DType::F32, &[1]).unwrap();
        let kernel = from_a("out[global_id.x + 4u * global_id.y] = local_index;");
        let call = Call::new(&context)
            .input(&a)
            .output(DType::U32, &[2, 4])
            .grid([4, 2, 1])
            .workgroup([4, 2, 1]);
        assert_eq!(run::<u32>(&kernel, &call), [0, 1, 2, 3, 4, 5, 6, 7]);
    }
}

/// A grid that ends inside workgroups is clipped, or runs whole.
#[test]
fn edges() {
    for context in contexts() {
        let kernel = from_a("atomicAdd(&out[select(0u, 1u, any(global_id >= SIZE))], 1u);")
            .atomic_outputs(true);
        let kernel = kernel.header("const SIZE = vec3<u32>(5u, 3u, 2u);");
        let a = Tensor::zeros(&context, DType::F32, &[1]).unwrap();
        let call = Call::new(&context).input(&a).output(DType::U32, &[2]).init_value(0u32);
        let call = call.grid([5, 3, 2]).workgroup([4, 2, 2]);
        assert_eq!(run::<u32>(&kernel, &call), [30, 0]);
        assert_eq!(run::<u32>(&kernel, &call.clone().edge(Edge::Whole)), [30, 64 - 30]);
        let guarded =
            from_a("if all(global_id < grid) { atomicAdd(&out[0], 1); }").atomic_outputs(true);
        let call =
            Call::new(&context).input(&a).output(DType::I32, &[1]).init_value(-10).grid([5, 3, 2]);
        assert_eq!(run::<i32>(&guarded, &call.edge(Edge::Whole)), [20]);
    }
}

#[test]
fn initial_values() {
    for context in contexts() {
        let kernel = Kernel::new("one").outputs(["out"]).source("out[0] = out[0];");
        let call = |dtype| Call::new(&context).output(dtype, &[3]).grid([1, 1, 1]);
        assert_eq!(run::<f32>(&kernel, &call(DType::F32).init_value(2.5f32)), [2.5; 3]);
        assert_eq!(run::<u32>(&kernel, &call(DType::U32).init_value(u32::MAX)), [u32::MAX; 3]);
        assert_eq!(run::<i32>(&kernel, &call(DType::I32).init_value(-7)), [-7; 3]);
        assert_eq!(
            run::<bf16>(&kernel, &call(DType::BF16).init_value(1.5f32)),
            [bf16::from_f32(1.5); 3]
        );
        assert!(run::<f32>(&kernel, &call(DType::F32).init_value(f32::NAN))[2].is_nan());
        if has_f16(&context) {
            assert_eq!(
                run::<f16>(&kernel, &call(DType::F16).init_value(f32::INFINITY)),
                [f16::INFINITY; 3]
            );
        }
        for (dtype, value) in [
            (DType::I32, 0.5),
            (DType::U32, -1.0),
            (DType::U32, 4294967296.0),
            (DType::I32, f64::NAN),
        ] {
            let error = kernel.run(&call(dtype).init_value(value)).unwrap_err();
            assert!(
                matches!(&error, Error::Misuse(text) if text.contains(&value.to_string())),
                "{error}"
            );
        }
    }
}

/// Workgroup memory and constants are declared in the body, with barriers between uses.
#[test]
fn workgroup_memory() {
    for context in contexts() {
        let kernel = from_a(
            "const SIZE = 32u; // per workgroup
            var<workgroup> tile: array<f32, SIZE>;
            if global_id.x < grid.x { tile[local_id.x] = a[global_id.x]; }
            workgroupBarrier();
            let last = min(SIZE, grid.x - workgroup_id.x * SIZE) - 1u;
            if local_id.x <= last { out[global_id.x] = tile[last - local_id.x]; }",
        );
        let a = Tensor::upload(&context, &ramp(75), &[75]).unwrap();
        let call = Call::new(&context).input(&a).output(DType::F32, &[75]);
        let call = call.grid([75, 1, 1]).workgroup([32, 1, 1]).edge(Edge::Whole);
        let want: Vec<f32> =
            ramp(75).chunks(32).flat_map(|chunk| chunk.iter().rev().copied()).collect();
        assert_eq!(run::<f32>(&kernel, &call), want);
    }
}

/// Empty tensors and empty grids are legal: nothing runs, and outputs are returned as they are.
#[test]
fn nothing_to_do() {
    for context in contexts() {
        let kernel = from_a("out[global_id.x] = a[0];");
        let a = Tensor::upload(&context, &[1.0f32], &[1]).unwrap();
        let call = Call::new(&context).input(&a);
        assert!(
            run::<f32>(&kernel, &call.clone().output(DType::F32, &[0, 3]).grid([4, 1, 1]))
                .is_empty()
        );
        let filled = call.output(DType::F32, &[2]).init_value(4.0f32);
        for grid in [[0, 1, 1], [5, 0, 1], [0, 0, 0]] {
            assert_eq!(run::<f32>(&kernel, &filled.clone().grid(grid)), [4.0; 2]);
        }
        // An empty input beside outputs that are not empty, and an empty output beside another.
        let empty = Tensor::zeros(&context, DType::F32, &[0]).unwrap();
        let kernel = Kernel::new("test").inputs(["a"]).outputs(["out", "none"]);
        let kernel =
            kernel.source("if a_shape[0] > 0u { none[0] = a[0]; } out[global_id.x] = 3.0;");
        let call = Call::new(&context)
            .input(&empty)
            .output(DType::F32, &[2])
            .output(DType::F32, &[0])
            .grid([2, 1, 1]);
        let outputs = kernel.run(&call).unwrap();
        assert_eq!(outputs[0].read_blocking::<f32>().unwrap(), [3.0; 2]);
        assert!(outputs[1].read_blocking::<f32>().unwrap().is_empty());
    }
}

/// Calls in a row see each other's results, although nobody waits.
#[test]
fn calls_in_a_row() {
    for context in contexts() {
        let kernel = from_a("out[global_id.x] = a[global_id.x] * 2u + STEP;");
        let mut x = Tensor::upload(&context, &[0u32, 1, 2], &[3]).unwrap();
        for step in 0..20u32 {
            let call = Call::new(&context).input(&x).output(DType::U32, &[3]).grid([3, 1, 1]);
            x = kernel.run(&call.constant("STEP", step % 2)).unwrap().remove(0);
        }
        let last = |mut x: u32| {
            (0..20).for_each(|step| x = x * 2 + step % 2);
            x
        };
        assert_eq!(x.read_blocking::<u32>().unwrap(), [0, 1, 2].map(last));
    }
}

/// Calls in encoders and passes of the caller's, one after the other. One of them copies a view
/// first.
#[test]
fn in_commands_of_the_callers() {
    for adapter in adapters() {
        let context = &adapter.context;
        let (device, queue) = (context.device().unwrap(), context.queue().unwrap());
        let kernel = from_a("out[global_id.x] = a[global_id.x] + 1.0;");
        let a = Tensor::upload(context, &ramp(6), &[2, 3]).unwrap();
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let call =
            |x: &Tensor| Call::new(context).input(x).output(DType::F32, &[3, 2]).grid([6, 1, 1]);
        let b = kernel.record(&mut encoder, &call(&a.t())).unwrap().remove(0);
        let c = {
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            let b = kernel.record(&mut pass, &call(&b)).unwrap().remove(0);
            kernel.record(&mut pass, &call(&b)).unwrap().remove(0)
        };
        // An error leaves the encoder usable.
        from_a("out[0] = nobody;").record(&mut encoder, &call(&a)).unwrap_err();
        queue.submit([encoder.finish()]);
        assert_eq!(c.read_blocking::<f32>().unwrap(), [3.0, 6.0, 4.0, 7.0, 5.0, 8.0]);
    }
    let context = Context::cpu();
    let call = Call::new(&context).output(DType::F32, &[1]).grid([1, 1, 1]);
    for adapter in adapters() {
        let device = adapter.context.device().unwrap();
        let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let error = Kernel::new("k")
            .outputs(["out"])
            .source("out[0] = 1.0;")
            .record(&mut encoder, &call)
            .unwrap_err();
        assert!(
            matches!(&error, Error::Misuse(text) if text.starts_with("wrong context: ")),
            "{error}"
        );
    }
}

/// Subgroups, if the device has them: their sizes add up to the workgroup's. On other devices the
/// refusal says that they are missing.
#[test]
fn subgroups() {
    let without_features = adapters().iter().map(|adapter| adapter.with_limits(|_| ()));
    for context in contexts().into_iter().chain(without_features) {
        let kernel = from_a(
            "out[local_index] = subgroup_size * 0u + subgroupAdd(1u) + 0u * (subgroup_id + \
             subgroup_invocation_id);",
        );
        let a = Tensor::zeros(&context, DType::F32, &[1]).unwrap();
        let call = Call::new(&context)
            .input(&a)
            .output(DType::U32, &[64])
            .grid([64, 1, 1])
            .workgroup([64, 1, 1]);
        let has = context
            .device()
            .is_none_or(|device| device.features().contains(wgpu::Features::SUBGROUP));
        match kernel.run(&call.edge(Edge::Whole)) {
            Ok(outputs) => {
                assert!(has);
                let sizes = outputs[0].read_blocking::<u32>().unwrap();
                let subgroups: f64 = sizes.iter().map(|&size| 1.0 / f64::from(size)).sum();
                assert_eq!(subgroups.fract(), 0.0, "{sizes:?}");
            }
            Err(Error::DeviceLimit(text)) => {
                assert!(!has && text.contains("kernel test"), "{text}")
            }
            Err(error) => panic!("{context:?}: {error}"),
        }
    }
}

/// The generated module is the expected text, and valid for Metal.
#[test]
fn the_generated_module() {
    let context = Context::cpu();
    let kernel = Kernel::new("sum")
        .inputs(["a", "b", "unused"])
        .outputs(["out"])
        .header("fn f() -> u32 { return N; }");
    let kernel = kernel.source(
        "let i = global_id.x;\n\
         var<workgroup> t: f32;\n\
         out[i] = T(a[i] + f32(b[i])) + T(a_shape[1] * f()) * t;",
    );
    let a = Tensor::zeros(&context, DType::F32, &[2, 3]).unwrap();
    let b = Tensor::zeros(&context, DType::F16, &[6]).unwrap();
    let call =
        Call::new(&context).input(&a).input(&b).input(&a).output(DType::F32, &[6]).grid([6, 1, 1]);
    let call =
        call.workgroup([8, 4, 1]).dtype("T", DType::F32).constant("N", 2u32).constant("M", 3u32);
    let expected = "\
enable f16;
struct tilewise_Call {
    grid: vec3<u32>,
    a_shape_0: u32,
    a_shape_1: u32,
}
@group(0) @binding(0) var<uniform> tilewise_call: tilewise_Call;
@group(0) @binding(1) var<storage, read> a: array<f32>;
@group(0) @binding(2) var<storage, read> b: array<f16>;
@group(0) @binding(3) var<storage, read_write> out: array<f32>;
alias T = f32;
const N: u32 = 2u;
fn f() -> u32 { return N; }

var<workgroup> t: f32;
@compute @workgroup_size(8, 4, 1)
fn main(@builtin(global_invocation_id) global_id: vec3<u32>) {
let grid = tilewise_call.grid;
if any(global_id >= grid) { return; }
let a_shape = array<u32, 2>(tilewise_call.a_shape_0, tilewise_call.a_shape_1);
let i = global_id.x;
";
    let text = kernel.wgsl(&call).unwrap();
    assert!(text.starts_with(expected), "{text}");
    assert!(
        text.ends_with("\nout[i] = T(a[i] + f32(b[i])) + T(a_shape[1] * f()) * t;\n}\n"),
        "{text}"
    );

    let metal = kernel.msl(&call).unwrap();
    assert!(metal.contains("kernel void main_") && metal.contains("threadgroup"), "{metal}");

    // If nothing of the grid or of the tensors' sizes is mentioned, there is no uniform buffer.
    let call = call.edge(Edge::Whole);
    let kernel = kernel.header("").source("out[0] = a[0] + f32(b[0]);");
    assert!(!kernel.wgsl(&call).unwrap().contains("uniform"));
    assert_eq!(kernel.run(&call).unwrap()[0].shape(), [6]);
}
