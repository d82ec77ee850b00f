//! The host's memory and files, and things made once.

pub(crate) mod cache;
pub(crate) mod files;
pub(crate) mod memory;
pub(crate) mod recent;
