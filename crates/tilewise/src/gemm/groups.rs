//! The forms of grouped products, each with the numbers on the device that make its groups.

use super::batch::Batch;
use crate::offsets::{self, GroupOffsets};
use crate::tensor::Tensor;
use tilewise_core::{Error, Grouping, Result};

/// A form, with its numbers.
#[derive(Clone, Debug)]
pub(super) enum Groups {
    /// Rows of A and C, one group after the other.
    Rows(GroupOffsets),
    /// The first rows of each entry of a batch.
    Masked(Tensor),
    /// Ranges of K, one after the other.
    AlongK(GroupOffsets),
}

impl Groups {
    /// The numbers, and their name in errors.
    pub(super) fn numbers(&self) -> (&'static str, &Tensor) {
        match self {
            Groups::Rows(ends) | Groups::AlongK(ends) => ("group offsets", &ends.tensor),
            Groups::Masked(counts) => ("row counts", counts),
        }
    }

    /// The batch of the product, if the shapes of A and B and all numbers that are known fit.
    pub(super) fn batch(&self, a: &Tensor, b: [usize; 2], [m, k]: [usize; 2]) -> Result<Batch> {
        match self {
            Groups::Rows(ends) => {
                if a.shape().len() != 2 {
                    let (shape, groups) = (a.shape(), b[1]);
                    return Err(Error::Shape(format!(
                        "a grouped product ({groups} groups) takes A [M,K], the rows of all groups \
                         one after the other; A has shape {shape:?}, of which reshape() may make \
                         rows"
                    )));
                }
                if b[0] != 1 {
                    return Err(Error::Shape(format!(
                        "a grouped product takes one entry of B for each group, not a batch of \
                         {}×{}",
                        b[0], b[1]
                    )));
                }
                ends.before(b[1])?;
                within(ends, m, "A has", "rows")?;
                Ok(Batch::entries(1))
            }
            Groups::Masked(counts) => {
                offsets::vector_of_u32("row counts", counts)?;
                let batch = Batch::of(a, b)?;
                let entries = batch.simple().ok_or_else(|| {
                    Error::Shape(format!(
                        "a masked product takes one batch of entries, one matrix of A and of B for \
                         each or for all; A has shape {:?}, B a batch of {}×{}",
                        a.shape(),
                        b[0],
                        b[1]
                    ))
                })?;
                match counts.elem_count() {
                    count if count == entries => Ok(batch),
                    count => Err(Error::Shape(format!(
                        "{count} row counts for a batch of {entries}; there is one for each entry"
                    ))),
                }
            }
            Groups::AlongK(ends) => {
                if a.batch(2).map(|(size, _)| size) != [1, 1] || b != [1, 1] {
                    return Err(Error::Shape(format!(
                        "groups along K take A [M,K] and B [K,N]; A has shape {:?}, B a batch of \
                         {}×{}",
                        a.shape(),
                        b[0],
                        b[1]
                    )));
                }
                within(ends, k, "K is", "long")?;
                Ok(Batch::entries(ends.count()))
            }
        }
    }

    /// With the first number at `offset` of their storage.
    pub(super) fn grouping(&self, offset: u64, groups: u64) -> Grouping {
        match self {
            Groups::Rows(ends) => Grouping::RaggedM { groups, offset, expected: ends.expected },
            Groups::Masked(_) => Grouping::Masked { entries: groups, offset },
            Groups::AlongK(_) => Grouping::RaggedK { groups, offset },
        }
    }
}

/// Whether ends that are known do not exceed a size.
fn within(ends: &GroupOffsets, size: usize, whose: &str, unit: &str) -> Result<()> {
    match ends.ends.as_deref().and_then(<[u32]>::last) {
        Some(&last) if last as usize > size => {
            Err(Error::GroupOffsets(format!("the last one is {last}, {whose} {size} {unit}")))
        }
        _ => Ok(()),
    }
}
