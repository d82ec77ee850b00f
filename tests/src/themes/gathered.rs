//! Rows of A by index.

use crate::case::Groups;
use crate::{Case, Place};
use tilewise::{Activation, Axis, DType, QuantFormat};

/// Indices of five rows, in no order. Some rows are there twice, and some indices are of no row.
const INDICES: [u32; 11] = [4, 0, 0, 3, 5, 1, u32::MAX, 4, 2, 1 << 31, 1];

/// Rows by index: plain, in groups, in a batch, masked, along K, with every step of the epilogue,
/// and by quantized weights. Also indices of one row, no indices, and indices of a matrix without
/// rows.
pub fn gathered() -> Vec<Case> {
    let case = |size, types| Case::new(size, types).gathered(5, &INDICES);
    let [f32, f16, bf16] = DType::FLOATS;
    let groups = |ends: &[u32]| Some(Groups { ends: ends.to_vec(), on_device: true });
    let format = QuantFormat::Q8_0;
    let size = [11, 9, format.block() as usize];
    let weights = Case { quantized: Some(format), ..case(size, [f16, f32, bf16]) };
    let steps = Case {
        alpha: 1.25,
        beta: -0.5,
        bias: Some((Axis::M, Place::odd(f16))),
        activation: Activation::Silu,
        residual: Some(Place::odd(f32)),
        ..case([11, 22, 8], [bf16, f32, f32])
    };
    vec![
        case([11, 24, 12], [f32; 3]),
        Case {
            groups: groups(&[3, 3, 8]),
            bias: Some((Axis::N, Place::odd(f16))),
            ..case([11, 22, 8], [f16, f16, f32])
        },
        // Rows of 16 bits share words, so a pass by words finishes them.
        Case::new([11, 7, 9], [bf16, f32, f16]).odd().gathered(5, &INDICES),
        Case { groups: groups(&[9, 2, 70]), ..weights.clone() },
        weights,
        Case { gated: true, ..steps.clone() },
        steps,
        Case { residual: Some(Place::odd(f16)), ..case([11, 20, 8], [f32, f16, f32]).batch(2) },
        case([11, 20, 8], [f32; 3]).masked(vec![5, 0, 40]),
        Case::new([11, 20, 8], [f32; 3])
            .along_k(Groups { ends: vec![3, 3, 8], on_device: true })
            .gathered(5, &INDICES),
        Case::new([1, 5, 1], [f32; 3]).odd().gathered(1, &[0]),
        Case::new([2, 5, 3], [f32; 3]).gathered(0, &[0, 7]),
        Case { beta: 2.0, ..Case::new([3, 5, 0], [f32; 3]).gathered(4, &[3, 9, 0]) },
        Case::new([0, 5, 3], [f32; 3]).gathered(4, &[]),
    ]
}

/// More rows by index than a binding of 4 KiB holds of C, plain and in groups; and more of K than a
/// binding holds of B.
pub fn large_gathered() -> Vec<Case> {
    let all: Vec<u32> = (0..200).map(|row| row * 7 % 13).collect();
    let case = Case::new([200, 23, 20], [DType::F32, DType::F16, DType::F32]);
    let groups = Some(Groups { ends: vec![90, 90, 170], on_device: true });
    let odd = case.clone().odd().gathered(12, &all);
    let long = Case::new([3, 5, 500], [DType::F32; 3]).gathered(2, &[1, 7, 0]);
    vec![case.gathered(12, &all), Case { groups, ..odd }, long]
}
