//! The calls that docs/library.md names for PyTorch's layers, on whole numbers: results are exact.

use tilewise::{Activation, Axis, Context, DType, Gemm, GroupEnds, QuantFormat, Tensor};
use tilewise_tests::contexts;

const M: usize = 3;
const K: usize = 64;
const N: usize = 5;

/// A matrix, row-major, and its number of columns.
#[derive(Clone)]
struct Matrix(Vec<f32>, usize);

impl Matrix {
    fn new(rows: usize, columns: usize, seed: usize) -> Self {
        let number = |i: usize| ((i + seed) * (i + 2 * seed + 3) % 9) as f32 - 4.5;
        Matrix((0..rows * columns).map(|i| number(i) * 2.0).collect(), columns)
    }

    fn rows(&self) -> usize {
        self.0.len() / self.1
    }

    fn t(&self) -> Self {
        let column = |j| self.0.iter().skip(j).step_by(self.1).copied();
        Matrix((0..self.1).flat_map(column).collect(), self.rows())
    }

    fn times(&self, other: &Matrix) -> Self {
        let other_t = other.t();
        let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
        let columns = |a| other_t.0.chunks(other_t.1).map(move |b| dot(a, b));
        Matrix(self.0.chunks(self.1).flat_map(columns).collect(), other.1)
    }

    /// Combines each element with one of `other` by a function. `other` is repeated as often as it
    /// fits.
    fn with(&self, other: &[f32], f: fn(f32, f32) -> f32) -> Vec<f32> {
        self.0.iter().zip(other.iter().cycle()).map(|(a, b)| f(*a, *b)).collect()
    }

    fn on(&self, ctx: &Context) -> Tensor {
        Tensor::upload(ctx, &self.0, &[self.rows(), self.1]).unwrap()
    }
}

fn assert_holds(tensor: &Tensor, expected: &[f32]) {
    assert_eq!(tensor.read_f32_blocking().unwrap(), expected, "{:?}", tensor.context());
}

fn everywhere(test: fn(&Context) -> tilewise::Result<()>) {
    for context in contexts() {
        test(&context).unwrap_or_else(|error| panic!("{context:?}: {error}"));
    }
}

#[test]
fn linear_layers() {
    everywhere(|ctx| {
        let [x, w, b, r] = [(M, K), (N, K), (1, N), (M, N)]
            .map(|(rows, columns)| Matrix::new(rows, columns, rows));
        let [xd, wd, rd] = [&x, &w, &r].map(|matrix| matrix.on(ctx));
        let bd = Tensor::upload(ctx, &b.0, &[N])?;
        let y = x.times(&w.t());
        assert_holds(&Gemm::new(&xd, wd.t()).run()?, &y.0);
        let biased = Matrix(y.with(&b.0, |y, b| y + b), N);
        let relu = Gemm::new(&xd, wd.t()).bias(&bd).activation(Activation::Relu).run()?;
        assert_holds(&relu, &biased.with(&[0.0], f32::max));
        let sum = biased.with(&r.0, |y, r| y + r);
        assert_holds(&Gemm::new(&xd, wd.t()).bias(&bd).residual(&rd).run()?, &sum);
        Gemm::new(&xd, wd.t()).bias(&bd).beta(1.0).run_into(&rd)?;
        assert_holds(&rd, &sum);
        Ok(())
    });
}

#[test]
fn sums_and_batches() {
    everywhere(|ctx| {
        let [a, b, c, d] = [(M, K), (K, N), (M, N), (K, N)]
            .map(|(rows, columns)| Matrix::new(rows, columns, rows));
        let [ad, bd, cd] = [&a, &b, &c].map(|matrix| matrix.on(ctx));
        let [first, second] = [a.times(&b), a.times(&d)];
        assert_holds(&ctx.matmul(&ad, &bd)?, &first.0);
        let both = [first.0.clone(), second.0].concat();
        let batch = Tensor::upload(ctx, &[b.0, d.0].concat(), &[2, K, N])?;
        assert_holds(&ctx.matmul(&ad, &batch)?, &both);
        let twice = Tensor::upload(ctx, &[a.0.clone(), a.0].concat(), &[2, M, K])?;
        assert_holds(&ctx.matmul(&twice, &batch)?, &both);
        let scaled = Gemm::new(&ad, &bd).alpha(2.0).beta(0.5).add_to(&cd).run()?;
        assert_holds(&scaled, &first.with(&c.0, |y, c| 2.0 * y + 0.5 * c));
        Gemm::new(&ad, &bd).beta(1.0).run_into(&cd)?;
        assert_holds(&cd, &first.with(&c.0, |y, c| y + c));
        // A convolution of 1×1: each image is [in, pixels].
        let bias = Tensor::upload(ctx, &[1.0f32, 2.0, 3.0], &[M])?;
        let pixels = Gemm::new(&ad, &batch).bias_along(&bias, Axis::M).run()?;
        let expected = both.chunks(N).zip([1.0f32, 2.0, 3.0].iter().cycle());
        let expected: Vec<f32> =
            expected.flat_map(|(row, bias)| row.iter().map(move |y| y + bias)).collect();
        assert_holds(&pixels, &expected);
        Ok(())
    });
}

#[test]
fn tables_groups_and_few_bits() {
    everywhere(|ctx| {
        let [x, w] = [Matrix::new(M, K, 1), Matrix::new(N, K, 2)];
        let [xd, wd] = [&x, &w].map(|matrix| matrix.on(ctx));
        let ids = Tensor::upload(ctx, &[4u32, 0], &[2])?;
        let rows = [&w.0[4 * K..], &w.0[..K]].concat();
        assert_holds(&wd.rows(&ids)?, &rows);
        // Each group has numbers from 0 to 7.5: 16 steps of 0.5 hold them exactly.
        let even = Matrix((0..N * K).map(|i| ((i + 5 * (i / K)) % 16) as f32 / 2.0).collect(), K);
        let format = QuantFormat::affine(4, 64, DType::F16)?;
        let few = tilewise::QuantizedTensor::quantize(ctx, &even.0, [N, K], format)?;
        let bias = Tensor::upload(ctx, &[1.0f32; N], &[N])?;
        let y = x.times(&even.t());
        assert_holds(&Gemm::new(&xd, &few).bias(&bias).run()?, &y.with(&[1.0], |y, b| y + b));
        assert_holds(&few.rows(&ids, DType::F16)?, &[&even.0[4 * K..], &even.0[..K]].concat());
        let experts = [Matrix::new(K, N, 3), Matrix::new(K, N, 4)];
        let stack = experts.each_ref().map(|w| w.0.clone()).concat();
        let stack = Tensor::upload(ctx, &stack, &[2, K, N])?;
        let ends = GroupEnds::upload(ctx, &[1, M as u32])?;
        let [first, rest] = [Matrix(x.0[..K].to_vec(), K), Matrix(x.0[K..].to_vec(), K)];
        let expected = [first.times(&experts[0]).0, rest.times(&experts[1]).0].concat();
        assert_holds(&Gemm::grouped(&xd, &stack, &ends).run()?, &expected);
        Ok(())
    });
}

#[test]
fn backward_and_descent() {
    everywhere(|ctx| {
        let [x, w, d] = [Matrix::new(M, K, 1), Matrix::new(N, K, 2), Matrix::new(M, N, 3)];
        let [xd, wd, dd] = [&x, &w, &d].map(|matrix| matrix.on(ctx));
        assert_holds(&ctx.matmul(&dd, &wd)?, &d.times(&w).0);
        let slope = d.t().times(&x);
        assert_holds(&ctx.matmul(&dd.t(), &xd)?, &slope.0);
        Gemm::new(&dd.t(), &xd).alpha(-0.25).beta(1.0).run_into(&wd)?;
        assert_holds(&wd, &w.with(&slope.0, |w, slope| w - 0.25 * slope));
        let ones = Matrix(vec![1.0; M], M);
        assert_holds(&ctx.matmul(&ones.on(ctx), &dd)?, &ones.times(&d).0);
        Ok(())
    });
}
