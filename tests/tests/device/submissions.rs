//! Work in several submissions, each of which must be short.

use std::time::Duration;
use tilewise::timing::time;
use tilewise::{
    Activation, Call, Context, ContextOptions, DType, Error, Gemm, Kernel, Prepared, Recorder,
    Result, Take, Tensor, ops,
};
use tilewise_core::DeviceClass;
use tilewise_tests::moe::{Case, Operands, PLAIN};
use tilewise_tests::{Adapter, Rng, adapters, contexts};

/// A context of its own for a test. Its submissions may take this many seconds.
fn bounded(adapter: &Adapter, seconds: f64) -> Context {
    let time = Duration::from_secs_f64(seconds);
    let options = ContextOptions::default().adapter(adapter.address()).max_submission_time(time);
    Context::request_blocking(&options).unwrap()
}

/// How many submissions `work` makes.
fn submissions(context: &Context, work: impl FnOnce()) -> u64 {
    let next = || {
        let index = format!("{:?}", context.queue().unwrap().submit([]));
        let digits: String = index.chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u64>().unwrap()
    };
    let before = next();
    work();
    next() - before - 1
}

/// Whatever runs or reads at once would do so before all that is recorded, on GPUs alone.
#[test]
fn nothing_runs_at_once_inside_of_submit() {
    type Work = fn(&Tensor) -> Result<()>;
    let at_once: [Work; 14] = [
        |x| ops::add(x, x).run_into(x),
        |x| ops::top_k(x, 1).run().map(drop),
        |x| x.context().matmul(x, x).map(drop),
        |x| Gemm::new(x, x).add_to(x).run().map(drop),
        |x| x.fill(10.0),
        |x| x.write(&[10.0f32]),
        |x| x.copy_from(x),
        |x| x.cast(DType::F16).map(drop),
        |x| x.rows(&Tensor::upload(x.context(), &[0u32], &[1])?).map(drop),
        |x| x.read_blocking::<f32>().map(drop),
        |x| Prepared::right(x).map(drop),
        |x| pollster::block_on(time(x.context(), |_| Ok(()))).map(drop),
        |x| x.context().submit(|_| Ok(())),
        |x| x.context().submit(|to| ops::add(x, x).record(to, x)),
    ];
    for context in contexts() {
        let other = Context::cpu();
        let y = Tensor::zeros(&other, DType::F32, &[1, 1]).unwrap();
        for work in at_once {
            let x = Tensor::upload(&context, &[1.0f32], &[1, 1]).unwrap();
            let add = ops::add(&x, &x);
            let refused = context.submit(|to| {
                // Another context may do what it likes, and does not end the check.
                y.fill(5.0)?;
                let error = other.submit(|_| Ok(work(&x).unwrap_err()))?;
                add.record(to, &x)?;
                add.record(to, &Tensor::zeros(&context, DType::F32, &[1, 1])?)?;
                Ok(error)
            });
            let error = refused.unwrap();
            let text = error.to_string();
            assert!(matches!(error, Error::Misuse(_)) && text.contains("record it"), "{error:?}");
            assert_eq!(x.read_blocking::<f32>().unwrap(), [2.0], "{context:?}");
            work(&x).unwrap();
        }
        // In timed work, too, which may be called more than once.
        let x = Tensor::zeros(&context, DType::F32, &[1, 1]).unwrap();
        let timed = pollster::block_on(time(&context, |to| {
            x.fill(1.0).unwrap_err();
            ops::add(&x, &x).record(to, &x)
        }));
        timed.unwrap();
        assert_eq!(x.read_blocking::<f32>().unwrap(), [0.0], "{context:?}");
        // After a panic calls are allowed again.
        let panics = || context.submit(|_| -> Result<()> { panic!("wanted") });
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(panics)).unwrap_err();
        x.fill(1.0).unwrap();
    }
}

/// A warm-up returns what its work returns, its errors, and those of what it records, the first one
/// first. It runs nothing, and neither does anything inside of it.
#[test]
fn a_warm_up_checks_what_is_recorded() {
    for context in contexts() {
        let x = Tensor::upload(&context, &[1.0f32, 2.0], &[1, 2]).unwrap();
        let y = Tensor::upload(&context, &[1.0f32, 2.0], &[1, 2]).unwrap();
        let other = Tensor::zeros(&Context::cpu(), DType::F32, &[1, 2]);
        let wrong = Kernel::new("wrong").inputs(["a"]).outputs(["out"]).source("out[0] = b[0];");
        let call = Call::of(&x).output_into(&y).grid([1, 1, 1]);
        type Work<'a> = &'a dyn Fn(&mut Recorder<'_>) -> Result<()>;
        let cases: [(&str, Work<'_>); 8] = [
            ("of its own", &|_| Err(Error::Misuse("of its own".into()))),
            ("K differs", &|to| Gemm::new(&x, &x).record(to, &y)),
            ("\"none\"", &|to| Gemm::new(&x, x.t()).kernel("none").record(to, &y.narrow(1, 0, 1)?)),
            ("softmax: the output", &|to| ops::softmax(&x).record(to, &y.t())),
            ("contiguous f16", &|to| Take::new(&x).out_dtype(DType::F16).record(to, &y)),
            ("`b`", &|to| {
                wrong.record(to, &call)?;
                wrong.clone().source("out[0] = c[0];").record(to, &call).map(drop)
            }),
            ("different contexts", &|to| ops::add(&x, &x).record(to, other.as_ref().unwrap())),
            ("record it", &|_| x.fill(5.0)),
        ];
        for (text, work) in cases {
            let error = context.warm_up(|to| {
                ops::add(&x, &x).record(to, &y)?;
                work(to)
            });
            let error = error.expect_err(text).to_string();
            assert!(error.contains(text), "{context:?}: {text}: {error}");
        }
        let fine = |to: &mut Recorder<'_>| ops::add(&x, &x).record(to, &y).map(|()| 5);
        assert_eq!(context.warm_up(fine).unwrap(), 5);
        context.submit(|_| Ok(context.warm_up(fine).unwrap_err())).unwrap();
        assert_eq!(y.read_blocking::<f32>().unwrap(), [1.0, 2.0]);

        let error = wrong.validate(&call).unwrap_err();
        assert!(error.to_string().contains("`b`"), "{error}");
        let error = wrong.source("let b = 1;").validate(&call).unwrap_err();
        assert!(error.to_string().contains("out"), "{error}");
        let right = Kernel::new("right").inputs(["a"]).outputs(["out"]).source("out[0] = a[1];");
        right.validate(&call).unwrap();
        assert_eq!(y.read_blocking::<f32>().unwrap(), [1.0, 2.0]);
        right.run(&call).unwrap();
        assert_eq!(y.read_blocking::<f32>().unwrap()[0], 2.0);
    }
}

fn numbers(context: &Context, shape: &[usize]) -> Tensor {
    let mut rng = Rng::new(shape.iter().sum::<usize>() as u64);
    let all: Vec<f32> = (0..shape.iter().product()).map(|_| rng.number()).collect();
    Tensor::upload(context, &all, shape).unwrap()
}

/// A product that takes far longer than its start, on the kernel that compiles the fastest.
fn product(context: &Context) -> Gemm {
    let [m, n, k] = match context.caps().class {
        DeviceClass::Cpu => [256, 257, 256],
        _ => [2048, 2049, 1024],
    };
    Gemm::new(&numbers(context, &[m, k]), numbers(context, &[k, n])).kernel("naive")
}

/// A fifth of the seconds that the product takes on an adapter.
fn fifth(adapter: &Adapter) -> f64 {
    product(&adapter.context).plans().unwrap()[0].seconds() / 5.0
}

/// A product has as many submissions as the estimates ask for, and the bits of one submission.
#[test]
fn products_that_take_long() {
    for adapter in adapters() {
        let bound = fifth(adapter);
        let [free, context] = [adapter.another(), bounded(adapter, bound)];
        // Columns of 16 bits share words, so sums wait in scratch memory.
        for dtype in [DType::F32, DType::F16] {
            let gemm =
                |context: &Context| product(context).activation(Activation::Relu).out_dtype(dtype);
            let bytes = |gemm: &Gemm| gemm.run().unwrap().read_bytes_blocking().unwrap();
            let (whole, cut) = (gemm(&free), gemm(&context));
            let text = cut.explain().unwrap();
            assert!(text.contains("\ncut     into "), "{text}");
            assert!(!whole.explain().unwrap().contains("\ncut "));
            let mut wanted = (1, 0.0);
            for seconds in
                cut.plans().unwrap()[0].passes.iter().filter_map(|pass| pass.piece_seconds)
            {
                wanted = match wanted {
                    (count, recorded) if recorded + seconds <= bound => (count, recorded + seconds),
                    (count, _) => (count + 1, seconds),
                };
            }
            let c = [(); 2].map(|()| cut.run().unwrap());
            assert_eq!(submissions(&context, || cut.run_into(&c[0]).unwrap()), wanted.0);
            assert!(wanted.0 > 3, "{text}");
            let one = whole.run().unwrap();
            assert_eq!(submissions(&free, || whole.run_into(&one).unwrap()), 1);
            // The caller's encoder is a single submission in any case.
            let mut encoder = context.device().unwrap().create_command_encoder(&Default::default());
            let own = submissions(&context, || cut.record(&mut encoder, &c[1]).unwrap());
            assert_eq!(own, 0);
            context.queue().unwrap().submit([encoder.finish()]);
            let whole = bytes(&whole);
            for c in c {
                assert_eq!(c.read_bytes_blocking().unwrap(), whole, "{dtype} on {context:?}");
            }
        }
        // The product is timed by the wall clock.
        let (_, timing) = product(&context).run_timed_blocking().unwrap();
        assert_eq!(timing.method, tilewise::timing::Method::WallClock);
        assert!(timing.seconds > 0.0);
    }
}

/// Between two submissions of a product another thread has its own. It uses the same scratch memory
/// and, if factors lie on the device, the same plan.
#[test]
fn products_that_take_turns() {
    for adapter in adapters() {
        let context = bounded(adapter, fifth(adapter));
        let gemm = product(&context).out_dtype(DType::F16);
        let product = |alpha: f32, on_device: bool| {
            let factor = Tensor::upload(&context, &[alpha], &[]).unwrap();
            match on_device {
                true => gemm.clone().alpha_tensor(&factor),
                false => gemm.clone().alpha(alpha),
            }
        };
        let bytes = |c: Tensor| c.read_bytes_blocking().unwrap();
        let wanted = [0.5, -2.0].map(|alpha| bytes(product(alpha, false).run().unwrap()));
        std::thread::scope(|scope| {
            for (alpha, wanted) in [0.5, -2.0].into_iter().zip(&wanted) {
                let product = &product;
                scope.spawn(move || {
                    for turn in 0..6 {
                        let c = product(alpha, turn % 3 > 0).run().unwrap();
                        assert!(bytes(c) == *wanted, "{alpha}, turn {turn}");
                    }
                });
            }
        });
    }
}

/// A layer submits before each product for which no time is left.
#[test]
fn layers_that_take_long() {
    for adapter in adapters() {
        let operands = Operands::new(Case { tokens: 9, shared: Some(6), ..PLAIN }, 3);
        let [free, context] = [adapter.another(), bounded(adapter, 0.0)];
        let [y, cut] = [&free, &context].map(|context| {
            let ([x, logits], layer) = (operands.on(context), operands.layer(context));
            let y = layer.forward(&x, &logits).unwrap();
            let products = layer.plans(&x, &logits).unwrap().len() as u64;
            let count = submissions(context, || layer.forward_into(&x, &logits, &y).unwrap());
            (y.read_bytes_blocking().unwrap(), [count, products])
        });
        assert_eq!(y.0, cut.0);
        assert_eq!(y.1[0], 1);
        assert!(cut.1[0] >= cut.1[1] && cut.1[1] > 2, "{:?}", cut.1);
    }
}
