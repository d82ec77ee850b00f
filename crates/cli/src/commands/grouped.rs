//! `tilewise grouped`.

use super::matmul::read;
use crate::args::GroupedArgs;
use crate::failure::Result;
use crate::product::{self, Job};
use crate::stack::Stack;
use std::io::Write;
use tilewise::{Gemm, GroupOffsets, RightOperand};
use tilewise_core::reference::Inputs;

pub(super) fn run(args: &GroupedArgs, out: &mut dyn Write) -> Result<()> {
    let inputs = [&args.a, &args.offsets].into_iter().chain(&args.b);
    product::check_output(&args.output, args.out_dtype, inputs)?;
    let (a, b) = (read(&args.a, 2..=2)?, Stack::read(&args.b, &args.format)?);
    let offsets = args.offsets.read_offsets()?;
    let dtypes: Vec<_> = [a.dtype].into_iter().chain(b.dtype()).collect();
    let out_dtype = product::out_dtype(args.out_dtype, &dtypes, &args.output)?;

    let context = product::open(args.execution.adapter.as_deref())?;
    let a_tensor = product::upload(&context, &a)?;
    let b_tensor = match (b.on(&context)?, args.transpose_b) {
        (b, true) => RightOperand::of_weights(b),
        (b, false) => b,
    };
    let ends = GroupOffsets::upload(&context, &offsets)?;
    let gemm =
        Gemm::grouped(&a_tensor, b_tensor, &ends).out_dtype(out_dtype).precision(args.precision);

    Job { context: &context, gemm, alpha: 1.0, execution: &args.execution, output: &args.output }
        .run(out, |check| {
            let (wide, b_error) = b.wide(&context, a.dtype)?;
            check(&Inputs {
                a: &product::wide(&a)?,
                b: &wide,
                b_error: b_error.as_deref(),
                offsets: &offsets,
                ..Inputs::default()
            })
        })
}
