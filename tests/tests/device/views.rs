//! Views in products: vectors, batches of two dimensions, groups of heads, and outputs that are
//! views. Numbers are small integers, so every kernel gives the same result.

use tilewise::{
    Axis, Context, DType, Error, Gemm, GroupEnds, Prepared, QuantFormat, Quantize, QuantizedTensor,
    Result, Take, Tensor, wgpu,
};
use tilewise_core::Grouping;
use tilewise_tests::{Rng, adapters, contexts};

/// A tensor of small integers.
fn integers(context: &Context, dtype: DType, shape: &[usize]) -> Tensor {
    let mut rng = Rng::new(shape.iter().fold(shape.len() as u64, |seed, &n| 31 * seed + n as u64));
    let numbers =
        (0..shape.iter().product()).map(|_| rng.below(5) as f32 - 2.0).collect::<Vec<_>>();
    let bytes = tilewise_core::convert::encode(dtype, &numbers);
    Tensor::from_bytes(context, dtype, &bytes, shape).unwrap()
}

/// Elements in f32 with a shape.
struct Numbers {
    shape: Vec<usize>,
    numbers: Vec<f32>,
}

impl Numbers {
    fn of(tensor: &Tensor) -> Self {
        let numbers = tensor.read_f32_blocking().unwrap();
        Numbers { shape: tensor.shape().to_vec(), numbers }
    }

    /// An element, in up to four dimensions. An entry of a smaller batch serves a group.
    fn at(&self, sizes: [usize; 2], entry: [usize; 2], row: usize, col: usize) -> f32 {
        let shape = [&vec![1; 4 - self.shape.len()][..], &self.shape].concat();
        let [o, i] = [0, 1].map(|axis| entry[axis] * shape[axis] / sizes[axis]);
        self.numbers[((o * shape[1] + i) * shape[2] + row) * shape[3] + col]
    }
}

/// The result of `numpy.matmul`, and with groups if one size divides the other.
fn product(a: &Tensor, b: &Tensor) -> Numbers {
    let [row, column] = [a, b].map(|tensor| tensor.shape().len() == 1);
    let (mut a, mut b) = (Numbers::of(a), Numbers::of(b));
    if row {
        a.shape.insert(0, 1);
    }
    if column {
        b.shape.push(1);
    }
    let rank = a.shape.len().max(b.shape.len());
    let padded = |shape: &[usize]| [&vec![1; 4 - shape.len()][..], shape].concat();
    let (sa, sb) = (padded(&a.shape), padded(&b.shape));
    let size = |axis: usize| match [sa[axis], sb[axis]] {
        [0, _] | [_, 0] => 0,
        [a, b] => a.max(b),
    };
    let (sizes, [m, k, n]) = ([size(0), size(1)], [sa[2], sa[3], sb[3]]);
    let mut numbers = Vec::new();
    for o in 0..sizes[0] {
        for i in 0..sizes[1] {
            for row in 0..m {
                for col in 0..n {
                    let term = |l| a.at(sizes, [o, i], row, l) * b.at(sizes, [o, i], l, col);
                    numbers.push((0..k).map(term).sum());
                }
            }
        }
    }
    let mut shape = [sizes[0], sizes[1], m, n][4 - rank..].to_vec();
    if column {
        shape.pop();
    }
    if row {
        shape.remove(shape.len() - usize::from(!column) - 1);
    }
    Numbers { shape, numbers }
}

/// Fails unless the library gives the same result, in a new tensor and in a view with gaps.
#[track_caller]
fn check(a: &Tensor, b: &Tensor) {
    let wanted = product(a, b);
    let name = format!("{:?} {:?} by {:?} {:?}", a.shape(), a.strides(), b.shape(), b.strides());
    let gemm = Gemm::new(a, b).out_dtype(DType::F32);
    let got = gemm.run().unwrap_or_else(|error| panic!("{name}: {error}"));
    assert_eq!(got.shape(), wanted.shape, "{name}");
    assert!(got.read_blocking::<f32>().unwrap() == wanted.numbers, "{name}");
    // Heads between the rows, with a gap behind each.
    let order: &[usize] = [&[][..], &[0], &[0, 1], &[1, 0, 2], &[0, 2, 1, 3]][wanted.shape.len()];
    let mut gaps: Vec<_> = order.iter().map(|&axis| wanted.shape[axis]).collect();
    let inside: Vec<_> = gaps.iter().map(|&size| 0..size).collect();
    if let Some(last) = gaps.last_mut() {
        *last += 3;
    }
    let c = Tensor::zeros(a.context(), DType::F32, &gaps).unwrap();
    let c = c.slice(&inside).unwrap().permute(order).unwrap();
    gemm.run_into(&c).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(c.read_blocking::<f32>().unwrap() == wanted.numbers, "{name}");
}

#[test]
fn vectors() {
    for context in contexts() {
        let tensor = |shape: &[usize]| integers(&context, DType::F32, shape);
        let shapes: [[&[usize]; 2]; 12] = [
            [&[5], &[5, 7]],
            [&[4, 5], &[5]],
            [&[5], &[5]],
            [&[1], &[1]],
            [&[0], &[0]],
            [&[0], &[0, 3]],
            [&[5], &[2, 5, 3]],
            [&[2, 4, 5], &[5]],
            [&[5], &[2, 3, 5, 7]],
            [&[2, 3, 4, 5], &[5]],
            [&[64], &[64, 130]],
            [&[130, 64], &[64]],
        ];
        for [a, b] in shapes {
            check(&tensor(a), &tensor(b));
        }
        // A column, a row and a diagonal of a matrix.
        let matrix = tensor(&[5, 5]);
        let column = matrix.slice(&[0..5, 2..3]).unwrap().squeeze(1).unwrap();
        let diagonal = matrix.as_strided(&[5], &[6], 0).unwrap();
        for vector in [&column, &column.reshape(&[5]).unwrap(), &diagonal] {
            check(vector, &tensor(&[5, 7]));
            check(vector, &tensor(&[7, 5]).t());
            check(&tensor(&[7, 5]), vector);
            check(&tensor(&[5, 7]).t(), vector);
            check(vector, vector);
        }
        let [x, w] = [tensor(&[5]), tensor(&[5, 7])];
        let error = Gemm::new(&x, &w).run_into(&tensor(&[7, 1])).unwrap_err();
        assert!(matches!(error, Error::Shape(_)), "{error}");
        let all = Gemm::new(&x, &w).bias(&tensor(&[7])).residual(&tensor(&[7])).beta(2.0);
        let got = all.add_to(&tensor(&[7])).run().unwrap().read_blocking::<f32>().unwrap();
        let seven = Numbers::of(&tensor(&[7])).numbers;
        let wanted: Vec<_> =
            product(&x, &w).numbers.iter().zip(seven).map(|(y, s)| y + 4.0 * s).collect();
        assert_eq!(got, wanted);
        let by_column = Gemm::new(&w.t(), &x).bias_along(&tensor(&[7]), Axis::M);
        let by_column = by_column.residual(&tensor(&[7])).run().unwrap();
        assert_eq!(by_column.shape(), [7]);
    }
}

#[test]
fn vectors_by_quantized_weights() {
    for context in contexts() {
        let format = QuantFormat::Q8_0;
        let w: Vec<f32> = Numbers::of(&integers(&context, DType::F32, &[6, 64])).numbers;
        // Quantizing is exact: the largest number of each block is 127 steps of 2^-6.
        let w: Vec<_> = w
            .iter()
            .enumerate()
            .map(|(i, x)| if i % 32 == 0 { 127.0 } else { x.round() })
            .collect();
        let quantized = QuantizedTensor::quantize(&context, &w, [6, 64], format).unwrap();
        let dense = quantized.dequantize(DType::F32).unwrap();
        // Every operation takes the transpose as one, or refuses it.
        let back = quantized.t();
        assert_eq!((back.shape(), back.t().shape()), (vec![64, 6], vec![6, 64]));
        let numbers = back.dequantize(DType::F32).unwrap();
        assert_eq!(numbers.shape(), [64, 6]);
        assert_eq!(
            numbers.read_blocking::<f32>().unwrap(),
            dense.t().read_blocking::<f32>().unwrap()
        );
        let first = Tensor::upload(&context, &[0u32], &[1]).unwrap();
        for error in [
            back.rows(&first, DType::F32).unwrap_err(),
            Take::new(&back).run().unwrap_err(),
            back.slice(0..32, 0..6).unwrap_err(),
        ] {
            assert!(matches!(error, Error::Misuse(_)), "{error:?}");
            assert!(error.to_string().contains("before t()"), "{error}");
        }
        for dtype in DType::FLOATS {
            let x = integers(&context, dtype, &[3, 64]);
            let row = x.slice(&[1..2, 0..64]).unwrap().squeeze(0).unwrap();
            let y = Gemm::new(&row, &quantized).out_dtype(DType::F32).run().unwrap();
            assert_eq!(y.shape(), [6]);
            let wanted = product(&row, &dense.t()).numbers;
            assert_eq!(y.read_blocking::<f32>().unwrap(), wanted);
            let back = integers(&context, dtype, &[6]);
            let y = Gemm::new(&back, quantized.t()).out_dtype(DType::F32).run().unwrap();
            assert_eq!(y.read_blocking::<f32>().unwrap(), product(&back, &dense).numbers);
            // Heads of rows: packed, and between the rows of other heads.
            let heads = integers(&context, dtype, &[2, 3, 5, 64]);
            for heads in [heads.clone(), heads.transpose(1, 2).unwrap()] {
                let y = Gemm::new(&heads, &quantized).out_dtype(DType::F32).run().unwrap();
                assert_eq!(y.shape()[..3], heads.shape()[..3]);
                let wanted = product(&heads, &dense.t()).numbers;
                assert_eq!(y.read_blocking::<f32>().unwrap(), wanted);
            }
        }
    }
}

/// Batches of three and four dimensions that fit: equal ones, one entry for all, and groups.
const BATCHES: &[[&[usize]; 2]] = &[
    [&[3], &[3]],
    [&[1], &[3]],
    [&[8], &[2]],
    [&[2], &[8]],
    [&[6], &[]],
    [&[2, 3], &[2, 3]],
    [&[2, 3], &[3]],
    [&[3], &[2, 3]],
    [&[2, 1], &[1, 3]],
    [&[2, 8], &[2, 2]],
    [&[2, 2], &[1, 8]],
    [&[4, 3], &[2, 3]],
    [&[4, 6], &[2, 2]],
    [&[2, 6], &[4, 3]],
    [&[2, 3], &[]],
    [&[0, 3], &[1, 3]],
    [&[2, 0], &[]],
];

#[test]
fn batches() {
    for context in contexts() {
        for (i, [a, b]) in BATCHES.iter().enumerate() {
            let [m, n, k] = [[3, 5, 7], [1, 4, 8], [2, 1, 1]][i % 3];
            let dtype = |j: usize| DType::FLOATS[(i + j) % 3];
            let a = integers(&context, dtype(0), &[a, &[m, k][..]].concat());
            let b = integers(&context, dtype(1), &[b, &[k, n][..]].concat());
            check(&a, &b);
            check(&b.t(), &a.t());
            // Heads between rows, and every second head.
            let between = |x: &Tensor| match x.shape().len() {
                3 => {
                    let shape = [x.shape()[1], x.shape()[0], x.shape()[2]];
                    integers(&context, x.dtype(), &shape).transpose(0, 1).unwrap()
                }
                4 => {
                    let shape = [x.shape()[0], x.shape()[2], 2 * x.shape()[1], x.shape()[3]];
                    let view = integers(&context, x.dtype(), &shape).transpose(1, 2).unwrap();
                    let strides = view.strides().to_vec();
                    view.as_strided(x.shape(), &[strides[0], 2 * strides[1], strides[2], 1], 0)
                        .unwrap()
                }
                _ => x.clone(),
            };
            check(&between(&a), &b);
            check(&a, &between(&b));
            check(&between(&a), &between(&b));
        }
    }
}

#[test]
fn batches_that_do_not_fit() {
    for context in contexts() {
        let tensor = |shape: &[usize]| integers(&context, DType::F32, shape);
        let a = tensor(&[2, 6, 3, 4]);
        for (b, words) in [
            (&[4, 4, 5][..], ["2×6", "B one of 4"]),
            (&[3, 6, 4, 5], ["2×6", "3×6"]),
            (&[2, 0, 4, 5], ["2×6", "2×0"]),
        ] {
            let error = Gemm::new(&a, tensor(b)).run().unwrap_err();
            let text = error.to_string();
            let kind = matches!(error, Error::Shape(_));
            assert!(kind && words.iter().all(|word| text.contains(word)), "{text}");
        }
        let gemm = Gemm::new(&a, tensor(&[2, 2, 4, 5]));
        // Only A and B may serve groups.
        let refused = [
            gemm.run_into(&tensor(&[2, 2, 3, 5])),
            gemm.run_into(&tensor(&[12, 3, 5])),
            gemm.run_into(&tensor(&[1, 6, 3, 5])),
            gemm.clone().residual(&tensor(&[2, 2, 3, 5])).run().map(|_| ()),
            gemm.clone().bias(&tensor(&[2, 5])).run().map(|_| ()),
            gemm.clone().bias(&tensor(&[2, 6, 4])).run().map(|_| ()),
            gemm.clone().bias(&tensor(&[1, 2, 6, 5])).run().map(|_| ()),
        ];
        for (i, refused) in refused.into_iter().enumerate() {
            let error = refused.expect_err(&i.to_string());
            assert!(matches!(error, Error::Shape(_)), "{i}: {error}");
        }
        for bias in [&[5][..], &[6, 5], &[1, 5], &[2, 1, 5], &[2, 6, 5]] {
            assert!(gemm.clone().bias(&tensor(bias)).run().is_ok(), "{bias:?}");
        }
        let ends = GroupEnds::upload(&context, &[1, 3]).unwrap();
        for (a, b) in
            [(&[2, 3, 4][..], &[2, 4, 5][..]), (&[3, 4], &[2, 2, 4, 5]), (&[3, 4], &[4, 4, 5])]
        {
            let error = Gemm::grouped(&tensor(a), tensor(b), &ends).run().unwrap_err();
            assert!(matches!(error, Error::Shape(_)), "{error}");
        }
    }
}

/// Only products that need it are planned as nested batches.
#[test]
fn plain_batches_stay_plain() {
    for context in contexts() {
        let tensor = |shape: &[usize]| integers(&context, DType::F32, shape);
        let heads = |shape: &[usize]| tensor(shape).transpose(1, 2).unwrap();
        let w = tensor(&[4, 5]);
        let rows = [
            (tensor(&[2, 6, 3, 4]), w.clone(), false),
            (tensor(&[2, 6, 3, 4]), tensor(&[2, 6, 4, 5]), false),
            (tensor(&[2, 6, 3, 4]).slice(&[0..2, 0..6, 0..2, 0..4]).unwrap(), w.clone(), false),
            (heads(&[1, 3, 6, 4]), w.clone(), false),
            (tensor(&[6, 3, 4]), tensor(&[3, 4, 5]), true),
            (heads(&[2, 3, 6, 4]), w, true),
            (
                tensor(&[2, 6, 3, 4]).slice(&[0..2, 0..5, 0..3, 0..4]).unwrap(),
                tensor(&[4, 5]),
                true,
            ),
        ];
        for (i, (a, b, nests)) in rows.iter().enumerate() {
            let grouping = Gemm::new(a, b).problems().unwrap()[0].grouping;
            assert_eq!(matches!(grouping, Grouping::Nested { .. }), *nests, "{i}");
        }
    }
}

#[test]
fn outputs_whose_elements_share_places() {
    for context in contexts() {
        let tensor = |shape: &[usize]| integers(&context, DType::F32, shape);
        let flat = tensor(&[400]);
        let [a, b] = [tensor(&[2, 3, 4, 5]), tensor(&[5, 6])];
        let outputs = [
            tensor(&[1, 3, 4, 6]).broadcast_to(&[2, 3, 4, 6]),
            tensor(&[4, 6]).broadcast_to(&[2, 3, 4, 6]),
            tensor(&[2, 3, 4, 1]).broadcast_to(&[2, 3, 4, 6]),
            flat.as_strided(&[2, 3, 4, 6], &[71, 24, 6, 1], 0),
            flat.as_strided(&[2, 3, 4, 6], &[72, 6, 17, 1], 0),
            flat.as_strided(&[2, 3, 4, 6], &[72, 24, 5, 1], 0),
            flat.as_strided(&[2, 3, 4, 6], &[24, 24, 6, 1], 0),
        ];
        let gemm = Gemm::new(&a, &b);
        for (i, c) in outputs.into_iter().enumerate() {
            let c = c.unwrap();
            let refused = |result: Result<()>| match result {
                Err(Error::Shape(text)) => assert!(text.contains('C'), "{i}: {text}"),
                other => panic!("{i}: {other:?}"),
            };
            refused(gemm.run_into(&c));
            if let Some(device) = context.device() {
                let mut encoder = device.create_command_encoder(&Default::default());
                refused(gemm.record(&mut encoder, &c));
                let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                refused(gemm.record(&mut pass, &c));
            }
        }
        // Rows of an entry between rows of another, and dimensions in any order.
        let order = flat.as_strided(&[2, 3, 4, 6], &[6, 48, 12, 1], 0).unwrap();
        gemm.run_into(&order).unwrap();
        assert_eq!(order.read_blocking::<f32>().unwrap(), product(&a, &b).numbers);
        let table = tensor(&[3, 6]);
        let out = tensor(&[1, 6]).broadcast_to(&[3, 6]).unwrap();
        let error = Take::new(&table).run_into(&out).unwrap_err();
        assert!(matches!(error, Error::Shape(_)), "{error}");
    }
}

/// Every other operation on tensors takes views, too, or says why it does not.
#[test]
fn views_elsewhere() {
    for context in contexts() {
        let tensor = |shape: &[usize]| integers(&context, DType::F32, shape);
        let heads = tensor(&[2, 3, 4, 8]);
        let indices = Tensor::upload(&context, &[3u32, 0], &[2]).unwrap();
        let rows = heads.rows(&indices).unwrap();
        assert_eq!(rows.shape(), [2, 3, 2, 8]);
        let wanted = heads.reshape(&[6, 4, 8]).unwrap().rows(&indices).unwrap();
        let read = |tensor: &Tensor| tensor.read_blocking::<f32>().unwrap();
        assert_eq!(read(&rows), read(&wanted));
        // One index for all rows, and one row for all.
        let same = Tensor::upload(&context, &[2u32], &[1]).unwrap().broadcast_to(&[3]).unwrap();
        let table = tensor(&[4, 8]);
        let row = read(&table.slice(&[2..3, 0..8]).unwrap());
        assert_eq!(read(&table.rows(&same).unwrap()), row.repeat(3));
        let one = table.slice(&[2..3, 0..8]).unwrap().broadcast_to(&[5, 4, 8]).unwrap();
        assert_eq!(read(&one.rows(&indices).unwrap()), row.repeat(10));
        let turned = tensor(&[2, 4, 3, 8]).transpose(1, 2).unwrap();
        let strides = |error: Error| match error {
            Error::Shape(text) => assert!(text.contains("[96, 8, 24, 1]"), "{text}"),
            other => panic!("{other}"),
        };
        strides(turned.rows(&indices).unwrap_err());
        strides(Prepared::left(&turned).unwrap_err());
        // When it is quantized, every entry is one matrix of a stack.
        let wide = tensor(&[4, 64]);
        let repeated = wide.broadcast_to(&[2, 4, 64]).unwrap();
        let format = QuantFormat::Q8_0;
        let stack = Quantize::new(&repeated, format).run().unwrap();
        let single = Quantize::new(&wide, format).run().unwrap().dequantize(DType::F32).unwrap();
        assert_eq!(read(&stack.dequantize(DType::F32).unwrap()), read(&single).repeat(2));
        // When it is prepared, four dimensions are one batch.
        let prepared = Prepared::left(&heads).unwrap();
        let b = tensor(&[2, 3, 8, 5]);
        assert_eq!(read(&Gemm::new(&prepared, &b).run().unwrap()), product(&heads, &b).numbers);
        let grouped = tensor(&[2, 6, 8, 5]);
        let wanted = product(&heads, &grouped).numbers;
        assert_eq!(read(&Gemm::new(&prepared, &grouped).run().unwrap()), wanted);
    }
}

/// Nested products that do not fit a binding, or have rows of the output that share words, are cut
/// into entries of the outer dimension.
#[test]
fn nested_products_that_are_cut() {
    for adapter in adapters() {
        let small = adapter.with_limits(|limits| limits.max_storage_buffer_binding_size = 4 << 10);
        let heads = |shape: &[usize]| integers(&small, DType::F32, shape).transpose(1, 2).unwrap();
        check(&heads(&[3, 30, 8, 9]), &heads(&[3, 9, 2, 11]));
        check(&heads(&[5, 70, 2, 9]), &heads(&[1, 9, 2, 21]));
        let context = &adapter.context;
        let tensor = |shape: &[usize]| integers(context, DType::BF16, shape);
        let [a, b] = [tensor(&[2, 3, 4, 5]), tensor(&[5, 7])];
        let c = tensor(&[2, 4, 3, 7]).transpose(1, 2).unwrap();
        let gemm = Gemm::new(&a, &b);
        gemm.run_into(&c).unwrap();
        assert_eq!(c.read_f32_blocking().unwrap(), product(&a, &b).numbers);
    }
}
