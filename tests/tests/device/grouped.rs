//! Grouped products: segments of rows, dense and quantized, with right ends and with wrong ones.

mod large;
mod lists;

use tilewise::{
    Context, DType, Error, Gemm, GroupEnds, QuantFormat, Result, RightOperand, Shards, Take, Tensor,
};
use tilewise_core::{Caps, Format, Grouping, Operand, Problem, plan};
use tilewise_shaders::LIBRARY;
use tilewise_tests::case::{Form, Groups};
use tilewise_tests::{Case, Rng, Suite, contexts, floor, kernels, themes};

#[test]
fn segments() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = themes::sampled(adapter, &themes::grouped(&themes::ends(), false), 3);
        cases.extend(themes::on(&[floor(adapter)], &themes::grouped(&themes::ends(), true)));
        cases
    });
}

/// Ends that a faulty shader left on the device. Rows outside the clamped segments stay unchanged,
/// whatever the ends are.
#[test]
fn bad_ends_on_the_device() {
    Suite::on_every_adapter(|adapter| {
        themes::sampled(adapter, &themes::grouped(&themes::bad_ends(), true), 3)
    });
}

/// Batches whose entries have as many rows as the device says, also more than there are.
#[test]
fn indexed() {
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &themes::indexed(), 3));
}

#[test]
fn masked() {
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &themes::masked(), 3));
}

/// Sums over ranges of K, with ends that the host knows, and with any ends on the device.
#[test]
fn ranges_of_k() {
    Suite::on_every_adapter(|adapter| {
        let known = themes::along_k(&themes::ends(), false);
        let all = [known, themes::along_k(&themes::bad_ends(), true)].concat();
        themes::sampled(adapter, &all, 3)
    });
}

/// Models of fine experts have this many groups, empty ones and long ones among them. The planner
/// chooses the kernel.
#[test]
fn thousands_of_groups() {
    let rows = |group: u32| if group % 500 == 3 { 90 } else { group % 3 / 2 };
    let ends = (0..4000).scan(0, |end, group| {
        *end += rows(group);
        Some(*end)
    });
    let ends: Vec<u32> = ends.collect();
    let size = [*ends.last().unwrap() as usize + 2, 5, 8];
    let groups = Some(Groups { ends, on_device: true });
    let case = Case { groups, ..Case::new(size, [DType::F32; 3]) };
    Suite::on_every_adapter(|_| vec![case.clone()]);
}

/// Sums over ranges of K are those of MLX 0.32.4:
/// `mx.segmented_mm(a, b, [[0, 2], [2, 2], [2, 6], [6, 7]])`.
#[test]
fn segments_of_mlx() {
    let wanted = [
        [25.0, -7.0, 5.0, -20.0, 8.0, -8.0],
        [0.0; 6],
        [-7.0, -7.0, 4.0, -17.0, -1.0, 4.0],
        [0.0, 4.0, -3.0, 0.0, 8.0, -6.0],
    ];
    for context in contexts() {
        let numbers = |shape: &[usize; 2], step: usize, modulus: usize, less: f32| {
            let all = (0..shape[0] * shape[1]).map(|i| (i * step % modulus) as f32 - less);
            Tensor::upload(&context, &all.collect::<Vec<_>>(), shape).unwrap()
        };
        let (a, b) = (numbers(&[2, 7], 5, 9, 4.0), numbers(&[7, 3], 7, 11, 5.0));
        let ends = GroupEnds::upload(&context, &[2, 2, 6, 7]).unwrap();
        let c = Gemm::ragged_k(&a, &b, &ends).run().unwrap();
        assert_eq!(c.shape(), [4, 2, 3]);
        assert_eq!(c.read_blocking::<f32>().unwrap(), wanted.concat(), "{context:?}");
    }
}

/// Entries of B in several buffers; and groups of columns, whose transposes are groups of rows.
/// Both are made of products that other tests run on each kernel.
#[test]
fn shards_and_columns() {
    let known = themes::grouped(&themes::ends(), false);
    let all = [known, themes::grouped(&themes::bad_ends(), true)].concat();
    let columns: Vec<_> = all.iter().skip(1).step_by(4).cloned().collect();
    let mut cases = themes::in_shards(all.into_iter().step_by(4).collect());
    cases.extend(themes::in_shards(themes::masked()));
    let shards = themes::in_shards(columns.clone()).into_iter().step_by(4);
    let columns = columns.into_iter().chain(shards);
    cases.extend(columns.map(|case| Case { form: Form::Columns, ..case }));
    Suite::on_every_adapter(|adapter| themes::on(&[floor(adapter)], &cases));
}

/// Each shard has its own problem, which may be planned and compiled in advance. All shards have
/// one output.
#[test]
fn shards_are_products_by_themselves() -> Result<()> {
    for context in contexts() {
        let upload = |numbers: &[f32], shape: &[usize]| Tensor::upload(&context, numbers, shape);
        let x = upload(&[1.0, 2.0, 3.0, 4.0, 5.0], &[5, 1])?;
        let one = |number: f32| upload(&[number], &[1, 1]);
        let stack = upload(&[3.0, 4.0], &[2, 1, 1])?;
        let w =
            Shards::new([Shards::new([one(1.0)?, one(2.0)?])?.into(), RightOperand::from(stack)])?;
        assert_eq!(w.shape(), [4, 1, 1]);
        let ends = GroupEnds::upload(&context, &[0, 1, 1, 3, 5])?; // a start before them
        let bias = upload(&[10.0, 20.0, 30.0, 40.0], &[4, 1])?;
        let gemm = Gemm::grouped(&x, &w, &ends).bias(&bias);
        let wanted = vec![11.0, 36.0, 39.0, 56.0, 60.0];
        assert_eq!(gemm.run()?.read_blocking::<f32>()?, wanted, "{context:?}");
        let firsts = gemm.problems()?.into_iter().map(|problem| match problem.grouping {
            Grouping::RaggedM { groups, first, offset, expected } => {
                (groups, first, offset, expected)
            }
            other => panic!("{other:?}"),
        });
        let firsts: Vec<_> = firsts.collect();
        assert_eq!(firsts, [(1, 0, 1, Some(2)), (1, 1, 1, Some(2)), (2, 2, 1, Some(2))]);
        context.warm_up_problems(&gemm.problems()?)?;
        assert_eq!(gemm.plans()?.len(), 3);
        let text = gemm.explain()?;
        for part in ["groups 0 to 2, of 3 shards", "groups 2 to 4, of 3 shards"] {
            assert!(text.contains(part), "{text}");
        }
        assert_eq!(context.is_cpu(), gemm.choices()?.is_empty());
        for choice in gemm.choices()?.iter().take(1) {
            let forced = gemm.clone().kernel(choice.to_string());
            assert_eq!(forced.run()?.read_blocking::<f32>()?, wanted, "{choice}");
        }
        if let (Some(device), Some(queue)) = (context.device(), context.queue()) {
            let y = Tensor::zeros(&context, DType::F32, &[5, 1])?;
            let mut encoder = device.create_command_encoder(&Default::default());
            gemm.record(&mut encoder.begin_compute_pass(&Default::default()), &y)?;
            queue.submit([encoder.finish()]);
            assert_eq!(y.read_blocking::<f32>()?, wanted);
        }
        let (half, line) = (Tensor::zeros(&context, DType::F16, &[1, 1])?, upload(&[1.0], &[1])?);
        for (parts, words) in [
            (vec![], ["0 shards", "one or more"]),
            (vec![one(1.0)?, x.clone()], ["shard 1 has matrices [5, 1] of f32", "[1, 1] of f32"]),
            (vec![one(1.0)?, half], ["shard 1 has matrices [1, 1] of f16", "[1, 1] of f32"]),
            (vec![line], ["shard 0 has shape [1]", "[n,K,N]"]),
        ] {
            let error = Shards::new(parts).unwrap_err();
            let text = error.to_string();
            let fits = words.iter().all(|word| text.contains(word));
            assert!(matches!(error, Error::Shape(_)) && fits, "{text}");
        }
        assert!(matches!(Take::new(&w).run(), Err(Error::Unsupported(text)) if text.contains("3")));
        let elsewhere = Tensor::zeros(&Context::cpu(), DType::F32, &[1, 1])?;
        let mixed = Shards::new([one(1.0)?, elsewhere]);
        assert!(tilewise_tests::fails_with(&mixed, "wrong context: "), "{mixed:?}");
    }
    Ok(())
}

/// Segments that begin and end around the edges of every kernel's tile.
#[test]
fn every_kernel_around_its_edges() {
    Suite::on_every_adapter(|adapter| {
        let mut cases = Vec::new();
        for kernel in kernels(adapter) {
            let bm = kernel.variant.bm;
            let lengths = [bm, 1, 0, bm + 1, bm.max(2) - 1, 2 * bm];
            let ends: Vec<_> = lengths
                .iter()
                .scan(0, |end, length| {
                    Some({
                        *end += length;
                        *end
                    })
                })
                .collect();
            let size = [ends[5] as usize + 3, kernel.variant.bn as usize + 4, 20];
            let case = Case {
                groups: Some(Groups { ends, on_device: true }),
                ..Case::new(size, [DType::F32; 3])
            };
            cases.push(case.clone().kernel(&kernel.name));
            cases.push(case.integers().kernel(&kernel.name));
        }
        cases
    });
}

/// Rows of A by index, with groups and without.
#[test]
fn rows_by_index() {
    Suite::on_every_adapter(|adapter| themes::sampled(adapter, &themes::gathered(), 6));
}

/// Ends may lie anywhere in a tensor, and may have a 0 before them.
#[test]
fn ends_in_a_tensor() {
    for context in contexts() {
        let numbers = |shape: &[usize]| {
            let mut rng = Rng::new(shape.len() as u64);
            let all: Vec<f32> = (0..shape.iter().product()).map(|_| rng.number()).collect();
            Tensor::upload(&context, &all, shape).unwrap()
        };
        let (x, w) = (numbers(&[9, 20]), numbers(&[3, 20, 7]));
        let whole = Tensor::upload(&context, &[99u32, 7, 7, 0, 4, 4, 9, 1], &[8]).unwrap();
        let product = |ends: &GroupEnds| {
            let y = Tensor::upload(&context, &[0.5f32; 63], &[9, 7]).unwrap();
            Gemm::grouped(&x, &w, ends).run_into(&y).map(|()| y.read_blocking::<f32>().unwrap())
        };
        let wanted = product(&GroupEnds::upload(&context, &[4, 4, 9]).unwrap()).unwrap();
        assert!(wanted.iter().all(|y| *y != 0.5));
        for (start, len) in [(4, 3), (3, 4)] {
            let part = whole.narrow(0, start, len).unwrap();
            let ends = GroupEnds::from_tensor(&part).unwrap();
            assert_eq!(product(&ends), Ok(wanted.clone()), "{start}");
        }
        assert!(matches!(whole.narrow(0, 5, 4), Err(Error::Shape(_))));
        assert!(matches!(whole.narrow(1, 0, 1), Err(Error::Shape(_))));
        assert!(matches!(whole.narrow(0, 1, usize::MAX), Err(Error::Shape(_))));
        let with_start = |start| GroupEnds::upload(&context, &[start, 4, 4, 9]).unwrap();
        assert_eq!(product(&with_start(0)), Ok(wanted.clone()));
        assert_eq!(product(&with_start(0).without_start().unwrap()), Ok(wanted));
        for (ends, kind, text) in [
            (with_start(2).without_start(), "Shape", "must begin with 0; these begin with 2"),
            (Ok(with_start(2)), "Shape", "4 offsets for 3 groups must begin with 0"),
            (GroupEnds::from_tensor(&whole), "Shape", "8 group offsets for 3 entries"),
            (GroupEnds::upload(&context, &[9]), "Shape", "1 group offset for 3 entries of B"),
            (GroupEnds::from_tensor(&x), "Unsupported", "group offsets in f32"),
            (GroupEnds::from_tensor(&whole.unsqueeze(0).unwrap()), "Shape", "[1, 8]"),
            (GroupEnds::from_tensor(&whole.broadcast_to(&[2, 8]).unwrap()), "Shape", "[2, 8]"),
        ] {
            let error = ends.and_then(|ends| product(&ends)).unwrap_err();
            let found = format!("{error:?}").starts_with(kind) && error.to_string().contains(text);
            assert!(found, "{error:?}");
        }
    }
}

/// A plain product whose number of rows only the device knows: it is the end of the only group, or
/// the count of the only entry. The kernel leaves later rows unchanged. If the number is too large,
/// the kernel takes all rows. The expected number of rows changes nothing.
#[test]
fn rows_as_many_as_the_device_says() {
    for context in contexts() {
        let (m, k, n) = (9, 20, 7);
        let mut rng = Rng::new(5);
        let mut random = |len: usize| (0..len).map(|_| rng.number()).collect::<Vec<f32>>();
        let (a, b) = (random(m * k), random(k * n));
        let x = Tensor::upload(&context, &a, &[m, k]).unwrap();
        let w = Tensor::upload(&context, &b, &[1, k, n]).unwrap();
        let rows = Tensor::upload(&context, &[77u32, 0], &[2]).unwrap().narrow(0, 1, 1).unwrap();
        let grouped = Gemm::grouped(&x, &w, &GroupEnds::from_tensor(&rows).unwrap());
        let masked = Gemm::masked(&x.unsqueeze(0).unwrap(), &w, &rows);
        let forms =
            [grouped.clone(), grouped.expect_rows(1), masked.clone(), masked.expect_rows(1)];
        let counts = [4, 0, 9, 1, 8, 10, 1 << 20, u32::MAX];
        for (count, gemm) in counts.iter().flat_map(|&count| forms.iter().map(move |f| (count, f)))
        {
            rows.write(&[count]).unwrap();
            let shape = gemm.output_shape().unwrap();
            let y = Tensor::upload(&context, &[f32::NAN; 63], shape.as_slice()).unwrap();
            gemm.run_into(&y).unwrap();
            for (i, got) in y.read_blocking::<f32>().unwrap().into_iter().enumerate() {
                if i / n >= count as usize {
                    assert!(got.is_nan(), "row {} of {count} is written: {context:?}", i / n);
                    continue;
                }
                let terms =
                    (0..k).map(|j| f64::from(a[i / n * k + j]) * f64::from(b[j * n + i % n]));
                let (wanted, size) =
                    terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                let error = (f64::from(got) - wanted).abs();
                assert!(error <= 21.0 * 2f64.powi(-24) * size, "{got}, not {wanted}: {context:?}");
            }
        }
    }
}

/// Masked products and groups along K that do not fit give errors with both numbers.
#[test]
fn other_forms_that_do_not_fit() {
    for context in contexts() {
        let zeros = |shape: &[usize]| Tensor::zeros(&context, DType::F32, shape).unwrap();
        let numbers = |count: usize| Tensor::zeros(&context, DType::U32, &[count]).unwrap();
        let ends = |ends: &[u32]| GroupEnds::upload(&context, ends).unwrap();
        let (a, b) = (zeros(&[3, 5, 4]), zeros(&[3, 4, 7]));
        let four = zeros(&[4, 5, 4]);
        let (x, y) = (zeros(&[5, 9]), zeros(&[9, 7]));
        let long = [zeros(&[5, 90]), zeros(&[90, 7])];
        let kernel = |name: &str| Gemm::ragged_k(&long[0], &long[1], &ends(&[4, 9])).kernel(name);
        let shards = Shards::new([zeros(&[9, 7]), zeros(&[9, 7])]).unwrap();
        let (stack, row_major) = (zeros(&[2, 7, 9]), zeros(&[7, 5]));
        let columns = |a: &Tensor, b: &Tensor| Gemm::ragged_n(a, b, &ends(&[1, 5]));
        for (gemm, kind, words) in [
            (Gemm::new(&x, &shards), "Unsupported", ["B in 2 shards", "grouped and masked"]),
            (
                Gemm::grouped(&x, &shards, &ends(&[5])),
                "Shape",
                ["1 group offset for", "2 entries of B"],
            ),
            (
                Gemm::grouped(&x, &shards, &ends(&[4, 5])).bias(&zeros(&[3, 7])),
                "Shape",
                ["[3, 7]", "[2, 7]"],
            ),
            (Gemm::grouped(&x, &shards, &ends(&[4, 6])), "Shape", ["is 6", "A has 5 rows"]),
            (columns(&stack, &zeros(&[9, 4])), "Shape", ["is 5", "B has 4 columns"]),
            (columns(&stack, &zeros(&[8, 5])), "Shape", ["A is 7×9", "B is 8×5"]),
            (columns(&zeros(&[3, 7, 9]), &x.t()), "Shape", ["2 group offsets", "3 entries of A"]),
            (columns(&stack, &zeros(&[2, 9, 5])), "Shape", ["B [K,N]", "[2, 9, 5]"]),
            (columns(&stack, &x.t()).residual(&row_major), "Shape", ["residual", "columns"]),
            (columns(&stack, &x.t()).residual(&y), "Shape", ["[9, 7]", "[7, 5]"]),
            (columns(&stack, &x.t()).bias(&zeros(&[7])), "Shape", ["[7]", "[5]"]),
            (
                columns(&stack, &x.t()).gather_rows(&numbers(3)),
                "Unsupported",
                ["row indices", "groups of columns"],
            ),
            (
                columns(&stack, &x.t()).beta(1.0).add_to(&row_major),
                "Shape",
                ["the transpose of C", "[5, 7]"],
            ),
            (Gemm::indexed(&x, zeros(&[2, 9, 7]), &numbers(4)), "Shape", ["4 indices", "5 rows"]),
            (
                Gemm::indexed(&x, zeros(&[2, 9, 7]), &zeros(&[5])),
                "Unsupported",
                ["indices of entries in f32", "u32"],
            ),
            (
                Gemm::indexed(&zeros(&[3, 5, 9]), zeros(&[2, 9, 7]), &numbers(3)),
                "Shape",
                ["[3, 5, 9]", "A [M,K]"],
            ),
            (Gemm::indexed(&x, &shards, &numbers(5)), "Unsupported", ["B in 2 shards", "layers"]),
            (Gemm::indexed(&x, zeros(&[0, 9, 7]), &numbers(5)), "Shape", ["5 rows", "none"]),
            (Gemm::masked(&a, &b, &numbers(2)), "Shape", ["2 row counts", "batch of 3"]),
            (Gemm::masked(&a, &b, &zeros(&[3])), "Unsupported", ["row counts in f32", "u32"]),
            (
                Gemm::masked(&a, &b, &numbers(3).unsqueeze(0).unwrap()),
                "Shape",
                ["[1, 3]", "vector"],
            ),
            (Gemm::masked(&four, zeros(&[2, 4, 7]), &numbers(4)), "Shape", ["[4, 5, 4]", "1×2"]),
            (
                Gemm::masked(&zeros(&[2, 3, 5, 4]), &b, &numbers(6)),
                "Shape",
                ["[2, 3, 5, 4]", "1×3"],
            ),
            (Gemm::ragged_k(&x, &y, &ends(&[4, 10])), "Shape", ["is 10", "K is 9"]),
            (Gemm::ragged_k(&a, &y, &ends(&[4])), "Shape", ["A is 5×4", "B is 9×7"]),
            (Gemm::ragged_k(&zeros(&[2, 5, 9]), &y, &ends(&[4])), "Shape", ["[2, 5, 9]", "1×1"]),
            (
                Gemm::ragged_k(&x, &y, &ends(&[4, 9])).bias(&zeros(&[3, 7])),
                "Shape",
                ["batch of 3", "one of 2"],
            ),
        ] {
            let error = gemm.run().unwrap_err();
            let named = format!("{error:?}").starts_with(kind);
            let text = error.to_string();
            assert!(named && words.iter().all(|word| text.contains(word)), "{error:?}");
        }
        if !context.is_cpu() {
            for (name, text) in [
                ("simt/32x32x32+k2", "groups along K take no splits of K, 2 here"),
                ("gemv/1x4", "groups along K begin inside its steps"),
            ] {
                let error = kernel(name).run().unwrap_err().to_string();
                assert!(error.contains(text), "{error}");
            }
        }
    }
}

/// The planner refuses some masked products and groups along K.
#[test]
fn other_forms_that_have_no_plan() {
    let caps = Caps::webgpu_default();
    let refused = |problem: &Problem, caps: &Caps, kind: &str, words: [&str; 2]| {
        let error = plan(problem, caps, &LIBRARY, None).unwrap_err();
        let (named, text) = (format!("{error:?}").starts_with(kind), error.to_string());
        assert!(named && words.iter().all(|word| text.contains(word)), "{error:?}");
    };
    let masked = Problem {
        batch: 2,
        grouping: Grouping::Masked { entries: 3, offset: 0, expected: None },
        ..Problem::dense(DType::F32, 4, 4, 4)
    };
    refused(&masked, &caps, "Shape", ["3 groups", "batch of 2"]);
    // Ranges of K share one A and one B. Both are dense, and K is never cut.
    let dense = Problem::dense(DType::F32, 64, 64, 4096);
    let mut along_k = Problem {
        batch: 2,
        grouping: Grouping::RaggedK { groups: 2, offset: 0 },
        c: Operand::packed(dense.c.format, 2, 64, 64),
        a: Operand { transposed: true, ld: 64, batch_stride: 0, ..dense.a },
        b: Operand { batch_stride: 0, ..dense.b },
        ..dense
    };
    assert!(plan(&along_k, &caps, &LIBRARY, None).is_ok());
    let small = Caps { max_binding_bytes: 1 << 16, ..caps.clone() };
    refused(&along_k, &small, "DeviceLimit", ["1048576", "65536"]);
    let quantized = Operand::packed(Format::Quantized(QuantFormat::Q8_0), 1, 64, 4096).t();
    let weights = Problem { b: Operand { batch_stride: 0, ..quantized }, ..along_k };
    refused(&weights, &caps, "Unsupported", ["q8_0", "32"]);
    along_k.a.batch_stride = 1;
    (along_k.a.len, along_k.a.offset) = (along_k.a.len + 1, 0);
    refused(&along_k, &caps, "Shape", ["share one A", "1]"]);
}
