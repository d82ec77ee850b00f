//! Ready kernels between products: softmax, norms, elementwise functions and the like.
//!
//! Each function takes tensors and gives an [`Op`]: [`run`](Op::run) it, or [`record`](Op::record)
//! it among products. Operations are [kernels](crate::Kernel) as you could write them, planned for
//! shapes and strides.
//!
//! ```
//! use tilewise::{Context, Tensor, ops};
//!
//! # fn main() -> tilewise::Result<()> {
//! let ctx = Context::new()?;
//! let q = Tensor::upload(&ctx, &[1.0f32, 0.0, 0.0, 1.0], &[2, 2])?;
//! let scores = ctx.matmul(&q, &q.t())?;
//! let p = ops::softmax(&scores).causal(0).run()?;
//! assert_eq!(p.read_blocking::<f32>()?[..2], [1.0, 0.0]);
//! # Ok(())
//! # }
//! ```
//!
//! | operation | shapes | output | relative error, with ε = 2⁻²³ |
//! |---|---|---|---|
//! | [`softmax`] | \[…, n\], mask and sinks broadcast to it | the same | (20 + 5·range + n/2)·ε |
//! | [`attention`] | \[…, heads, T, d\], keys and values | \[…, heads, T, e\] | see there |
//! | functions of one tensor, such as [`exp`] | any | the same | below |
//! | functions of two, such as [`add`] | two, broadcast | their joint one | below |
//! | [`layer_norm`], [`rms_norm`] | \[…, n\], vectors \[n\] | the same | (n/4 + 20)·ε about 0 |
//! | [`add_rms_norm`] | \[…, n\] twice, weight \[n\] | sum and norm | (n/4 + 21)·ε |
//! | [`sum`] | any, along an axis | without the axis | (n/8 + 8)·ε of Σ\|x\| |
//! | [`mean`] | any, along an axis | without the axis | (n/8 + 9)·ε of Σ\|x\|/n |
//! | [`max`], [`min`], [`arg_max`] | any, along an axis | without it | none; `arg_max` gives u32 |
//! | [`rope`] | \[…, T, D\], tables \[T, D/2\] | the same | 2·ε of both terms |
//! | [`append`] | \[…, T, D\], a [`Position`] | \[…, room, D\] | none |
//! | [`copy`] | any | the same | none |
//! | [`top_k`] | \[…, n\] | \[…, k\] twice: values and indices | none |
//! | [`sample`] | \[…, n\] | \[…\], u32 | see there |
//! | [`gather`] | \[n, …\], indices \[m\] | \[m, …\] | none |
//! | [`scatter`] | rows \[m, …\], indices \[m\] | \[rows, …\] | none |
//! | [`combine`] | \[m, n\], places and weights \[t, k\] | \[t, n\] | k·ε of Σ\|weight·x\| |
//! | [`take_along`] | \[m, n\], indices \[m, k\] | \[m, k\] | none |
//! | [`group`] | u32 keys, \[t, k\] | \[groups + 1\] and \[3, t·k\]: starts and slots | none |
//! | [`histogram`] | u32 keys, any | \[bins\], u32 | none |
//! | [`exclusive_scan`] | \[…, n\] | \[…, n\], or n + 1 | (n/1024 + 40)·ε of Σ\|x\| |
//! | [`sort`], [`sort_by_key`] | u32, \[n\] | \[n\] twice: keys and payload | none |
//!
//! Functions of one tensor are [`abs`], [`cos`], [`exp`], [`gelu`], [`gelu_erf`], [`log()`],
//! [`neg`], [`recip`], [`relu`], [`rsqrt`], [`scale`], [`sigmoid`], [`silu`], [`sin`], [`sqrt`],
//! [`square`], [`tanh`]; of two, which are broadcast as numpy does, [`add`], [`div`],
//! [`gelu_mul`], [`maximum`], [`minimum`], [`mul`], [`pow`], [`silu_backward`], [`silu_mul`],
//! [`sub`], [`swiglu_oai`]. They are computed in f32, with the errors that WGSL
//! [permits](https://www.w3.org/TR/WGSL/#floating-point-accuracy). The output has the type of the
//! operands, or f32 if they differ.
//!
//! ```
//! # use tilewise::{Context, Tensor, ops};
//! # fn main() -> tilewise::Result<()> {
//! # let ctx = Context::new()?;
//! let x = Tensor::upload(&ctx, &[1.0f32, -2.0, 3.0, 4.0], &[2, 2])?;
//! let row = Tensor::upload(&ctx, &[10.0f32, 20.0], &[2])?;
//! assert_eq!(ops::add(&x, &row).run()?.read_blocking::<f32>()?, [11.0, 18.0, 13.0, 24.0]);
//! ops::square(&x).run_into(&x)?; // in place
//! assert_eq!(x.read_blocking::<f32>()?, [1.0, 4.0, 9.0, 16.0]);
//! # Ok(())
//! # }
//! ```
//!
//! [`Router::choose`](crate::moe::Router::choose) is another operation; its documentation has its
//! error. [`Take`](crate::Take) gives rows of quantized tables by index.
//!
//! Errors are those of f32 arithmetic as the WGSL specification admits it; the output is rounded
//! once more, to its type. Tensors may be f32, f16 or bf16 in any mix on every device; copies take
//! integers, too. Tensors may have any strides and up to eight dimensions, and may be empty.
//!
//! If no binding of the device holds the tensors of an operation, it runs in parts, mostly of rows,
//! with the same bits. `DeviceLimit` names a tensor that cannot be cut in parts: a single row
//! (except long rows of [`sum`], [`mean`], [`max`] and [`min`]); rows that lie among each other, as
//! the columns of a row-major matrix do; vectors that are sorted, grouped or counted; `x` of
//! [`combine`].
//!
//! Operations bind four storage buffers at most; a fifth is for a [`Position`] on the device, a
//! residual beside three other operands, the sum of [`add_rms_norm`], or the weights of
//! [`rope`]'s norm. [`attention`] with mask, sinks or a position on the device binds one more for
//! each. The same inputs on the same device give the same bits.
//! [`Tensor::cast`](crate::Tensor::cast), [`Tensor::fill`](crate::Tensor::fill),
//! [`Tensor::copy_from`](crate::Tensor::copy_from) and [`Tensor::write`](crate::Tensor::write) are
//! copies.

mod access;
mod attention;
mod cut;
mod elementwise;
mod host;
mod indexed;
mod kv_cache;
mod layout;
mod op;
mod order;
mod position;
mod rows;
mod texts;

pub use attention::attention;
pub use elementwise::binary::{
    add, div, gelu_mul, maximum, minimum, mul, pow, silu_backward, silu_mul, sub, swiglu_oai,
};
pub use elementwise::copy::copy;
pub use elementwise::unary::{
    abs, cos, exp, gelu, gelu_erf, log, neg, recip, relu, rsqrt, scale, sigmoid, silu, sin, sqrt,
    square, tanh,
};
pub(crate) use indexed::choose::admitted;
pub use indexed::combine::combine;
pub use indexed::gather::gather;
pub use indexed::scatter::scatter;
pub use indexed::take_along::take_along;
pub use kv_cache::KvCache;
pub(crate) use layout::of_type;
pub use op::{Op, Operation};
pub use order::group::group;
pub use order::histogram::histogram;
pub use order::sample::sample;
pub use order::scan::exclusive_scan;
pub use order::sort::{sort, sort_by_key};
pub use order::top_k::top_k;
pub use position::Position;
pub use rows::append::append;
pub use rows::norm::{add_rms_norm, layer_norm, rms_norm};
pub use rows::reduce::{arg_max, max, mean, min, sum};
pub use rows::rope::rope;
pub use rows::softmax::softmax;

/// The kinds of operations: `K` of [`Op`]. They are public so that a struct can hold an operation.
#[doc(hidden)]
pub use {
    attention::Attention, elementwise::Elementwise, indexed::choose::Choose,
    indexed::combine::Combine, indexed::gather::Gather, indexed::scatter::Scatter,
    indexed::take_along::TakeAlong, order::group::Group, order::histogram::Histogram,
    order::sample::Sample, order::scan::Scan, order::sort::Sort, order::top_k::TopK,
    rows::append::Append, rows::norm::Norm, rows::reduce::Reduce, rows::rope::Rope,
    rows::softmax::Softmax,
};

/// The functions of elements, for tests that take all.
#[doc(hidden)]
pub use {
    elementwise::binary::{Binary, binary},
    elementwise::unary::{Unary, unary},
};

/// Path and text of every file, for the mutation check.
#[doc(hidden)]
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    texts::files()
}
