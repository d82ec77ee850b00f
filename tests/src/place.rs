//! Where an operand lies in a buffer that is larger than it needs.

use tilewise::{Context, DType, Result, Tensor};
use tilewise_core::{Format, Operand};

/// Elements of guard band behind every operand, and at least before it where nothing else is asked
/// for.
pub const GUARD: usize = 8;

/// How the entries of a batch follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entries {
    /// One after the other, with so many elements between.
    Apart(usize),
    /// Row by row: row r of every entry before row r + 1 of any.
    Between,
    /// One entry serves all, by a stride of 0.
    Stride0,
    /// One entry serves all, by a tensor that has no more.
    Single,
}

/// Type and layout of an operand; [`operand`](Place::operand) gives the numbers for a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Element type.
    pub dtype: DType,
    /// Whether the storage holds the transpose.
    pub transposed: bool,
    /// Elements before the first, all guard.
    pub lead: usize,
    /// Elements by which the row stride exceeds the row.
    pub pad: usize,
    /// How batch entries follow each other.
    pub entries: Entries,
}

impl Place {
    /// Packed rows, at an offset that suits vector loads.
    pub const fn packed(dtype: DType) -> Self {
        Place { dtype, transposed: false, lead: GUARD, pad: 0, entries: Entries::Apart(0) }
    }

    /// An odd offset and odd gaps: nothing is aligned.
    pub const fn odd(dtype: DType) -> Self {
        Place { dtype, transposed: false, lead: GUARD + 3, pad: 5, entries: Entries::Apart(3) }
    }

    /// The same, stored as the transpose if `transposed`.
    pub const fn transposed(self, transposed: bool) -> Self {
        Place { transposed, ..self }
    }

    /// The same, with other distances between batch entries.
    pub const fn entries(self, entries: Entries) -> Self {
        Place { entries, ..self }
    }

    /// Number of distinct entries stored for a batch.
    pub fn stored(&self, batch: usize) -> usize {
        match self.entries {
            Entries::Apart(_) | Entries::Between => batch,
            Entries::Stride0 | Entries::Single => 1,
        }
    }

    /// The operand in elements from the start of its buffer, whose length includes the guard bands.
    pub fn operand(&self, batch: usize, [rows, cols]: [usize; 2]) -> Operand {
        let (lines, width) = if self.transposed { (cols, rows) } else { (rows, cols) };
        let row = width + self.pad;
        let (ld, batch_stride) = match self.entries {
            Entries::Apart(gap) => (row, lines * row + gap),
            Entries::Between => (row * batch, row),
            Entries::Stride0 | Entries::Single => (row, 0),
        };
        // Room for a whole last row and gap, so that a view can be cut from it by shape alone.
        let len = self.lead + self.stored(batch) * batch_stride.max(lines * ld) + ld + GUARD;
        Operand {
            format: Format::Dense(self.dtype),
            transposed: self.transposed,
            offset: self.lead as u64,
            ld: ld as u64,
            batch_stride: batch_stride as u64,
            len: len.next_multiple_of(8) as u64,
        }
    }

    /// A view of `flat`, the whole buffer, as an operand: \[rows, cols\] without a batch.
    pub fn view(
        &self,
        context: &Context,
        flat: &Tensor,
        batch: Option<usize>,
        shape: [usize; 2],
    ) -> Result<Tensor> {
        let operand = self.operand(batch.unwrap_or(1), shape);
        let (ld, batch_stride) = (operand.ld as usize, operand.batch_stride as usize);
        let batch = batch.map(|batch| if self.entries == Entries::Single { 1 } else { batch });
        let inner = if self.transposed { [1, ld] } else { [ld, 1] };
        if context.is_cpu() {
            return self.cut(flat, batch, shape, [batch_stride, ld]);
        }
        let (shape, strides) = match batch {
            Some(batch) => {
                (vec![batch, shape[0], shape[1]], vec![batch_stride, inner[0], inner[1]])
            }
            None => (shape.to_vec(), inner.to_vec()),
        };
        of_buffer(context, flat, self.lead, &shape, &strides)
    }

    /// The same by slices and reshapes, which is all that there is without a buffer.
    fn cut(
        &self,
        flat: &Tensor,
        batch: Option<usize>,
        [rows, cols]: [usize; 2],
        [batch_stride, ld]: [usize; 2],
    ) -> Result<Tensor> {
        let (lines, width) = if self.transposed { (cols, rows) } else { (rows, cols) };
        let range = |count: usize| self.lead..self.lead + count;
        let view = match batch {
            None => flat
                .slice(std::slice::from_ref(&range(lines * ld)))?
                .reshape(&[lines, ld])?
                .slice(&[0..lines, 0..width])?,
            Some(batch) => {
                // Every entry is cut from whole rows: see `on_host`.
                let whole = if batch_stride == 0 { lines } else { batch_stride / ld.max(1) };
                let all = flat
                    .slice(std::slice::from_ref(&range(batch * whole * ld)))?
                    .reshape(&[batch, whole, ld])?;
                all.slice(&[0..batch, 0..lines, 0..width])?
            }
        };
        Ok(if self.transposed { view.t() } else { view })
    }

    /// The nearest place that slices of a tensor on the host can express.
    pub fn on_host(self) -> Self {
        let entries = match self.entries {
            Entries::Apart(_) | Entries::Between => Entries::Apart(0),
            Entries::Stride0 | Entries::Single => Entries::Single,
        };
        Place { entries, ..self }
    }
}

/// A view of the buffer of `flat` from element `first` on.
pub fn of_buffer(
    context: &Context,
    flat: &Tensor,
    first: usize,
    shape: &[usize],
    strides: &[usize],
) -> Result<Tensor> {
    let (buffer, start) = flat.buffer().expect("a tensor on a GPU");
    let first = start + first as u64 * flat.dtype().bytes();
    Tensor::from_buffer(context, buffer.clone(), first, flat.dtype(), shape, strides)
}
