//! The crate from outside.

mod files;
mod formats;
mod imports;
mod memory;
mod replay;
mod support;
mod targets;
mod writing;
