//! Operations on tensors that do not fit a binding of the device run in parts, with the bits of the
//! whole.

use tilewise::moe::Router;
use tilewise::ops::{self, Op, Operation};
use tilewise::{Context, DType, Error, Tensor};
use tilewise_core::{Caps, convert};
use tilewise_tests::adapters;
use tilewise_tests::ops::units;

use DType::{BF16, F16, F32};

/// How many kernels ran, and the outputs.
type Ran = (usize, Vec<Tensor>);

/// An operation, the bytes of a binding, and a run.
type Case = (&'static str, u64, fn(&Context) -> Ran);

fn numbers(context: &Context, dtype: DType, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let numbers: Vec<f32> = (0..count).map(|i| (i * 7919 % 1009) as f32 / 128.0 - 4.0).collect();
    Tensor::from_bytes(context, dtype, &convert::encode(dtype, &numbers), shape).unwrap()
}

fn words(context: &Context, below: usize, shape: &[usize]) -> Tensor {
    let count: usize = shape.iter().product();
    let words: Vec<u32> = (0..count).map(|i| (i * 7919 % below) as u32).collect();
    Tensor::upload(context, &words, shape).unwrap()
}

fn one<K: Operation>(op: Op<K>) -> Ran {
    let out = op.run().unwrap();
    (op.calls(&out).unwrap().len(), vec![out])
}

fn two<K: Operation<2>>(pair: Op<K, 2>) -> Ran {
    let outs = pair.run().unwrap();
    (pair.calls(outs.each_ref()).unwrap().len(), outs.into())
}

/// Runs into a view. The tensor around the view is an output, too.
fn within<K: Operation>(op: &Op<K>, view: &Tensor, around: Tensor) -> Ran {
    op.run_into(view).unwrap();
    (op.calls(view).unwrap().len(), vec![around])
}

const CASES: &[Case] = &[
    ("softmax", 4096, |on| {
        let (x, mask) = (numbers(on, F32, &[5, 37, 61]), numbers(on, F16, &[37, 61]));
        one(ops::softmax(&x).scale(0.5).mask(&mask).causal(3))
    }),
    ("softmax of other strides", 4096, |on| {
        let x = numbers(on, BF16, &[37, 5, 61]).transpose(0, 1).unwrap();
        one(ops::softmax(&x).causal(0))
    }),
    ("softmax with sinks", 4096, |on| {
        let (x, sinks) = (numbers(on, F32, &[5, 37, 61]), numbers(on, F16, &[5, 1, 1]));
        one(ops::softmax(&x).sinks(&sinks))
    }),
    ("softmax at positions", 4096, |on| {
        let (x, positions) = (numbers(on, F32, &[5, 37, 61]), words(on, 40, &[5]));
        one(ops::softmax(&x).causal(&positions).window(20))
    }),
    ("attention", 4096, |on| {
        let (q, cache) = (numbers(on, F32, &[2, 6, 100, 9]), numbers(on, F16, &[2, 50, 3, 9]));
        let [cache, sinks] = [cache.transpose(1, 2).unwrap(), numbers(on, F32, &[6, 1, 1])];
        let position = Tensor::upload(on, &[3u32, 7, 9, 4, 1, 2], &[2, 3]).unwrap();
        one(ops::attention(&q, &cache, &cache).causal(&position).window(20).sinks(&sinks))
    }),
    ("attention with lengths", 4096, |on| {
        let (q, mask) = (numbers(on, F32, &[80, 21]), numbers(on, F16, &[80, 33]));
        let keys = numbers(on, BF16, &[33, 21]);
        one(ops::attention(&q, &keys, &keys).lengths(30).mask(&mask))
    }),
    ("attention of halves", 4096, |on| {
        let [q, keys] = [300, 140].map(|rows| numbers(on, F16, &[rows, 9]));
        one(ops::attention(&q, &keys, &keys).causal(0).scale(0.25))
    }),
    ("add", 4096, |on| one(ops::add(&numbers(on, F16, &[3, 53, 59]), &numbers(on, F16, &[53, 1])))),
    ("mul, both broadcast", 4096, |on| {
        one(ops::mul(&numbers(on, F32, &[1, 1501]), &numbers(on, F32, &[7, 1])))
    }),
    ("exp of a vector", 4096, |on| one(ops::exp(&numbers(on, F32, &[5001])))),
    ("silu in place, within more", 4096, |on| {
        let around = numbers(on, F16, &[40, 83]);
        let view = around.slice(&[3..38, 2..79]).unwrap();
        within(&ops::silu(&view), &view, around)
    }),
    ("copy of a transposed tensor", 4096, |on| one(ops::copy(&numbers(on, BF16, &[67, 71]).t()))),
    ("copy to a transposed tensor", 4096, |on| {
        let around = numbers(on, F32, &[67, 71]);
        within(&ops::copy(&numbers(on, F16, &[71, 67])), &around.t(), around)
    }),
    ("cast of words", 4096, |on| one(ops::copy(&words(on, 999, &[41, 61])).out_dtype(F16))),
    ("fill", 4096, |on| {
        let x = numbers(on, BF16, &[40, 83]);
        x.slice(&[1..39, 2..79]).unwrap().fill(3.0).unwrap();
        (usize::MAX, vec![x])
    }),
    ("layer_norm", 4096, |on| {
        let [weight, bias] = [F32, BF16].map(|dtype| numbers(on, dtype, &[77]));
        one(ops::layer_norm(&numbers(on, F32, &[41, 77]), &weight, &bias, 1e-5))
    }),
    ("rms_norm in place", 4096, |on| {
        let x = numbers(on, BF16, &[3, 41, 77]);
        within(&ops::rms_norm(&x, &numbers(on, F32, &[77]), 1e-5), &x, x.clone())
    }),
    ("rms_norm with a residual", 4096, |on| {
        let (y, x) = (numbers(on, F32, &[3, 41, 77]), numbers(on, F16, &[41, 77]));
        one(ops::rms_norm(&y, &numbers(on, F32, &[77]), 1e-5).residual(&x))
    }),
    ("add_rms_norm", 4096, |on| {
        let (x, y) = (numbers(on, F32, &[3, 41, 77]), numbers(on, F16, &[41, 77]));
        two(ops::add_rms_norm(&x, &y, &numbers(on, F32, &[77]), 1e-5))
    }),
    ("rope", 4096, |on| {
        let [cos, sin] = [1, 2].map(|rows| numbers(on, F32, &[rows + 16, 23]));
        let [cos, sin] = [cos, sin].map(|table| table.narrow(0, 0, 17).unwrap());
        one(ops::rope(&numbers(on, F16, &[6, 17, 46]), &cos, &sin))
    }),
    ("rope of norms", 4096, |on| {
        let [cos, sin] = [30, 31].map(|rows| numbers(on, F32, &[rows, 15]).narrow(0, 0, 30));
        let (cos, sin, weight) = (cos.unwrap(), sin.unwrap(), numbers(on, F32, &[30]));
        let x = numbers(on, F16, &[6, 27, 30]);
        one(ops::rope(&x, &cos, &sin).rms_norm(&weight, 1e-5).at(2).into_rows(60))
    }),
    ("rope of neighbours", 4096, |on| {
        let [cos, sin] = [16, 17].map(|from| numbers(on, F32, &[70, from]).narrow(1, 0, 15));
        let [cos, sin] = [cos, sin].map(Result::unwrap);
        one(ops::rope(&numbers(on, F32, &[2, 70, 30]), &cos, &sin).interleaved())
    }),
    ("rope at positions", 4096, |on| {
        let [cos, sin] = [1, 2].map(|rows| numbers(on, F32, &[rows + 60, 15]));
        let [cos, sin] = [cos, sin].map(|table| table.narrow(0, 0, 61).unwrap());
        let rope = ops::rope(&numbers(on, F16, &[6, 27, 30]), &cos, &sin);
        one(rope.at(&words(on, 50, &[6])))
    }),
    ("rope into rows", 4096, |on| {
        let [cos, sin] = [60, 61].map(|rows| numbers(on, F32, &[rows, 15]).narrow(0, 0, 60));
        let [cos, sin] = [cos, sin].map(Result::unwrap);
        one(ops::rope(&numbers(on, F32, &[50, 30]), &cos, &sin).at(7).into_rows(150))
    }),
    ("append", 4096, |on| {
        let (x, positions) = (numbers(on, F32, &[3, 60, 13]), words(on, 50, &[3]));
        one(ops::append(&x, 70, &positions))
    }),
    ("append to one cache", 4096, |on| {
        one(ops::append(&numbers(on, F16, &[300, 13]), 400, 99).out_dtype(F32))
    }),
    ("sum of rows", 4096, |on| one(ops::sum(&numbers(on, F32, &[53, 101]), 1))),
    ("mean between others", 4096, |on| one(ops::mean(&numbers(on, F16, &[9, 61, 23]), 1))),
    ("max in columns", 4096, |on| one(ops::max(&numbers(on, F32, &[1000, 5]), 0))),
    ("arg_max", 4096, |on| one(ops::arg_max(&numbers(on, F16, &[3, 29, 131]), 2))),
    ("sum of long rows", 1 << 17, |on| one(ops::sum(&numbers(on, F32, &[3, 100_001]), 1))),
    ("min of a vector", 1 << 17, |on| one(ops::min(&numbers(on, F16, &[200_001]), 0))),
    ("top_k", 4096, |on| two(ops::top_k(&numbers(on, F32, &[61, 67]), 3))),
    ("choose", 4096, |on| two(Router::new(3).choose(&numbers(on, F32, &[90, 31])))),
    ("sample", 4096, |on| {
        let (logits, counters) = (numbers(on, F16, &[3, 30, 67]), words(on, 99, &[3, 30]));
        let sample = ops::sample(&logits, 5).temperature(2.0).top_k(20).top_p(0.9).min_p(0.01);
        one(sample.at(&counters))
    }),
    ("gather", 4096, |on| {
        one(ops::gather(&numbers(on, F16, &[19, 3, 13]), &words(on, 21, &[150])).or_zeros())
    }),
    ("gather from a table", 4096, |on| {
        one(ops::gather(&numbers(on, BF16, &[301, 5, 13]), &words(on, 305, &[150])))
    }),
    ("gather words from a table", 4096, |on| {
        one(ops::gather(&words(on, 999, &[150, 31]), &words(on, 160, &[9])))
    }),
    ("scatter", 4096, |on| {
        // If several rows go to one place, the last one stays.
        let (x, places) = (numbers(on, F16, &[301, 3, 13]), words(on, 199, &[301]));
        one(ops::scatter(&x, &places, 190))
    }),
    ("combine", 4096, |on| {
        let (places, weights) = (words(on, 13, &[400, 3]), numbers(on, F32, &[400, 3]));
        one(ops::combine(&numbers(on, F16, &[12, 37]), &places, &weights))
    }),
    ("take_along", 4096, |on| {
        one(ops::take_along(&numbers(on, BF16, &[70, 63]), &words(on, 65, &[70, 17])))
    }),
    ("exclusive_scan", 4096, |on| {
        one(ops::exclusive_scan(&numbers(on, F32, &[2, 23, 129])).with_total())
    }),
];

#[test]
fn operations_beyond_a_binding() {
    for (turn, adapter) in adapters().iter().enumerate() {
        let limited = |bytes: u64| {
            adapter.with_limits(|limits| limits.max_storage_buffer_binding_size = bytes)
        };
        let (whole, small) = (adapter.with_limits(|_| {}), [1 << 12, 1 << 17].map(limited));
        // A software device compiles for seconds, so it runs every other case.
        let step = if adapter.description.hardware { 1 } else { 2 };
        for (name, bytes, run) in CASES.iter().skip(turn % step).step_by(step) {
            let small = small.iter().find(|context| context.caps().max_binding_bytes == *bytes);
            let [(kernels, wanted), (parts, got)] = [&whole, small.unwrap()].map(run);
            assert!(kernels == usize::MAX || parts > kernels, "{name}: {parts} kernels");
            for (got, wanted) in got.iter().zip(&wanted) {
                let [got, wanted] = [got, wanted].map(|it| it.read_bytes_blocking().unwrap());
                assert!(got == wanted, "{name} on {}", adapter.name());
            }
        }
    }
}

/// A part takes matrix units if the whole does, and has its bits.
#[test]
fn parts_on_matrix_units() {
    let own = |max_binding_bytes| Context::cpu_as(Caps { max_binding_bytes, ..units() });
    let (_, bytes, run) = CASES.iter().find(|(name, ..)| *name == "attention of halves").unwrap();
    let [(_, wanted), (parts, got)] = [own(1 << 20), own(*bytes)].map(|context| run(&context));
    assert!(parts > 1);
    let [wanted, got] = [wanted, got].map(|it| it[0].read_bytes_blocking().unwrap());
    assert!(wanted == got);
}

/// Errors name what cannot be cut: a single row, rows that lie among each other, and a vector that
/// is sorted.
#[test]
fn rows_beyond_a_binding() {
    for adapter in adapters() {
        let on = &adapter.with_limits(|limits| limits.max_storage_buffer_binding_size = 4096);
        let refused = |result: tilewise::Result<Vec<Tensor>>, name: &str| match result {
            Err(Error::DeviceLimit(text)) => {
                let limit = "the limit is 4096 (max_storage_buffer_binding_size)";
                let operand = format!("too large: {name} needs ");
                assert!(text.starts_with(&operand) && text.ends_with(limit), "{text}");
            }
            other => panic!("{name}: {other:?}"),
        };
        let some = |result: tilewise::Result<Tensor>| result.map(|out| vec![out]);
        let row = numbers(on, F32, &[3, 1025]);
        refused(some(ops::softmax(&row).run()), "x");
        refused(some(ops::softmax(&numbers(on, F32, &[61, 90]).t()).run()), "x");
        let [one, keys] = [1, 40].map(|rows| numbers(on, F32, &[rows, 33]));
        refused(some(ops::attention(&one, &keys, &keys).run()), "k");
        refused(some(ops::sum(&row, 1).run()), "x");
        let places = words(on, 40, &[9, 2]);
        let table = numbers(on, F32, &[40, 33]);
        refused(some(ops::combine(&table, &places, &numbers(on, F32, &[9, 2])).run()), "x");
        refused(ops::sort(&words(on, 9, &[1025])).run().map(Into::into), "keys");
    }
}
