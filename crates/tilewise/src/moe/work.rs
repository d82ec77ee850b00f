//! Parts of calls that consist of several operations.

use crate::gemm::Gemm;
use crate::ops;
use crate::recorder::Recorder;
use crate::tensor::Tensor;
use std::sync::Arc;
use tilewise_core::{Precision, Result};

/// A copy without gaps.
pub(super) fn copied(to: &mut Recorder<'_>, x: &Tensor) -> Result<Tensor> {
    let copy = Tensor::zeros(x.context(), x.dtype(), x.shape())?;
    ops::copy(x).record(to, &copy)?;
    Ok(copy)
}

/// All elements as a vector without gaps: a view if possible, or a copy.
pub(super) fn vector(to: &mut Recorder<'_>, x: &Tensor) -> Result<Tensor> {
    let count = [x.elem_count()];
    match x.is_contiguous() {
        true => x.reshape(&count),
        false => copied(to, x)?.reshape(&count),
    }
}

/// A product with its options: its precision, its row indices and its kernel.
pub(super) fn asked(
    gemm: Gemm,
    precision: Precision,
    rows: Option<&Tensor>,
    kernel: Option<&Arc<str>>,
) -> Gemm {
    let gemm = gemm.precision(precision);
    let gemm = match rows {
        Some(rows) => gemm.gather_rows(rows),
        None => gemm,
    };
    match kernel {
        Some(kernel) => gemm.kernel(&**kernel),
        None => gemm,
    }
}
