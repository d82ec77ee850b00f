//! `tilewise grouped`.

use super::matmul::read;
use crate::args::GroupedArgs;
use crate::failure::Result;
use crate::product::{self, Job};
use std::io::Write;
use tilewise::{Gemm, GroupOffsets};
use tilewise_core::reference::Inputs;

pub(super) fn run(args: &GroupedArgs, out: &mut dyn Write) -> Result<()> {
    product::check_output(&args.output, args.out_dtype, [&args.a, &args.b, &args.offsets])?;
    let (a, b) = (read(&args.a, 2..=2)?, read(&args.b, 3..=3)?);
    let offsets = args.offsets.read_offsets()?;
    let out_dtype = product::out_dtype(args.out_dtype, &[a.dtype, b.dtype], &args.output)?;

    let context = product::open(args.execution.adapter.as_deref())?;
    let (a_tensor, b_tensor) = (product::upload(&context, &a)?, product::upload(&context, &b)?);
    let b_tensor = if args.transpose_b { b_tensor.t() } else { b_tensor };
    let ends = GroupOffsets::upload(&context, &offsets)?;
    let gemm =
        Gemm::grouped(&a_tensor, &b_tensor, &ends).out_dtype(out_dtype).precision(args.precision);

    Job { context: &context, gemm, alpha: 1.0, execution: &args.execution, output: &args.output }
        .run(out, |check| {
            check(&Inputs {
                a: &product::wide(&a)?,
                b: &product::wide(&b)?,
                offsets: &offsets,
                ..Inputs::default()
            })
        })
}
