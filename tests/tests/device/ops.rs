//! Ready operations: every case on every adapter and on the CPU executor, and the small cases in
//! the sanitizer. Bad input is refused.

mod draws;
mod kv_cache;
mod refused;
mod threads;

use refused::refused;
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
fn attention() {
    are_right("attention");
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
fn sample() {
    are_right("sample");
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
            let in_turn = adapter.description.hardware || number % 2 == turn % 2;
            if !in_turn || case.on_units && adapter.context.caps().coop.is_empty() {
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

/// Operations of three operands bind at most four storage buffers. On a device with fewer the
/// error says so.
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

/// The sum may take the place of an operand while the norm goes elsewhere.
#[test]
fn sums_in_place_have_their_norms() {
    for context in contexts() {
        let numbers = |first: usize| {
            let all: Vec<f32> = (first..first + 120).map(|i| (i * 31 % 17) as f32).collect();
            Tensor::upload(&context, &all, &[3, 40]).unwrap()
        };
        let [x, y] = [numbers(0), numbers(5)];
        let weight = x.narrow(0, 1, 1).unwrap().squeeze(0).unwrap().contiguous().unwrap();
        let weight = ops::scale(&weight, 0.5).run().unwrap();
        let norm = ops::add_rms_norm(&x, &y, &weight, 1e-5);
        let wanted = norm.run().unwrap().map(|out| out.read_f32_blocking().unwrap());
        let out = Tensor::zeros(&context, DType::F32, &[3, 40]).unwrap();
        norm.run_into([&x, &out]).unwrap();
        assert_eq!([x, out].map(|out| out.read_f32_blocking().unwrap()), wanted);
    }
}

/// One product gives gate and up as the halves of its rows. `silu_mul` reads the halves as views,
/// without a copy.
#[test]
fn halves_of_a_product_are_gated_without_a_copy() {
    for context in contexts() {
        let numbers: Vec<f32> = (0..3 * 16).map(|i| i as f32 / 8.0 - 3.0).collect();
        let both = Tensor::upload(&context, &numbers, &[3, 16]).unwrap();
        let [gate, up] = [0, 8].map(|from| both.narrow(1, from, 8).unwrap());
        let gated = ops::silu_mul(&gate, &up);
        let out = gated.run().unwrap();
        assert_eq!(gated.calls(&out).unwrap().len(), 1);
        let [own_gate, own_up] = [gate, up].map(|half| half.contiguous().unwrap());
        let wanted = ops::silu_mul(&own_gate, &own_up).run().unwrap();
        assert_eq!(out.read_f32_blocking().unwrap(), wanted.read_f32_blocking().unwrap());
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

/// Operations of several kernels bind four buffers, too, if they have three operands at most. Few
/// invocations share rows.
#[test]
fn several_kernels_on_a_small_device() {
    for adapter in adapters() {
        let few = Caps { max_invocations: 64, max_workgroup_size_x: 64, ..minima::vulkan() };
        let context = adapter.with_limits(|limits| minima::lower(limits, &few));
        let families = ["top_k", "choose", "scatter", "histogram", "sort"];
        let few = cases::FAMILIES.iter().filter(|(name, _)| families.contains(name));
        let every_fifth = few.flat_map(|(_, cases)| cases().into_iter().step_by(5));
        // A sum beside its norm is a fifth buffer.
        let few = |case: &Case| {
            case.inputs.len() <= 3 && !case.name.starts_with("sum of") && !case.on_units
        };
        let parts = cases::in_parts().into_iter().filter(few);
        for case in every_fifth.chain(parts) {
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
