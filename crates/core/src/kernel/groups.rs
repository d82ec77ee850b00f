//! How many groups of codes a mainloop takes at a time that reads weights as bytes.

use super::{Access, Variant};
use crate::problem::Problem;

/// Codes that mainloops take together as bytes.
const CODES: u32 = 32;

/// The block of GGUF's K formats, whose groups of 32 lie in the bytes of others. Others share no
/// more than a scale: two of them in a load were measured slower than one.
const SHARING: u64 = 256;

impl Variant {
    /// Groups of 32 codes in a load of weights as bytes: as many as it may take if they share bytes
    /// with each other, unless K is whole steps of the workgroup with one of them alone.
    pub fn groups(&self, problem: &Problem) -> u32 {
        let Access::Bytes { stripes, groups } = self.access else { return 1 };
        let whole = |groups| problem.k.is_multiple_of(u64::from(CODES * groups * stripes));
        let shared = problem.b.format.block() >= SHARING;
        if shared && (whole(groups) || !whole(1)) { groups } else { 1 }
    }
}
