//! How far kernels may be from quantized weights.

use crate::Case;
use tilewise::{DType, Quantized};
use tilewise_core::Caps;

/// How far the kernel of a case may be from the weights. Those on matrix units round them to a
/// 16-bit type of A, and `rows` multiplies scales with sums; where the planner chooses, it may
/// choose any.
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
    let errors = weights.rounded_error(&types);
    if case.kernel.as_ref().is_some_and(|kernel| !kernel.starts_with("rows")) {
        return errors;
    }
    errors
        .into_iter()
        .zip(weights.summed_error())
        .map(|(rounded, summed)| rounded.max(summed))
        .collect()
}
