//! Products by index.

use super::{Held, numbers, upload, wide};
use tilewise::moe::gather_matmul;
use tilewise::planner::Grouping;
use tilewise::{Context, DType, Precision, Result, RightOperand, Tensor};
use tilewise_oracle::moe::{Approx, Types, product};
use tilewise_tests::{Rng, contexts};

const M: usize = 9;
const E: usize = 4;

/// One matrix for each index. Indices beyond the ends are possible on the device only.
struct Case {
    lhs: Option<Vec<u32>>,
    rhs: Vec<u32>,
    /// Type of x, type or format of w, K and N.
    dtype: DType,
    weights: &'static str,
    size: [usize; 2],
    /// Whether w comes in shards.
    sharded: bool,
}

fn cases() -> Vec<Case> {
    let plain = |lhs: Option<&[u32]>, rhs: &[u32]| Case {
        lhs: lhs.map(<[u32]>::to_vec),
        rhs: rhs.to_vec(),
        dtype: DType::F32,
        weights: "f32",
        size: [7, 5],
        sharded: false,
    };
    let twice: Vec<u32> = (0..2 * M as u32).map(|i| i * 7 % M as u32).collect();
    let many: Vec<u32> = (0..2 * M as u32).map(|i| i * i % 3).collect();
    let far = [u32::MAX, 3, 1 << 31, 0, M as u32, 4, 1];
    vec![
        plain(None, &[3, 1, 1, 0, 3, 2, 0, 0, 1]),
        plain(Some(&twice), &many),
        plain(Some(&[]), &[]),
        // Few rows, which are not sorted.
        plain(Some(&[8]), &[2]),
        plain(Some(&[8, 9, 0, 8]), &[2, 0, 4, 2]),
        Case { weights: "affine-4bit-g64-f16", size: [128, 6], ..plain(Some(&[3, 5]), &[3, 1]) },
        Case { dtype: DType::BF16, weights: "q8_0", size: [64, 9], ..plain(Some(&[1]), &[9]) },
        Case { sharded: true, ..plain(Some(&[7, 2]), &[0, 3]) },
        Case { sharded: true, ..plain(Some(&far), &[0, 4, 1, 2, 2, 3, 1 << 31]) },
        plain(Some(&far), &[0, 4, 1, u32::MAX, 2, 3, 1 << 31]),
        Case {
            dtype: DType::F16,
            weights: "f16",
            size: [32, 16],
            ..plain(None, &[0, 0, 1, 1, 1, 3, 3, 3, 9])
        },
        Case { weights: "affine-4bit-g64-f16", size: [128, 6], ..plain(Some(&twice), &many) },
        Case { dtype: DType::BF16, weights: "q8_0", size: [64, 9], ..plain(Some(&twice), &many) },
    ]
}

impl Case {
    /// x, w as products take it, and the expected result.
    fn operands(&self, context: &Context, seed: u64) -> (Tensor, RightOperand, Approx) {
        let rng = &mut Rng::new(seed);
        let [k, n] = self.size;
        let x = numbers(rng, self.dtype, M * k, 1.0);
        let w = Held::new(rng, self.weights, Some(E), [n, k], self.dtype);
        let mut wanted = Approx::default();
        for (at, &matrix) in self.rhs.iter().enumerate() {
            let row = self.lhs.as_ref().map_or(at, |lhs| lhs[at] as usize);
            if row >= M || matrix as usize >= E {
                wanted.value.extend(vec![0.0; n]);
                wanted.error.extend(vec![0.0; n]);
                continue;
            }
            let part = matrix as usize * n * k..(matrix as usize + 1) * n * k;
            let mut stack = w.stack();
            stack.values = &stack.values[part.clone()];
            stack.errors = stack.errors.map(|errors| &errors[part]);
            let types = Types { x: self.dtype, out: self.dtype, precision: Precision::F32 };
            let y = product(&Approx::exact(&wide(&x[row * k..][..k])), &stack, [1, n, k], types);
            wanted.value.extend(y.value);
            wanted.error.extend(y.error);
        }
        let w = if self.sharded { w.in_shards(context) } else { w.on(context) };
        let w = RightOperand::of_weights(w);
        (upload(context, self.dtype, &x, &[M, k]), w, wanted)
    }
}

fn indices(context: &Context, all: &[u32]) -> Tensor {
    Tensor::upload(context, all, &[all.len()]).unwrap()
}

#[test]
fn rows_and_matrices_by_index() -> Result<()> {
    for (turn, context) in contexts().into_iter().enumerate() {
        for (seed, case) in cases().into_iter().enumerate() {
            if !context.is_cpu() && seed > 5 && seed % 2 != turn % 2 {
                continue;
            }
            let (x, w, wanted) = case.operands(&context, seed as u64);
            let lhs = case.lhs.as_ref().map(|all| indices(&context, all));
            let rhs = indices(&context, &case.rhs);
            let unsorted = gather_matmul(&x, w.clone(), lhs.as_ref(), &rhs);
            let y = unsorted.run()?;
            let got = wide(&y.read_f32_blocking()?);
            let worst = wanted.check(&got, y.dtype());
            assert!(worst.is_ok(), "{seed}, {context:?}: {worst:?} of {got:?}");
            let bits = y.read_bytes_blocking()?;
            assert_eq!(unsorted.run()?.read_bytes_blocking()?, bits);
            if let (Some(device), Some(queue)) = (context.device(), context.queue()) {
                let other = Tensor::zeros(&context, y.dtype(), y.shape())?;
                let mut encoder = device.create_command_encoder(&Default::default());
                unsorted.record(&mut encoder, &other)?;
                queue.submit([encoder.finish()]);
                assert_eq!(other.read_bytes_blocking()?, bits);
            }
            // Rows whose elements are not neighbours give equal bits.
            let turned = gather_matmul(&x.t().contiguous()?.t(), w.clone(), lhs.as_ref(), &rhs);
            assert_eq!(turned.run()?.read_bytes_blocking()?, bits);
            // The caller sorts the indices: the bits are the same, in another order.
            let mut order: Vec<usize> = (0..case.rhs.len()).collect();
            order.sort_by_key(|&at| case.rhs[at]);
            let of = |all: &[u32]| order.iter().map(|&at| all[at]).collect::<Vec<_>>();
            let every: Vec<u32> = (0..M as u32).collect();
            let lhs = indices(&context, &of(case.lhs.as_deref().unwrap_or(&every)));
            let rhs = indices(&context, &of(&case.rhs));
            let sorted = gather_matmul(&x, w.clone(), Some(&lhs), &rhs).sorted().run()?;
            let sorted = sorted.read_bytes_blocking()?;
            if case.lhs.is_none() {
                let columns = x.rows(&lhs)?.t().contiguous()?.t();
                let y = gather_matmul(&columns, w, None, &rhs).sorted().run()?;
                assert_eq!(y.read_bytes_blocking()?, sorted);
            }
            let row = case.size[1] * case.dtype.bytes() as usize;
            for (at, &from) in order.iter().enumerate() {
                let [one, other] = [&sorted[at * row..][..row], &bits[from * row..][..row]];
                assert_eq!(one, other, "{seed}, {context:?}");
            }
        }
    }
    Ok(())
}

/// MLX's shapes: two matrices for each row, one matrix for all, tables of indices on both sides,
/// and an output whose rows have gaps.
#[test]
fn indices_of_any_shape() -> Result<()> {
    let (x, w) = ([1.0f32, 2.0, 3.0], [1.0f32, 10.0, 100.0]);
    for context in contexts() {
        let stack = upload(&context, DType::F32, &w, &[3, 1, 1]);
        let of = |shape: &[usize]| upload(&context, DType::F32, &x, shape);
        let table = |all: &[u32], shape: &[usize]| Tensor::upload(&context, all, shape);
        let rhs = table(&[0, 2, 1, 1, 2, 0], &[3, 2])?;
        let product = gather_matmul(&of(&[3, 1, 1]), &stack, None, &rhs);
        let y = product.run()?;
        assert_eq!(y.shape(), [3, 2, 1]);
        assert_eq!(product.plans()?[0].problem.m, 6);
        let wanted = [1.0, 100.0, 20.0, 20.0, 300.0, 3.0];
        assert_eq!(y.read_blocking::<f32>()?, wanted);
        let wide = Tensor::zeros(&context, DType::F32, &[3, 2, 4])?;
        product.run_into(&wide.narrow(2, 1, 1)?)?;
        assert_eq!(wide.narrow(2, 1, 1)?.read_blocking::<f32>()?, wanted);
        assert_eq!(wide.read_blocking::<f32>()?.iter().sum::<f32>(), wanted.iter().sum::<f32>());
        let turned = gather_matmul(&of(&[1, 3, 1]), &stack, None, &rhs.t()).run()?;
        assert_eq!(turned.read_blocking::<f32>()?, [1.0, 20.0, 300.0, 100.0, 20.0, 3.0]);
        let one = gather_matmul(&of(&[3, 1]), &stack, None, &table(&[1], &[1])?).run()?;
        assert_eq!(one.read_blocking::<f32>()?, [10.0, 20.0, 30.0]);
        let scalar = table(&[2], &[])?;
        let one = gather_matmul(&of(&[3, 1]), &stack, Some(&scalar), &scalar).run()?;
        assert_eq!((one.shape(), one.read_blocking::<f32>()?), (&[1][..], vec![300.0]));
        let (lhs, rhs) = (table(&[2, 0], &[2, 1])?, table(&[0, 1, 2], &[3])?);
        let sorted = gather_matmul(&of(&[3, 1]), &stack, Some(&lhs), &rhs).run()?;
        assert_eq!(sorted.shape(), [2, 3, 1]);
        assert_eq!(sorted.read_blocking::<f32>()?, [3.0, 30.0, 300.0, 1.0, 10.0, 100.0]);
    }
    Ok(())
}

/// The output is x itself, or lies beside the indices in one buffer. There are few rows, which are
/// not sorted, or more.
#[test]
fn outputs_in_an_arena() -> Result<()> {
    for context in contexts() {
        let stack = upload(&context, DType::F32, &[1.0, 10.0, 100.0], &[3, 1, 1]);
        for rows in [2, 9] {
            let all: Vec<u32> = (0..256).map(|at| (at + 1) % 3).collect();
            let arena = indices(&context, &all);
            let x = upload(&context, DType::F32, &vec![2.0; rows], &[rows, 1]);
            let product = gather_matmul(&x, &stack, None, &arena.narrow(0, 0, rows)?);
            let grouping = product.plans()?[0].problem.grouping;
            assert_eq!(matches!(grouping, Grouping::Indexed { .. }), rows == 2, "{grouping:?}");
            let wanted: Vec<f32> =
                all[..rows].iter().map(|&at| 2.0 * 10f32.powi(at as i32)).collect();
            if let Some((buffer, start)) = arena.buffer() {
                let (buffer, shape) = (buffer.clone(), [rows, 1]);
                let y = Tensor::from_buffer(&context, buffer, start + 512, DType::F32, &shape)?;
                product.run_into(&y)?;
                assert_eq!(y.read_blocking::<f32>()?, wanted, "{rows}");
            }
            product.run_into(&x)?;
            assert_eq!(x.read_blocking::<f32>()?, wanted, "{rows}");
        }
    }
    Ok(())
}

/// If a caller says wrongly that indices are sorted, some rows meet other matrices, but nothing
/// outside is read.
#[test]
fn indices_that_are_not_sorted_stay_inside() -> Result<()> {
    for context in contexts() {
        let ones = |shape: &[usize]| {
            Tensor::upload(&context, &vec![1.0f32; shape.iter().product()], shape).unwrap()
        };
        let (x, w) = (ones(&[5, 3]), ones(&[4, 3, 2]));
        for rhs in [[3, 2, 1, 0, 3], [u32::MAX, 0, 9, 1, 0]] {
            let product = gather_matmul(&x, &w, None, &indices(&context, &rhs)).sorted();
            let y = product.run()?.read_blocking::<f32>()?;
            assert!(y.iter().all(|y| [0.0, 3.0].contains(y)), "{y:?}");
        }
    }
    Ok(())
}
