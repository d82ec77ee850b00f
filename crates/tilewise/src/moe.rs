//! Mixture of experts: from a router's logits to the output on the device, with nothing read back.
//!
//! - [`Router`] chooses experts by logits and gives a [`Routing`]: weights, and the rows sorted by
//!   expert as grouped products take them. [`Router::choose`] gives weights and experts alone.
//! - [`MoeLayer`] is the whole layer: routing, the gated products of the experts, and their sum. It
//!   also takes experts that are chosen already ([`Routes`]).
//! - [`gather_matmul`] multiplies rows that indices name by matrices that indices name.
//!
//! The parts can be used alone: [`ops::combine`](crate::ops::combine) is the sum, and each product
//! is [`Gemm::grouped`](crate::Gemm::grouped), or, for few rows,
//! [`Gemm::indexed`](crate::Gemm::indexed).

mod gather;
mod layer;
mod routes;
mod routing;
mod slots;
mod weights;
mod work;

pub use gather::{GatherMatmul, gather_matmul};
pub use layer::MoeLayer;
pub use routes::Routes;
pub use routing::{Router, Routing, Scoring};
