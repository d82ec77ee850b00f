//! Quantized weights of cases.

use crate::generators::rescaled;
use crate::{Case, Rng};
use tilewise::{DType, QuantFormat, Quantized};
use tilewise_core::{Caps, quant};
use tilewise_oracle::{any_error, rounded_error};

/// Quantized weights, one matrix for each entry of B. If the case is exact, they are integers.
pub(super) fn weights(
    case: &Case,
    format: QuantFormat,
    rng: &mut Rng,
) -> Result<Vec<Quantized>, String> {
    let [n, k] = stored_shape(case, format);
    let mut matrix = |_| {
        // Some scales of a sample are negative.
        if !case.exact && (!format.quantizes() || rng.bits().is_multiple_of(2)) {
            let sampled = Quantized::sample(format, n, k, || rng.bits() as u32)?;
            // Some scales are zero in f16 and subnormal in f32; others are subnormal in f16.
            let small = |i: usize| (i % 13 == 5).then(|| [1e-40, 5.960_464_5e-8][i / 13 % 2]);
            return with_nan(rescaled(&sampled, |i| small(i).map(|small| [small, -small])), rng);
        }
        if !case.exact {
            // Blocks have different magnitudes, so their scales differ in every format. A few
            // blocks are zeros, which have the smallest scale.
            let block = format.block() as usize;
            let mut magnitude = 1.0;
            let values: Vec<_> = (0..n * k)
                .map(|i| {
                    if i % block == 0 {
                        let bits = rng.bits() as usize;
                        magnitude =
                            if bits % 17 == 1 { 0.0 } else { [0.25, 0.5, 1.0, 2.0, 4.0][bits % 5] };
                    }
                    magnitude * rng.number()
                })
                .collect();
            return quant::quantize(&values, n, k, format);
        }
        let blocks = n * k / format.block() as usize;
        let mut random = || rng.bits() as u32;
        let planes = format.encode_blocks(blocks, |_, block| {
            format.def().codec.integers(&mut random, block);
            Ok(())
        })?;
        Quantized::from_planes(format, n, k, planes)
    };
    let all =
        (0..case.right().stored(case.entries())).map(&mut matrix).collect::<tilewise::Result<_>>();
    all.map_err(|error| error.to_string())
}

/// A matrix with a NaN somewhere, if its codes are floats of 8 bits. Samples have none.
fn with_nan(matrix: Quantized, rng: &mut Rng) -> tilewise::Result<Quantized> {
    let (format, n, k) = (matrix.format(), matrix.n(), matrix.k());
    if !["fp8-", "mxfp8"].iter().any(|kind| format.name().starts_with(kind)) || n * k == 0 {
        return Ok(matrix);
    }
    let mut planes: Vec<_> = matrix.planes().iter().map(|plane| plane.to_vec()).collect();
    planes[0][rng.bits() as usize % (n * k)] = 0x7f;
    Quantized::from_planes(format, n, k, planes)
}

/// Rows and columns of quantized weights.
pub(super) fn weights_shape(case: &Case) -> [usize; 2] {
    let [_, n, k] = case.size;
    if case.across { [k, n] } else { [n, k] }
}

/// Rows and columns of the matrices that the weights lie in.
pub(super) fn stored_shape(case: &Case, format: QuantFormat) -> [usize; 2] {
    let [rows, columns] = weights_shape(case);
    [rows + 2 * case.margin(), columns + 2 * case.margin() * format.block() as usize]
}

/// How far the weights of a case's kernel may be from the given weights. Kernels on matrix units
/// round weights to a 16-bit type of A, and `rows` multiplies scales with sums. If the planner
/// chooses the kernel, it may be any of them.
pub(super) fn weight_error(case: &Case, caps: &Caps, weights: &Quantized) -> Vec<f64> {
    let simdgroups =
        |kernel: &String| kernel.starts_with("msl-gemm") || kernel.starts_with("msl-direct");
    let (own, half) = ([case.a.dtype], [DType::F16]);
    let units = caps.coop.iter().any(|unit| unit.operands == DType::F16);
    let types = match &case.kernel {
        _ if case.a.dtype == DType::F32 => vec![],
        Some(kernel) if simdgroups(kernel) => own.to_vec(),
        Some(_) if case.unit().is_some() => half.to_vec(),
        Some(_) => vec![],
        None => [
            if caps.msl_version.is_some() { &own[..] } else { &[] },
            if units { &half } else { &[] },
        ]
        .concat(),
    };
    match &case.kernel {
        Some(kernel) if !kernel.starts_with("rows") => rounded_error(weights, &types),
        _ => any_error(weights, &types),
    }
}
