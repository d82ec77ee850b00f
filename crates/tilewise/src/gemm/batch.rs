//! The batch of a product: up to two dimensions. In each, the sizes of A and B are equal, or one
//! divides the other.

use crate::tensor::Tensor;
use tilewise_core::{Error, Grouping, Result};

/// A product's batch, the outer dimension first.
#[derive(Clone, Copy)]
pub(super) struct Batch([Dim; 2]);

/// A dimension of a batch.
#[derive(Clone, Copy)]
struct Dim {
    size: usize,
    /// Entries of the operand that has fewer; each serves a group of neighbours.
    fewer: usize,
}

impl Dim {
    /// A dimension in which A has `a` entries and B has `b`; `None` if neither divides the other.
    fn of(a: usize, b: usize) -> Option<Self> {
        let (fewer, more) = (a.min(b), a.max(b));
        let size = match (a, b) {
            (1, all) | (all, 1) => all,
            _ if a == b || fewer > 0 && more.is_multiple_of(fewer) => more,
            _ => return None,
        };
        Some(Dim { size, fewer })
    }

    /// Groups, and entries in each; one group of all entries if nothing is grouped.
    fn levels(self) -> [u64; 2] {
        let Dim { size, fewer } = self;
        let groups = if fewer <= 1 || fewer == size { 1 } else { fewer };
        [groups, size / groups].map(|size| size as u64)
    }

    /// The strides of an operand along both levels, given its own entries and their stride.
    fn strides(self, (own, stride): (usize, usize), may_group: bool) -> Option<[u64; 2]> {
        let ([_, group], stride) = (self.levels(), stride as u64);
        match own {
            _ if own == self.size => Some([stride.saturating_mul(group), stride]),
            1 => Some([0; 2]),
            _ if may_group && own == self.fewer => Some([stride, 0]),
            _ => None,
        }
    }
}

impl Batch {
    /// A batch of `size` entries, for which A and B have one.
    pub(super) fn entries(size: usize) -> Self {
        Batch([1, size].map(|size| Dim { size, fewer: 1 }))
    }

    /// Its entries, if it has one dimension, and A and B each have one entry, or one for each.
    pub(super) fn simple(&self) -> Option<usize> {
        let [outer, inner] = self.0;
        (outer.size == 1 && inner.levels()[0] == 1).then_some(inner.size)
    }

    pub(super) fn of(a: &Tensor, b: [usize; 2]) -> Result<Self> {
        let a = a.batch(2).map(|(size, _)| size);
        match (Dim::of(a[0], b[0]), Dim::of(a[1], b[1])) {
            (Some(outer), Some(inner)) => Ok(Batch([outer, inner])),
            _ => Err(Error::Shape(format!(
                "A has a batch of {}, B one of {}: along each dimension one must divide the other",
                text(a),
                text(b)
            ))),
        }
    }

    /// Sizes of both dimensions.
    pub(super) fn sizes(&self) -> [usize; 2] {
        self.0.map(|dim| dim.size)
    }

    /// How its entries are counted, and how many there are.
    pub(super) fn grouping(&self) -> Result<(Grouping, u64)> {
        let [[outer, second], [third, inner]] = self.0.map(Dim::levels);
        let sizes = [outer, second, third, inner];
        let entries = sizes.iter().try_fold(1u64, |entries, &size| entries.checked_mul(size));
        let entries = entries.filter(|_| !sizes.contains(&0)).or(sizes.contains(&0).then_some(0));
        let entries =
            entries.ok_or_else(|| Error::Shape(format!("overflow: a batch of {self}")))?;
        Ok((Grouping::Nested { sizes }, entries))
    }

    /// The strides of A or B, given its own entries and strides along both dimensions.
    pub(super) fn shared(&self, name: &str, own: [(usize, usize); 2]) -> Result<[u64; 4]> {
        self.strides(name, own, true)
    }

    /// Like [`shared`](Self::shared), for an operand that has along each dimension one entry, or an
    /// entry for each of the batch.
    pub(super) fn each(&self, name: &str, own: [(usize, usize); 2]) -> Result<[u64; 4]> {
        self.strides(name, own, false)
    }

    fn strides(&self, name: &str, own: [(usize, usize); 2], may_group: bool) -> Result<[u64; 4]> {
        let [outer, inner] = &self.0;
        match (outer.strides(own[0], may_group), inner.strides(own[1], may_group)) {
            (Some([first, second]), Some([third, last])) => Ok([first, second, third, last]),
            _ => Err(Error::Shape(format!(
                "{name} has a batch of {}, the product one of {self}",
                text(own.map(|(size, _)| size))
            ))),
        }
    }
}

impl std::fmt::Display for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&text(self.sizes()))
    }
}

/// `8`, or `2×8`.
fn text(sizes: [usize; 2]) -> String {
    match sizes {
        [1, inner] => inner.to_string(),
        [outer, inner] => format!("{outer}×{inner}"),
    }
}
