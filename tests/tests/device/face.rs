//! The promises that an application with its own device and structs relies on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tilewise::timing::Method;
use tilewise::wgpu::{self, BindingResource, BufferBinding, PowerPreference};
use tilewise::{
    Axis, Call, Context, ContextOptions, DType, Error, Gemm, GroupEnds, Kernel, Prepared, Quantize,
    QuantizedTensor, RightOperand, Shards, Switch, Take, Tensor, Weights,
};
use tilewise_tests::adapters;

/// Whole numbers, so that sums are exact.
fn number(i: usize) -> f32 {
    (i * 7 % 11) as f32 - 5.0
}

fn numbers(context: &Context, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let data: Vec<f32> = (0..count).map(number).collect();
    Tensor::upload(context, &data, shape).unwrap()
}

/// Threads may share all types, and errors may cross threads.
#[test]
fn everything_is_send_and_sync() {
    fn holds<T: Send + Sync + 'static>() {}
    holds::<Context>();
    holds::<ContextOptions>();
    holds::<Tensor>();
    holds::<QuantizedTensor>();
    holds::<Prepared<Tensor>>();
    holds::<Prepared<QuantizedTensor>>();
    holds::<GroupEnds>();
    holds::<RightOperand>();
    holds::<Shards>();
    holds::<Gemm>();
    holds::<Take>();
    holds::<Quantize>();
    holds::<Kernel>();
    holds::<Call>();
    holds::<Weights>();
    holds::<Error>();
}

/// A model's struct holds a product and none of its operands. Each frame records the product.
#[test]
fn a_product_owns_its_operands() {
    for adapter in adapters() {
        let context = &adapter.context;
        let product = {
            let [x, w, bias] = [&[5, 7][..], &[3, 7], &[3]].map(|shape| numbers(context, shape));
            Gemm::new(&x, w.t()).bias(&bias)
        };
        let dot = |row: usize, column: usize| {
            (0..7).map(|k| number(row * 7 + k) * number(column * 7 + k)).sum::<f32>()
        };
        let expected: Vec<f32> = (0..15).map(|i| dot(i / 3, i % 3) + number(i % 3)).collect();
        for _ in 0..3 {
            let y = Tensor::zeros(context, DType::F32, &[5, 3]).unwrap();
            let mut encoder = context.device().unwrap().create_command_encoder(&Default::default());
            product.record(&mut encoder, &y).unwrap();
            context.queue().unwrap().submit([encoder.finish()]);
            assert_eq!(y.read_blocking::<f32>().unwrap(), expected, "{}", adapter.name());
        }
    }
}

/// A shader that binds a tensor counts its elements and no padding.
#[test]
fn a_binding_is_the_exact_range() {
    for adapter in adapters() {
        let context = &adapter.context;
        let alignment = context.caps().storage_alignment as usize / 4;
        for elements in [1, 3, 74, 1001] {
            let tensor = numbers(context, &[alignment + elements]);
            let view =
                tensor.slice(std::slice::from_ref(&(alignment..alignment + elements))).unwrap();
            let count = length(context, view.binding().unwrap());
            assert_eq!(count, elements as u32, "{}", adapter.name());
            let BindingResource::Buffer(BufferBinding { offset, .. }) = view.binding().unwrap()
            else {
                panic!("a tensor is a buffer");
            };
            assert_eq!(offset, 4 * alignment as u64);
        }
        let halves = Tensor::zeros(context, DType::F16, &[5]).unwrap();
        assert_eq!(length(context, halves.binding().unwrap()), 3);
        let tensor = numbers(context, &[9]);
        let inside = tensor.slice(std::slice::from_ref(&(1..9))).unwrap().binding().map(drop);
        assert!(matches!(&inside, Err(Error::Shape(text)) if text.contains("byte 4")));
        let empty = tensor.slice(std::slice::from_ref(&(0..0))).unwrap().binding().map(drop);
        assert!(matches!(empty, Err(Error::Shape(_))));
    }
    let tensor = numbers(&Context::cpu(), &[9]);
    assert!(tilewise_tests::fails_with(&tensor.binding(), "wrong context: "));
}

/// The length of an array of words, as a shader sees it.
fn length(context: &Context, binding: BindingResource<'_>) -> u32 {
    let device = context.device().unwrap();
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(include_str!("face/length.wgsl").into()),
    });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let counted = Tensor::zeros(context, DType::U32, &[1]).unwrap();
    let entries = [
        wgpu::BindGroupEntry { binding: 0, resource: binding },
        wgpu::BindGroupEntry { binding: 1, resource: counted.binding().unwrap() },
    ];
    let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
        label: None,
        layout: &pipeline.get_bind_group_layout(0),
        entries: &entries,
    });
    let mut encoder = device.create_command_encoder(&Default::default());
    {
        let mut pass = encoder.begin_compute_pass(&Default::default());
        pass.set_pipeline(&pipeline);
        pass.set_bind_group(0, &group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    }
    context.queue().unwrap().submit([encoder.finish()]);
    counted.read_blocking::<u32>().unwrap()[0]
}

/// `explain` says why matrix units are off if the adapter may have some.
#[test]
fn matrix_units_that_are_off_are_explained() {
    for adapter in adapters() {
        let (device, queue) = adapter.device(|_| {});
        let context = Context::from_device(device, queue, &ContextOptions::default()).unwrap();
        let a = Tensor::zeros(&context, DType::F16, &[64, 64]).unwrap();
        let explained = Gemm::new(&a, &a).explain().unwrap();
        assert!(
            explained.contains("matrix units are off: only an adapter lists them"),
            "{explained}"
        );
    }
}

/// A queue of another device, a device of another adapter, and an encoder of another context are
/// refused.
#[test]
fn strangers_are_refused() {
    let options = ContextOptions::default();
    for adapter in adapters() {
        let [(one, own), (_other, foreign)] = [adapter.device(|_| {}), adapter.device(|_| {})];
        let wrong = Context::from_device(one.clone(), foreign, &options);
        assert!(matches!(&wrong, Err(Error::Misuse(text)) if text.contains("queue")));
        let context = Context::from_device(one, own, &options).unwrap();
        let a = numbers(&context, &[4, 4]);
        assert_eq!(context.matmul(&a, &a).unwrap().shape(), [4, 4]);

        // wgpu tells nobody which device an encoder belongs to; it refuses the work when the
        // encoder is finished. A context on OpenGL has wgpu for itself (docs/platforms.md), and
        // wgpu panics.
        if adapter.context.backend_name() == "gl" {
            eprintln!("skipped: encoders of another context on {}", adapter.name());
            continue;
        }
        let another = adapter.another();
        let stranger = another.device().unwrap();
        let mut encoder = stranger.create_command_encoder(&Default::default());
        let a = numbers(&adapter.context, &[4, 4]);
        let c = Tensor::zeros(&adapter.context, DType::F32, &[4, 4]).unwrap();
        let scope = stranger.push_error_scope(wgpu::ErrorFilter::Validation);
        let recorded = Gemm::new(&a, &a).record(&mut encoder, &c);
        drop(encoder.finish());
        let refused = pollster::block_on(scope.pop());
        assert!(recorded.is_err() || refused.is_some(), "{}", adapter.name());
    }
}

/// Errors of an application on the context's own device reach wgpu's handler, which panics.
#[test]
fn a_context_swallows_no_error() {
    for adapter in adapters() {
        let context = adapter.another();
        let device = context.device().unwrap();
        let bad = || {
            device.create_shader_module(wgpu::ShaderModuleDescriptor {
                label: None,
                source: wgpu::ShaderSource::Wgsl("this is not wgsl".into()),
            })
        };
        assert!(catch_unwind(AssertUnwindSafe(bad)).is_err(), "{}", adapter.name());
        let seen = Arc::new(AtomicBool::new(false));
        let sender = seen.clone();
        device.on_uncaptured_error(Arc::new(move |_| sender.store(true, Ordering::Relaxed)));
        drop(bad());
        assert!(seen.load(Ordering::Relaxed), "{}", adapter.name());
    }
}

/// If a GPU is required and there is none, that is an error.
#[test]
fn a_required_gpu_is_not_the_cpu() {
    let cpu = ContextOptions::default().adapter("cpu").require_gpu();
    let none = |error: &Error| error.to_string().starts_with("no adapter: ");
    assert!(Context::request_blocking(&cpu).is_err_and(|error| none(&error)));
    let hardware = adapters().iter().any(|adapter| adapter.description.hardware);
    let any = ContextOptions::default().require_gpu();
    match Context::request_blocking(&any) {
        Ok(context) => assert!(hardware && !context.is_cpu()),
        Err(error) => assert!(!hardware && none(&error), "{error}"),
    }
    for adapter in adapters() {
        let named = ContextOptions::default().adapter(adapter.address()).require_gpu();
        assert!(!Context::request_blocking(&named).unwrap().is_cpu());
    }
}

/// If there is no hardware, software is taken in place of the CPU executor, if that is asked for.
#[test]
fn a_fallback_adapter_is_taken() {
    let hardware = adapters().iter().any(|adapter| adapter.description.hardware);
    for power in [PowerPreference::None, PowerPreference::LowPower] {
        let options = ContextOptions::default().power_preference(power);
        let context = Context::request_blocking(&options).unwrap();
        assert_eq!(context.is_cpu(), !hardware);
        let context = Context::request_blocking(&options.fallback_adapter()).unwrap();
        assert_eq!(context.is_cpu(), adapters().is_empty());
    }
    if !adapters().is_empty() {
        let options = ContextOptions::default().fallback_adapter().require_gpu();
        assert!(!Context::request_blocking(&options).unwrap().is_cpu());
    }
}

/// Without timestamps the host's clock measures. A product that is far shorter than a browser's
/// clock can resolve has a time, too.
#[test]
fn the_host_has_a_clock() {
    for context in
        adapters().iter().map(|adapter| adapter.with_limits(|_| {})).chain([Context::cpu()])
    {
        let a = Tensor::upload(&context, &[1.0f32; 16], &[4, 4]).unwrap();
        let (c, timing) = Gemm::new(&a, &a).run_timed_blocking().unwrap();
        let method = if context.is_cpu() { Method::WallClock } else { Method::Difference };
        assert_eq!(timing.method, method, "{context:?}");
        assert!(timing.seconds > 0.0 && timing.seconds < 1.0, "{context:?}: {timing:?}");
        assert_eq!(c.read_blocking::<f32>().unwrap(), [4.0; 16]);
    }
}

/// The error that caused an error is kept, and its type can be found.
#[test]
fn errors_have_sources() {
    let error = Weights::open(&Context::cpu(), "no/such/folder").err().unwrap();
    let source = std::error::Error::source(&error).expect("the system's error");
    let Error::File { source: Some(cause), .. } = &error else { panic!("{error:?}") };
    let io = cause.get().downcast_ref::<std::io::Error>().expect("an error of the system");
    assert_eq!(io.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(source.to_string(), io.to_string());
    assert!("onn".parse::<Switch>().is_err_and(|error| error.to_string().contains("onn")));
}

/// The guide tells how to mend every kind of error.
#[test]
fn every_error_has_its_remedy() {
    let source = include_str!("../../../crates/core/src/error.rs");
    let body = source.split("pub enum Error {").nth(1).unwrap().split("\n}").next().unwrap();
    let names = body.lines().filter_map(|line| {
        let line = line.strip_prefix("    ")?;
        line.starts_with(|c: char| c.is_ascii_uppercase())
            .then(|| line.split(|c: char| !c.is_alphanumeric()).next().unwrap())
    });
    let names: Vec<_> = names.collect();
    assert!(names.len() == 8 && names.contains(&"Shape") && names.contains(&"File"), "{names:?}");
    let guide = include_str!("../../../docs/library.md");
    let table = guide.split("## Errors").nth(1).unwrap().split("\n## ").next().unwrap();
    for name in names {
        assert!(table.contains(&format!("`{name}`")), "{name} is not in docs/library.md");
    }
}

/// A product has one bias, and one residual or gate: later calls of a kind replace earlier ones.
#[test]
fn a_later_call_replaces_an_earlier_one() {
    for context in tilewise_tests::contexts() {
        let vector = |value: f32| Tensor::upload(&context, &[value; 2], &[2]).unwrap();
        let matrix = |value: f32| Tensor::upload(&context, &[value; 4], &[2, 2]).unwrap();
        let (one, zero) = (vector(1.0), matrix(0.0));
        let ten = Tensor::upload(&context, &[10.0f32, 20.0], &[2]).unwrap();
        let plain = Gemm::new(&zero, &zero);
        for (gemm, wanted) in [
            (plain.clone().bias(&one).bias(&ten), [10.0, 20.0, 10.0, 20.0]),
            (plain.clone().residual(&matrix(3.0)).residual(&matrix(5.0)), [5.0; 4]),
        ] {
            assert_eq!(gemm.run().unwrap().read_blocking::<f32>().unwrap(), wanted, "{context:?}");
        }
        let gate = |gemm: Gemm| gemm.gated_by(&matrix(3.0), tilewise::Activation::Relu);
        let glu = |gemm: Gemm| gemm.glu(tilewise::Activation::Relu);
        for (gemm, words) in [
            (plain.clone().bias(&one).bias_along(&ten, Axis::M), "two biases"),
            (plain.clone().bias_along(&ten, Axis::M).bias(&one), "two biases"),
            (gate(plain.clone().residual(&matrix(5.0))), "a product ends with one of them"),
            (gate(plain.clone()).residual(&matrix(5.0)), "a product ends with one of them"),
            (glu(plain.clone().residual(&matrix(5.0))), "a product ends with one of them"),
            (glu(plain.clone()).residual(&matrix(5.0)), "a product ends with one of them"),
            (glu(gate(plain.clone())), "a product ends with one of them"),
            (gate(glu(plain.clone())), "a product ends with one of them"),
            (glu(plain.clone()).activation(tilewise::Activation::Silu), "the function of its gate"),
        ] {
            let error = gemm.run().unwrap_err();
            let is_misuse = matches!(error, tilewise::Error::Misuse(_));
            assert!(is_misuse && error.to_string().contains(words), "{error:?}");
        }
    }
}
