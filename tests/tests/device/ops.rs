//! Ready operations: every case on every adapter and on the CPU executor, the small ones in the
//! sanitizer, and bad input.

use tilewise::sanitizer::Options;
use tilewise::{Context, DType, Error, Tensor, ops};
use tilewise_tests::{contexts, ops as cases};

#[test]
fn every_case_is_right_everywhere() {
    let mut wrong = Vec::new();
    for context in contexts() {
        for case in cases::all() {
            if let Err(why) = case.run(&context) {
                wrong.push(format!("{} on {}: {why}", case.name, context.adapter_name()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} cases\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn small_cases_are_clean() {
    let context = Context::cpu();
    for case in cases::small(400).into_iter().filter(|case| !case.wanted.is_empty()) {
        if let Err(why) = case.check(&context, &Options::default(), |kernel| kernel) {
            panic!("{}: {why}", case.name);
        }
    }
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
        let unsupported: fn(&Error) -> bool = |error| matches!(error, Error::Unsupported(_));
        let value: fn(&Error) -> bool = |error| matches!(error, Error::InvalidValue(_));
        let softmax = ops::softmax(&x);
        refused(softmax.run_into(&zeros(&[6, 4])), shape, "[6, 4], wanted [4, 6]");
        refused(softmax.run_into(&x.reshape(&[6, 4]).unwrap().t()), misuse, "run() makes");
        refused(softmax.clone().mask(&zeros(&[5])).run(), shape, "mask of shape [5]");
        refused(ops::softmax(&zeros(&[4])).causal(0).run(), shape, "2 dimensions");
        refused(ops::softmax(&zeros(&[])).run(), shape, "1 dimensions");
        refused(ops::softmax(&zeros(&[1; 9])).run(), shape, "9 dimensions, at most 8");
        let words = Tensor::zeros(&context, DType::U32, &[4, 6]).unwrap();
        refused(ops::softmax(&words).run(), unsupported, "x is u32");
        refused(softmax.run_into(&words), unsupported, "the output is u32");
        refused(
            softmax.clone().out_dtype(DType::F16).run_into(&zeros(&[4, 6])),
            value,
            "the output is f32, and out_dtype says f16",
        );
    }
}
