//! Units of planning: pieces of a product, and the passes over K in each.

use super::check;
use crate::caps::Caps;
use crate::kernel::Variant;
use crate::problem::{Dimension, Operand, Precision, Problem};
use crate::role::Role;
use std::ops::Range;

/// A product that one kernel computes: the whole, or a range of its entries, rows and columns.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    /// The product, with all of K.
    pub(super) problem: Problem,
    /// Elements of K that one pass adds up.
    pub(super) k_step: u64,
    /// Rows and groups of a grouped product before the first of this piece.
    pub(super) first_row: u64,
    pub(super) first_group: u64,
}

impl Piece {
    pub(super) fn whole(problem: &Problem) -> Self {
        let first_group = problem.grouping.traits().first;
        Piece { problem: *problem, k_step: problem.k, first_row: 0, first_group }
    }

    /// Passes over K.
    pub(super) fn steps(&self) -> u64 {
        self.problem.k.div_ceil(self.k_step.max(1)).max(1)
    }

    /// The passes over K that stand for all: the first eight, after which operands are aligned as
    /// before, and the last, which may be shorter.
    pub(super) fn kinds(&self, caps: &Caps) -> Vec<Step> {
        let steps = self.steps();
        let kinds = (0..steps.min(8)).chain((steps > 8).then(|| steps - 1));
        kinds.map(|index| Step::new(self, index, caps)).collect()
    }

    /// The operands of a pass over K.
    pub(super) fn step(&self, index: u64) -> Problem {
        let start = index * self.k_step;
        self.problem.range(Dimension::K, start..(start + self.k_step).min(self.problem.k))
    }

    pub(super) fn range(&self, dimension: Dimension, range: Range<u64>) -> Self {
        let mut piece = Piece { problem: self.problem.range(dimension, range.clone()), ..*self };
        match dimension {
            Dimension::Entries => piece.first_group += range.start,
            Dimension::M => piece.first_row += range.start,
            Dimension::N | Dimension::K => {}
        }
        piece
    }
}

/// The range of an operand's storage that a pass binds.
#[derive(Clone, Copy, Default)]
pub(super) struct Window {
    /// Elements of the storage before it. A binding starts there, at a multiple of the device's
    /// alignment and of 16 bytes, so that vectors stay aligned.
    pub(super) start: u64,
    /// Elements in it.
    pub(super) elements: u64,
}

/// The range to bind of an operand that ends at an element.
pub(super) fn window(operand: &Operand, end: u64, caps: &Caps) -> Window {
    let alignment = u64::from(caps.storage_alignment).next_multiple_of(16);
    // All planes start with the same block, each at a multiple of the alignment, which is a power
    // of two.
    let blocks =
        operand.format.planes().iter().map(|plane| alignment >> plane.bytes.trailing_zeros());
    let step = operand.format.block() * blocks.map(|blocks| blocks.max(1)).max().unwrap_or(1);
    let start = operand.offset / step * step;
    Window { start, elements: end.saturating_sub(start) }
}

/// One pass over K with the ranges that it binds. Every candidate shares it.
#[derive(Clone, Copy)]
pub(super) struct Step {
    /// Which range of K it is.
    pub(super) index: u64,
    /// The product of this pass, with offsets from where its bindings start. Strides that play no
    /// part in it are 0: they must not keep a piece from vector loads, nor be too long for 32 bits.
    pub(super) problem: Problem,
    /// The windows, by role.
    pub(super) windows: [Window; Role::COUNT],
}

impl Step {
    pub(super) fn new(piece: &Piece, index: u64, caps: &Caps) -> Self {
        let mut problem = check::normal(&piece.step(index));
        let mut windows = [Window::default(); Role::COUNT];
        let whole = problem;
        for (role, operand, strides) in problem.operands() {
            let end = check::span(&whole, role, operand, &strides).unwrap_or(0);
            windows[role as usize] = window(operand, end, caps);
            operand.offset -= windows[role as usize].start;
        }
        Step { index, problem, windows }
    }
}

/// Elements of K in each split but the last: whole steps of a variant.
pub(super) fn split_length(k: u64, splits: u64, bk: u64) -> u64 {
    k.div_ceil(splits).next_multiple_of(bk).max(bk)
}

/// Splits of `length` elements in a range of K.
pub(super) fn splits_of(k: u64, length: u64) -> u64 {
    k.div_ceil(length).max(1)
}

/// Bytes of f32 sums that `splits` splits of K leave to a finishing pass. Rows fill whole vectors
/// of four.
pub(super) fn scratch_bytes(problem: &Problem, splits: u64) -> u64 {
    let row = problem.n.next_multiple_of(4);
    let elements =
        u128::from(splits) * u128::from(problem.batch) * u128::from(problem.m) * u128::from(row);
    u64::try_from(elements * 4).unwrap_or(u64::MAX)
}

/// The fewest splits of K that are as exact as the precision wants.
pub(super) fn least_splits(problem: &Problem, variant: &Variant) -> u64 {
    let multiplied = variant.multiplied(problem);
    let split = multiplied.a.format != problem.a.format;
    let strict = split && problem.precision == Precision::SplitF32;
    let chains = multiplied.k.div_ceil(Precision::CHAIN);
    if strict && variant.chain() == 0 { chains.max(1) } else { 1 }
}
