//! Outputs of the caller's that cannot be written.

use super::*;
use tilewise::Prepared;

fn copy(inputs: &[&'static str], outputs: &[&'static str]) -> Kernel {
    let body = outputs.iter().map(|name| format!("{name}[global_id.x] = 1.0;")).collect::<String>();
    let (inputs, outputs) = (inputs.iter().copied(), outputs.iter().copied());
    Kernel::new("mine").inputs(inputs).outputs(outputs).source(body)
}

/// Overlapping tensors are refused when the call is run and when it is checked; so is a tensor that
/// is named both ways.
#[test]
fn outputs_that_overlap() {
    for context in contexts() {
        let all = Tensor::zeros(&context, DType::F32, &[4, 6]).unwrap();
        let rows = |rows| all.slice(&[rows, 0..6]).unwrap();
        let grid = |call: Call| call.grid([6, 1, 1]);
        let (kernel, two) = (copy(&["a"], &["out"]), copy(&[], &["out", "more"]));
        for (input, output, words) in [
            (all.clone(), all.clone(), ["bytes 0..96", "one buffer ("]),
            (rows(0..2), rows(1..3), ["bytes 24..48", "one buffer ("]),
            (all.t(), rows(3..4), ["bytes 72..96", "gaps between their elements"]),
            // Every second element: the elements between them do not count.
            (
                all.slice(&[0..4, 0..1]).unwrap(),
                all.slice(&[0..4, 3..4]).unwrap(),
                ["bytes 12..76", "gaps between their elements"],
            ),
        ] {
            let words = ["\"out\"", words[0], "input \"a\"", words[1], "Call::inout"];
            for call in [Call::of(&input).output_into(&output), Call::of(&input).inout(&output)] {
                refused(&kernel, &grid(call), kind!(Shape), &words);
            }
        }
        let call = Call::new(&context).inout(&rows(0..2)).output_into(&rows(1..2));
        let words = ["output \"more\"", "bytes 24..48", "output \"out\"", "Call::output"];
        refused(&two, &grid(call), kind!(Shape), &words);
        // Two halves of one word.
        let halves = Tensor::zeros(&context, DType::BF16, &[6]).unwrap();
        let half = |range| halves.slice(&[range]).unwrap();
        let call = Call::new(&context).inout(&half(0..3)).output_into(&half(3..6));
        refused(&two, &grid(call), kind!(Shape), &["aliasing: ", "share bytes 4..8 of one buffer"]);
        // A view without elements overlaps nothing.
        let call = Call::of(&rows(1..1)).output_into(&rows(1..2));
        kernel.run(&grid(call)).unwrap();
    }
}

/// Strides for which elements of an output overlap: only buffers of the caller's have these.
#[test]
fn elements_that_overlap() {
    for adapter in adapters() {
        let context = &adapter.context;
        let all = Tensor::zeros(context, DType::F32, &[64]).unwrap();
        let view = |shape: &[usize], strides: &[usize]| {
            let buffer = all.buffer().unwrap().0.clone();
            Tensor::from_buffer_strided(context, buffer, 0, DType::F32, shape, strides).unwrap()
        };
        let kernel = copy(&[], &["out"]);
        let call = |tensor: &Tensor| Call::new(context).output_into(tensor).grid([4, 1, 1]);
        for (shape, strides) in [
            ([3, 4], [0, 1]),
            ([3, 4], [1, 1]),
            ([3, 4], [3, 1]),
            ([4, 3], [1, 3]),
            ([2, 3], [3, 2]),
        ] {
            let words = ["\"out\"", &format!("{shape:?}") as &str, &format!("{strides:?}")];
            let words = [words[0], words[1], words[2], "Call::output"];
            refused(&kernel, &call(&view(&shape, &strides)), kind!(Shape), &words);
        }
        for (shape, strides) in
            [([3, 4], [4, 1]), ([1, 4], [0, 1]), ([4, 3], [1, 4]), ([2, 3], [5, 2])]
        {
            kernel.run(&call(&view(&shape, &strides))).unwrap();
        }
    }
}

#[test]
fn what_is_no_output() {
    for context in contexts() {
        let kernel = copy(&[], &["out"]);
        let call = Call::new(&context).grid([1, 1, 1]);
        let constant = Tensor::zeros(&context, DType::F32, &[2, 2]).unwrap();
        let constant = Prepared::right(&constant).unwrap();
        refused(
            &kernel,
            &call.clone().inout(&constant),
            kind!(Misuse),
            &["writing to a prepared tensor"],
        );
        let row = constant.narrow(0, 1, 1).unwrap();
        refused(&kernel, &call.clone().inout(&row), kind!(Misuse), &["a view of a prepared"]);
        let tensor = Tensor::zeros(&context, DType::F32, &[4]).unwrap();
        let filled = call.clone().output_into(&tensor).init_value(1.0);
        refused(&kernel, &filled, kind!(Misuse), &["\"out\"", "Call::inout"]);
        let others = contexts().into_iter().find(|other| other.is_cpu() != context.is_cpu());
        let foreign = Tensor::zeros(&others.unwrap(), DType::F32, &[4]).unwrap();
        refused(
            &kernel,
            &call.clone().inout(&foreign),
            kind!(Misuse),
            &["wrong context: ", "out and the rest of the call"],
        );
        let integers = Tensor::zeros(&context, DType::U32, &[4]).unwrap();
        refused(&kernel, &call.clone().inout(&integers), kind!(Misuse), &["mine (body):1:"]);
        let atomic = kernel.clone().atomic_outputs(true);
        refused(&atomic, &call.clone().inout(&tensor), kind!(Unsupported), &["\"out\" is f32"]);
        refused(&kernel.source(""), &call.inout(&tensor), kind!(Misuse), &["nothing writes"]);

        let two = copy(&[], &["out", "more"]);
        let call = Call::new(&context).output(DType::F32, &[1]).output(DType::F32, &[1]);
        let error = two.run_one(&call.grid([1, 1, 1])).unwrap_err();
        assert!(
            matches!(&error, Error::Misuse(text) if text.contains("2 outputs")
                && text.contains("Kernel::run ")),
            "{error}"
        );
        let none = copy(&[], &[]).run_one(&Call::new(&context).grid([1, 1, 1])).unwrap_err();
        assert!(matches!(&none, Error::Shape(text) if text.contains("no outputs")), "{none}");
    }
}
