//! Bad input of operations.

use tilewise::{Context, DType, Error, Tensor, ops};
use tilewise_tests::{adapters, contexts};

#[track_caller]
pub(super) fn refused<T: std::fmt::Debug>(
    result: tilewise::Result<T>,
    kind: fn(&Error) -> bool,
    words: &str,
) {
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
        let summed = ops::add_rms_norm(&x, &zeros(&[4, 6]), &zeros(&[6]), 0.0);
        refused(summed.run_into([&x, &x]), aliased, "the norm of add_rms_norm share bytes");
        refused(summed.run_into([&zeros(&[4, 6]), &x]), aliased, "x of add_rms_norm share bytes");
        let wrong = ops::add_rms_norm(&x, &zeros(&[4]), &zeros(&[6]), 0.0).run();
        refused(wrong, shape, "add_rms_norm: a residual of shape [4]");
        let normed = rope(4, 3).rms_norm(&zeros(&[3]), 0.0);
        refused(normed.run(), shape, "rope: weight has shape [3], wanted [6]");
        let normed = rope(4, 3).rms_norm(&zeros(&[6]), -1.0);
        refused(normed.run(), misuse, "rope: eps is -1");
        refused(rope(4, 3).weight_offset(1.0).run(), misuse, "weight_offset wants rms_norm");
        let sample = ops::sample(&x, 1);
        for (bad, words) in [
            (sample.clone().temperature(-1.0), "temperature is -1"),
            (sample.clone().temperature(f32::INFINITY), "temperature is inf"),
            (sample.clone().top_k(0), "top_k is 0"),
            (sample.clone().top_p(0.0), "top_p is 0"),
            (sample.clone().top_p(1.5), "top_p is 1.5"),
            (sample.clone().min_p(-0.5), "min_p is -0.5"),
            (sample.clone().min_p(f32::NAN), "min_p is NaN"),
        ] {
            refused(bad.run(), misuse, words);
        }
        let of_two = Tensor::zeros(&context, DType::U32, &[2]).unwrap();
        refused(sample.clone().at(&of_two).run(), shape, "the position has shape [2]");
        refused(ops::sample(&zeros(&[4, 0]), 1).run(), shape, "rows of one element at least");
        refused(ops::sample(&zeros(&[]), 1).run(), shape, "rows of one element at least");
        refused(ops::scale(&x, f32::INFINITY).run(), misuse, "the factor is inf");
        refused(ops::softmax(&zeros(&[1; 9])).run(), shape, "9 dimensions, at most 8");
        let [q, k] = [zeros(&[4, 2, 6]), zeros(&[2, 3, 6])];
        let attention = ops::attention(&q, &k, &k);
        let words = "q has shape [4, 2, 6], k [3, 3, 6], v [2, 3, 6], wanted [..., heads, T, d]";
        refused(ops::attention(&q, &zeros(&[3, 3, 6]), &k).run(), shape, words);
        for [k, v] in [[&[2, 3, 5], &[2, 3, 6]], [&[2, 3, 6], &[2, 4, 6]], [&[2, 3, 6], &[4, 3, 6]]]
        {
            refused(ops::attention(&q, &zeros(k), &zeros(v)).run(), shape, "attention: q has");
        }
        for few in [zeros(&[3, 6]), zeros(&[6])] {
            refused(ops::attention(&q, &few, &few).run(), shape, "attention: q has shape");
            refused(ops::attention(&few, &k, &k).run(), shape, "attention: q has shape");
        }
        let [wide, none] = [zeros(&[2, 1025]), zeros(&[2, 0])];
        refused(ops::attention(&wide, &wide, &x).run(), shape, "q has shape [2, 1025]");
        refused(
            ops::attention(&wide, &wide, &wide).run(),
            shape,
            "1025 elements of keys, wanted 1",
        );
        refused(ops::attention(&none, &none, &none).run(), shape, "0 elements of keys");
        refused(attention.clone().mask(&zeros(&[4])).run(), shape, "[4], wanted [4, 2, 3]");
        refused(attention.clone().sinks(&zeros(&[4])).run(), shape, "[4], wanted [4, 2, 1]");
        let place = Tensor::zeros(&context, DType::U32, &[3]).unwrap();
        refused(attention.clone().causal(&place).run(), shape, "the position has shape [3]");
        refused(attention.clone().lengths(&x).run(), unsupported, "the position");
        refused(attention.clone().causal(0).lengths(1).run(), misuse, "causal and lengths");
        refused(attention.clone().window(2).run(), misuse, "wants causal()");
        refused(attention.clone().causal(0).window(0).run(), misuse, "a key at least");
        for c in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            refused(attention.clone().softcap(c).run(), value, &format!("softcap is {c}, wanted"));
        }
        refused(attention.run_into(&q), aliased, "q of attention share bytes");
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
