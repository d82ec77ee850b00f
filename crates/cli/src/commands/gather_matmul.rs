//! `tilewise gather-matmul`.

use super::matmul::read;
use crate::args::GatherMatmulArgs;
use crate::array::{Array, Source, counted, shape_text};
use crate::failure::{Failure, Result};
use crate::oracle;
use crate::product;
use crate::stack::{Stack, transposed};
use std::io::Write;
use std::slice::from_ref;
use tilewise::{Context, Tensor, moe};
use tilewise_core::Format;
use tilewise_core::problem::DType;
use tilewise_oracle::moe::{self as reference, Approx, Types};

pub(super) fn run(args: &GatherMatmulArgs, out: &mut dyn Write) -> Result<()> {
    let inputs = [&args.x, &args.w].into_iter().chain(&args.lhs_indices).chain(&args.rhs_indices);
    product::check_output(&args.output, args.out_dtype, inputs)?;
    let x = read(&args.x, 2..=2)?;
    let said = args.ways.format.expected(None);
    let w = Stack::read(from_ref(&args.w), &said, x.shape[1])?;
    Stack::check_said(&said, &[(&w, &args.w)])?;
    let dtypes: Vec<_> = [x.dtype].into_iter().chain(w.dtype()).collect();
    let out_dtype = product::out_dtype(args.out_dtype, &dtypes, &args.output)?;
    let lhs = Indices::read(args.lhs_indices.as_ref(), x.shape[0], "X has", ["row", "rows"])?;
    let matrices = ["matrix", "matrices"];
    let rhs = Indices::read(args.rhs_indices.as_ref(), w.matrices(), "W has", matrices)?;
    if args.sorted {
        rhs.check_order()?;
    }
    let [lhs, rhs] = lhs.joined(rhs)?;

    let context = product::open(args.ways.execution.adapter.as_deref())?;
    let w_tensor = w.as_b(&context, args.transpose_b)?;
    let x_tensor = product::upload(&context, &x)?;
    let [lhs_tensor, rhs_tensor] =
        [&lhs, &rhs].map(|all| Tensor::upload(&context, all, &[all.len()]));
    let mut gathered = moe::gather_matmul(&x_tensor, w_tensor, Some(&lhs_tensor?), &rhs_tensor?)
        .out_dtype(out_dtype)
        .precision(args.ways.precision);
    if let Some(kernel) = &args.ways.execution.kernel {
        gathered = gathered.kernel(kernel);
    }
    if args.sorted {
        gathered = gathered.sorted();
    }
    let y = gathered.run()?;
    let [k, n] = w.k_and_n(args.transpose_b);
    let flops = 2.0 * rhs.len() as f64 * k as f64 * n as f64;
    let measured =
        product::measured(&context, &gathered.plans()?, flops, |to| gathered.record(to, &y))?;
    let y = Array { dtype: out_dtype, shape: y.shape().to_vec(), bytes: y.read_bytes_blocking()? };
    let checked = match args.ways.execution.check {
        true => {
            let wanted = expected(args, &context, &x, &w, [&lhs, &rhs], out_dtype)?;
            Some(oracle::compare(&wanted, &y)?)
        }
        false => None,
    };
    args.output.write(&y)?;

    let line = format!(
        "{} by {}, K = {k}, {} by {} gives {} {out_dtype}",
        counted(rhs.len(), ["row", "rows"]),
        counted(w.matrices(), matrices),
        x.dtype,
        w.kind(),
        shape_text(&y.shape)
    );
    product::report(
        out,
        &context,
        [("product", line)].into_iter().chain(measured),
        checked,
        &args.output,
    )
}

/// Indices of rows or matrices.
struct Indices {
    /// Source and number of the indices, in words.
    name: String,
    all: Vec<u32>,
}

impl Indices {
    /// Reads indices, which must be below `count`; without a file, takes all in order.
    fn read(source: Option<&Source>, count: usize, has: &str, of: [&str; 2]) -> Result<Self> {
        let there = format!("{has} {}", counted(count, of));
        let Some(source) = source else {
            let many = |_| Failure::Other(format!("{there}, indices are u32"));
            let count = u32::try_from(count).map_err(many)?;
            return Ok(Indices { name: there, all: (0..count).collect() });
        };
        let all = source.read_indices()?;
        match all.iter().position(|&index| index as usize >= count) {
            Some(at) => {
                Err(Failure::Other(format!("{source}: index {at} is {}; {there}", all[at])))
            }
            None => {
                let name = format!("{source} has {}", counted(all.len(), ["index", "indices"]));
                Ok(Indices { name, all })
            }
        }
    }

    /// Fails if the indices decrease.
    fn check_order(&self) -> Result<()> {
        match self.all.windows(2).position(|pair| pair[1] < pair[0]) {
            Some(at) => Err(Failure::Other(format!(
                "{}: index {} is {}, after {}; --sorted promises that indices do not decrease",
                self.name,
                at + 1,
                self.all[at + 1],
                self.all[at]
            ))),
            None => Ok(()),
        }
    }

    /// Makes both lists equally long: a single index is repeated for all of the others.
    fn joined(self, other: Indices) -> Result<[Vec<u32>; 2]> {
        match (self.all.len(), other.all.len()) {
            (one, two) if one == two => Ok([self.all, other.all]),
            (1, count) => Ok([self.all.repeat(count), other.all]),
            (count, 1) => Ok([self.all, other.all.repeat(count)]),
            _ => Err(Failure::Other(format!(
                "{}, and {}: give as many of both, or one of either",
                self.name, other.name
            ))),
        }
    }
}

/// Computes the product in f64.
fn expected(
    args: &GatherMatmulArgs,
    context: &Context,
    x: &Array,
    w: &Stack,
    [lhs, rhs]: [&[u32]; 2],
    out: DType,
) -> Result<Approx> {
    let [k, n] = w.k_and_n(args.transpose_b);
    let (numbers, errors) = w.wide(context, x.dtype)?;
    // Quantized weights are transposed already, and so are their errors.
    let numbers = match w.is_transposed(args.transpose_b) {
        true => numbers,
        false => transposed(&numbers, [k, n]),
    };
    let (x_wide, format) = (product::wide(x)?, w.format().unwrap_or(Format::Dense(DType::F32)));
    let types = Types { x: x.dtype, out, precision: args.ways.precision };
    let count = rhs.len() * n;
    let mut wanted = Approx { value: vec![0.0; count], error: vec![0.0; count] };
    for matrix in 0..w.matrices() {
        let rows: Vec<usize> = (0..rhs.len()).filter(|&i| rhs[i] as usize == matrix).collect();
        let of = |&row: &usize| x_wide[lhs[row] as usize * k..][..k].to_vec();
        let a = Approx::exact(&rows.iter().flat_map(of).collect::<Vec<_>>());
        let part = matrix * n * k..(matrix + 1) * n * k;
        let errors = errors.as_ref().map(|errors| &errors[part.clone()]);
        let own = reference::Stack { values: &numbers[part], errors, format, bias: None };
        let y = reference::product(&a, &own, [rows.len(), n, k], types);
        for (at, row) in rows.into_iter().enumerate() {
            wanted.value[row * n..][..n].copy_from_slice(&y.value[at * n..][..n]);
            wanted.error[row * n..][..n].copy_from_slice(&y.error[at * n..][..n]);
        }
    }
    Ok(wanted)
}
