//! Matrices of one shape, whose elements are taken or quantized, and how they are bound.

use super::check;
use super::limits::binding_limit;
use super::piece::{Window, window};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::problem::{Format, Operand};
use crate::quant::QuantFormat;
use std::ops::Range;

/// Matrices of one shape \[rows, columns\] in one storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Table {
    /// Where they lie.
    pub operand: Operand,
    /// How many there are.
    pub entries: u64,
    /// Rows of each.
    pub rows: u64,
    /// Columns of each.
    pub columns: u64,
}

impl Table {
    /// Row-major matrices, one after the other, in storage that holds nothing else.
    pub const fn packed(format: Format, entries: u64, rows: u64, columns: u64) -> Self {
        Table { operand: Operand::packed(format, entries, rows, columns), entries, rows, columns }
    }

    /// Quantized matrices as this library stores them ([`QuantFormat::pitch`]).
    pub fn stored(format: QuantFormat, entries: u64, rows: u64, columns: u64) -> Self {
        let pitch = format.pitch(columns);
        Table { columns, ..Self::packed(Format::Quantized(format), entries, rows, pitch) }
    }

    /// Elements of all matrices; `None` beyond 2^64.
    pub(super) fn elements(&self) -> Option<u64> {
        self.entries.checked_mul(self.rows)?.checked_mul(self.columns)
    }

    /// Elements from one row to the next.
    pub(super) fn row(&self) -> u64 {
        if self.operand.transposed { 1 } else { self.operand.ld }
    }

    /// Elements from the first to the last, with those between rows that belong to nobody.
    pub fn extent(&self) -> u64 {
        self.end().map_or(0, |end| end.saturating_sub(self.operand.offset))
    }

    /// Elements from the start of the storage to the last element; `None` if their bits pass 2^64.
    pub(super) fn end(&self) -> Option<u64> {
        let Table {
            operand: Operand { offset, ld, batch_stride, transposed, .. },
            entries,
            rows,
            columns,
        } = *self;
        let (lines, width) = if transposed { (columns, rows) } else { (rows, columns) };
        let [Some(entry), Some(line), Some(last)] =
            [entries, lines, width].map(|size| size.checked_sub(1))
        else {
            return Some(0);
        };
        let end = offset
            .checked_add(entry.checked_mul(batch_stride)?)?
            .checked_add(line.checked_mul(ld)?)?;
        end.checked_add(last + 1).filter(|end| end.checked_mul(u64::BITS.into()).is_some())
    }

    /// This table, with strides that play no part set to 0, if it lies in its storage.
    ///
    /// # Errors
    /// [`Shape`](crate::Error).
    pub(super) fn checked(mut self, name: &'static str) -> Result<Self> {
        let Table { operand: Operand { format, transposed, len, .. }, entries, rows, columns } =
            self;
        for (what, size) in [("entries", entries), ("rows", rows), ("columns", columns)] {
            if size > check::MAX_DIMENSION {
                let most = check::MAX_DIMENSION;
                return Err(Error::Shape(format!(
                    "overflow: {name} has {size} {what}, at most {most}"
                )));
            }
        }
        if (if transposed { columns } else { rows }) <= 1 {
            self.operand.ld = 0;
        }
        if entries <= 1 {
            self.operand.batch_stride = 0;
        }
        let needed = self
            .end()
            .ok_or_else(|| Error::Shape(format!("overflow: {name} passes 2^58 elements")))?;
        if needed > len {
            return Err(Error::buffer_too_small(name, needed, len));
        }
        let Operand { offset, ld, batch_stride, .. } = self.operand;
        let block = format.block();
        let blocks = [
            ("offset", offset),
            ("row stride", ld),
            ("batch stride", batch_stride),
            ("columns", columns),
        ];
        for (what, value) in blocks {
            if !value.is_multiple_of(block) {
                return Err(Error::Shape(format!(
                    "misaligned: the {what} of {name}: {value} is no multiple of {block}"
                )));
            }
        }
        Ok(self)
    }

    /// The table of some of the matrices.
    pub(super) fn entries_in(&self, range: Range<u64>) -> Self {
        let mut some = *self;
        some.operand.offset += range.start * self.operand.batch_stride;
        some.entries = range.end - range.start;
        some
    }

    /// The table of some rows of each matrix.
    pub(super) fn rows_in(&self, range: Range<u64>) -> Self {
        let mut some = *self;
        some.operand.offset += range.start * self.row();
        some.rows = range.end - range.start;
        some
    }

    /// The window that a pass binds, and the operand counted from its start.
    pub(super) fn bound(&self, caps: &Caps) -> (Window, Operand) {
        let window = window(&self.operand, self.end().unwrap_or(0), caps);
        (window, Operand { offset: self.operand.offset - window.start, ..self.operand })
    }

    /// The error if one binding does not hold the table.
    pub(super) fn excess(&self, name: &'static str, caps: &Caps) -> Option<Error> {
        let (Window { elements, .. }, _) = self.bound(caps);
        excess(name, self.operand.format, elements, caps)
    }
}

/// The error if one binding does not hold `elements`.
pub(super) fn excess(
    operand: &'static str,
    format: Format,
    elements: u64,
    caps: &Caps,
) -> Option<Error> {
    let planes = format.planes().iter().map(|plane| plane.bytes_of(format.block(), elements));
    let (bytes, (limit, which)) = (planes.max().unwrap_or(0), binding_limit(caps));
    if bytes > limit {
        return Some(Error::too_large(operand, bytes, limit, which));
    }
    let most = u32::MAX;
    let overflow = || {
        Error::Shape(format!(
            "overflow: {operand} spans {elements} elements, kernels index at most {most}"
        ))
    };
    (elements > most.into()).then(overflow)
}

/// Workgroups of `threads` invocations for `invocations`.
///
/// # Errors
/// [`DeviceLimit`](crate::Error) if the device does not start as many.
pub(super) fn workgroups(invocations: u64, threads: u32, caps: &Caps) -> Result<u64> {
    let workgroups = invocations.div_ceil(threads.into());
    let allowed = u64::from(caps.max_workgroups).pow(2);
    if workgroups > allowed || invocations > u32::MAX.into() {
        return Err(Error::DeviceLimit(format!("{workgroups} workgroups, {allowed} allowed")));
    }
    Ok(workgroups)
}
