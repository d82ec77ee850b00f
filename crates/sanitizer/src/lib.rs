//! A sanitizer for WGSL compute shaders.
//!
//! It runs an entry point on the CPU, over given buffers and a given grid, with the arithmetic of a
//! GPU and the memory model of WGSL. It reports what no GPU reports: data races, accesses out of
//! bounds, reads of memory that nobody wrote, barriers that not all invocations reach. Every
//! finding names the source, both sides of a conflict, and the invocations. It also counts what a
//! kernel costs.
//!
//! - [`Shader`] is parsed and validated WGSL.
//! - [`Launch`] says what to run: entry point, grid, [`Buffer`]s, overrides, [`Options`].
//! - [`Report`] holds [`Finding`]s, [`Counters`], and the buffers as the shader left them.
//!
//! # Example
//!
//! ```
//! use tilewise_sanitizer::{Buffer, Kind, Launch, Shader};
//!
//! # fn main() -> Result<(), tilewise_sanitizer::Error> {
//! let shader = Shader::parse(
//!     "reverse.wgsl",
//!     "@group(0) @binding(0) var<storage, read_write> data: array<u32>;
//!      var<workgroup> tile: array<u32, 64>;
//!      @compute @workgroup_size(64)
//!      fn main(@builtin(local_invocation_index) i: u32) {
//!          tile[i] = data[i];
//!          data[i] = tile[63u - i]; // no barrier before it
//!      }",
//! )?;
//! let numbers: Vec<u8> = (0..64u32).flat_map(u32::to_le_bytes).collect();
//! let report = Launch::new(&shader).grid([1, 1, 1]).bind(0, 0, Buffer::new(numbers)).run()?;
//! assert_eq!(report.findings[0].kind, Kind::Race);
//! println!("{}", report.render(&shader, false));
//! # Ok(())
//! # }
//! ```

#![forbid(unsafe_code)]

mod compile;
mod counters;
mod deep;
mod error;
mod launch;
mod machine;
mod options;
mod program;
mod report;
mod shader;

pub use counters::{Counters, Measure};
pub use deep::deep;
pub use error::Error;
pub use launch::{Buffer, Launch, Region};
/// For the program and the tests.
#[doc(hidden)]
pub use machine::to_odd;
pub use options::{CostModel, Options, ZeroInit};
pub use report::{Access, Finding, Kind, Label, Place, Report};
pub use shader::Shader;
