//! `tilewise demo`: a layer of all-MiniLM-L6-v2, multiplied in three ways. `demo/` holds the data
//! and says where it comes from.

use crate::args::DemoArgs;
use crate::array::shape_text;
use crate::failure::{Failure, Result};
use crate::product::{Measured, adapter_text, open, weight_error, wide};
use std::io::Write;
use tilewise::{Activation, Context, Gemm, GroupEnds, QuantizedTensor, Tensor};
use tilewise_core::convert::{decode, decode_f64};
use tilewise_core::problem::DType;
use tilewise_core::quant::{QuantFormat, dequantize, quantize};
use tilewise_files::Model;
use tilewise_oracle::Inputs;

const DATA: &[u8] = include_bytes!("../../demo/minilm.safetensors");

/// Element type of the data.
const STORED: DType = DType::F16;

/// The layer and its inputs.
struct Layer {
    /// W \[N,K\].
    weight: Vec<u8>,
    n: usize,
    k: usize,
    /// \[N\].
    bias: Vec<u8>,
    /// X \[M,K\], the tokens of all sentences.
    tokens: Vec<u8>,
    m: usize,
    /// Where each sentence ends among the tokens.
    ends: Vec<u32>,
}

impl Layer {
    fn load() -> Result<Self> {
        let model = Model::from_bytes("the data of the demo", DATA.to_vec())?;
        let bytes = |name| Ok::<_, Failure>(model.get(name)?.dense()?.1.to_vec());
        let shape = |name| Ok::<_, Failure>(model.get(name)?.matrix()?);
        let ((n, k), (m, _)) = (shape("weight")?, shape("tokens")?);
        let (weight, bias, tokens) = (bytes("weight")?, bytes("bias")?, bytes("tokens")?);
        let ends =
            bytes("offsets")?.as_chunks().0.iter().map(|&end| u32::from_le_bytes(end)).collect();
        Ok(Layer { weight, n, k, bias, tokens, m, ends })
    }
}

/// Elements for the oracle.
fn stored(bytes: &[u8]) -> Result<Vec<f64>> {
    Ok(decode_f64(STORED, bytes)?)
}

pub(super) fn run(args: &DemoArgs, out: &mut dyn Write) -> Result<()> {
    let layer = Layer::load()?;
    let context = open(args.adapter.as_deref())?;
    let Layer { m, n, k, .. } = layer;
    writeln!(
        out,
        "layer    all-MiniLM-L6-v2, feed-forward of layer 0: W {} f16",
        shape_text(&[n, k])
    )?;
    writeln!(
        out,
        "input    {m} tokens of {} sentences: X {} f16",
        layer.ends.len(),
        shape_text(&[m, k])
    )?;
    let chosen = args.adapter.is_some()
        || std::env::var_os("TILEWISE_ADAPTER").is_some_and(|name| !name.is_empty());
    let found = if context.is_cpu() && !chosen { ", because no GPU was found" } else { "" };
    writeln!(out, "adapter  {}{found}", adapter_text(&context))?;
    writeln!(
        out,
        "\n{:38}  {:22}  {:>10}  {:>7}  {:>11}",
        "product", "kernel", "time", "TFLOP/s", "error/bound"
    )?;

    let dense = dense(&context, &layer)?;
    row(out, "dense:   Y = gelu(X·Wᵀ + bias)", &dense)?;
    let quantized = quantized(&context, &layer)?;
    row(out, "4-bit:   the same with W in 4 bits", &quantized)?;
    let grouped = grouped(&context, &layer)?;
    row(out, "grouped: sentence i · (part i of W)ᵀ", &grouped)?;

    writeln!(out, "\nsentences of {} tokens", lengths(&layer.ends))?;
    writeln!(
        out,
        "4-bit weights change Y by {:.2}% of its norm",
        100.0 * difference(&quantized.0, &dense.0)?
    )?;
    writeln!(out, "every element lies within its error bound of the oracle, computed in f64")?;
    Ok(())
}

/// A product, and its largest error as a fraction of its bound.
type Checked = (Measured, f64);

/// Y = gelu(X·Wᵀ + bias).
fn dense(context: &Context, layer: &Layer) -> Result<Checked> {
    let x = Tensor::from_bytes(context, STORED, &layer.tokens, &[layer.m, layer.k])?;
    let w = Tensor::from_bytes(context, STORED, &layer.weight, &[layer.n, layer.k])?.t();
    let bias = Tensor::from_bytes(context, STORED, &layer.bias, &[layer.n])?;
    let gemm = Gemm::new(&x, &w).bias(&bias).activation(Activation::Gelu).out_dtype(DType::F32);
    let measured = Measured::run(context, &gemm)?;
    let (a, b, bias) = (stored(&layer.tokens)?, stored(&layer.weight)?, stored(&layer.bias)?);
    let error =
        measured.check(&Inputs { a: &a, b: &b, bias: Some(&bias), ..Inputs::default() })?.error;
    Ok((measured, error))
}

/// Like [`dense`], with quantized weights. The oracle computes with the weights that the codes
/// stand for, so the error is only that of the product.
fn quantized(context: &Context, layer: &Layer) -> Result<Checked> {
    let weights = quantize(
        &decode(STORED, &layer.weight)?,
        layer.n,
        layer.k,
        QuantFormat::affine(4, 64, STORED)?,
    )?;
    let x = Tensor::from_bytes(context, STORED, &layer.tokens, &[layer.m, layer.k])?;
    let w = QuantizedTensor::upload(context, &weights)?;
    let bias = Tensor::from_bytes(context, STORED, &layer.bias, &[layer.n])?;
    let gemm = Gemm::new(&x, &w).bias(&bias).activation(Activation::Gelu).out_dtype(DType::F32);
    let measured = Measured::run(context, &gemm)?;
    let b: Vec<f64> = dequantize(&weights).into_iter().map(f64::from).collect();
    let (a, bias) = (stored(&layer.tokens)?, stored(&layer.bias)?);
    let b_error = weight_error(context, &weights, STORED);
    let inputs =
        Inputs { a: &a, b: &b, b_error: Some(&b_error), bias: Some(&bias), ..Inputs::default() };
    let error = measured.check(&inputs)?.error;
    Ok((measured, error))
}

/// Cuts the rows of W into one part for each sentence, like a mixture of experts that sends each
/// sentence to its own expert.
fn grouped(context: &Context, layer: &Layer) -> Result<Checked> {
    let groups = layer.ends.len();
    let x = Tensor::from_bytes(context, STORED, &layer.tokens, &[layer.m, layer.k])?;
    let w =
        Tensor::from_bytes(context, STORED, &layer.weight, &[groups, layer.n / groups, layer.k])?
            .t();
    let ends = GroupEnds::upload(context, &layer.ends)?;
    let measured = Measured::run(context, &Gemm::grouped(&x, &w, &ends).out_dtype(DType::F32))?;
    let (a, b) = (stored(&layer.tokens)?, stored(&layer.weight)?);
    let error =
        measured.check(&Inputs { a: &a, b: &b, offsets: &layer.ends, ..Inputs::default() })?.error;
    Ok((measured, error))
}

fn row(out: &mut dyn Write, name: &str, (measured, error): &Checked) -> Result<()> {
    let (kernel, time, rate) = (&measured.kernel, measured.time_text(), measured.rate_text());
    writeln!(out, "{name:38}  {kernel:22}  {time:>10}  {rate:>7}  {error:>11.3}")?;
    Ok(())
}

/// ‖Y − reference‖ / ‖reference‖ in the Frobenius norm.
fn difference(y: &Measured, reference: &Measured) -> Result<f64> {
    let (y, reference) = (wide(&y.array)?, wide(&reference.array)?);
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>().sqrt();
    Ok(norm(&mut y.iter().zip(&reference).map(|(y, r)| y - r))
        / norm(&mut reference.iter().copied()))
}

/// How many tokens each sentence has: `3, 7 and 12`.
fn lengths(ends: &[u32]) -> String {
    let starts = std::iter::once(&0).chain(ends);
    let lengths: Vec<String> =
        starts.zip(ends).map(|(start, end)| (end - start).to_string()).collect();
    match lengths.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
        None => String::new(),
    }
}
