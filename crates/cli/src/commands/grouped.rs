//! `tilewise grouped`.

use super::matmul::read;
use crate::args::GroupedArgs;
use crate::array::{Array, counted};
use crate::failure::{Failure, Result};
use crate::product::{self, Job};
use crate::stack::Stack;
use std::io::Write;
use tilewise::{Gemm, GroupEnds, Tensor};
use tilewise_oracle::Inputs;

pub(super) fn run(args: &GroupedArgs, out: &mut dyn Write) -> Result<()> {
    let inputs = [&args.a].into_iter().chain(&args.offsets).chain(&args.masked).chain(&args.b);
    product::check_output(&args.output, args.out_dtype, inputs)?;
    let ways = &args.ways;
    let rank = if args.masked.is_some() { 3..=3 } else { 2..=2 };
    let a = read(&args.a, rank)?;
    let k = a.shape.last().copied().unwrap_or_default();
    let said = ways.format.expected(None);
    let b = Stack::read(&args.b, &said, k)?;
    Stack::check_said(&said, &[(&b, &args.b[0])])?;
    let numbers = numbers(args, &a, &b)?;
    let dtypes: Vec<_> = [a.dtype].into_iter().chain(b.dtype()).collect();
    let out_dtype = product::out_dtype(args.out_dtype, &dtypes, &args.output)?;

    let context = product::open(ways.execution.adapter.as_deref())?;
    let a_tensor = product::upload(&context, &a)?;
    let b_tensor = b.as_b(&context, args.transpose_b)?;
    let gemm = match &args.masked {
        Some(_) => {
            let counts = Tensor::upload(&context, &numbers, &[numbers.len()])?;
            let sum: u64 = numbers.iter().map(|&count| u64::from(count)).sum();
            let mean = sum.div_ceil(numbers.len().max(1) as u64);
            Gemm::masked(&a_tensor, b_tensor, &counts).expect_rows(mean as usize)
        }
        None => Gemm::grouped(&a_tensor, b_tensor, &GroupEnds::upload(&context, &numbers)?),
    };
    let job = Job {
        context: &context,
        gemm: gemm.out_dtype(out_dtype).precision(ways.precision),
        alpha: 1.0,
        numbers: &numbers,
        execution: &ways.execution,
        output: &args.output,
    };
    job.run(out, |check| {
        let (wide, b_error) = b.wide(&context, a.dtype)?;
        check(&Inputs {
            a: &product::wide(&a)?,
            b: &wide,
            b_error: b_error.as_deref(),
            offsets: &numbers,
            ..Inputs::default()
        })
    })
}

/// The ends of the groups, or a count of rows for each entry of A (of B, if A has one entry for
/// all). No count exceeds the rows of an entry.
fn numbers(args: &GroupedArgs, a: &Array, b: &Stack) -> Result<Vec<u32>> {
    if let Some(ends) = &args.offsets {
        return ends.read_offsets();
    }
    let Some(masked) = &args.masked else {
        return Err(Failure::other("neither --offsets nor --masked is given"));
    };
    let (counts, rows) = (masked.read_counts()?, a.shape[1]);
    let (entries, whose) = match a.shape[0] {
        1 => (b.matrices(), "B has"),
        entries => (entries, "A has"),
    };
    if counts.len() != entries {
        return Err(Failure::Other(format!(
            "{masked} has {}; {whose} {}, and each needs one count",
            counted(counts.len(), ["count", "counts"]),
            counted(entries, ["entry", "entries"])
        )));
    }
    match counts.iter().position(|&count| count as usize > rows) {
        Some(at) => Err(Failure::Other(format!(
            "{masked}: count {at} is {}; an entry of A has {}",
            counts[at],
            counted(rows, ["row", "rows"])
        ))),
        None => Ok(counts),
    }
}
