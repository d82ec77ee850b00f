//! Operations that order elements, or count them.

pub(super) mod group;
pub(super) mod histogram;
pub(super) mod sample;
pub(super) mod scan;
pub(super) mod sort;
pub(super) mod top_k;
