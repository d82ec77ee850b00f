//! How many groups of codes a mainloop takes at a time if it reads weights as bytes.

use super::{Access, Variant};
use crate::problem::Problem;

/// Codes that mainloops take together as bytes.
const CODES: u32 = 32;

/// The block of GGUF's K formats. Their groups of 32 codes share bytes with each other. Groups of
/// other formats share no more than a scale: two of them in a load were measured slower than one.
const SHARING: u64 = 256;

impl Variant {
    /// Groups of 32 codes in a load of weights as bytes: the most that the variant may take, or 1.
    /// It is 1 if they share no bytes, or if K is whole steps of the workgroup only then.
    pub fn groups(&self, problem: &Problem) -> u32 {
        let Access::Bytes { stripes, groups } = self.access else { return 1 };
        let whole = |groups| problem.k.is_multiple_of(u64::from(CODES * groups * stripes));
        let shared = problem.b.format.block() >= SHARING;
        if shared && (whole(groups) || !whole(1)) { groups } else { 1 }
    }
}
