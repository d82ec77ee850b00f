//! The WGSL kernels of tilewise as files, the tables that compose them ([`LIBRARY`]), and
//! [`assemble`], which puts the part files of a pass together.

mod aliases;
mod assemble;
mod conversions;
mod files;
mod mainloops;
mod tables;
mod unroll;

pub use aliases::without_aliases;
pub use assemble::{assemble, assemble_with};
pub use conversions::CONVERSIONS;
pub use files::FILES;
pub use tables::{KIT, LIBRARY};
pub use unroll::unroll;
