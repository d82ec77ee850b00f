//! The WGSL kernels of tilewise as files, the tables that compose them ([`LIBRARY`]), and
//! [`assemble`], which puts the part files of a pass together. [`tokens`] reads texts of shaders,
//! and [`portable`] finds what some compiler refuses.

mod aliases;
mod assemble;
mod conversions;
mod files;
mod link;
mod mainloops;
pub mod portable;
mod tables;
pub mod tokens;
mod unroll;

pub use aliases::without_aliases;
pub use assemble::{assemble, assemble_with};
pub use conversions::CONVERSIONS;
pub use files::FILES;
pub use link::{DECLARED, Sources, listed};
pub use mainloops::LIBRARY;
pub use tables::{KIT, SOURCES};
pub use unroll::unroll;
