//! `tilewise moe`.

use super::matmul::read;
use crate::args::MoeArgs;
use crate::array::{Array, counted, shape_text};
use crate::failure::Result;
use crate::oracle;
use crate::product;
use crate::stack::Stack;
use std::io::Write;
use std::slice::from_ref;
use tilewise::moe::{MoeLayer, Router, Scoring};
use tilewise::{Activation, Context, Tensor};
use tilewise_core::Format;
use tilewise_core::problem::DType;
use tilewise_files::Expected;
use tilewise_oracle::moe::{self as reference, Approx, Choice, Ffn, Layer};

pub(super) fn run(args: &MoeArgs, out: &mut dyn Write) -> Result<()> {
    let weights = [&args.gate, &args.up, &args.down];
    let inputs = [&args.x, &args.logits].into_iter().chain(weights);
    product::check_output(&args.output, args.out_dtype, inputs)?;
    let (x, logits) = (read(&args.x, 2..=2)?, read(&args.logits, 2..=2)?);
    let out_dtype = product::out_dtype(args.out_dtype, &[x.dtype], &args.output)?;
    let stack =
        |source, format, k| Stack::read(from_ref(source), &args.ways.format.expected(format), k);
    let gate = stack(&args.gate, args.gate_format, x.shape[1])?;
    let up = stack(&args.up, args.up_format, x.shape[1])?;
    let [_, f] = gate.k_and_n(true);
    let all = [gate, up, stack(&args.down, args.down_format, f)?];
    check_said(args, &all)?;

    let context = product::open(args.ways.execution.adapter.as_deref())?;
    let [gate, up, down] = all.each_ref().map(|stack| stack.on(&context));
    let router = Router::new(args.top_k).scoring(args.scoring.into());
    let mut layer = MoeLayer::new(gate?, up?, down?, router).precision(args.ways.precision);
    if let Some(kernel) = &args.ways.execution.kernel {
        layer = layer.kernel(kernel);
    }
    let (x_tensor, logits_tensor) =
        (product::upload(&context, &x)?, product::upload(&context, &logits)?);
    let y = Tensor::zeros(&context, out_dtype, &x.shape)?;
    layer.forward_into(&x_tensor, &logits_tensor, &y)?;
    let ([h, f], experts) = (all[0].k_and_n(true), all[0].matrices());
    // Only the three products count as operations.
    let flops = 6.0 * (x.shape[0] * args.top_k) as f64 * h as f64 * f as f64;
    let plans = layer.plans(&x_tensor, &logits_tensor)?;
    let measured = product::measured(&context, &plans, flops, |to| {
        layer.record(to, &x_tensor, &logits_tensor, &y)
    })?;
    let y = Array { dtype: out_dtype, shape: x.shape.clone(), bytes: y.read_bytes_blocking()? };
    let checked = match args.ways.execution.check {
        true => Some(oracle::compare(&expected(args, &context, [&x, &logits], &all, &y)?, &y)?),
        false => None,
    };
    args.output.write(&y)?;

    let kinds = all.each_ref().map(Stack::kind);
    let line = format!(
        "{} of {}, H = {h}, F = {f}, {} by {} gives {} {out_dtype}",
        args.top_k,
        counted(experts, ["expert", "experts"]),
        x.dtype,
        kinds.join(", "),
        shape_text(&y.shape)
    );
    product::report(
        out,
        &context,
        [("layer", line)].into_iter().chain(measured),
        checked,
        &args.output,
    )
}

/// Refuses options about formats if the weights that they are about are all dense.
fn check_said(args: &MoeArgs, all: &[Stack; 3]) -> Result<()> {
    let all: Vec<_> = all.iter().zip([&args.gate, &args.up, &args.down]).collect();
    let own = [args.gate_format, args.up_format, args.down_format];
    for (one, format) in all.iter().zip(own) {
        Stack::check_said(&format.map(Expected::from).unwrap_or_default(), from_ref(one))?;
    }
    let common = &args.ways.format;
    let others: Vec<_> =
        all.iter().zip(own).filter(|(_, own)| own.is_none()).map(|(one, _)| *one).collect();
    Stack::check_said(&common.format.map(Expected::from).unwrap_or_default(), &others)?;
    Stack::check_said(&common.known.expected(None), &all)
}

/// Computes the layer in f64.
fn expected(
    args: &MoeArgs,
    context: &Context,
    [x, logits]: [&Array; 2],
    all: &[Stack; 3],
    y: &Array,
) -> Result<Approx> {
    let [gate, up, down] = all.each_ref().map(|stack| stack.wide(context, x.dtype));
    let wide = [gate?, up?, down?];
    let stack = |at: usize| reference::Stack {
        values: &wide[at].0,
        errors: wide[at].1.as_deref(),
        format: all[at].format().unwrap_or(Format::Dense(DType::F32)),
        bias: None,
    };
    let ([h, f], scoring) = (all[0].k_and_n(true), args.scoring.into());
    let layer = Layer {
        dtype: x.dtype,
        h,
        experts: all[0].matrices(),
        choice: Choice {
            k: args.top_k,
            scoring,
            normalize: scoring == Scoring::Softmax,
            scale: 1.0,
            bias: None,
            groups: [1, 1],
        },
        activation: Activation::Silu,
        swiglu_oai: None,
        precision: args.ways.precision,
        own: Ffn { f, gate: stack(0), up: stack(1), down: stack(2) },
        shared: None,
    };
    Ok(layer.forward(&product::wide(x)?, &product::wide(logits)?, y.dtype))
}
