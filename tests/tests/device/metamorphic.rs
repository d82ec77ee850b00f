//! Relations between products that hold for all operands.

use tilewise::DType;
use tilewise_tests::{Case, Data, Rng, adapters, one_of_each, run};

const SIZE: [usize; 3] = [37, 22, 45];

fn matrix(rows: usize, cols: usize, seed: u64) -> Vec<f32> {
    Data::Random.generate(DType::BF16, 1, [rows, cols], &mut Rng::new(seed))
}

fn transpose(values: &[f32], cols: usize) -> Vec<f32> {
    let rows = values.len() / cols;
    (0..values.len()).map(|i| values[i % rows * cols + i / rows]).collect()
}

fn given(size: [usize; 3], a: Vec<f32>, b: Vec<f32>) -> Case {
    Case { a_data: Data::Given(a), b_data: Data::Given(b), ..Case::new(size, [DType::F32; 3]) }
}

/// (A·B)ᵀ = Bᵀ·Aᵀ. The kernel that treats both sides alike gives equal bits; the others stay within
/// both bounds.
#[test]
fn transposed_product() {
    let [m, n, k] = SIZE;
    let (a, b) = (matrix(m, k, 1), matrix(k, n, 2));
    for adapter in adapters() {
        for kernel in one_of_each(adapter) {
            let straight =
                run(&adapter.context, &given(SIZE, a.clone(), b.clone()).kernel(&kernel.name))
                    .unwrap();
            let turned = given([n, m, k], transpose(&b, n), transpose(&a, k)).kernel(&kernel.name);
            let turned = run(&adapter.context, &turned).unwrap();
            let (back, bounds) =
                (transpose(&turned.c, m), straight.bound.iter().map(|bound| 2.0 * bound));
            for (i, ((x, y), bound)) in straight.c.iter().zip(&back).zip(bounds).enumerate() {
                let apart = f64::from((x - y).abs());
                assert!(
                    apart <= bound,
                    "{} on {}: element {i} is {x} and {y}",
                    kernel.name,
                    adapter.name()
                );
                assert!(
                    apart == 0.0 || kernel.variant.workgroup_bytes > 0,
                    "{}: element {i} is {x} and {y}",
                    kernel.name
                );
            }
        }
    }
}

/// Permuted rows of A give permuted rows of C, and permuted columns of B permuted columns. Each
/// element is summed in the same order.
#[test]
fn permuted_rows_and_columns() {
    let [m, n, k] = SIZE;
    let (a, b) = (matrix(m, k, 3), matrix(k, n, 4));
    let (rows, columns) = (Rng::new(5).permutation(m), Rng::new(6).permutation(n));
    let permuted_a: Vec<_> =
        rows.iter().flat_map(|row| a[row * k..][..k].iter().copied()).collect();
    let permuted_b: Vec<_> =
        b.chunks(n).flat_map(|row| columns.iter().map(|&column| row[column])).collect();
    for adapter in adapters() {
        for kernel in one_of_each(adapter) {
            let straight =
                run(&adapter.context, &given(SIZE, a.clone(), b.clone()).kernel(&kernel.name))
                    .unwrap();
            let case = given(SIZE, permuted_a.clone(), permuted_b.clone()).kernel(&kernel.name);
            let permuted = run(&adapter.context, &case).unwrap();
            for (i, got) in permuted.c.iter().enumerate() {
                let wanted = straight.c[rows[i / n] * n + columns[i % n]];
                assert_eq!(
                    got.to_bits(),
                    wanted.to_bits(),
                    "{} on {}: element {i}",
                    kernel.name,
                    adapter.name()
                );
            }
        }
    }
}

#[test]
fn same_bits_twice() {
    for adapter in adapters() {
        for kernel in one_of_each(adapter) {
            for case in [
                Case::new(SIZE, [DType::F32; 3]),
                Case::new(SIZE, [DType::F16, DType::BF16, DType::F16]).odd(),
            ] {
                let case = case.kernel(&kernel.name);
                let [first, second] = [(); 2].map(|()| run(&adapter.context, &case).unwrap().bytes);
                assert!(first == second, "{} on {}", kernel.name, adapter.name());
            }
        }
    }
}
