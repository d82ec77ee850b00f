//! The crate from outside.

mod compressed;
mod files;
mod foreign;
mod formats;
mod imports;
mod layouts;
mod memory;
mod packages;
mod real;
mod replay;
mod support;
mod targets;
mod writing;
