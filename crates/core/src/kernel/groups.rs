//! How many groups of codes a mainloop takes at a time if it reads weights as codes.

use super::{Access, Variant};
use crate::problem::Problem;

/// Codes of a group.
const CODES: u32 = 32;

/// How many groups of GGUF's K formats share bytes. Groups of other formats share no more than a
/// scale: two of them in a load were measured slower than one.
const SHARING: [(&str, u32); 3] = [("k45", 2), ("q2_k", 4), ("q3_k", 4)];

impl Variant {
    /// Groups of 32 codes in a load of weights: as many as share bytes, if the variant may take so
    /// many, or 1. It is 1, too, if K is whole steps of the workgroup only then.
    pub fn groups(&self, problem: &Problem) -> u32 {
        let Access::Codes { stripes, groups: most, .. } = self.access else { return 1 };
        let whole = |groups| problem.k.is_multiple_of(u64::from(CODES * groups * stripes));
        let sharing = SHARING.iter().find(|(family, _)| problem.b.format.is_of(family));
        let groups = sharing.map_or(1, |(_, groups)| *groups.min(&most));
        if whole(groups) || !whole(1) { groups } else { 1 }
    }
}
