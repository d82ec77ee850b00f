//! Waiting for a device sleeps. Counted where Linux tells how long a thread has run: a software
//! device works on threads of its own in this process.

use std::fs;
use std::hint::black_box;
use std::time::{Duration, Instant};
use tilewise::planner::DeviceClass;
use tilewise::{Context, DType, Gemm, Tensor};
use tilewise_tests::{Data, Rng, adapters};

/// How long a thread has run.
fn ran(task: &str) -> Option<Duration> {
    let text = fs::read_to_string(format!("{task}/schedstat")).ok()?;
    Some(Duration::from_nanos(text.split(' ').next()?.parse().expect("nanoseconds")))
}

/// How long each thread has run that waits on behalf of futures.
fn waiters() -> Vec<Duration> {
    let tasks = fs::read_dir("/proc/self/task").unwrap().map(|task| task.unwrap().path());
    let waits = tasks.filter(|task| {
        fs::read_to_string(task.join("comm")).is_ok_and(|name| name.trim() == "tilewise waits")
    });
    waits.filter_map(|task| ran(task.to_str().unwrap())).collect()
}

/// How long they and this thread have run.
fn waiting_ran() -> Duration {
    waiters().into_iter().chain(ran("/proc/thread-self")).sum()
}

fn random(context: &Context, shape: &[usize], seed: u64) -> Tensor {
    let elements = [shape.iter().product(), 1];
    let values = Data::Integers.generate(DType::F32, 1, elements, &mut Rng::new(seed));
    Tensor::upload(context, &values, shape).unwrap()
}

/// Waits for the work of which this is the output.
type Wait<'a> = &'a dyn Fn(&Tensor);

/// Time on the clock and of the processor of a wait for at least a second of work.
fn long_wait(context: &Context, wait: Wait<'_>) -> (Duration, Duration) {
    // Few products, each long, with a small output. At the end of a wait wgpu drops all passes of
    // the submission, and the output is copied: both are work, not waiting.
    let k = if context.caps().class == DeviceClass::Cpu { 256 } else { 1 << 14 };
    let a = random(context, &[256, k], 1);
    let b = random(context, &[k, 256], 2);
    let c = Tensor::zeros(context, DType::F32, &[256, 256]).unwrap();
    let gemm = Gemm::new(&a, &b).kernel("naive");
    let mut products = 1;
    loop {
        let device = context.device().unwrap();
        let mut encoder = device.create_command_encoder(&Default::default());
        (0..products).for_each(|_| gemm.encode(&mut encoder, &c).unwrap());
        context.queue().unwrap().submit([encoder.finish()]);
        let (begun, before) = (Instant::now(), waiting_ran());
        wait(&c);
        let (elapsed, ran) = (begun.elapsed(), waiting_ran().saturating_sub(before));
        if elapsed > Duration::from_secs(1) {
            return (elapsed, ran);
        }
        products *= 2;
    }
}

#[test]
fn waiting_sleeps() {
    if ran("/proc/thread-self").is_none() {
        println!("skipped: this system does not tell how long a thread has run");
        return;
    }
    // The count notices a thread that works.
    let (begun, before) = (Instant::now(), waiting_ran());
    while begun.elapsed() < Duration::from_millis(100) {
        let _ = (0..100_000u32).map(black_box).fold(0, u32::wrapping_add);
    }
    assert!(waiting_ran() - before > Duration::from_millis(10));

    for adapter in adapters() {
        let context = adapter.another();
        let read = |c: &Tensor| {
            c.read_blocking::<f32>().unwrap();
        };
        let waits: [(_, Wait<'_>); 2] =
            [("a read", &read), ("a wait", &|_| context.wait().unwrap())];
        for (what, wait) in waits {
            let (elapsed, ran) = long_wait(&context, wait);
            let name = adapter.name();
            println!("{what} of {elapsed:?} on {name}: {ran:?} of a processor");
            assert!(ran < elapsed / 50, "{what} of {elapsed:?} on {name} worked for {ran:?}");
        }
    }
}
