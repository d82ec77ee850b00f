//! Operations whose rows or elements are named by indices.

pub(super) mod choose;
pub(super) mod combine;
pub(super) mod gather;
pub(super) mod scatter;
pub(super) mod take_along;
