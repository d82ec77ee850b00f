//! Waiting for a device sleeps. CPU time is counted if Linux tells how long a thread has run: a
//! software device works on threads of its own in this process.

use std::collections::HashMap;
use std::fs;
use std::future::Future;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::task::{Context as Task, Waker};
use std::time::{Duration, Instant};
use tilewise::planner::DeviceClass;
use tilewise::{Context, DType, Gemm, Tensor, wgpu};
use tilewise_tests::{Data, Rng, adapters};

/// How long a thread has run.
fn ran(task: &Path) -> Option<Duration> {
    let text = fs::read_to_string(task.join("schedstat")).ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().expect("nanoseconds")))
}

/// How long this thread and each thread that waits for futures have run.
fn waiters() -> HashMap<PathBuf, Duration> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let waits = tasks.filter(|task| {
        fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "tilewise waits")
    });
    let all = waits.chain(fs::canonicalize("/proc/thread-self"));
    all.filter_map(|task| Some((task.clone(), ran(&task)?))).collect()
}

/// How long this thread and the waiting threads have run since then. A thread of then may have
/// ended.
fn ran_since(then: &HashMap<PathBuf, Duration>) -> Duration {
    let ran = |(task, ran): (PathBuf, Duration)| ran - then.get(&task).copied().unwrap_or_default();
    waiters().into_iter().map(ran).sum()
}

fn random(context: &Context, shape: &[usize], seed: u64) -> Tensor {
    let elements = [shape.iter().product(), 1];
    let values = Data::Integers.generate(DType::F32, 1, elements, &mut Rng::new(seed));
    Tensor::upload(context, &values, shape).unwrap()
}

fn submit(context: &Context, work: impl FnOnce(&mut wgpu::CommandEncoder)) {
    let mut encoder = context.device().unwrap().create_command_encoder(&Default::default());
    work(&mut encoder);
    context.queue().unwrap().submit([encoder.finish()]);
}

/// Submits long draws. llvmpipe has finished its compute passes when a submission returns, but it
/// draws on threads of its own.
fn draw(context: &Context, draws: u32) {
    let device = context.device().unwrap();
    let text = "
        @vertex fn triangle(@builtin(vertex_index) i: u32) -> @builtin(position) vec4<f32> {
            return vec4(f32(i & 1u) * 4.0 - 1.0, f32(i >> 1u) * 4.0 - 1.0, 0.0, 1.0);
        }
        @fragment fn pixel(@builtin(position) at: vec4<f32>) -> @location(0) vec4<f32> {
            var x = at.x;
            for (var i = 0; i < 1000; i++) { x = fract(x * 1.5 + at.y); }
            return vec4(x);
        }";
    let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
        label: None,
        source: wgpu::ShaderSource::Wgsl(text.into()),
    });
    let format = wgpu::TextureFormat::Rgba8Unorm;
    let pipeline = device.create_render_pipeline(&wgpu::RenderPipelineDescriptor {
        label: None,
        layout: None,
        vertex: wgpu::VertexState {
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            buffers: &[],
        },
        primitive: Default::default(),
        depth_stencil: None,
        multisample: Default::default(),
        fragment: Some(wgpu::FragmentState {
            module: &module,
            entry_point: None,
            compilation_options: Default::default(),
            targets: &[Some(format.into())],
        }),
        multiview_mask: None,
        cache: None,
    });
    let texture = device.create_texture(&wgpu::TextureDescriptor {
        label: None,
        size: wgpu::Extent3d { width: 512, height: 512, depth_or_array_layers: 1 },
        mip_level_count: 1,
        sample_count: 1,
        dimension: wgpu::TextureDimension::D2,
        format,
        usage: wgpu::TextureUsages::RENDER_ATTACHMENT,
        view_formats: &[],
    });
    let view = texture.create_view(&Default::default());
    submit(context, |encoder| {
        let target = wgpu::RenderPassColorAttachment {
            view: &view,
            depth_slice: None,
            resolve_target: None,
            ops: Default::default(),
        };
        let mut pass = encoder.begin_render_pass(&wgpu::RenderPassDescriptor {
            color_attachments: &[Some(target)],
            ..Default::default()
        });
        pass.set_pipeline(&pipeline);
        (0..draws).for_each(|_| pass.draw(0..3, 0..1));
    });
}

/// A way to wait for the work that writes this output.
type Wait<'a> = &'a dyn Fn(&Tensor);

/// Wall-clock time and CPU time of a wait for at least a second of work.
fn long_wait(context: &Context, wait: Wait<'_>) -> (Duration, Duration) {
    // Few long products with a small output. At the end of a wait wgpu drops all passes of the
    // submission, and the output is copied. Both are work and not waiting.
    let k = if context.caps().class == DeviceClass::Cpu { 256 } else { 1 << 14 };
    let a = random(context, &[256, k], 1);
    let b = random(context, &[k, 256], 2);
    let c = Tensor::zeros(context, DType::F32, &[256, 256]).unwrap();
    let gemm = Gemm::new(&a, &b).kernel("naive");
    let mut products = 1;
    loop {
        if context.backend_name() == "gl" {
            draw(context, products);
        } else {
            submit(context, |encoder| {
                (0..products).for_each(|_| gemm.record(encoder, &c).unwrap())
            });
        }
        let (begun, before) = (Instant::now(), waiters());
        wait(&c);
        let (elapsed, ran) = (begun.elapsed(), ran_since(&before));
        if elapsed > Duration::from_secs(1) {
            return (elapsed, ran);
        }
        products *= 2;
    }
}

#[test]
fn waiting_sleeps() {
    if ran(Path::new("/proc/thread-self")).is_none() {
        println!("skipped: this system does not tell how long a thread has run");
        return;
    }
    // The count must notice a thread that works.
    let (begun, before) = (Instant::now(), waiters());
    while begun.elapsed() < Duration::from_millis(100) {
        let _ = (0..100_000u32).map(black_box).fold(0, u32::wrapping_add);
    }
    assert!(ran_since(&before) > Duration::from_millis(10));

    for adapter in adapters() {
        let context = adapter.another();
        let read = |c: &Tensor| {
            c.read_blocking::<f32>().unwrap();
        };
        let waits: [(_, Wait<'_>); 3] = [
            ("a read", &read),
            ("a wait", &|_| context.wait_blocking().unwrap()),
            ("an awaited wait", &|_| pollster::block_on(context.wait()).unwrap()),
        ];
        for (what, wait) in waits {
            // Linux counts time that other guests of a host took to the thread that they interrupt.
            // A wait that works does so each time.
            let sleeps = (0..3).any(|_| {
                let (elapsed, ran) = long_wait(&context, wait);
                println!("{what} of {elapsed:?} on {}: {ran:?} of a processor", adapter.name());
                ran < elapsed / 50
            });
            assert!(sleeps, "{what} on {} worked three times", adapter.name());
        }
    }
}

/// wgpu gives OpenGL to one thread at a time, and panics in a thread that has waited 6 s for it. No
/// thread of the library may wait for it while one thread of the user's reads and works.
#[test]
fn a_thread_may_work_long_before_it_reads_on() {
    for adapter in adapters().iter().filter(|adapter| adapter.context.backend_name() == "gl") {
        let context = adapter.another();
        let (a, b) = (random(&context, &[256, 256], 1), random(&context, &[256, 256], 2));
        let c = Tensor::zeros(&context, DType::F32, &[256, 256]).unwrap();
        let gemm = Gemm::new(&a, &b).kernel("naive");
        let work = |products: u32| {
            let begun = Instant::now();
            submit(&context, |encoder| {
                (0..products).for_each(|_| gemm.record(encoder, &c).unwrap())
            });
            begun.elapsed()
        };
        work(1);
        let products = 8.0 * 8.0 / work(8).as_secs_f64();
        let mut draws = 1;
        let mut reading = loop {
            draw(&context, draws);
            let mut reading = Box::pin(c.read::<f32>());
            let begun = Instant::now();
            let mut pending = true;
            while pending && begun.elapsed() < Duration::from_millis(50) {
                let mut task = Task::from_waker(Waker::noop());
                pending = reading.as_mut().poll(&mut task).is_pending();
            }
            if pending {
                break reading;
            }
            draws *= 2;
        };
        let worked = work((products as u32).max(1));
        println!("worked {worked:?} within a read on {}", adapter.name());
        pollster::block_on(reading.as_mut()).unwrap();
    }
}
