//! The harness of MSL kernels: what it accepts, refuses and finds.

mod common;
mod correct;
mod findings;
mod refused;
