//! Costs of a product besides its work. A warm product allocates nothing, things that are kept for
//! the next call hold no memory of the caller's, and nothing is compiled again that was compiled in
//! advance.

mod kernels;
mod memory;

use std::cell::Cell;
use std::sync::{Barrier, Once};
use std::thread::LocalKey;
use tilewise::moe::{GatherMatmul, MoeLayer, gather_matmul};
use tilewise::planner::Problem;
use tilewise::wgpu;
use tilewise::{
    Activation, Call, Context, DType, Error, Gemm, GroupEnds, Kernel, QuantFormat, Quantize,
    QuantizedTensor, Recorder, Take, Tensor, ops,
};
use tilewise_tests::{adapters, contexts};

fn filled(context: &Context, shape: &[usize], value: f32) -> Tensor {
    Tensor::upload(context, &vec![value; shape.iter().product()], shape).unwrap()
}

fn zeros(context: &Context, shape: &[usize]) -> Tensor {
    Tensor::zeros(context, DType::F32, shape).unwrap()
}

fn read(tensor: &Tensor) -> Vec<f32> {
    tensor.read_f32_blocking().unwrap()
}

fn encoder(context: &Context) -> wgpu::CommandEncoder {
    context.device().unwrap().create_command_encoder(&Default::default())
}

/// The pipelines and bind groups of this many passes, as any program may have them.
struct Raw(Vec<(wgpu::ComputePipeline, wgpu::BindGroup)>);

impl Raw {
    fn new(context: &Context, passes: usize) -> Self {
        let device = context.device().unwrap();
        let source = wgpu::ShaderSource::Wgsl("@compute @workgroup_size(1) fn main() {}".into());
        let module =
            device.create_shader_module(wgpu::ShaderModuleDescriptor { label: None, source });
        let layout = device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor {
            label: None,
            entries: &[],
        });
        let pass = |_| {
            let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
                label: None,
                layout: None,
                module: &module,
                entry_point: None,
                compilation_options: Default::default(),
                cache: None,
            });
            let group = wgpu::BindGroupDescriptor { label: None, layout: &layout, entries: &[] };
            (pipeline, device.create_bind_group(&group))
        };
        Raw((0..passes).map(pass).collect())
    }

    fn record(&self, pass: &mut wgpu::ComputePass<'_>) {
        for (pipeline, group) in &self.0 {
            pass.set_pipeline(pipeline);
            pass.set_bind_group(0, group, &[]);
            pass.dispatch_workgroups(1, 1, 1);
        }
    }

    fn encode(&self, encoder: &mut wgpu::CommandEncoder) {
        let descriptor = wgpu::ComputePassDescriptor { label: Some("raw"), timestamp_writes: None };
        self.record(&mut encoder.begin_compute_pass(&descriptor));
    }
}

/// A warm product allocates what its calls of wgpu allocate, and nothing else.
#[track_caller]
fn allocates_nothing(what: &str, passes: usize, gemm: &Gemm, c: &Tensor) {
    let context = c.context();
    gemm.run_into(c).unwrap();
    assert_eq!(
        gemm.plans().unwrap()[0].passes.len(),
        passes,
        "{what}: {}",
        gemm.explain().unwrap()
    );
    let raw = Raw::new(context, passes);

    const CALLS: usize = 50;
    let (mut ours, mut theirs) = (encoder(context), encoder(context));
    {
        let mut pass = ours.begin_compute_pass(&Default::default());
        let ours = allocation_counter::measure(|| {
            (0..CALLS).for_each(|_| gemm.record(&mut pass, c).unwrap())
        });
        let mut pass = theirs.begin_compute_pass(&Default::default());
        let theirs = allocation_counter::measure(|| (0..CALLS).for_each(|_| raw.record(&mut pass)));
        assert_eq!(
            ours.count_total,
            theirs.count_total,
            "{what}: record on {}",
            context.adapter_name()
        );
    }
    let ours =
        allocation_counter::measure(|| (0..CALLS).for_each(|_| gemm.record(&mut ours, c).unwrap()));
    let theirs = allocation_counter::measure(|| (0..CALLS).for_each(|_| raw.encode(&mut theirs)));
    assert_eq!(
        ours.count_total,
        theirs.count_total,
        "{what}: encode on {}",
        context.adapter_name()
    );
}

#[test]
fn nothing_is_allocated_once_warm() {
    for adapter in adapters() {
        // Other tests grow the scratch memory of a context that they share, so this one has its
        // own.
        let context = &adapter.another();
        let (a, b, c) = (
            filled(context, &[24, 1152], 1.0),
            filled(context, &[1152, 40], 1.0),
            zeros(context, &[24, 40]),
        );
        let plain = Gemm::new(&a, &b).kernel("naive");
        allocates_nothing("plain", 1, &plain, &c);
        let planned = Gemm::new(&a, &b);
        allocates_nothing("planned", planned.plans().unwrap()[0].passes.len(), &planned, &c);

        let (bias, residual) = (filled(context, &[40], 1.0), filled(context, &[24, 40], 1.0));
        let epilogue =
            plain.bias(&bias).activation(Activation::Gelu).residual(&residual).alpha(2.0).beta(0.5);
        allocates_nothing("epilogue", 1, &epilogue, &c);
        allocates_nothing("split", 2, &epilogue.clone().kernel("gemv/1x4+k2"), &c);

        let heads = filled(context, &[2, 24, 3, 1152], 1.0).transpose(1, 2).unwrap();
        let nested = zeros(context, &[2, 3, 24, 40]);
        allocates_nothing("nested", 1, &Gemm::new(&heads, &b).kernel("naive"), &nested);
        let (vector, row) = (filled(context, &[1152], 1.0), zeros(context, &[40]));
        allocates_nothing("vector", 1, &Gemm::new(&vector, &b).kernel("naive"), &row);

        let weights = QuantFormat::affine(4, 64, DType::F16).unwrap();
        let w = QuantizedTensor::quantize(context, &[0.5; 40 * 1152], [40, 1152], weights).unwrap();
        allocates_nothing("quantized", 1, &Gemm::new(&a, &w).kernel("naive"), &c);

        let (experts, ends) = (
            filled(context, &[3, 1152, 40], 1.0),
            GroupEnds::upload(context, &[5, 5, 24]).unwrap(),
        );
        allocates_nothing("grouped", 1, &Gemm::grouped(&a, &experts, &ends).kernel("naive"), &c);
    }
}

/// New tensors may lie in the memory of old ones: the bind group of an old tensor is never used for
/// a new one.
#[test]
fn no_bind_group_serves_another_tensor() {
    for adapter in adapters() {
        let context = &adapter.context;
        let (b, c) = (filled(context, &[16, 16], 1.0), zeros(context, &[16, 16]));
        for value in 1..30 {
            let a = filled(context, &[16, 16], value as f32);
            Gemm::new(&a, &b).run_into(&c).unwrap();
            assert_eq!(read(&c), [16.0 * value as f32; 256], "{}", adapter.name());
            // The plan also serves exchanged operands, and an output that begins at another row.
            let square = Gemm::new(&b, &a).run().unwrap();
            assert_eq!(read(&square), [16.0 * value as f32; 256]);
            let rows = zeros(context, &[32, 16]);
            Gemm::new(&a, &b).run_into(&rows.slice(&[16..32, 0..16]).unwrap()).unwrap();
            assert_eq!(read(&rows), [[0.0; 256], [16.0 * value as f32; 256]].concat());
        }
    }
}

thread_local! {
    /// Pipelines that this thread has compiled, by the log.
    static COMPILED: Cell<usize> = const { Cell::new(0) };
    /// Plans that this thread has made, by the log.
    static PLANNED: Cell<usize> = const { Cell::new(0) };
}

struct Counts;

impl log::Log for Counts {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        if !record.target().starts_with("tilewise") {
            return;
        }
        let text = record.args().to_string();
        if text.starts_with("compiled ") {
            assert_eq!(record.level(), log::Level::Info);
            assert!(text.contains(" ms for "), "{text}");
            COMPILED.set(COMPILED.get() + 1);
        } else if text.starts_with("planned ") {
            PLANNED.set(PLANNED.get() + 1);
        }
    }

    fn flush(&self) {}
}

/// By how much `work` increases a count.
fn counted(count: &'static LocalKey<Cell<usize>>, work: impl FnOnce()) -> usize {
    static LOGGER: Once = Once::new();
    LOGGER.call_once(|| {
        log::set_logger(&Counts).expect("the only logger");
        log::set_max_level(log::LevelFilter::Debug);
    });
    let before = count.get();
    work();
    count.get() - before
}

/// Pipelines that `work` compiles.
fn compilations(work: impl FnOnce()) -> usize {
    counted(&COMPILED, work)
}

/// The passes of a product are compiled side by side, except on OpenGL, which wgpu gives to one
/// thread at a time.
#[test]
fn passes_are_compiled_together() {
    for adapter in adapters() {
        let context = adapter.another();
        let (a, b) = (zeros(&context, &[4, 600]), zeros(&context, &[600, 5]));
        let split = Gemm::new(&a, &b).kernel("gemv/1x4+k2");
        let here = compilations(|| drop(split.run().unwrap()));
        assert_eq!(here, if context.backend_name() == "gl" { 2 } else { 0 }, "{}", adapter.name());
    }
}

/// The log and `explain` report the first use; after `warm_up` there is none left.
#[test]
fn compiled_in_advance() {
    for adapter in adapters() {
        let context = adapter.another();
        let (a, b) = (zeros(&context, &[33, 64]), zeros(&context, &[64, 20]));
        let bias = zeros(&context, &[20]);
        let with_bias = Gemm::new(&a, &b).bias(&bias).activation(Activation::Silu);
        let halves = Gemm::new(&a, &b).out_dtype(DType::F16);
        let told = |gemm: &Gemm, what| {
            let text = gemm.explain().unwrap();
            let passes = gemm.plans().unwrap()[0].passes.len();
            text.lines()
                .rev()
                .take(passes)
                .filter(|l| l.starts_with("pipeline of pass") && l.contains(what))
                .count()
                == passes
        };
        assert!(told(&with_bias, "not compiled yet"), "{}", with_bias.explain().unwrap());
        let problems = [&with_bias, &halves].map(|gemm| gemm.problems().unwrap()[0]);
        assert!(compilations(|| context.warm_up_problems(&problems).unwrap()) >= 2);
        let seconds = with_bias.explain().unwrap();
        assert!(told(&with_bias, "  compiled in ") && told(&halves, "  compiled in "), "{seconds}");
        let later = compilations(|| {
            context.warm_up_problems(&problems).unwrap();
            with_bias.run().unwrap();
            halves.run().unwrap();
        });
        assert_eq!(later, 0, "{}", adapter.name());
        assert_eq!(with_bias.explain().unwrap(), seconds);

        let fresh = Gemm::new(&a, &b).kernel("gemv/1x4");
        assert!(told(&fresh, "not compiled yet"));
        assert!(compilations(|| drop(fresh.run().unwrap())) > 0 && told(&fresh, "  compiled in "));
        assert_eq!(compilations(|| drop(fresh.run().unwrap())), 0);
    }
}

/// A warm-up compiles all that a step of a model records, and runs none of it: takes, a take before
/// a product, operations, kernels, and kernels that need copies of views.
#[test]
fn steps_are_compiled_in_advance() {
    for adapter in adapters() {
        let compiled = |in_advance| {
            let context = &adapter.another();
            let (x, w) = (filled(context, &[3, 64], 1.0), filled(context, &[64, 8], 1.0));
            let (taken, y) = (zeros(context, &[2, 64]), filled(context, &[2, 8], 7.0));
            let rows = Tensor::upload(context, &[2u32, 0], &[2]).unwrap();
            let alpha = Tensor::upload(context, &[0.5f32], &[1]).unwrap();
            let codes = QuantFormat::affine(4, 64, DType::F16).unwrap();
            let codes = QuantizedTensor::zeros(context, codes, &[2, 64]).unwrap();
            let double = Kernel::new("double").inputs(["a"]).outputs(["out"]);
            let double = double.source("let i = global_id.x; out[i] = 2.0 * a[i];");
            let call = Call::of(&y.t()).output_into(&w.narrow(1, 0, 2).unwrap());
            let call = call.grid([16, 1, 1]);
            let step = |to: &mut Recorder<'_>| {
                Take::new(&x).rows(&rows).record(to, &taken)?;
                Gemm::new(&taken, &w).alpha_tensor(&alpha).record(to, &y)?;
                Quantize::new(&taken, codes.format()).record(to, &codes)?;
                ops::softmax(&y).record(to, &y)?;
                double.record(to, &call).map(drop)
            };
            if in_advance {
                context.warm_up(step).unwrap();
                assert_eq!((read(&y), read(&taken)), (vec![7.0; 16], vec![0.0; 128]));
                assert_eq!(read(&w), [1.0; 512], "{}", adapter.name());
            }
            compilations(|| context.submit(step).unwrap())
        };
        // One each, one for alpha, and two for views of the kernel.
        assert_eq!((compiled(true), compiled(false)), (0, 8), "{}", adapter.name());
    }
}

/// A layer, and a product by index, compile nothing if they were warmed up. Problems alone compile
/// the products, and nothing in vain.
#[test]
fn experts_are_compiled_in_advance() {
    for adapter in adapters() {
        let compiled = |in_advance: fn([&Tensor; 2], &MoeLayer, &GatherMatmul)| {
            let context = adapter.another();
            let (x, logits) = (zeros(&context, &[6, 16]), zeros(&context, &[6, 3]));
            let [gate, down] = [[3, 24, 16], [3, 16, 24]].map(|shape| zeros(&context, &shape));
            let shared = zeros(&context, &[24, 16]);
            let layer = MoeLayer::new(&gate, &gate, &down, 2).shared(&shared, &shared, shared.t());
            let indices = Tensor::zeros(&context, DType::U32, &[6]).unwrap();
            let by_index = gather_matmul(&x, &down, None, &indices);
            let first = compilations(|| in_advance([&x, &logits], &layer, &by_index));
            let later = compilations(|| {
                layer.forward(&x, &logits).unwrap();
                by_index.run().unwrap();
            });
            [first, later]
        };
        let [_, all] = compiled(|_, _, _| ());
        let [first, later] = compiled(|[x, logits], layer, by_index| {
            x.context().warm_up_problems(&layer.problems(x, logits).unwrap()).unwrap();
            x.context().warm_up_problems(&by_index.problems().unwrap()).unwrap();
        });
        assert!(first >= 3 && first + later == all, "{first} + {later}, {all}: {}", adapter.name());
        let [_, later] = compiled(|[x, logits], layer, by_index| {
            layer.warm_up(x, logits).unwrap();
            by_index.warm_up().unwrap();
        });
        assert_eq!(later, 0, "{}", adapter.name());
    }
}

/// Problems that cannot be run are refused in advance, by the CPU executor too.
#[test]
fn warm_up_refuses() {
    for context in contexts() {
        let fine = Problem::dense(DType::F32, 3, 5, 7);
        context.warm_up_problems(&[]).unwrap();
        context.warm_up_problems(&[fine, Problem::dense(DType::F32, 0, 5, 7)]).unwrap();
        let mut short = fine;
        short.b.len = 34;
        let error = context.warm_up_problems(&[fine, short]).unwrap_err();
        assert_eq!(error, Error::buffer_too_small("B", 35, 34));
        let error = context.warm_up_problems(&[Problem::dense(DType::I32, 3, 5, 7)]).unwrap_err();
        assert!(matches!(error, Error::Unsupported(_)), "{error}");
        // A problem that fits does not excuse one that does not.
        let (a, b) = (zeros(&context, &[3, 7]), zeros(&context, &[7, 5]));
        Gemm::new(&a, &b).run().unwrap();
        assert!(context.warm_up_problems(&[short]).is_err());
    }
}

/// There are more problems than plans are kept for.
#[test]
fn many_problems() {
    const SIDE: usize = 40;
    for adapter in adapters() {
        let context = &adapter.context;
        let (a, b) = (filled(context, &[SIDE, 4], 1.0), filled(context, &[4, SIDE], 1.0));
        let sizes = (0..SIDE * SIDE).map(|i| (1 + i / SIDE, 1 + i % SIDE));
        for (m, n) in sizes.chain([(1, 1), (7, 9)]) {
            let (a, b) = (a.slice(&[0..m, 0..4]).unwrap(), b.slice(&[0..4, 0..n]).unwrap());
            let c = Gemm::new(&a, &b).kernel("naive").run().unwrap();
            if (m * n) % 250 == 63 {
                assert_eq!(read(&c), vec![4.0; m * n], "{}", adapter.name());
            }
        }
    }
}

/// Alpha and beta change from call to call: one plan serves all calls, and each product has its own
/// factors.
#[test]
fn factors_share_a_plan() {
    // Every device can bind an output at multiples of 256 bytes, so all products are the same
    // problem.
    const N: usize = 64;
    const K: usize = 1152;
    for adapter in adapters() {
        let context = &adapter.another();
        let (a, b) = (filled(context, &[1, K], 1.0), filled(context, &[K, N], 1.0));
        let product = Gemm::new(&a, &b);
        let split = product.clone().kernel("gemv/1x4+k2");
        assert_eq!(split.plans().unwrap()[0].passes.len(), 2);
        for (gemm, reads_c, calls) in [
            (&product, false, 3000),
            (&product, true, 300),
            (&split, false, 300),
            (&split, true, 300),
        ] {
            let factors = |i: usize| (i as f32, if reads_c { 0.5 + (i % 7) as f32 } else { 0.0 });
            let all = filled(context, &[calls, N], 3.0);
            let mut encoder = encoder(context);
            let planned = counted(&PLANNED, || {
                let mut pass = encoder.begin_compute_pass(&Default::default());
                for i in 0..calls {
                    let (alpha, beta) = factors(i);
                    let c = all.slice(&[i..i + 1, 0..N]).unwrap();
                    gemm.clone().alpha(alpha).beta(beta).record(&mut pass, &c).unwrap();
                }
            });
            assert_eq!(planned, 1, "{}", adapter.name());
            context.queue().unwrap().submit([encoder.finish()]);
            let wanted = (0..calls).flat_map(|i| {
                let (alpha, beta) = factors(i);
                [alpha * K as f32 + beta * 3.0; N]
            });
            assert!(read(&all).into_iter().eq(wanted), "{}", adapter.name());
        }
        // Each of many alphas for one output, then some of the first again.
        let c = zeros(context, &[1, N]);
        let planned = counted(&PLANNED, || {
            for alpha in (0..200).chain([0, 50, 150]) {
                product.clone().alpha(alpha as f32).run_into(&c).unwrap();
                if alpha % 50 == 0 {
                    assert_eq!(read(&c), [(alpha * K) as f32; N], "{}", adapter.name());
                }
            }
        });
        assert_eq!(planned, 0);
    }
}

/// Several threads meet a problem at the same time, and for the first time.
#[test]
fn threads_meet() {
    for adapter in adapters() {
        let context = adapter.another();
        for n in [8, 12, 40] {
            let (b, start) = (filled(&context, &[1100, n], 1.0), Barrier::new(4));
            std::thread::scope(|scope| {
                for value in 1..5 {
                    let (context, b, start) = (&context, &b, &start);
                    scope.spawn(move || {
                        let (a, c) =
                            (filled(context, &[2, 1100], value as f32), zeros(context, &[2, n]));
                        start.wait();
                        for kernel in ["gemv/1x4+k2", "naive"] {
                            Gemm::new(&a, b).kernel(kernel).run_into(&c).unwrap();
                            assert_eq!(read(&c), vec![1100.0 * value as f32; 2 * n], "{kernel}");
                        }
                    });
                }
            });
        }
    }
}
