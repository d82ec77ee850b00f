//! Ready operations: every case on every adapter and on the CPU executor, and the small cases in
//! the sanitizer. Bad input is refused.

use std::collections::HashSet;
use tilewise::sanitizer::Options;
use tilewise::{Call, Context, DType, Error, GroupEnds, Kernel, Tensor, ops};
use tilewise_core::Caps;
use tilewise_tests::ops::{self as cases, Case};
use tilewise_tests::{adapters, contexts, minima, turns};

/// A software device compiles for seconds, so it runs one of this many cases. The CPU executor and
/// hardware run all.
const SOFTWARE: usize = 7;

/// Runs the cases of a family on the CPU executor and on every adapter.
fn are_right(family: &str) {
    let (_, cases) = cases::FAMILIES.iter().find(|(name, _)| *name == family).unwrap();
    let mut wrong = Vec::new();
    let mut run = |case: &Case, context: &Context| {
        if let Err(why) = case.run(context) {
            wrong.push(format!("{} on {}: {why}", case.name, context.adapter_name()));
        }
    };
    let cpu = Context::cpu();
    for (number, case) in cases().iter().enumerate() {
        run(case, &cpu);
        for (turn, adapter) in adapters().iter().enumerate() {
            if adapter.description.hardware || number % SOFTWARE == turn % SOFTWARE {
                run(case, &adapter.context);
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn softmax() {
    are_right("softmax");
}

#[test]
fn elementwise() {
    are_right("elementwise");
}

#[test]
fn norms() {
    are_right("norm");
}

#[test]
fn reductions() {
    are_right("reduce");
}

#[test]
fn rope() {
    are_right("rope");
}

#[test]
fn append() {
    are_right("append");
}

#[test]
fn top_k() {
    are_right("top_k");
}

#[test]
fn choose() {
    are_right("choose");
}

#[test]
fn gather() {
    are_right("gather");
}

#[test]
fn scatter() {
    are_right("scatter");
}

#[test]
fn combine() {
    are_right("combine");
}

#[test]
fn group() {
    are_right("group");
}

#[test]
fn take_along() {
    are_right("take_along");
}

#[test]
fn histogram() {
    are_right("histogram");
}

#[test]
fn scan() {
    are_right("scan");
}

#[test]
fn sort() {
    are_right("sort");
}

#[test]
fn large_cases() {
    let all = cases::large().into_iter().chain(cases::in_parts());
    for (number, case) in turns::of(all, 2).enumerate() {
        for (turn, adapter) in adapters().iter().enumerate() {
            if !adapter.description.hardware && number % 2 != turn % 2 {
                continue;
            }
            let ran = case.run(&adapter.context);
            assert!(ran.is_ok(), "{} on {}: {ran:?}", case.name, adapter.context.adapter_name());
        }
    }
}

#[test]
fn small_cases_are_clean() {
    let mut wrong = Vec::new();
    let small = cases::small(400).into_iter().filter(|case| !case.is_empty());
    for case in turns::of(small.chain(cases::in_parts()), 2) {
        if let Err(why) = case.check(&Options::default(), |(_, text)| text.to_owned()) {
            wrong.push(format!("{}: {why}", case.name));
        }
    }
    assert!(wrong.is_empty(), "{} cases\n{}", wrong.len(), wrong.join("\n"));
}

#[track_caller]
fn refused<T: std::fmt::Debug>(result: tilewise::Result<T>, kind: fn(&Error) -> bool, words: &str) {
    let error = result.unwrap_err();
    assert!(kind(&error) && error.to_string().contains(words), "{error:?}");
}

#[test]
fn bad_input_is_refused() {
    for context in contexts() {
        let zeros = |shape: &[usize]| Tensor::zeros(&context, DType::F32, shape).unwrap();
        let x = zeros(&[4, 6]);
        let shape: fn(&Error) -> bool = |error| matches!(error, Error::Shape(_));
        let misuse: fn(&Error) -> bool = |error| matches!(error, Error::Misuse(_));
        let aliased: fn(&Error) -> bool =
            |error| matches!(&error, Error::Shape(text) if text.starts_with("aliasing: "));
        let unsupported: fn(&Error) -> bool = |error| matches!(error, Error::Unsupported(_));
        let value: fn(&Error) -> bool = |error| matches!(error, Error::Misuse(_));
        let softmax = ops::softmax(&x);
        refused(softmax.run_into(&zeros(&[6, 4])), shape, "[6, 4], wanted [4, 6]");
        refused(softmax.run_into(&x.reshape(&[6, 4]).unwrap().t()), aliased, "as run() does");
        refused(softmax.clone().mask(&zeros(&[5])).run(), shape, "mask of shape [5]");
        refused(softmax.clone().sinks(&zeros(&[6])).run(), shape, "sinks of shape [6]");
        refused(softmax.clone().sinks(&zeros(&[3, 1])).run(), shape, "[4, 6], wanted [4, 1]");
        refused(ops::softmax(&zeros(&[4])).causal(0).run(), shape, "2 dimensions");
        refused(ops::softmax(&zeros(&[])).run(), shape, "1 dimensions");
        refused(softmax.clone().window(2).run(), misuse, "wants causal()");
        refused(softmax.clone().causal(0).window(0).run(), misuse, "a key at least");
        refused(softmax.clone().softcap(0.0).run(), misuse, "softcap is 0");
        refused(softmax.clone().causal(&x).run(), unsupported, "the position in f32");
        let of_two = Tensor::zeros(&context, DType::U32, &[2]).unwrap();
        let rank = "the position has shape [2], wanted one element";
        refused(softmax.clone().causal(&of_two).run(), shape, rank);
        let batch = zeros(&[2, 3, 4, 6]);
        let of_three = Tensor::zeros(&context, DType::U32, &[3]).unwrap();
        refused(ops::append(&batch, 9, &of_three).run(), shape, "the first axes of [2, 3]");
        refused(ops::append(&batch, 9, 6).run(), shape, "at position 6, and 9 rows of the output");
        refused(ops::append(&batch, 3, &of_two).run(), shape, "and 3 rows of the output");
        refused(ops::append(&zeros(&[4]), 9, 6).run(), shape, "wanted [..., T, D]");
        let rope = |rows: usize, d: usize| ops::rope(&x, &zeros(&[rows, d]), &zeros(&[rows, d]));
        refused(rope(7, 3).at(4).run(), shape, "at position 4, and 7 rows of the tables");
        refused(rope(9, 3).at(4).into_rows(7).run(), shape, "and 7 rows of the output");
        refused(rope(9, 2).at(4).run(), shape, "cos has shape [9, 2], wanted [9, 3]");
        refused(rope(1, 3).into_rows(7).run(), shape, "and 1 rows of the tables");
        let norm = ops::rms_norm(&x, &zeros(&[6]), 0.0);
        refused(norm.clone().residual(&zeros(&[4])).run(), shape, "a residual of shape [4]");
        refused(norm.weight_offset(f32::NAN).run(), misuse, "weight_offset is NaN");
        refused(ops::scale(&x, f32::INFINITY).run(), misuse, "the factor is inf");
        refused(ops::softmax(&zeros(&[1; 9])).run(), shape, "9 dimensions, at most 8");
        // Invocations would write rows that others read.
        let rows = [x.slice(&[0..3, 0..6]).unwrap(), x.slice(&[1..4, 0..6]).unwrap()];
        let words = "a of exp share bytes 24..72 of one buffer: give another output, as run() \
                     does, or the very view that is read";
        refused(ops::exp(&rows[0]).run_into(&rows[1]), aliased, words);
        refused(
            ops::sum(&x, 0).run_into(&x.slice(&[0..1, 0..6]).unwrap().reshape(&[6]).unwrap()),
            aliased,
            "sum",
        );
        refused(ops::add(&x, &zeros(&[5])).run(), shape, "[4, 6] and [5]");
        refused(ops::add(&zeros(&[6]), &x).run_into(&zeros(&[6])), shape, "[6], wanted [4, 6]");
        refused(
            ops::layer_norm(&x, &zeros(&[6]), &zeros(&[4]), 0.0).run(),
            shape,
            "[4], wanted [6]",
        );
        for number in [f32::NAN, f32::INFINITY, -1.0] {
            let words = format!("swiglu_oai: limit is {number}, wanted");
            refused(ops::swiglu_oai(&x, &x, 1.0, number).run(), value, &words);
        }
        for eps in [f32::NAN, f32::INFINITY, -1e-6] {
            let words = format!("eps is {eps}, wanted");
            refused(ops::rms_norm(&x, &zeros(&[6]), eps).run(), value, &words);
        }
        refused(ops::rms_norm(&x, &zeros(&[1, 6]), 0.0).run(), shape, "weight has shape [1, 6]");
        refused(ops::rms_norm(&zeros(&[]), &zeros(&[]), 0.0).run(), shape, "wanted a last axis");
        refused(ops::sum(&x, 2).run(), shape, "axis 2 of shape [4, 6], which has 2 axes");
        for empty in [ops::max, ops::min, ops::mean] {
            let words = "axis 1 of shape [3, 0] has no elements";
            refused(empty(&zeros(&[3, 0]), 1).run(), shape, words);
        }
        refused(ops::rope(&zeros(&[4, 5]), &x, &x).run(), shape, "[4, 5], wanted [..., T, D]");
        refused(
            ops::rope(&x, &zeros(&[4, 3]), &x).run(),
            shape,
            "sin has shape [4, 6], wanted [4, 3]",
        );
        refused(x.copy_from(&zeros(&[3, 6])), shape, "[3, 6] for one of [4, 6]");
        refused(x.write(&[0.0f32; 5]), shape, "24 elements");
        refused(x.write(&[0u32; 24]), misuse, "writing u32 elements to a tensor of f32");
        let words = Tensor::zeros(&context, DType::U32, &[4, 6]).unwrap();
        refused(ops::softmax(&words).run(), unsupported, "x is u32");
        refused(softmax.run_into(&words), unsupported, "the output is u32");
        refused(ops::arg_max(&x, 0).out_dtype(DType::F32).run(), unsupported, "f32, not u32");
        refused(words.fill(-1.0), value, "-1 does not fit a tensor of u32");
        refused(words.fill(0.5), value, "0.5");
        refused(
            softmax.clone().out_dtype(DType::F16).run_into(&zeros(&[4, 6])),
            misuse,
            "the output is f32, and out_dtype says f16",
        );
    }
}

#[test]
fn bad_indices_are_refused() {
    for context in contexts() {
        let zeros = |dtype: DType, shape: &[usize]| Tensor::zeros(&context, dtype, shape).unwrap();
        let (x, words) = (zeros(DType::F32, &[4, 6]), zeros(DType::U32, &[4, 6]));
        let shape: fn(&Error) -> bool = |error| matches!(error, Error::Shape(_));
        let aliased: fn(&Error) -> bool =
            |error| matches!(&error, Error::Shape(text) if text.starts_with("aliasing: "));
        let unsupported: fn(&Error) -> bool = |error| matches!(error, Error::Unsupported(_));
        refused(
            ops::top_k(&x, 7).run(),
            shape,
            "the 7 largest along the last axis of shape [4, 6]",
        );
        refused(ops::top_k(&zeros(DType::F32, &[]), 0).run(), shape, "of shape []");
        refused(ops::top_k(&words, 2).run(), unsupported, "x is u32");
        let top = ops::top_k(&x, 2);
        let [values, indices] = top.run().unwrap();
        refused(top.run_into([&indices, &values]), unsupported, "values is u32, not f32");
        refused(top.run_into([&values, &words]), shape, "indices has shape [4, 6], wanted [4, 2]");
        refused(top.run_into([&x.narrow(1, 0, 2).unwrap(), &indices]), aliased, "top_k");

        let places = zeros(DType::U32, &[4]);
        refused(
            ops::scatter(&x, &places.narrow(0, 0, 3).unwrap(), 9).run(),
            shape,
            "[3], wanted [4]",
        );
        refused(ops::scatter(&x, &zeros(DType::F32, &[4]), 9).run(), unsupported, "indices in f32");
        refused(ops::scatter(&zeros(DType::F32, &[]), &places, 9).run(), shape, "wanted rows");
        let scatter = ops::scatter(&x, &places, 4);
        refused(scatter.run_into(&x), aliased, "x of scatter share bytes 0..96");
        refused(ops::gather(&x, &indices).run(), shape, "[4, 2], wanted a vector");
        refused(ops::gather(&x, &places).run_into(&x), aliased, "x of gather share bytes");
        refused(ops::gather(&x, &x).run(), unsupported, "indices in f32, wanted u32");
        refused(scatter.run_into(&words), unsupported, "the output is u32, not f32");
        refused(ops::histogram(&x, 4).run(), unsupported, "keys in f32, wanted u32");
        let both = zeros(DType::U32, &[10]);
        let [first, second] = [0, 5].map(|at| both.narrow(0, at, 5).unwrap());
        refused(
            ops::histogram(&first, 4).run_into(&both.narrow(0, 4, 4).unwrap()),
            aliased,
            "keys",
        );
        refused(ops::exclusive_scan(&zeros(DType::F16, &[4])).run(), unsupported, "x is f16");
        refused(ops::exclusive_scan(&zeros(DType::U32, &[])).run(), shape, "wanted a last axis");
        let scan = ops::exclusive_scan(&places).with_total();
        refused(scan.run_into(&places), shape, "[4], wanted [5]");
        refused(ops::exclusive_scan(&places).run_into(&places), aliased, "exclusive_scan");
        refused(scan.out_dtype(DType::F32).run(), unsupported, "f32, not u32");
        refused(ops::sort(&words).run(), shape, "keys has shape [4, 6], wanted a vector");
        refused(
            ops::sort_by_key(&places, &first).run(),
            shape,
            "payload has shape [5], wanted [4]",
        );
        let value: fn(&Error) -> bool = |error| matches!(error, Error::Misuse(_));
        refused(ops::sort(&places).bits(33).run(), value, "33 bits, wanted 1 to 32");
        refused(ops::sort(&places).bits(0).run(), value, "0 bits, wanted 1 to 32");
        let sort = ops::sort_by_key(&first, &second);
        let fifth = zeros(DType::U32, &[5]);
        refused(sort.run_into([&fifth, &fifth]), aliased, "the payload of sort_by_key share bytes");
        refused(sort.run_into([&second, &fifth]), aliased, "payload");
        refused(sort.run_into([&fifth, &first]), aliased, "keys");
        // All four rows go to row 0, and the last one stays. In a new tensor the other rows are
        // zero.
        x.write(&(0..24).map(|i| i as f32).collect::<Vec<_>>()).unwrap();
        let got = scatter.run().unwrap().read_blocking::<f32>().unwrap();
        assert!(got[..6] == [18.0, 19.0, 20.0, 21.0, 22.0, 23.0] && got[6..] == [0.0; 18]);
    }
}

/// Tensors of other contexts are refused, and so are some calls by `record` only.
#[test]
fn contexts_do_not_mix() {
    let (one, other) = (Context::cpu(), Context::cpu());
    let [x, y] = [&one, &other].map(|context| Tensor::zeros(context, DType::F32, &[2]).unwrap());
    let wrong: fn(&Error) -> bool =
        |error| matches!(&error, Error::Misuse(text) if text.starts_with("wrong context: "));
    refused(ops::add(&x, &y).run(), wrong, "the second operand");
    refused(ops::exp(&x).run_into(&y), wrong, "the output");
    let [own, others] =
        [&one, &other].map(|context| Tensor::zeros(context, DType::U32, &[2]).unwrap());
    refused(ops::scatter(&x, &others, 3).run(), wrong, "indices");
    refused(ops::sort_by_key(&own, &others).run(), wrong, "payload");
    refused(ops::top_k(&x, 2).run_into([&x, &others]), wrong, "indices");
    for adapter in adapters() {
        let mut encoder =
            adapter.context.device().unwrap().create_command_encoder(&Default::default());
        refused(ops::exp(&x).record(&mut encoder, &x), wrong, "CPU executor");
    }
}

#[test]
fn tensors_are_filled_copied_and_written() {
    for context in contexts() {
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32] {
            let x = Tensor::zeros(&context, dtype, &[3, 5]).unwrap();
            let inside = x.slice(&[0..2, 1..4]).unwrap();
            inside.fill(7.0).unwrap();
            let wanted = |inside: f32, at: usize| {
                let is_inside = at / 5 < 2 && (1..4).contains(&(at % 5));
                if is_inside { inside } else { 0.0 }
            };
            let numbers = |x: &Tensor| x.read_f32_blocking().unwrap();
            assert_eq!(numbers(&x), (0..15).map(|at| wanted(7.0, at)).collect::<Vec<_>>());
            let row = Tensor::upload(&context, &[4.0f32, 5.0, 6.0], &[3]).unwrap();
            inside.copy_from(&row).unwrap();
            let column = |at: usize| wanted(4.0 + (at % 5) as f32 - 1.0, at);
            assert_eq!(numbers(&x), (0..15).map(column).collect::<Vec<_>>(), "{dtype}");
            assert_eq!(
                numbers(&inside.t().cast(DType::F32).unwrap()),
                [4.0, 4.0, 5.0, 5.0, 6.0, 6.0]
            );
            Tensor::zeros(&context, dtype, &[0, 3]).unwrap().fill(1.0).unwrap();
        }
        let x = Tensor::zeros(&context, DType::F16, &[3, 3]).unwrap();
        let numbers: Vec<_> = (1..=9).map(|i| half::f16::from_f32(i as f32)).collect();
        x.t().write(&numbers).unwrap();
        assert_eq!(x.read_f32_blocking().unwrap(), [1.0, 4.0, 7.0, 2.0, 5.0, 8.0, 3.0, 6.0, 9.0]);
    }
}

/// Every operation binds at most four storage buffers. On a device with fewer the error says so.
#[test]
fn few_storage_buffers() {
    for adapter in adapters() {
        for buffers in [3, 4] {
            let context =
                adapter.with_limits(|limits| limits.max_storage_buffers_per_shader_stage = buffers);
            let x = Tensor::upload(&context, &[1.0f32, 3.0], &[1, 2]).unwrap();
            let row = Tensor::upload(&context, &[2.0f32, 0.0], &[2]).unwrap();
            let y = ops::softmax(&x).mask(&row).run().unwrap();
            assert_eq!(y.read_f32_blocking().unwrap(), [0.5, 0.5]);
            let norm = ops::layer_norm(&x, &row, &row, 0.0).run();
            match buffers {
                3 => refused(
                    norm,
                    |error| matches!(error, Error::DeviceLimit(_)),
                    "4, and the limit of the device is 3",
                ),
                _ => {
                    let norm = norm.unwrap().read_f32_blocking().unwrap();
                    assert!(norm.iter().all(|norm| norm.abs() < 1e-5), "{norm:?}");
                }
            }
        }
    }
}

/// If a dispatch may have few workgroups along an axis, they are in several rows.
#[test]
fn many_workgroups() {
    for adapter in adapters() {
        let context = adapter.with_limits(|limits| limits.max_compute_workgroups_per_dimension = 4);
        let numbers: Vec<f32> = (0..11_000).map(|i| (i % 113) as f32).collect();
        let x = Tensor::upload(&context, &numbers, &[1375, 8]).unwrap();
        let [sums, largest] = [ops::sum(&x, 1), ops::max(&x, 1)]
            .map(|op| op.run().unwrap().read_f32_blocking().unwrap());
        let rows = || numbers.chunks(8);
        assert!(sums.into_iter().eq(rows().map(|row| row.iter().sum::<f32>())));
        assert!(largest.into_iter().eq(rows().map(|row| row.iter().copied().fold(0.0, f32::max))));
        let negative = ops::unary(&x, ops::Unary::Neg).run().unwrap().read_f32_blocking().unwrap();
        assert!(negative.into_iter().eq(numbers.iter().map(|x| -x)));
        let p = ops::softmax(&x).run().unwrap().read_f32_blocking().unwrap();
        assert!(p.chunks(8).all(|row| (row.iter().sum::<f32>() - 1.0).abs() < 1e-5));
    }
}

/// Operations of several kernels bind four buffers, too, and few invocations share rows.
#[test]
fn several_kernels_on_a_small_device() {
    for adapter in adapters() {
        let few = Caps { max_invocations: 64, max_workgroup_size_x: 64, ..minima::vulkan() };
        let context = adapter.with_limits(|limits| minima::lower(limits, &few));
        let families = ["top_k", "choose", "scatter", "histogram", "sort"];
        let few = cases::FAMILIES.iter().filter(|(name, _)| families.contains(name));
        let every_fifth = few.flat_map(|(_, cases)| cases().into_iter().step_by(5));
        for case in every_fifth.chain(cases::in_parts()) {
            let ran = case.run(&context);
            assert!(ran.is_ok(), "{}: {ran:?}", case.name);
        }
    }
}

/// Columns of tables as keys, payload, indices and outputs.
#[test]
fn vectors_with_strides() {
    for context in contexts() {
        let numbers = [2u32, 10, 0, 11, 3, 12, 0, 13];
        let table = Tensor::upload(&context, &numbers, &[4, 2]).unwrap();
        let column = |table: &Tensor, at| table.narrow(1, at, 1).unwrap().squeeze(1).unwrap();
        let (keys, payload) = (column(&table, 0), column(&table, 1));
        let read = |tensor: &Tensor| tensor.read_blocking::<u32>().unwrap();
        let tables = [(); 2].map(|()| Tensor::zeros(&context, DType::U32, &[4, 2]).unwrap());
        let outs = tables.each_ref().map(|table| column(table, 1));
        ops::sort_by_key(&keys, &payload).bits(2).run_into(outs.each_ref()).unwrap();
        assert_eq!(read(&tables[0]), [0, 0, 0, 0, 0, 2, 0, 3]);
        assert_eq!(read(&tables[1]), [0, 11, 0, 13, 0, 10, 0, 12]);
        ops::histogram(&keys, 4).run_into(&outs[0]).unwrap();
        assert_eq!(read(&tables[0]), [0, 2, 0, 0, 0, 1, 0, 1]);
        ops::scatter(&payload, &keys, 4).run_into(&outs[1]).unwrap();
        assert_eq!(read(&tables[1]), [0, 13, 0, 13, 0, 10, 0, 12]);
    }
}

/// Few texts serve rows of all lengths: a text is compiled once.
#[test]
fn few_texts_serve_rows_of_all_lengths() {
    let context = Context::cpu();
    let texts = |op: &dyn Fn(&Tensor) -> Vec<(Kernel, Call)>| {
        let of = |length| {
            let x = Tensor::zeros(&context, DType::F32, &[2, 3, length]).unwrap();
            op(&x).into_iter().map(|(kernel, call)| kernel.wgsl(&call).unwrap())
        };
        (1..2000).flat_map(of).collect::<HashSet<_>>().len()
    };
    let softmax = |x: &Tensor| ops::softmax(x).causal(5).calls(x).unwrap();
    assert!(texts(&softmax) <= 4, "{}", texts(&softmax));
    let norm = |x: &Tensor| {
        let weight = x.slice(&[0..1, 0..1, 0..x.shape()[2]]).unwrap();
        let weight = weight.reshape(&[x.shape()[2]]).unwrap();
        let y = Tensor::zeros(&context, DType::F32, x.shape()).unwrap();
        ops::rms_norm(x, &weight, 1.0).calls(&y).unwrap()
    };
    assert!(texts(&norm) <= 4, "{}", texts(&norm));
    let sum = |x: &Tensor| {
        let y = Tensor::zeros(&context, DType::F32, &[2, 3]).unwrap();
        ops::sum(x, 2).calls(&y).unwrap()
    };
    assert!(texts(&sum) <= 4, "{}", texts(&sum));
}

/// Pairs of outputs, among other work of the caller's: counts, ends of groups, and tokens in their
/// order.
#[test]
fn indices_in_one_encoder() {
    for adapter in adapters() {
        let context = &adapter.context;
        let (device, queue) = (context.device().unwrap(), context.queue().unwrap());
        let experts = Tensor::upload(context, &[2u32, 0, 2, 1, 0], &[5]).unwrap();
        let zeros = |length: usize| Tensor::zeros(context, DType::U32, &[length]).unwrap();
        let (counts, ends, sorted, order) = (zeros(4), zeros(5), zeros(5), zeros(5));
        counts.fill(9.0).unwrap();
        let mut encoder = device.create_command_encoder(&Default::default());
        ops::histogram(&experts, 4).record(&mut encoder, &counts).unwrap();
        let scan = ops::exclusive_scan(&counts).with_total();
        scan.record(&mut encoder, &ends).unwrap();
        ops::sort(&experts).bits(3).record(&mut encoder, [&sorted, &order]).unwrap();
        queue.submit([encoder.finish()]);
        let read = |tensor: &Tensor| tensor.read_blocking::<u32>().unwrap();
        assert_eq!(read(&counts), [2, 1, 2, 0]);
        assert_eq!(read(&ends), [0, 2, 3, 5, 5]);
        assert_eq!(GroupEnds::from_tensor(&ends).unwrap().count(), 5);
        assert_eq!((read(&sorted), read(&order)), (vec![0, 0, 1, 2, 2], vec![1, 4, 3, 0, 2]));
        let [values, places] = [Tensor::zeros(context, DType::F32, &[1]).unwrap(), zeros(1)];
        let x = Tensor::upload(context, &[1.0f32, 4.0, 2.0], &[3]).unwrap();
        let mut encoder = device.create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        ops::top_k(&x, 1).record(&mut pass, [&values, &places]).unwrap();
        drop(pass);
        queue.submit([encoder.finish()]);
        assert_eq!((values.read_f32_blocking().unwrap(), read(&places)), (vec![4.0], vec![1]));
    }
}

/// An operand may have strides that no slice has, and may repeat rows.
#[test]
fn buffers_with_strides_of_zero() {
    for adapter in adapters() {
        let context = &adapter.context;
        let numbers = Tensor::upload(context, &[1.0f32, 2.0, 3.0, 5.0], &[4]).unwrap();
        let buffer = numbers.buffer().unwrap().0.clone();
        let view = |strides: &[usize]| {
            Tensor::from_buffer_strided(context, buffer.clone(), 0, DType::F32, &[2, 2], strides)
                .unwrap()
        };
        let sums = |x: &Tensor| ops::sum(x, 1).run().unwrap().read_f32_blocking().unwrap();
        assert_eq!(sums(&view(&[0, 1])), [3.0, 3.0]);
        assert_eq!(sums(&view(&[1, 2])), [4.0, 7.0]);
        // The weights are the first and the third of 1, 2, 3, 5. The mean of the row is 0.
        let weight =
            Tensor::from_buffer_strided(context, buffer.clone(), 0, DType::F32, &[2], &[2])
                .unwrap();
        let x = Tensor::upload(context, &[1.0f32, -1.0], &[1, 2]).unwrap();
        let y = ops::layer_norm(&x, &weight, &weight, 0.0).run().unwrap().read_f32_blocking();
        let y = y.unwrap();
        assert!((y[0] - 2.0).abs() < 1e-5 && y[1].abs() < 1e-5, "{y:?}");
        let strides: fn(&Error) -> bool =
            |error| matches!(&error, Error::Shape(text) if text.starts_with("strides: "));
        refused(
            ops::exp(&numbers.reshape(&[2, 2]).unwrap()).run_into(&view(&[0, 1])),
            strides,
            "run()",
        );
    }
}
