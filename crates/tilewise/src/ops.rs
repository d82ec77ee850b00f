//! Ready kernels between products: softmax, norms, elementwise functions and the like.
//!
//! Each function here takes tensors and gives an [`Op`]: [`run`](Op::run) it, or
//! [`encode`](Op::encode) or [`record`](Op::record) it among products. They are
//! [kernels](crate::Kernel) as you could write them, planned for shapes and strides.
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
//! Tensors may be f32, f16 or bf16 in any mix, have any strides and up to eight dimensions, and may
//! be empty. Sums and functions are f32; the output is rounded once.

mod family;
mod layout;
mod op;
mod rows;
mod softmax;

pub use op::{Op, Operation};
pub use softmax::{Softmax, softmax};

/// File and text of every family's body, for the mutation check.
#[doc(hidden)]
pub fn texts() -> impl Iterator<Item = (&'static str, &'static str)> {
    family::FAMILIES.iter().map(|family| family.file)
}
