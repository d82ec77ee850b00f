//! What the library has of the host: memory, files, and things made once.

pub(crate) mod cache;
pub(crate) mod files;
pub(crate) mod memory;
