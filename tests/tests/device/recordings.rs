//! Work that is recorded once and runs many times.

use std::sync::{Arc, Mutex};
use tilewise::ops::KvCache;
use tilewise::{
    Call, DType, Error, Gemm, Kernel, QuantFormat, Quantize, Recorder, Recording, Result, Take,
    Tensor, moe, ops,
};
use tilewise_tests::contexts;

type Work = Box<dyn Fn(&mut Recorder<'_>) -> Result<()> + Send + Sync>;

/// A name, the work, what changes from run to run, the result, and whether a GPU keeps the work.
type Case = (&'static str, Work, Tensor, Tensor, bool);

/// Work of every kind that records. Each takes rows whose numbers change from run to run.
fn cases(context: &tilewise::Context) -> Vec<Case> {
    let tensor = |shape: &[usize]| {
        let count: usize = shape.iter().product();
        let all: Vec<f32> = (0..count).map(|i| ((7 * i + 3) % 11) as f32 / 4.0 - 1.0).collect();
        Tensor::upload(context, &all, shape).unwrap()
    };
    let zeros = |shape: &[usize]| Tensor::zeros(context, DType::F32, shape).unwrap();
    let (x, w) = (tensor(&[4, 32]), tensor(&[32, 32]));
    let format = QuantFormat::affine(4, 32, DType::F16).unwrap();
    let codes = Quantize::new(&w, format).run().unwrap();
    let mut all: Vec<Case> = Vec::new();
    let mut add = |name, x: &Tensor, y: &Tensor, kept, work: Work| {
        all.push((name, work, x.clone(), y.clone(), kept));
    };

    let (a, y, h, factor) = (x.clone(), zeros(&[4, 32]), zeros(&[4, 32]), tensor(&[1]));
    let product = Gemm::new(&a, codes).alpha_tensor(&factor);
    let last = Gemm::new(&h, w.t());
    let z = y.clone();
    let model = move |to: &mut Recorder<'_>| {
        product.record(to, &h)?;
        ops::softmax(&h).record(to, &h)?;
        last.record(to, &z)
    };
    let inner = Recording::new(context, model).unwrap();
    add("a recording within another", &x, &y, true, Box::new(move |to| inner.record(to)));

    let (a, y) = (x.clone(), zeros(&[9, 32]));
    let (places, z) = (Tensor::upload(context, &[8u32, 1, 8, 5], &[4]).unwrap(), y.clone());
    let scatter = move |to: &mut Recorder<'_>| {
        let rows = Tensor::zeros(a.context(), DType::F32, &[4, 32])?;
        ops::add(&rows, &a).record(to, &rows)?;
        ops::scatter(&rows, &places, 9).record(to, &z)
    };
    add("tensors of its own", &x, &y, false, Box::new(scatter));

    let (kernel, y) = (Kernel::new("double").inputs(["a"]).outputs(["out"]), zeros(&[128]));
    let kernel = kernel.source("out[global_id.x] = 2.0 * a[global_id.x];");
    let call = Call::of(&x.reshape(&[128]).unwrap()).grid([128, 1, 1]);
    let (made, given) = (call.clone().output(DType::F32, &[128]), call.output_into(&y));
    let own = kernel.clone();
    add("a kernel", &x, &y, true, Box::new(move |to| kernel.record(to, &given).map(drop)));
    let y = zeros(&[128]);
    let z = y.clone();
    let outputs = move |to: &mut Recorder<'_>| {
        let made = own.record(to, &made)?;
        ops::copy(&made[0]).record(to, &z)
    };
    add("a kernel that makes its output", &x, &y, false, Box::new(outputs));

    let (a, y) = (x.clone(), zeros(&[2, 32]));
    let (rows, z) = (Tensor::upload(context, &[3u32, 0], &[2]).unwrap(), y.clone());
    let take = move |to: &mut Recorder<'_>| Take::new(&a).rows(&rows).record(to, &z);
    add("rows", &x, &y, true, Box::new(take));

    let (y, logits) = (zeros(&[4, 32]), tensor(&[4, 3]));
    let [gate, up, down] = [1, 2, 3].map(|_| tensor(&[3, 32, 32]));
    let layer = moe::MoeLayer::new(gate, up, down, 2);
    let (a, z) = (x.clone(), y.clone());
    let experts = move |to: &mut Recorder<'_>| layer.record(to, &a, &logits, &z);
    add("experts", &x, &y, true, Box::new(experts));
    all
}

/// A recording gives what its work gives, each time, for the numbers that are there then.
#[test]
fn a_recording_gives_what_its_work_gives() {
    for context in contexts() {
        for (name, work, x, y, kept) in cases(&context) {
            let work = Arc::new(work);
            let own = work.clone();
            let recording = Recording::new(&context, move |to| own(to)).unwrap();
            assert!(y.read_blocking::<f32>().unwrap().iter().all(|&y| y == 0.0), "{name} ran");
            let debug = format!("{recording:?}");
            assert!(debug.contains(&format!("is_kept: {}", kept && !context.is_cpu())), "{debug}");
            for round in 1..4 {
                let count = x.elem_count();
                let all: Vec<f32> =
                    (0..count).map(|i| ((5 * i + 7 * round) % 13) as f32 / 8.0 - 0.7).collect();
                x.write(&all).unwrap();
                y.fill(9.0).unwrap();
                context.submit(|to| work(to)).unwrap();
                let wanted = y.read_blocking::<f32>().unwrap();
                assert!(wanted.iter().any(|&y| y != 9.0), "{context:?}: {name} writes nothing");
                y.fill(9.0).unwrap();
                context.submit(|to| recording.record(to)).unwrap();
                assert_eq!(y.read_blocking::<f32>().unwrap(), wanted, "{context:?}: {name}");
                if let Some(device) = context.device() {
                    y.fill(9.0).unwrap();
                    let mut encoder = device.create_command_encoder(&Default::default());
                    recording.record(&mut encoder).unwrap();
                    context.queue().unwrap().submit([encoder.finish()]);
                    assert_eq!(y.read_blocking::<f32>().unwrap(), wanted, "{context:?}: {name}");
                }
            }
        }
    }
}

#[test]
fn a_recording_refuses() {
    for context in contexts() {
        let x = Tensor::upload(&context, &[1.0f32, 2.0], &[2]).unwrap();
        let other = tilewise::Context::cpu();
        let copy = x.clone();
        let recording =
            Recording::new(&context, move |to| ops::add(&copy, &copy).record(to, &copy)).unwrap();
        let mixed = other.submit(|to| recording.record(to)).unwrap_err();
        assert!(mixed.to_string().contains("different contexts"), "{mixed}");
        let copy = x.clone();
        let at_once = Recording::new(&context, move |_| copy.fill(1.0)).unwrap_err();
        assert!(at_once.to_string().contains("record it"), "{at_once}");
        let cache = KvCache::new(&context, DType::F32, 1, [1, 1, 4, 4]).unwrap();
        let cache = Mutex::new(cache);
        let counts = Recording::new(&context, move |to| cache.lock().unwrap().advance(to, 1));
        assert!(matches!(counts, Err(Error::Misuse(_))), "{counts:?}");
        assert_eq!(x.read_blocking::<f32>().unwrap(), [1.0, 2.0]);
    }
}
