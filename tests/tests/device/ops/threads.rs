//! The bits of the CPU executor do not depend on the number of threads.

use tilewise::{Context, DType, Result, Tensor, ops};
use tilewise_tests::by_threads;
use tilewise_tests::ops::FAMILIES;

#[test]
fn cases_have_the_same_bits() {
    let contexts = by_threads();
    for (family, cases) in FAMILIES {
        for case in cases() {
            let bits = contexts.each_ref().map(|context| case.bits(context).unwrap());
            assert!(bits[0] == bits[1] && bits[0] == bits[2], "{family}: {}", case.name);
        }
    }
}

/// Operations of many pieces.
#[test]
fn large_operations_have_the_same_bits() {
    type Work = fn(&Tensor, &Tensor) -> Result<Tensor>;
    const ALL: &[(&str, Work)] = &[
        ("softmax", |x, _| ops::softmax(x).causal(0).run()),
        ("rms_norm", |x, row| ops::rms_norm(x, row, 1e-5).run()),
        ("layer_norm", |x, row| ops::layer_norm(&x.t().contiguous()?.t(), row, row, 1e-5).run()),
        ("silu_mul", |x, row| ops::silu_mul(x, row).run()),
        ("copy", |x, _| ops::copy(&x.t()).out_dtype(DType::F16).run()),
        ("sum", |x, _| ops::sum(x, 0).run()),
        ("arg_max", |x, _| ops::arg_max(x, 1).run()),
        ("top_k", |x, _| Ok(ops::top_k(x, 50).run()?[1].clone())),
        ("exclusive_scan", |x, _| ops::exclusive_scan(x).run()),
        ("sample", |x, _| ops::sample(x, 7).top_p(0.5).run()),
        ("attention", |x, _| {
            let [q, k, v] = [0, 64, 128].map(|from| x.narrow(1, from, 64));
            ops::attention(&q?, &k?, &v?).causal(0).run()
        }),
        ("attention of f16", |x, _| {
            let half = x.cast(DType::F16)?.reshape(&[300, 10, 100])?.transpose(0, 1)?;
            ops::attention(&half, &half, &half).causal(0).run()
        }),
    ];
    let numbers: Vec<f32> = (0..300_000u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / (1 << 22) as f32 - 2.0)
        .collect();
    let ran = by_threads().map(|context| {
        let x = Tensor::upload(&context, &numbers, &[300, 1000]).unwrap();
        let row = x.narrow(0, 3, 1).unwrap().squeeze(0).unwrap();
        let run = |(_, work): &(_, Work)| work(&x, &row).unwrap().read_bytes_blocking().unwrap();
        ALL.iter().map(run).collect::<Vec<_>>()
    });
    for (at, (name, _)) in ALL.iter().enumerate() {
        assert!(ran[0][at] == ran[1][at] && ran[0][at] == ran[2][at], "{name}");
        // New tensors are zeros, so a loop that writes nothing leaves one number everywhere.
        assert!(ran[0][at].chunks_exact(4).any(|word| word != &ran[0][at][..4]), "{name}");
    }
}

/// Threads of rayon may call operations on parts of one tensor. None of them waits for itself.
#[test]
fn threads_of_rayon() {
    let context = Context::cpu();
    let numbers = vec![1.0f32; 64 << 10];
    let x = Tensor::upload(&context, &numbers, &[64 << 10]).unwrap();
    let y = Tensor::zeros(&context, DType::F32, &[16, 64 << 10]).unwrap();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    pool.scope(|scope| {
        for row in 0..16 {
            let (x, y) = (&x, y.narrow(0, row, 1).unwrap().squeeze(0).unwrap());
            scope.spawn(move |_| ops::scale(x, row as f32).run_into(&y).unwrap());
        }
    });
    let sums = ops::mean(&y, 1).run().unwrap().read_blocking::<f32>().unwrap();
    assert!(sums.into_iter().eq((0..16).map(|row| row as f32)));
}
