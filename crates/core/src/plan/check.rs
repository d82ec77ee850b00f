//! Is this a product that can be computed here at all? Everything that does not depend on the kernel.

use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::problem::{Axis, Bias, Format, Grouping, Operand, Problem};

/// Largest M, N, K or batch: tile arithmetic in u32 must not wrap.
const MAX_DIMENSION: u64 = 1 << 31;

/// Checks everything about a product that does not depend on the kernel. Gives the problem with strides that play no part set to 0, so that nobody
/// asks whether they are aligned.
///
/// # Errors
/// `Shape`, `Strides`, `Misaligned`, `Overflow`, `BufferTooSmall`, `TooLarge`, `Unsupported`, with the numbers.
pub fn check(problem: &Problem, caps: &Caps) -> Result<Problem> {
    let Problem { m, n, k, batch, .. } = *problem;
    for (name, size) in
        [("M", m), ("N", n), ("K", k), ("the batch", batch), ("the number of groups", problem.entries())]
    {
        if size > MAX_DIMENSION {
            return Err(Error::Overflow(format!("{name} is {size}, at most {MAX_DIMENSION}")));
        }
    }
    if matches!(problem.grouping, Grouping::RaggedM { .. }) && batch != 1 {
        return Err(Error::Shape(format!("a grouped product has no batch, this one has {batch}")));
    }
    let entries = problem.entries();
    let mut normal = *problem;
    normal.a = operand("A", &problem.a, m, k, batch, caps)?;
    normal.b = operand("B", &problem.b, k, n, entries, caps)?;
    normal.c = operand("C", &problem.c, m, n, batch, caps)?;
    dense("A", &problem.a)?;
    dense("C", &problem.c)?;
    if problem.c.transposed {
        return Err(Error::Strides("C must run along N; compute the transpose instead, Cᵀ = Bᵀ·Aᵀ".into()));
    }
    if let Format::Quantized(format, _) = problem.b.format {
        quantized(&problem.b, k, format.group_size())?;
        format.supported()?;
    }
    no_overlap(&normal)?;
    if let Some(Bias { axis, operand: bias }) = problem.epilogue.bias {
        dense("bias", &bias)?;
        let length = match axis {
            Axis::N => n,
            Axis::M => m,
        };
        // One column of `length` rows: element i is at i·ld.
        let operand = operand("bias", &Operand { transposed: false, ..bias }, length, 1, entries, caps)?;
        normal.epilogue.bias = Some(Bias { axis, operand });
    }
    if let Some(residual) = problem.epilogue.residual {
        dense("residual", &residual)?;
        if residual.transposed {
            return Err(Error::Strides("the residual must run along N, as C does".into()));
        }
        normal.epilogue.residual = Some(operand("residual", &residual, m, n, batch, caps)?);
    }
    Ok(normal)
}

fn dense(name: &str, operand: &Operand) -> Result<()> {
    match operand.format {
        Format::Dense(_) => Ok(()),
        Format::Quantized(format, _) => Err(Error::Unsupported(format!("{name} in {format}; only B may be quantized"))),
    }
}

/// Elements from the start of the storage to the end of the operand.
pub(super) fn span(operand: &Operand, rows: u64, cols: u64, batch: u64) -> Option<u64> {
    let (rows, cols) = if operand.transposed { (cols, rows) } else { (rows, cols) };
    if rows == 0 || cols == 0 || batch == 0 {
        return Some(0);
    }
    let entries = operand.batch_stride.checked_mul(batch - 1)?;
    let lines = operand.ld.checked_mul(rows - 1)?;
    operand.offset.checked_add(entries)?.checked_add(lines)?.checked_add(cols)
}

fn operand(name: &'static str, operand: &Operand, rows: u64, cols: u64, batch: u64, caps: &Caps) -> Result<Operand> {
    if !operand.format.dtype().is_float() {
        return Err(Error::Unsupported(format!("{name} in {}; products take f32, f16 and bf16", operand.format)));
    }
    let needed = span(operand, rows, cols, batch).ok_or_else(|| {
        Error::Overflow(format!("{name} of {batch}×{rows}×{cols} with these strides passes 2^64 elements"))
    })?;
    if needed > operand.len {
        return Err(Error::BufferTooSmall { operand: name, needed, len: operand.len });
    }
    if needed > u32::MAX.into() {
        return Err(Error::Overflow(format!("{name} spans {needed} elements, kernels index at most {}", u32::MAX)));
    }
    let bytes = bytes(operand.format, needed);
    let limits =
        [(caps.max_binding_bytes, "max_storage_buffer_binding_size"), (caps.max_buffer_bytes, "max_buffer_size")];
    for (limit, which) in limits {
        if bytes > limit {
            return Err(Error::TooLarge { operand: name, bytes, limit, which });
        }
    }
    let lines = if operand.transposed { cols } else { rows };
    let mut normal = *operand;
    if lines <= 1 {
        normal.ld = 0;
    }
    if batch <= 1 {
        normal.batch_stride = 0;
    }
    if normal.ld > u32::MAX.into()
        || normal.batch_stride > u32::MAX.into()
        || (needed > 0 && normal.offset > u32::MAX.into())
    {
        return Err(Error::Overflow(format!(
            "{name}: offset {}, strides {} and {} must fit 32 bits",
            normal.offset, normal.ld, normal.batch_stride
        )));
    }
    Ok(normal)
}

/// Bytes of storage that `elements` take, to the next multiple of 4.
pub(super) fn bytes(format: Format, elements: u64) -> u64 {
    match format {
        Format::Dense(dtype) => (elements * dtype.bytes()).next_multiple_of(4),
        Format::Quantized(format, _) => (elements * format.bits()).div_ceil(32) * 4,
    }
}

fn quantized(b: &Operand, k: u64, group: u64) -> Result<()> {
    if !b.transposed {
        return Err(Error::Unsupported("a quantized B must be stored [N,K], its groups along K".into()));
    }
    if !k.is_multiple_of(group) {
        return Err(Error::Shape(format!("K = {k} is not a multiple of the group size {group}")));
    }
    for (name, value) in [("offset", b.offset), ("row stride", b.ld), ("batch stride", b.batch_stride)] {
        if !value.is_multiple_of(group) {
            return Err(Error::Misaligned(format!(
                "the {name} of a quantized B is {value}, not a multiple of its group size {group}"
            )));
        }
    }
    Ok(())
}

/// No two elements of C share a place: rows apart by at least N and entries by at least a matrix, or the other way round.
fn no_overlap(problem: &Problem) -> Result<()> {
    let Problem { m, n, batch, c, .. } = *problem;
    if m == 0 || n == 0 || batch == 0 {
        return Ok(());
    }
    let rows_apart = m == 1 || c.ld >= n;
    let entries_outside = batch == 1 || c.batch_stride >= (m - 1).saturating_mul(c.ld).saturating_add(n);
    let entries_apart = batch == 1 || c.batch_stride >= n;
    let rows_outside = m == 1 || c.ld >= (batch - 1).saturating_mul(c.batch_stride).saturating_add(n);
    if (rows_apart && entries_outside) || (entries_apart && rows_outside) {
        return Ok(());
    }
    Err(Error::Strides(format!(
        "elements of C overlap: {batch} entries {} apart, {m} rows {} apart, {n} columns",
        c.batch_stride, c.ld
    )))
}
