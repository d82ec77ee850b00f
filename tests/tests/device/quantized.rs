//! Quantized weights on every kernel.

use tilewise::{
    DType, Error, Gemm, PlaneSource, QuantFormat, Quantize, Quantized, QuantizedTensor, Tensor,
};
use tilewise_core::caps::DeviceClass;
use tilewise_core::quant::{Plane, dequantize};
use tilewise_tests::case::Groups;
use tilewise_tests::kernels::smallest;
use tilewise_tests::{
    Case, Rng, Suite, adapters, all_kernels, contexts, floor, kernels, themes, turns,
};

#[test]
fn types_and_batches() {
    Suite::on_every_adapter(|adapter| {
        let further = themes::further_formats().into_iter().enumerate();
        let further = further.filter(|(i, _)| adapter.has_turn(*i)).map(|(_, case)| case);
        let further = turns::of(further, 2);
        let further = themes::on(&[floor(adapter)], &further.collect::<Vec<_>>());
        // The sanitizer and the MSL harness run all of these cases.
        let across = themes::across(kernels(adapter)).into_iter().step_by(4).collect();
        // Weights with as many rows as a vocabulary has words.
        let rows = [("q6_k", 256), ("affine-4bit-g64-f16", 64)].map(|(name, k)| Case {
            quantized: name.parse().ok(),
            ..Case::new([2, 33_000, k], [DType::F32; 3])
        });
        assert!(rows.iter().all(|case| case.quantized.is_some()));
        let rows = themes::on(&[floor(adapter)], &rows);
        [themes::sampled(adapter, &themes::quantized(), 6), further, across, rows].concat()
    });
}

/// A stack is quantized to the bits that its matrices have by themselves, on the host and on the
/// device.
#[test]
fn stacks_have_the_bits_of_their_matrices() {
    for context in contexts() {
        for format in QuantFormat::all().filter(|format| format.quantizes()) {
            let block = format.block() as usize;
            for shape in [[3, 5, 3 * block], [2, 1, block], [1, 3, block], [0, 2, block]] {
                let [_, n, k] = shape;
                let mut rng = Rng::new(7);
                let numbers: Vec<f32> = (0..shape.iter().product()).map(|_| rng.number()).collect();
                let one = |matrix| QuantizedTensor::quantize(&context, matrix, [n, k], format);
                let wanted: Vec<Quantized> = numbers
                    .chunks(n * k)
                    .flat_map(|matrix| one(matrix).unwrap().read_blocking().unwrap())
                    .collect();
                let stack = QuantizedTensor::quantize(&context, &numbers, shape, format).unwrap();
                assert_eq!(stack.shape(), shape);
                assert!(stack.read_blocking().unwrap() == wanted, "{format} {shape:?}");
                let dense = Tensor::upload(&context, &numbers, &shape).unwrap();
                match dense.quantize_blocking(format) {
                    Ok(stack) => assert!(stack.read_blocking().unwrap() == wanted, "{format}"),
                    Err(Error::Unsupported(_)) => assert!(!context.is_cpu(), "{format}"),
                    Err(error) => panic!("{format} {shape:?}: {error}"),
                }
            }
        }
    }
}

#[test]
fn every_kernel_around_its_edges() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        let kernels = all_kernels(adapter);
        let smallest: Vec<_> =
            smallest(kernels.clone()).into_iter().map(|kernel| kernel.name).collect();
        for (turn, kernel) in kernels.into_iter().enumerate() {
            // Variants differ in numbers only. One variant of each mainloop meets every kind, on
            // software adapters by turns. The other variants meet the first kind.
            let kinds = match smallest.contains(&kernel.name) {
                true => QuantFormat::kinds(),
                false => QuantFormat::kinds()[..1].to_vec(),
            };
            let kinds = kinds.into_iter().enumerate();
            let kinds = kinds.filter(|(i, _)| adapter.has_turn(turn + i));
            for (_, format) in turns::of(kinds, if smallest.contains(&kernel.name) { 2 } else { 1 })
            {
                let [bm, bn] = [kernel.variant.bm, kernel.variant.bn].map(|size| size as usize);
                for (blocks, [m, n]) in
                    [(1, [bm, bn]), (2, [bm + 1, bn + 1]), (9, [1, bn - 1]), (3, [2 * bm + 1, 2])]
                {
                    let size = [m, n, blocks * format.block() as usize];
                    let case = Case { quantized: Some(format), ..Case::new(size, [DType::F32; 3]) };
                    let case = case.kernel(&kernel.name);
                    if case.is_for(adapter.context.caps()) {
                        cases.extend([case.clone(), case.integers()]);
                    }
                }
            }
        }
        cases
    });
}

/// Prepared weights with few rows and many, by the planner's choice and on every kernel for matrix
/// units: one matrix, a batch, inside larger matrices, stored across K, and in groups.
#[test]
fn prepared() {
    Suite::on_every_adapter(|adapter| {
        let of_units =
            kernels(adapter).into_iter().filter(|kernel| kernel.variant.unit().is_some());
        let kernels: Vec<_> = of_units.map(|kernel| Some(kernel.name)).chain([None]).collect();
        let types = [DType::F16, DType::F16, DType::F32];
        let cases = |(i, format): (usize, QuantFormat)| {
            let block = format.block() as usize;
            let case =
                |size| Case { quantized: Some(format), prepared: true, ..Case::new(size, types) };
            let groups = Some(Groups { ends: vec![0, 5, 40, 131], on_device: true });
            let cases = [
                case([3, 40, 2 * block]),
                case([150, 72, block.next_multiple_of(128)]),
                case([17, 40, block]).batch(2).odd(),
                Case { across: true, ..case([20, block, 35]) },
                Case { groups, ..case([140, 24, block]) },
            ];
            // Software adapters have no copy, so each format runs one of the cases there.
            let all = adapter.context.caps().class != DeviceClass::Cpu;
            cases.into_iter().enumerate().filter(move |(j, _)| all || *j == i).map(|(_, case)| case)
        };
        let cases = QuantFormat::kinds().into_iter().enumerate().flat_map(cases);
        let on_all = |case: Case| {
            kernels.iter().map(move |kernel| Case { kernel: kernel.clone(), ..case.clone() })
        };
        cases.flat_map(on_all).filter(|case| case.is_for(adapter.context.caps())).collect()
    });
}

/// Rows and whole blocks of columns, far inside the memory of the weights, give the same bits as
/// these rows and blocks by themselves.
#[test]
fn slices() {
    for context in contexts() {
        for format in QuantFormat::kinds() {
            let block = format.block() as usize;
            let [n, k] = [300, 5 * block];
            let (rows, columns) = (271..299, block..4 * block);
            let mut rng = Rng::new(9);
            let weights = Quantized::sample(format, n, k, || rng.bits() as u32).unwrap();
            let cut = |(plane, bytes): (&Plane, &Vec<u8>)| -> Vec<u8> {
                let [row, from, to] =
                    [k, columns.start, columns.end].map(|k| k / block * plane.bytes as usize);
                rows.clone().flat_map(|n| bytes[n * row + from..n * row + to].to_vec()).collect()
            };
            let planes = format.planes().iter().zip(weights.planes()).map(cut).collect();
            let cut = Quantized::from_planes(format, rows.len(), columns.len(), planes).unwrap();
            let upload = |weights: &Quantized| QuantizedTensor::upload(&context, weights).unwrap();
            let (whole, alone) = (upload(&weights), upload(&cut));
            let slice = whole.slice(rows.clone(), columns.clone()).unwrap();
            assert_eq!(slice.shape(), alone.shape());
            let values: Vec<f32> = (0..3 * columns.len()).map(|_| rng.number()).collect();
            let x = Tensor::upload(&context, &values, &[3, columns.len()]).unwrap();
            let product =
                |w| Gemm::new(&x, w).kernel("naive").run().unwrap().read_blocking::<f32>().unwrap();
            assert_eq!(product(&slice), product(&alone), "{format} on {context:?}");
        }
    }
}

/// A matrix of a stack, or of its slices and transposes, gives the same bits as this matrix by
/// itself.
#[test]
fn matrices_of_a_stack() {
    for context in contexts() {
        for format in QuantFormat::kinds() {
            let block = format.block() as usize;
            let [n, k] = [7, 3 * block];
            let mut rng = Rng::new(11);
            let mut sample = || Quantized::sample(format, n, k, || rng.bits() as u32).unwrap();
            let factor = if format.admit_factor(0.5).is_ok() { 0.5 } else { 1.0 };
            let mut one = || match factor {
                1.0 => sample(),
                _ => sample().with_factor(factor).unwrap(),
            };
            let matrices = [one(), one(), one()];
            let order: Vec<u32> = (0..k as u32).rev().collect();
            let stack = QuantizedTensor::upload_groups(&context, &matrices).unwrap();
            let ordered = stack.clone().with_order(&order).unwrap();
            for (index, matrix) in matrices.iter().enumerate() {
                let alone = QuantizedTensor::upload(&context, matrix).unwrap();
                let (rows, columns) = (2..6, block..3 * block);
                let cut = |w: &QuantizedTensor| w.slice(rows.clone(), columns.clone()).unwrap();
                for (got, wanted) in [
                    (stack.get(index), alone.clone()),
                    (stack.t().get(index), alone.t()),
                    (cut(&stack).get(index), cut(&alone)),
                    (ordered.get(index), alone.clone().with_order(&order).unwrap()),
                ] {
                    let got = got.unwrap();
                    assert_eq!((got.shape(), got.factor()), (wanted.shape(), factor));
                    let numbers = |w: &QuantizedTensor| {
                        let numbers = w.dequantize(DType::F32).unwrap().read_f32_blocking();
                        numbers.unwrap().into_iter().map(f32::to_bits).collect::<Vec<_>>()
                    };
                    assert_eq!(numbers(&got), numbers(&wanted), "{format} on {context:?}");
                    let depth = got.shape()[1];
                    let values: Vec<f32> = (0..2 * depth).map(|_| rng.number()).collect();
                    let x = Tensor::upload(&context, &values, &[2, depth]).unwrap();
                    let product = |w: &QuantizedTensor| {
                        let y = Gemm::new(&x, w).kernel("naive").run().unwrap();
                        y.read_f32_blocking().unwrap()
                    };
                    assert_eq!(product(&got), product(&wanted), "{format} on {context:?}");
                }
            }
            for (weights, index, words) in [
                (&stack, 3, ["matrix 3", "a stack of 3"]),
                (&stack.get(1).unwrap(), 0, ["matrix 0", "no stack"]),
            ] {
                let Err(Error::Shape(text)) = weights.get(index) else { panic!("{index}") };
                assert!(words.iter().all(|word| text.contains(word)), "{text}");
            }
        }
    }
}

/// Formats, with the least K for which their rows are stored with gaps.
fn with_gaps() -> Vec<(QuantFormat, usize)> {
    let least = |format: QuantFormat| {
        let mut rows = (1..=1024).map(|blocks| blocks * format.block());
        Some((format, rows.find(|&k| format.pitch(k) > k)? as usize))
    };
    let found: Vec<_> = QuantFormat::kinds().into_iter().filter_map(least).collect();
    assert!(found.len() >= 8, "{found:?}");
    found
}

/// If weights are stored with gaps between rows, they are the weights that were given, from every
/// source: read back, as numbers, in slices and in products.
#[test]
fn gaps_between_rows() {
    for context in contexts() {
        for (format, k) in with_gaps() {
            let block = format.block() as usize;
            let (entries, n) = (3, 5);
            let mut rng = Rng::new(13);
            let mut sample = || Quantized::sample(format, n, k, || rng.bits() as u32).unwrap();
            let matrices = [sample(), sample(), sample()];
            let bytes: Vec<Vec<u8>> = (0..format.planes().len())
                .map(|plane| matrices.iter().flat_map(|w| w.planes()[plane].clone()).collect())
                .collect();
            let planes: Vec<_> = bytes.iter().map(|plane| PlaneSource::Bytes(plane)).collect();
            let shape = [entries, n, k];
            // Rows of half the length are too short for gaps.
            assert_eq!(format.pitch(k as u64 / 2), k as u64 / 2);
            let halves = [entries, 2 * n, k / 2];
            let halves = QuantizedTensor::from_planes(&context, format, &halves, &planes).unwrap();
            let numbers = |w: &QuantizedTensor| {
                w.dequantize(DType::F32).unwrap().read_blocking::<f32>().unwrap()
            };
            let wanted = numbers(&halves);
            let values: Vec<f32> = (0..2 * k).map(|_| rng.number()).collect();
            let x = Tensor::upload(&context, &values, &[2, k]).unwrap();
            for stack in [
                QuantizedTensor::upload_groups(&context, &matrices),
                QuantizedTensor::from_planes(&context, format, &shape, &planes),
            ] {
                let stack = stack.unwrap();
                let place = format!("{format} on {context:?}");
                assert!(stack.read_blocking().unwrap() == matrices, "{place}");
                assert!(numbers(&stack) == wanted, "{place}");
                let last = stack.get(2).unwrap();
                assert!(last.read_blocking().unwrap() == matrices[2..], "{place}");
                let cut = last.slice(1..4, block..k).unwrap();
                let rows = dequantize(&matrices[2]);
                let rows = rows[k..4 * k].chunks(k).flat_map(|row| &row[block..]);
                let [read] = &cut.read_blocking().unwrap()[..] else { panic!("one matrix") };
                assert!(dequantize(read).iter().eq(rows), "{place}");

                let y = Gemm::new(&x, &last).run().unwrap().read_blocking::<f32>().unwrap();
                for (i, y) in y.iter().enumerate() {
                    let row = &wanted[(2 * n + i % n) * k..][..k];
                    let terms = values[i / n * k..].iter().zip(row);
                    let terms = terms.map(|(&x, &w)| f64::from(x) * f64::from(w));
                    let (sum, size) =
                        terms.fold((0.0, 0.0), |(sum, size), t| (sum + t, size + t.abs()));
                    assert!((f64::from(*y) - sum).abs() <= 1e-5 * size, "{place}: {y} for {sum}");
                }
            }
        }
    }
}

/// The device quantizes rows with gaps to the bits of the host, twice into one output. It does not
/// take a slice for a whole output.
#[test]
fn gaps_of_outputs() {
    for context in contexts() {
        for (format, k) in with_gaps().into_iter().filter(|(format, _)| format.quantizes()) {
            let mut rng = Rng::new(17);
            let out = QuantizedTensor::zeros(&context, format, &[2, 3, k]).unwrap();
            for _ in 0..2 {
                let numbers: Vec<f32> = (0..6 * k).map(|_| rng.number()).collect();
                let wanted = QuantizedTensor::quantize(&context, &numbers, [2, 3, k], format);
                let dense = Tensor::upload(&context, &numbers, &[2, 3, k]).unwrap();
                match Quantize::new(&dense, format).run_into(&out) {
                    Ok(()) => {
                        let [got, wanted] = [&out, &wanted.unwrap()].map(|w| w.read_blocking());
                        assert!(got.unwrap() == wanted.unwrap(), "{format} on {context:?}");
                    }
                    Err(Error::Unsupported(_)) => assert!(!context.is_cpu(), "{format}"),
                    Err(error) => panic!("{format}: {error}"),
                }
            }
            let wider = format.pitch(k as u64) as usize;
            let wider = QuantizedTensor::zeros(&context, format, &[3, wider]).unwrap();
            let slice = wider.slice(0..3, 0..k).unwrap();
            let dense = Tensor::upload(&context, &vec![1.0f32; 3 * k], &[3, k]).unwrap();
            let refused = Quantize::new(&dense, format).run_into(&slice);
            assert!(matches!(refused, Err(Error::Shape(_))), "{format}: {refused:?}");
        }
    }
}

/// If a buffer of the device holds weights only without gaps, they have none.
#[test]
fn no_gaps_where_there_is_no_room() {
    for adapter in adapters() {
        let context = adapter.with_limits(|limits| {
            limits.max_buffer_size = 1 << 20;
            limits.max_storage_buffer_binding_size = 1 << 20;
        });
        let (n, k, format) = (1020, 1024, QuantFormat::Q8_0);
        assert!(format.pitch(k as u64) as usize * n > 1 << 20);
        let mut rng = Rng::new(19);
        let weights = Quantized::sample(format, n, k, || rng.bits() as u32).unwrap();
        let w = QuantizedTensor::upload(&context, &weights).unwrap();
        assert!(w.read_blocking().unwrap() == [weights], "{}", adapter.name());
        let numbers: Vec<f32> = (0..2 * k).map(|_| rng.number()).collect();
        let dense = Tensor::upload(&context, &numbers, &[2, k]).unwrap();
        let out = QuantizedTensor::zeros(&context, format, &[n, k]).unwrap().slice(0..2, 0..k);
        assert!(matches!(
            Quantize::new(&dense, format).run_into(&out.unwrap()),
            Err(Error::Shape(text)) if text.contains("a part of larger weights")
        ));
        let small = Tensor::upload(&context, &vec![1.0f32; 250 * k], &[250, k]).unwrap();
        for rows in [250, 1020] {
            let out = QuantizedTensor::zeros(&context, format, &[rows, k]).unwrap();
            let made = Quantize::new(&small, format).run_into(&out);
            assert_eq!(made.is_ok(), rows == 250, "{made:?}");
            assert!(Quantize::new(&small, format).run_into(&out.t()).is_err());
        }
    }
}

/// Codes of e4m3 below the normal numbers are exact in kernels that read them as subnormal numbers
/// of f16, which a driver might take for zeros.
#[test]
fn the_smallest_floats_of_eight_bits() {
    for context in contexts() {
        let (m, n, k) = (2, 5, 96);
        let a: Vec<f32> = (0..m * k).map(|i| (i * 7 % 5) as f32 - 2.0).collect();
        let code =
            |i: usize| ((i * 5 + i / k) % 8) as u8 | if i.is_multiple_of(3) { 0x80 } else { 0 };
        let codes: Vec<u8> = (0..n * k).map(code).collect();
        let number = |i: usize| {
            let magnitude = f32::from(codes[i] & 7) * 2f32.powi(-9);
            if codes[i] & 0x80 == 0 { magnitude } else { -magnitude }
        };
        let products =
            |row: usize, column: usize| (0..k).map(move |i| [row * k + i, column * k + i]);
        let expected: Vec<f32> = (0..m * n)
            .map(|at| products(at / n, at % n).map(|[x, w]| a[x] * number(w)).sum())
            .collect();
        let input = Tensor::upload(&context, &a, &[m, k]).unwrap();
        for (name, scale) in [("fp8-e4m3-g32", &1f32.to_le_bytes()[..]), ("mxfp8", &[127])] {
            let scales = scale.repeat(n * k / 32);
            let planes = [PlaneSource::Bytes(&codes), PlaneSource::Bytes(&scales)];
            let format = name.parse().unwrap();
            let weights = QuantizedTensor::from_planes(&context, format, &[n, k], &planes).unwrap();
            for kernel in [None, Some("rows/1x8x128"), Some("gemv/1x4"), Some("naive")] {
                let product = Gemm::new(&input, &weights);
                let product = if let Some(name) = kernel { product.kernel(name) } else { product };
                let output = product.run().unwrap().read_blocking::<f32>().unwrap();
                assert_eq!(output, expected, "{name}, {kernel:?}, {}", context.adapter_name());
            }
        }
    }
}
