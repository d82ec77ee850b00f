//! Measures what one warm product costs on the CPU. Beside it, it measures the calls of wgpu that
//! the product ends in, and the planning that it is spared. The adapter is the one that
//! `TILEWISE_ADAPTER` names, else the first that opens. No measured product is submitted.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use std::time::{Duration, Instant};
use tilewise::wgpu::{CommandEncoder, ComputePass, ComputePassDescriptor};
use tilewise::{Activation, Context, ContextOptions, DType, Gemm, Take, Tensor, ops, wgpu};
use tilewise_core::plan;
use tilewise_shaders::LIBRARY;

/// Products per encoder: a layer or a few of a model.
const PRODUCTS: u64 = 64;

fn context() -> Context {
    let named = Context::new().ok().filter(|context| !context.is_cpu());
    let open = |adapter: tilewise::AdapterDescription| {
        Context::request_blocking(&ContextOptions::default().adapter(adapter.name))
            .ok()
            .filter(|context| !context.is_cpu())
    };
    named
        .or_else(|| pollster::block_on(tilewise::adapters()).into_iter().find_map(open))
        .expect("an adapter: encoding needs one, even if it is a software one")
}

/// Time of `count` calls of `encode`, [`PRODUCTS`] of them to an encoder. Making and dropping
/// encoders is not counted.
fn encoding(
    context: &Context,
    count: u64,
    mut encode: impl FnMut(&mut CommandEncoder, u64),
) -> Duration {
    let device = context.device().expect("a GPU");
    let mut time = Duration::ZERO;
    for first in (0..count).step_by(PRODUCTS as usize) {
        let mut encoder = device.create_command_encoder(&Default::default());
        let start = Instant::now();
        encode(&mut encoder, PRODUCTS.min(count - first));
        time += start.elapsed();
        drop(encoder);
        // An empty submission fills the new uniform buffers. Until then wgpu holds their contents.
        context.queue().expect("a GPU").submit([]);
        context.wait_blocking().expect("the device");
    }
    time
}

/// A pipeline that does nothing, and its bind group.
fn raw(device: &wgpu::Device) -> (wgpu::ComputePipeline, wgpu::BindGroup) {
    let source = wgpu::ShaderSource::Wgsl(include_str!("shaders/nothing.wgsl").into());
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &module,
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let layout = device
        .create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &[] });
    let group = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &[] };
    (pipeline, device.create_bind_group(&group))
}

fn products(criterion: &mut Criterion) {
    let context = context();
    println!("on {} ({}), {}", context.adapter_name(), context.backend_name(), context.driver());
    let tensor =
        |shape: &[usize]| Tensor::zeros(&context, DType::F32, shape).expect("a small tensor");
    let (a, b, bias) = (tensor(&[64, 2048]), tensor(&[2048, 64]), tensor(&[64]));
    // Two outputs take turns, because wgpu skips what is set already.
    let outputs = [tensor(&[64, 64]), tensor(&[64, 64])];
    let gemm = Gemm::new(&a, &b).bias(&bias).activation(Activation::Gelu).kernel("naive");
    let split = Gemm::new(&a, &b).kernel("gemv/4x4+k2");
    let planned = Gemm::new(&a, &b);
    for product in [&gemm, &split, &planned] {
        outputs.iter().for_each(|c| product.run_into(c).expect("a product"));
    }
    context.wait_blocking().expect("the device");
    let pass = |encoder: &mut CommandEncoder, record: &mut dyn FnMut(&mut ComputePass<'_>)| {
        record(&mut encoder.begin_compute_pass(&ComputePassDescriptor::default()));
    };
    let output = |i: u64| &outputs[(i % 2) as usize];

    // Each alpha is used once.
    let mut alpha = 1f32;
    for (name, product) in
        [("one GEMM", &gemm), ("one GEMM of two passes", &split), ("the planner's", &planned)]
    {
        criterion.bench_function(&format!("encode {name}"), |bencher| {
            bencher.iter_custom(|count| {
                encoding(&context, count, |encoder, products| {
                    (0..products)
                        .for_each(|i| product.record(encoder, output(i)).expect("a warm product"));
                })
            });
        });
        criterion.bench_function(&format!("record {name}"), |bencher| {
            bencher.iter_custom(|count| {
                encoding(&context, count, |encoder, products| {
                    pass(encoder, &mut |pass| {
                        (0..products)
                            .for_each(|i| product.record(pass, output(i)).expect("a warm product"));
                    });
                })
            });
        });
        criterion.bench_function(&format!("record {name}, another alpha each time"), |bencher| {
            bencher.iter_custom(|count| {
                encoding(&context, count, |encoder, products| {
                    pass(encoder, &mut |pass| {
                        for i in 0..products {
                            alpha = alpha.next_up();
                            product
                                .clone()
                                .alpha(alpha)
                                .record(pass, output(i))
                                .expect("a product");
                        }
                    });
                })
            });
        });
    }

    let raws = [(); 2].map(|()| raw(context.device().expect("a GPU")));
    let record = |pass: &mut ComputePass<'_>, i: u64| {
        let (pipeline, group) = &raws[(i % 2) as usize];
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, group, &[]);
        pass.dispatch_workgroups(1, 1, 1);
    };
    criterion.bench_function("encode wgpu's calls alone", |bencher| {
        bencher.iter_custom(|count| {
            encoding(&context, count, |encoder, products| {
                (0..products).for_each(|i| pass(encoder, &mut |pass| record(pass, i)));
            })
        });
    });
    criterion.bench_function("record wgpu's calls alone", |bencher| {
        bencher.iter_custom(|count| {
            encoding(&context, count, |encoder, products| {
                pass(encoder, &mut |pass| (0..products).for_each(|i| record(pass, i)));
            })
        });
    });

    let problem = gemm.problems().expect("a small product");
    criterion.bench_function("plan one GEMM, cold", |bencher| {
        bencher.iter(|| plan(black_box(&problem[0]), context.caps(), &LIBRARY, None).is_ok());
    });
}

/// Calls of a decoding step. Views move by a row or an element per call, and come again after more
/// calls than the bind groups that are kept.
fn steps(criterion: &mut Criterion) {
    const MOVES: usize = 8192;
    let context = context();
    let zeros =
        |dtype, shape: &[usize]| Tensor::zeros(&context, dtype, shape).expect("a small tensor");
    let [x, y, even, odd] = [(); 4].map(|()| zeros(DType::F32, &[1, 640]));
    let (weights, cache) = (zeros(DType::F32, &[640, 640]), zeros(DType::F32, &[MOVES, 640]));
    let rows: Vec<_> = (0..MOVES).map(|i| cache.narrow(0, i, 1).expect("a row")).collect();
    let tokens = zeros(DType::U32, &[MOVES]);
    let tokens: Vec<_> = (0..MOVES).map(|i| tokens.narrow(0, i, 1).expect("a token")).collect();
    let takes: Vec<_> = tokens.iter().map(|token| Take::new(&weights).rows(token)).collect();
    let (sum, largest) = (ops::add(&x, &y), ops::arg_max(&x, 1));
    let product = Gemm::new(&x, &weights);
    let mut row = |name: &str, record: &dyn Fn(&mut ComputePass<'_>, usize)| {
        let mut call = 0;
        criterion.bench_function(name, |bencher| {
            bencher.iter_custom(|count| {
                encoding(&context, count, |encoder, calls| {
                    let mut pass = encoder.begin_compute_pass(&ComputePassDescriptor::default());
                    for _ in 0..calls {
                        record(&mut pass, call % MOVES);
                        call += 1;
                    }
                })
            });
        });
    };
    // Two outputs take turns, because wgpu skips what is set already.
    let outputs = [&even, &odd];
    row("record a row by an index that moves", &|pass, at| {
        takes[at].record(pass, outputs[at % 2]).expect("a row");
    });
    row("record arg_max into an element that moves", &|pass, at| {
        largest.record(pass, &tokens[at]).expect("an index");
    });
    row("record an addition into a row that moves", &|pass, at| {
        sum.record(pass, &rows[at]).expect("a sum");
    });
    row("record an addition, constant operands", &|pass, at| {
        sum.record(pass, outputs[at % 2]).expect("a sum");
    });
    row("record a product, constant operands", &|pass, at| {
        product.record(pass, outputs[at % 2]).expect("a product");
    });
    row("record a product into a row that moves", &|pass, at| {
        product.record(pass, &rows[at]).expect("a product");
    });
}

criterion_group!(benches, products, steps);
criterion_main!(benches);
