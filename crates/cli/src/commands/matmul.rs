//! `tilewise matmul`.

use crate::args::MatmulArgs;
use crate::array::{Array, Source, shape_text};
use crate::failure::{Failure, Result};
use crate::product::{self, Job};
use std::io::Write;
use tilewise::{Gemm, Tensor};
use tilewise_core::problem::DType;
use tilewise_oracle::Inputs;

pub(super) fn run(args: &MatmulArgs, out: &mut dyn Write) -> Result<()> {
    let operands =
        [&args.a, &args.b].into_iter().chain(&args.c0).chain(&args.bias).chain(&args.residual);
    product::check_output(&args.output, args.out_dtype, operands)?;
    let (a, b) = (read(&args.a, 2..=3)?, read(&args.b, 2..=3)?);
    let old = args.c0.as_ref().map(|source| read(source, 2..=3)).transpose()?;
    let bias = args.bias.as_ref().map(|source| read(source, 1..=1)).transpose()?;
    let residual = args.residual.as_ref().map(|source| read(source, 2..=3)).transpose()?;
    let dtypes: Vec<DType> = [&a, &b].into_iter().chain(&old).map(|array| array.dtype).collect();
    let out_dtype = product::out_dtype(args.out_dtype, &dtypes, &args.output)?;
    // The C that beta multiplies has the type of the output.
    let batch = batch(&a).into_iter().chain(batch(&b)).max();
    let old =
        old.map(|old| product::converted(&repeated(old, batch)?, out_dtype, "C0")).transpose()?;

    let context = product::open(args.execution.adapter.as_deref())?;
    let upload = |array: &Option<Array>| {
        array.as_ref().map(|array| product::upload(&context, array)).transpose()
    };
    let view = |tensor: Tensor, transposed| if transposed { tensor.t() } else { tensor };
    let a_tensor = view(product::upload(&context, &a)?, args.transpose_a);
    let b_tensor = view(product::upload(&context, &b)?, args.transpose_b);
    let (old_tensor, bias_tensor, residual_tensor) =
        (upload(&old)?, upload(&bias)?, upload(&residual)?);

    let mut gemm = Gemm::new(&a_tensor, &b_tensor)
        .alpha(args.alpha)
        .activation(args.activation.into())
        .out_dtype(out_dtype);
    gemm = gemm.precision(args.precision);
    if let (Some(beta), Some(old)) = (args.beta, &old_tensor) {
        gemm = gemm.beta(beta).add_to(old);
    }
    if let Some(bias) = &bias_tensor {
        gemm = gemm.bias_along(bias, args.bias_along.into());
    }
    if let Some(residual) = &residual_tensor {
        gemm = gemm.residual(residual);
    }

    let wide = |array: &Option<Array>| array.as_ref().map(product::wide).transpose();
    let job = Job {
        context: &context,
        gemm,
        alpha: args.alpha,
        numbers: &[],
        execution: &args.execution,
        output: &args.output,
    };
    job.run(out, |check| {
        let (old, bias, residual) = (wide(&old)?, wide(&bias)?, wide(&residual)?);
        check(&Inputs {
            a: &product::wide(&a)?,
            b: &product::wide(&b)?,
            c: old.as_deref().unwrap_or_default(),
            bias: bias.as_deref(),
            residual: residual.as_deref(),
            ..Inputs::default()
        })
    })
}

/// Extent of the batch dimension, if there is one.
fn batch(array: &Array) -> Option<usize> {
    (array.shape.len() == 3).then(|| array.shape[0])
}

/// Repeats C0 for each entry of the result, if C0 is one matrix: the output starts as C0, and has
/// all entries.
fn repeated(old: Array, batch: Option<usize>) -> Result<Array> {
    let (Some(batch), &[rows, cols] | &[1, rows, cols]) = (batch, old.shape.as_slice()) else {
        return Ok(old);
    };
    let mut bytes = Vec::new();
    // A batch of matrices without elements takes no space in a file, however many they are.
    bytes.try_reserve_exact(old.bytes.len().saturating_mul(batch)).map_err(|error| {
        Failure::Other(format!(
            "C0 of {} bytes, repeated for a batch of {batch}: {error}",
            old.bytes.len()
        ))
    })?;
    (0..batch).for_each(|_| bytes.extend_from_slice(&old.bytes));
    Ok(Array { shape: vec![batch, rows, cols], bytes, ..old })
}

/// Reads an operand with one of the given numbers of dimensions.
pub(super) fn read(source: &Source, rank: std::ops::RangeInclusive<usize>) -> Result<Array> {
    let array = source.read()?;
    if rank.contains(&array.shape.len()) {
        return Ok(array);
    }
    let wanted = match (*rank.start(), *rank.end()) {
        (1, _) => "a vector",
        (2, 2) => "a matrix",
        (3, _) => "one matrix per group, [groups, rows, columns]",
        _ => "a matrix, or a batch of them [batch, rows, columns]",
    };
    Err(Failure::Other(format!(
        "{source}: shape {}; it must be {wanted}",
        shape_text(&array.shape)
    )))
}
