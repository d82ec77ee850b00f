//! Rows of A by index, with the other parts of a product.

use tilewise::{DType, Gemm, GroupEnds, RightOperand, Shards, Tensor};
use tilewise_tests::contexts;

/// Rows by index with experts in several buffers give the same bits as with one stack.
#[test]
fn rows_by_index_and_shards() {
    for context in contexts() {
        let upload = |shape: &[usize]| {
            let numbers = (0..shape.iter().product()).map(|i: usize| (i * 5 % 11) as f32 - 4.5);
            Tensor::upload(&context, &numbers.collect::<Vec<_>>(), shape).unwrap()
        };
        let (x, stack) = (upload(&[5, 12]), upload(&[3, 12, 9]));
        let parts = [0..1, 1..3].map(|part| stack.narrow(0, part.start, part.len()).unwrap());
        let shards = Shards::new(parts).unwrap();
        let indices = Tensor::upload(&context, &[4u32, 0, 9, 1, 1, 3, 2], &[7]).unwrap();
        let ends = GroupEnds::upload(&context, &[2, 3, 7]).unwrap();
        let read = |b: RightOperand| {
            let y = Gemm::grouped(&x, b, &ends).gather_rows(&indices).run().unwrap();
            y.read_blocking::<f32>().unwrap()
        };
        let (got, wanted) = (read((&shards).into()), read((&stack).into()));
        assert_eq!(got, wanted, "{context:?}");
        // Row 2 is of no row of x; all others are.
        let is_zero = |row: &[f32]| row.iter().all(|number| *number == 0.0);
        assert!(got.chunks(9).enumerate().all(|(i, row)| is_zero(row) == (i == 2)), "{got:?}");
    }
}

/// An operand without elements has no gaps between them, whatever its strides are.
#[test]
fn nothing_by_index() {
    for context in contexts() {
        let zeros = |shape: &[usize]| Tensor::zeros(&context, DType::F32, shape).unwrap();
        let (none, b) = (zeros(&[4, 0]).t(), zeros(&[4, 3]));
        for rows in [0, 2] {
            let indices = Tensor::zeros(&context, DType::U32, &[rows]).unwrap();
            let product = Gemm::new(&none, &b).gather_rows(&indices);
            let beside = Tensor::upload(&context, &vec![7.0f32; 3 * rows], &[rows, 3]).unwrap();
            let y = product.residual(&beside).run().unwrap();
            assert_eq!(y.read_blocking::<f32>().unwrap(), vec![7.0; 3 * rows], "{context:?}");
        }
        let y = Gemm::new(&none, &b).residual(&zeros(&[3, 0]).t()).run().unwrap();
        assert_eq!(y.shape(), [0, 3]);
    }
}
