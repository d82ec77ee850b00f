//! Tensors and weights that are joined on the device.

use tilewise::{Context, DType, Error, Gemm, QuantFormat, Quantized, QuantizedTensor, Tensor};
use tilewise_tests::{Rng, contexts};

fn sample(format: QuantFormat, n: usize, k: usize, rng: &mut Rng) -> Quantized {
    Quantized::sample(format, n, k, || rng.bits() as u32).unwrap()
}

/// The joined weights, matrix by matrix, from what the parts give when they are read.
fn joined(parts: &[&QuantizedTensor]) -> Vec<Quantized> {
    let parts: Vec<_> = parts.iter().map(|part| part.read_blocking().unwrap()).collect();
    let matrix = |at: usize| {
        let own = || parts.iter().map(move |part| &part[at]);
        let (format, k) = (parts[0][at].format(), parts[0][at].k());
        let plane = |plane: usize| own().flat_map(|w| w.planes()[plane].to_vec()).collect();
        let planes = (0..format.planes().len()).map(plane).collect();
        Quantized::from_planes(format, own().map(Quantized::n).sum(), k, planes).unwrap()
    };
    (0..parts[0].len()).map(matrix).collect()
}

/// Weights whose rows are those of the parts by turns.
fn by_turns(parts: &[&QuantizedTensor]) -> Vec<Quantized> {
    let parts: Vec<_> = parts.iter().map(|part| part.read_blocking().unwrap()).collect();
    let matrix = |at: usize| {
        let first = &parts[0][at];
        let plane = |plane: usize| {
            let row = first.planes()[plane].len() / first.n();
            let rows = (0..first.n()).flat_map(|n| {
                parts.iter().map(move |part| &part[at].planes()[plane][n * row..(n + 1) * row])
            });
            rows.flatten().copied().collect()
        };
        let planes = (0..first.planes().len()).map(plane).collect();
        Quantized::from_planes(first.format(), parts.len() * first.n(), first.k(), planes).unwrap()
    };
    (0..parts[0].len()).map(matrix).collect()
}

/// Every format: whole weights, of rows with and without gaps, slices of wider ones, and stacks.
/// Their bytes are those of the parts, and so are the products.
#[test]
fn weights_have_the_bytes_of_their_parts() {
    for context in contexts() {
        for format in QuantFormat::all() {
            let (mut rng, block) = (Rng::new(31), format.block() as usize);
            let gaps = (1..=256).map(|four| 4 * four * block);
            let with_gaps = gaps.clone().find(|&k| format.pitch(k as u64) > k as u64);
            // Four rows are whole words in any case. Columns of wider rows are copied row by row.
            for (k, unit) in [(Some(4 * block), 1), (with_gaps, 4)] {
                let Some(k) = k else { continue };
                let mut upload = |n, k| {
                    QuantizedTensor::upload(&context, &sample(format, n, k, &mut rng)).unwrap()
                };
                let [a, b, c] = [2, 1, 3].map(|n| upload(n * unit, k));
                let wide = upload(5 * unit, 2 * k).slice(unit..4 * unit, k..2 * k).unwrap();
                let rows = upload(6 * unit, k).slice(2 * unit..5 * unit, 0..k).unwrap();
                let wide = if unit == 1 { &wide } else { &a };
                for parts in [&[&a, &b, &c][..], &[wide, &rows, &a], &[&rows], &[&b, wide]] {
                    let whole = QuantizedTensor::concat(parts).unwrap();
                    let n = parts.iter().map(|part| part.shape()[0]).sum();
                    assert_eq!(whole.shape(), [n, k]);
                    let [got] = &whole.read_blocking().unwrap()[..] else { panic!("{format}") };
                    assert!(*got == joined(parts)[0], "{format} {k} on {context:?}");
                }
            }
            let k = 4 * block;
            let whole = QuantizedTensor::upload(&context, &sample(format, 3, k, &mut rng)).unwrap();
            let wide =
                QuantizedTensor::upload(&context, &sample(format, 5, 2 * k, &mut rng)).unwrap();
            let wide = wide.slice(1..4, k..2 * k).unwrap();
            for parts in [&[&whole, &wide][..], &[&wide, &whole, &wide]] {
                let turns = QuantizedTensor::interleave(parts).unwrap();
                assert!(turns.read_blocking().unwrap() == by_turns(parts), "{format} {context:?}");
            }
            let stacks = [2, 2].map(|n| {
                let matrices = [(); 3].map(|()| sample(format, n, k, &mut rng));
                QuantizedTensor::upload_groups(&context, &matrices).unwrap()
            });
            let stacks = stacks.each_ref();
            let turns = QuantizedTensor::interleave(&stacks).unwrap();
            assert!(turns.read_blocking().unwrap() == by_turns(&stacks), "{format} on {context:?}");
            let stacks = [2, 3].map(|n| {
                let matrices = [(); 3].map(|()| sample(format, n, k, &mut rng));
                QuantizedTensor::upload_groups(&context, &matrices).unwrap()
            });
            let stacks = stacks.each_ref();
            let whole = QuantizedTensor::concat(&stacks).unwrap();
            assert_eq!(whole.shape(), [3, 5, k]);
            assert!(whole.read_blocking().unwrap() == joined(&stacks), "{format} on {context:?}");
        }
    }
}

/// One product by joined weights gives the numbers of several, under a common factor or power, too.
#[test]
fn one_product_takes_the_place_of_several() {
    let (mut rng, k) = (Rng::new(32), 512);
    for context in contexts() {
        let values: Vec<f32> = (0..2 * k).map(|_| rng.number()).collect();
        let x = Tensor::upload(&context, &values, &[2, k]).unwrap();
        let product = |w: &QuantizedTensor| Gemm::new(&x, w).kernel("naive").run().unwrap();
        for format in QuantFormat::kinds() {
            let mut one = |n| {
                let plain = sample(format, n, k, &mut rng);
                let factor = if format.admit_factor(0.5).is_ok() { 0.5 } else { 1.0 };
                let weights =
                    if factor == 1.0 { plain } else { plain.with_factor(factor).unwrap() };
                QuantizedTensor::upload(&context, &powered(weights, 2f32.powi(-26))).unwrap()
            };
            let (a, b) = (one(4), one(8));
            let whole = QuantizedTensor::concat(&[&a, &b]).unwrap();
            assert_eq!(whole.factor(), a.factor());
            let parts = Tensor::concat(&[&product(&a), &product(&b)], 1).unwrap();
            let [got, wanted] = [product(&whole), parts].map(|y| y.read_f32_blocking().unwrap());
            assert_eq!(got, wanted, "{format} on {context:?}");
        }
    }
}

/// Multiplies scales in f32 by a power of two. Other weights do not change.
fn powered(weights: Quantized, power: f32) -> Quantized {
    let format = weights.format();
    let Some(plane) = format.divided_plane() else { return weights };
    let mut planes = weights.planes().to_vec();
    for bytes in planes[plane].as_chunks_mut().0 {
        *bytes = (f32::from_le_bytes(*bytes) * power).to_le_bytes();
    }
    Quantized::from_planes(format, weights.n(), weights.k(), planes).unwrap()
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let mut rng = Rng::new(33);
    for context in contexts() {
        let mut upload = |format: QuantFormat, n, k| {
            QuantizedTensor::upload(&context, &sample(format, n, k, &mut rng)).unwrap()
        };
        let [a, other] = [QuantFormat::MXFP4, QuantFormat::NVFP4].map(|own| upload(own, 2, 128));
        let short = upload(QuantFormat::MXFP4, 2, 64);
        let order: Vec<u32> = (0..128).rev().collect();
        let ordered = a.clone().with_order(&order).unwrap();
        let scaled = other.clone().with_factor(2.0).unwrap();
        let divided = QuantFormat::all().find(|format| format.divided_plane().is_some()).unwrap();
        let plain = sample(divided, 4, 4 * divided.block() as usize, &mut rng);
        let [plain, powered] = [1.0, 2f32.powi(-26)].map(|power| {
            QuantizedTensor::upload(&context, &powered(plain.clone(), power)).unwrap()
        });
        let refused = |parts: &[&QuantizedTensor], misuse: bool, words: &str| {
            let error = QuantizedTensor::concat(parts).unwrap_err();
            assert_eq!(matches!(error, Error::Misuse(_)), misuse, "{error:?}");
            assert!(matches!(error, Error::Misuse(_) | Error::Shape(_)), "{error:?}");
            assert!(error.to_string().contains(words), "{error:?}");
        };
        refused(&[], false, "no quantized weights");
        refused(&[&a, &other], false, "mxfp4 [2, 128] and nvfp4 [2, 128]");
        refused(&[&a, &short], false, "mxfp4 [2, 128] and mxfp4 [2, 64]");
        refused(&[&a, &a.t()], true, "before t()");
        refused(&[&a, &ordered], true, "in another order");
        refused(&[&other, &scaled], true, "factors are 1 and 2");
        refused(&[&plain, &powered], true, "their factors are 1 and");
        let elsewhere = Context::cpu();
        let foreign = QuantizedTensor::zeros(&elsewhere, QuantFormat::MXFP4, &[2, 128]).unwrap();
        refused(&[&a, &foreign], true, "wrong context");
        let four = QuantizedTensor::zeros(&context, QuantFormat::MXFP4, &[4, 128]).unwrap();
        let error = QuantizedTensor::interleave(&[&a, &four]).unwrap_err().to_string();
        assert!(error.contains("[2, 128] and [4, 128] have different numbers of rows"), "{error}");
        // A row of scales has two bytes.
        let row = QuantizedTensor::zeros(&context, "q8_0".parse().unwrap(), &[1, 32]).unwrap();
        match context.is_cpu() {
            true => assert_eq!(QuantizedTensor::concat(&[&row, &row]).unwrap().shape(), [2, 32]),
            false => refused(&[&row, &row], false, "misaligned: copying 2 bytes"),
        }
        let error = QuantizedTensor::interleave(&[&row, &row]).unwrap_err().to_string();
        assert!(error.contains("2 bytes of scales, no whole words"), "{error}");
        let zeros = |dtype, shape: &[usize]| Tensor::zeros(&context, dtype, shape).unwrap();
        let [x, y] = [[2, 3], [3, 2]].map(|shape| zeros(DType::F32, &shape));
        for (parts, axis) in [(&[&x, &y][..], 0), (&[&x, &x], 2), (&[], 0)] {
            let error = Tensor::concat(parts, axis).unwrap_err();
            assert!(matches!(error, Error::Shape(_)), "{error:?}");
        }
        let error = Tensor::concat(&[&x, &zeros(DType::F16, &[2, 3])], 0).unwrap_err();
        assert!(matches!(error, Error::Unsupported(_)), "{error:?}");
    }
}

/// Tensors of every type along each axis, with strides, and empty ones.
#[test]
fn tensors_are_joined() {
    for context in contexts() {
        for dtype in [DType::F32, DType::F16, DType::BF16, DType::I32, DType::U32] {
            let numbers = |shape: &[usize], first: usize| {
                let count = shape.iter().product::<usize>();
                let all: Vec<_> = (first..first + count).map(|i| i as f32).collect();
                Tensor::upload(&context, &all, shape).unwrap().cast(dtype).unwrap()
            };
            let read = |x: &Tensor| x.cast(DType::F32).unwrap().read_f32_blocking().unwrap();
            let (a, b) = (numbers(&[2, 3], 0), numbers(&[3, 2], 10).t());
            let none = numbers(&[0, 3], 0);
            let y = Tensor::concat(&[&a, &none, &b], 0).unwrap();
            assert_eq!((y.shape(), y.dtype()), (&[4, 3][..], dtype));
            let wanted = [0., 1., 2., 3., 4., 5., 10., 12., 14., 11., 13., 15.];
            assert_eq!(read(&y), wanted, "{dtype} on {context:?}");
            let y = Tensor::concat(&[&b, &a, &a], 1).unwrap();
            let wanted =
                [[10., 12., 14., 0., 1., 2., 0., 1., 2.], [11., 13., 15., 3., 4., 5., 3., 4., 5.]];
            assert_eq!(read(&y), wanted.concat(), "{dtype} on {context:?}");
        }
    }
}
