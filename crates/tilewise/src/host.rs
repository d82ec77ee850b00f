//! The host's memory, files and threads, and things made once.

pub(crate) mod cache;
pub(crate) mod files;
pub(crate) mod memory;
pub(crate) mod recent;
pub(crate) mod threads;
