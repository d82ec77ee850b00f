//! Takes elements of a table: all of them, which decodes a quantized table, or rows and columns by
//! index. If one binding does not hold them, the table is cut along entries and rows.

use super::builder::Builder;
use super::table::{Table, excess, workgroups};
use super::{Pass, check, piece::Window};
use crate::caps::Caps;
use crate::error::{Error, Result};
use crate::kernel::{Access, Conversions, OperandDef};
use crate::params::Params;
use crate::problem::{DType, Format, Grouping, Operand};
use crate::role::Role;

/// Invocations of a workgroup, at most.
const THREADS: u32 = 64;

/// Blocks that an invocation copies if nothing is converted.
const EACH: u32 = 2;

/// Indices of rows or columns, u32.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Index {
    /// The place of the first index in its storage.
    pub offset: u64,
    /// Words from one index to the next.
    pub step: u64,
    /// How many there are.
    pub count: u64,
    /// Elements of the storage, from its start.
    pub len: u64,
}

/// Elements of a table, copied to a contiguous output \[entries, rows, columns\].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Take {
    /// The table.
    pub table: Table,
    /// Which rows; without it, all. An index beyond the table gives [`beyond`](Self::beyond).
    pub rows: Option<Index>,
    /// Which columns; without it, all.
    pub columns: Option<Index>,
    /// Whether an index beyond the table gives zeros.
    pub zeros: bool,
    /// Type of the output. A table of integers keeps its type.
    pub dtype: DType,
    /// The place of the output's first element in its storage.
    pub offset: u64,
    /// Elements of that storage, from its start.
    pub len: u64,
    /// Whether a table or an index lies in the buffer of the output ([`Pass::beside_c`]).
    pub beside_c: bool,
}

impl Take {
    /// Entries, rows and columns of the output.
    pub fn shape(&self) -> [u64; 3] {
        let Table { entries, rows, columns, .. } = self.table;
        let count = |index: Option<Index>, all| index.map_or(all, |index| index.count);
        [entries, count(self.rows, rows), count(self.columns, columns)]
    }

    /// The bits that an index beyond the table gives, of f32 for floats: 0 if zeros are asked for;
    /// otherwise NaN, or the integer farthest from 0, which is no index either.
    pub const fn beyond(&self) -> u32 {
        match self.dtype {
            _ if self.zeros => 0,
            DType::F32 | DType::F16 | DType::BF16 => f32::NAN.to_bits(),
            DType::I32 => i32::MIN as u32,
            DType::U32 => u32::MAX,
        }
    }

    fn output(&self) -> Table {
        let [entries, rows, columns] = self.shape();
        let mut output = Table::packed(Format::Dense(self.dtype), entries, rows, columns);
        (output.operand.offset, output.operand.len) = (self.offset, self.len);
        output
    }

    /// This copy, with strides that play no part set to 0.
    ///
    /// # Errors
    /// [`Shape`](crate::Error), `Unsupported` if no device can compute it.
    pub fn checked(&self) -> Result<Self> {
        let mut checked = *self;
        let own = self.table.operand.format;
        let is_float = own.element().is_none_or(DType::is_float);
        if own.element() != Some(self.dtype) && !(is_float && self.dtype.is_float()) {
            return Err(Error::Unsupported(format!(
                "a table of {own} cannot be taken as {}: integers keep their type",
                self.dtype
            )));
        }
        checked.table = self.table.checked("the table")?;
        let output = self.output();
        output.elements().ok_or_else(|| {
            Error::Shape(format!("overflow: an output of {:?} elements", self.shape()))
        })?;
        output.checked("the output")?;
        for (name, index) in
            [("row indices", &mut checked.rows), ("column indices", &mut checked.columns)]
        {
            let Some(index) = index else { continue };
            if index.count <= 1 {
                index.step = 0;
            }
            let last = index.count.saturating_sub(1).checked_mul(index.step);
            let last = last
                .and_then(|last| last.checked_add(index.offset))
                .filter(|last| *last < check::MAX_DIMENSION);
            let last = last.ok_or_else(|| {
                Error::Shape(format!("overflow: {name} pass {}", check::MAX_DIMENSION))
            })?;
            if index.count > 0 && last >= index.len {
                return Err(Error::buffer_too_small(name, last + 1, index.len));
            }
        }
        Ok(checked)
    }
}

/// The passes that take. Their alpha may be replaced by a quantized table's factor.
///
/// # Errors
/// The errors of [`Take::checked`]; [`DeviceLimit`](crate::Error) if a row or the indices do not
/// fit a binding of this device, or it binds too few storage buffers.
pub fn take(take: &Take, caps: &Caps, tools: &Conversions) -> Result<Vec<Pass>> {
    let take = take.checked()?;
    let mut passes = Vec::new();
    if !take.shape().contains(&0) {
        let bound = take.table.rows;
        cut(Piece { take, first: 0, bound }, caps, &mut |piece| {
            passes.push(Pass { beside_c: take.beside_c, ..pass(piece, caps, tools)? });
            Ok(())
        })?;
    }
    bound(&passes, caps)?;
    Ok(passes)
}

/// Fails with `DeviceLimit` if a pass binds more storage buffers than the device does.
pub(super) fn bound(passes: &[Pass], caps: &Caps) -> Result<()> {
    let most = caps.max_storage_buffers as usize;
    match passes.iter().find(|pass| pass.bindings.len() > most) {
        Some(Pass { label, bindings, .. }) => Err(Error::DeviceLimit(format!(
            "{label} binds {} storage buffers, and the limit of the device is {most} \
             (max_storage_buffers_per_shader_stage)",
            bindings.len()
        ))),
        None => Ok(()),
    }
}

/// A piece of the output, taken from the rows that one pass binds.
#[derive(Clone, Copy)]
struct Piece {
    take: Take,
    first: u64,
    bound: u64,
}

impl Piece {
    fn table(&self) -> Table {
        self.take.table.rows_in(self.first..self.first + self.bound)
    }

    /// Two halves: of entries, or of rows. None for one row of one entry.
    fn halves(&self, of_output: bool) -> Option<[Piece; 2]> {
        let Piece { take, first, bound } = *self;
        let [entries, rows, columns] = take.shape();
        let of_bound = entries <= 1 && take.rows.is_some() && !of_output;
        let whole = match entries {
            2.. => entries,
            _ if of_bound => bound,
            _ => rows,
        };
        let half = Some(whole / 2).filter(|half| *half > 0)?;
        Some([0..half, half..whole].map(|range| {
            let (start, count) = (range.start, range.end - range.start);
            if of_bound {
                return Piece { take, first: first + start, bound: count };
            }
            let offset = take.offset + start * columns * if entries > 1 { rows } else { 1 };
            match take.rows {
                _ if entries > 1 => {
                    let table = take.table.entries_in(range);
                    Piece { take: Take { table, offset, ..take }, ..*self }
                }
                Some(index) => {
                    let place = index.offset + start * index.step;
                    let rows = Some(Index { offset: place, count, ..index });
                    Piece { take: Take { rows, offset, ..take }, ..*self }
                }
                None => {
                    let table = take.table.rows_in(range);
                    Piece { take: Take { table, offset, ..take }, first: 0, bound: count }
                }
            }
        }))
    }
}

/// Calls `each` with pieces that fit the device's bindings, in their order.
fn cut(piece: Piece, caps: &Caps, each: &mut impl FnMut(&Piece) -> Result<()>) -> Result<()> {
    let (table, output) =
        (piece.table().excess("the table", caps), piece.take.output().excess("the output", caps));
    let indices = [("row indices", piece.take.rows), ("column indices", piece.take.columns)];
    let index = indices.into_iter().find_map(|(name, index)| {
        let index = index?;
        excess(
            name,
            Format::Dense(DType::U32),
            index.offset + index.count.saturating_sub(1) * index.step + 1,
            caps,
        )
    });
    if let Some(error) = index {
        return Err(error);
    }
    let of_output = output.is_some();
    let Some(error) = output.or(table) else { return each(&piece) };
    let halves = piece.halves(of_output).ok_or(error)?;
    halves.into_iter().try_for_each(|half| cut(half, caps, each))
}

fn pass(piece: &Piece, caps: &Caps, tools: &Conversions) -> Result<Pass> {
    let Piece { take, first, bound } = *piece;
    let [entries, m, n] = take.shape();
    let (source, operand) = piece.table().bound(caps);
    let (target, c) = take.output().bound(caps);
    let mut windows = [Window::default(); Role::COUNT];
    (windows[Role::B as usize], windows[Role::C as usize]) = (source, target);
    // Rows are copied in blocks if nothing is converted.
    let block = block_of(take, &operand, c.offset);
    let per = block.unwrap_or(1);
    let invocations = match block {
        Some(per) => entries * m * n / per,
        None => (c.offset + entries * m * n).div_ceil(4) - c.offset / 4,
    };
    let each = if block.is_some() { EACH } else { 1 };
    let threads = THREADS.min(caps.max_threads());
    let workgroups = workgroups(invocations, threads * each, caps)?;
    let step = |index: Option<Index>| {
        index.map_or([0; 2], |index| [index.offset as u32, index.step as u32])
    };
    let ([row_offset, row_step], [column_offset, column_step]) =
        (step(take.rows), step(take.columns));
    let params = Params {
        m: m as u32,
        n: (n / per) as u32,
        k: take.table.columns as u32,
        entries: entries as u32,
        b_offset: (operand.offset / per) as u32,
        b_ld: (operand.ld / per) as u32,
        b_batch: (operand.batch_stride / per) as u32,
        c_offset: (c.offset / per) as u32,
        alpha: 1f32.to_bits(),
        shares: invocations as u32,
        first_row: first as u32,
        row_offset,
        row_step,
        column_offset,
        column_step,
        table_rows: take.table.rows as u32,
        bound_rows: bound as u32,
        ..Params::default()
    };
    let mut builder = Builder::new("take".into(), params, threads, 0, (tools.kit, windows));
    let c_bytes = [target.start, target.elements].map(|elements| elements * take.dtype.bytes());
    if block.is_none() {
        source_bits(&mut builder, "b", Role::B, &operand, tools, caps)?;
        builder.axes("b", !operand.transposed);
    }
    builder.bases(Grouping::Batched);
    indices(&mut builder, take, tools);
    if block.is_some() {
        copied(&mut builder, take, &operand, c_bytes, tools);
        return Ok(builder.finish(None, workgroups, caps));
    }
    builder.part(tools.put, None, vec![("C_TYPE", take.dtype.number())]);
    builder.bind(Role::C, true, c_bytes, DType::U32.bytes());
    let fours = [n, c.offset].iter().all(|number| number.is_multiple_of(4));
    let fours = fours && take.columns.is_none() && !operand.transposed;
    builder.part(
        tools.take,
        None,
        vec![("THREADS", threads), ("FOURS", u32::from(fours)), ("BEYOND", take.beyond())],
    );
    Ok(builder.finish(None, workgroups, caps))
}

/// Adds the rows and columns to take: all of them, or by index.
fn indices(builder: &mut Builder, take: Take, tools: &Conversions) {
    for (name, role, index) in
        [("row", Role::RowIndex, take.rows), ("column", Role::ColumnIndex, take.columns)]
    {
        let Some(Index { offset, step, count, .. }) = index else {
            continue;
        };
        builder.part(tools.index, Some(name), vec![("X_BINDING", role.binding())]);
        let words = offset + count.saturating_sub(1) * step + 1;
        builder.bind(role, false, [0, words * DType::U32.bytes()], DType::U32.bytes());
    }
}

/// Adds the copy of whole blocks of the table.
fn copied(
    builder: &mut Builder,
    take: Take,
    operand: &Operand,
    c_bytes: [u64; 2],
    tools: &Conversions,
) {
    let window = builder.window(Role::B, operand.format, &operand.format.planes()[0]);
    builder.bind(Role::B, false, window, BLOCK_BYTES);
    builder.bind(Role::C, true, c_bytes, BLOCK_BYTES);
    let beyond = match take.dtype {
        _ if take.zeros => 0,
        DType::F16 => 0x7e00_7e00,
        DType::BF16 => 0x7fc0_7fc0,
        DType::F32 | DType::I32 | DType::U32 => take.beyond(),
    };
    let binding = Role::B.binding();
    let sizes = [("THREADS", builder.pass.threads), ("EACH", EACH)];
    let constants = sizes.into_iter().chain([("B_BINDING", binding), ("BEYOND", beyond)]);
    let constants = constants.collect();
    builder.part(tools.take_rows, None, constants);
}

/// Bytes of a block, which is copied if nothing is converted.
const BLOCK_BYTES: u64 = 16;

/// Elements of a block, if rows of table and output have one type and lie in whole blocks.
fn block_of(take: Take, operand: &Operand, c_offset: u64) -> Option<u64> {
    let size = BLOCK_BYTES / take.dtype.bytes();
    let same = operand.format == Format::Dense(take.dtype);
    let places = [take.table.columns, operand.offset, operand.ld, operand.batch_stride, c_offset];
    let whole = places.iter().all(|place| place.is_multiple_of(size));
    (same && whole && !operand.transposed && take.columns.is_none()).then_some(size)
}

/// Adds a loader that gives the bits of elements.
pub(super) fn source_bits(
    builder: &mut Builder,
    name: &'static str,
    role: Role,
    operand: &Operand,
    tools: &Conversions,
    caps: &Caps,
) -> Result<()> {
    let format = match operand.format {
        Format::Dense(dtype) => {
            builder.part(
                tools.exact,
                Some(name),
                vec![("X_BINDING", role.binding()), ("X_TYPE", dtype.number())],
            );
            let window = builder.window(role, operand.format, &operand.format.planes()[0]);
            builder.bind(role, false, window, DType::U32.bytes());
            return Ok(());
        }
        Format::Quantized(format) => format,
    };
    let loads = |o: &&OperandDef| (o.accepts)(operand.format, caps) && o.provides(Access::Elements);
    let loader = tools.kit.operands.iter().find(loads);
    let loader = loader.ok_or_else(|| Error::DeviceLimit(format!("no loader for {format}")))?;
    builder.load(name, role, Some(loader), Some(operand));
    let factor = format.def().factor_of.is_some() || format.divided_plane().is_some();
    builder.part(tools.decoded, Some(name), vec![("X_FACTOR", u32::from(factor))]);
    Ok(())
}
