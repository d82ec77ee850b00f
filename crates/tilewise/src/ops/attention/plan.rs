//! How the work of attention is shared out.

use super::Numbers;
use crate::kernel::Call;
use crate::ops::position::FAR;
use crate::ops::rows::{dispatch, group_size};
use crate::tensor::Tensor;
use tilewise_core::{Caps, CoopMatrix, DType, Error, Result};

/// Invocations of a workgroup.
const SIZE: u32 = 128;

/// The most rows of a workgroup.
const ROWS: usize = 8;

/// The most blocks of four elements of queries that a workgroup stages: half of the memory that
/// every device has.
const STAGED: usize = 512;

/// The most invocations that share a score.
const SHARE: usize = 8;

/// Keys that a workgroup takes at a time, if its invocations have no more than `TURNS` turns.
const KEYS: u32 = 64;
const TURNS: u32 = 4;

/// The most blocks of keys, and of values, that an invocation loads at once for a row.
const DEEP: u32 = 32;
const HELD: u32 = 8;

/// The most invocations that share a column of blocks when parts are joined.
const JOINED: usize = 8;

/// Workgroups that keep a large device busy.
const BUSY: usize = 512;

/// The fewest keys of a part, and the most keys that are not worth a second kernel.
const PART: usize = 16;
const ALONE: usize = 128;

/// The product of matrix units, and their subgroups. A workgroup has as many rows, takes as many
/// keys at a time, and has so much memory.
const UNIT: CoopMatrix = CoopMatrix { size: 16, operands: DType::F16, sums: DType::F32 };
const SUBGROUP: u32 = 32;
const BLOCK: u32 = 64;
const BYTES: u32 = 46 << 10;

/// The widest keys and values for which that memory is enough.
const WIDEST: usize = 128;

/// The fewest rows of a unit for which matrix units are worth it.
const FEWEST: usize = 32;

/// Whether matrix units compute a call with so many rows of a unit. The answer is one for all parts
/// of a call.
fn on_units(sizes: &Numbers, rows: usize, caps: &Caps) -> bool {
    let has = caps.coop.contains(&UNIT) && caps.f16 && caps.subgroup_size == Some(SUBGROUP);
    let fits = caps.max_workgroup_bytes >= BYTES && size(caps) == SIZE;
    let narrow = sizes.width.max(sizes.v_width) <= WIDEST;
    has && fits && narrow && sizes.halves && rows >= FEWEST
}

/// Invocations of a workgroup.
pub(super) fn size(caps: &Caps) -> u32 {
    group_size(caps).min(SIZE)
}

/// How the work is shared out.
pub(super) struct Plan {
    /// Whether matrix units multiply.
    pub(super) on_units: bool,
    size: u32,
    widths: [usize; 2],
    /// Blocks of four elements of a query, and of a value.
    blocks: u32,
    columns: u32,
    /// Rows of a workgroup, and their tiles in a unit.
    rows: u32,
    tiles: u32,
    /// Invocations that share a score.
    share: u32,
    /// Keys that the invocations have at once, and how often.
    lines: u32,
    turns: u32,
    /// Parts of the keys, and keys of a part.
    pub(super) parts: u32,
    span: u32,
    groups: u32,
}

impl Plan {
    /// The plan for these units and rows. `whole` gives the units and rows of the call of which
    /// they are a part: a part sums as the whole does.
    pub(super) fn new(
        sizes: &Numbers,
        [units, rows]: [usize; 2],
        whole: [usize; 2],
        caps: &Caps,
    ) -> Result<Self> {
        let size = size(caps);
        let [blocks, columns] = [sizes.width, sizes.v_width].map(|width| width.div_ceil(4));
        let on_units = on_units(sizes, whole[1], caps);
        let tile = match on_units {
            true => BLOCK as usize,
            false => whole[1].next_power_of_two().min(ROWS).min(power_below(STAGED / blocks)),
        };
        let tiles = rows.div_ceil(tile);
        let share = blocks.next_power_of_two().min(SHARE) as u32;
        let lines = size / share;
        let most = (KEYS / lines).clamp(1, TURNS);
        // The number of parts depends on shapes only: lengths on the device change nothing.
        let workgroups = whole[0].saturating_mul(whole[1].div_ceil(tile));
        let bytes = whole[0].saturating_mul(whole[1]).saturating_mul(16 * (columns + 1));
        let room = usize::try_from(caps.max_scratch_bytes).unwrap_or(usize::MAX) / bytes;
        let least = if on_units { 2 * BLOCK as usize } else { PART };
        let wanted = (BUSY / workgroups).min(sizes.keys / least).min(room);
        let wanted = if sizes.keys > ALONE { wanted.max(1) } else { 1 };
        let span = sizes.keys.div_ceil(wanted);
        // A part has all its keys in one step if that has room for them.
        let turns = match wanted {
            1 => most,
            _ => span.div_ceil(lines as usize).next_power_of_two().min(most as usize) as u32,
        };
        let step = if on_units { BLOCK } else { lines * turns };
        let span = span.next_multiple_of(step as usize);
        let parts = sizes.keys.div_ceil(span);
        let rows_of_parts = units.saturating_mul(rows).saturating_mul(parts);
        for (what, number, most) in [
            ("keys", sizes.keys, FAR),
            ("queries", sizes.queries, FAR),
            ("rows of keys", units.saturating_mul(sizes.keys), u32::MAX as usize),
            ("rows", rows_of_parts, u32::MAX as usize),
        ] {
            if number > most {
                return Err(Error::Shape(format!(
                    "overflow: attention: {number} {what}: kernels count to {most}"
                )));
            }
        }
        Ok(Plan {
            on_units,
            size,
            widths: [sizes.width, sizes.v_width],
            blocks: blocks as u32,
            columns: columns as u32,
            rows: tile as u32,
            tiles: tiles as u32,
            share,
            lines,
            turns,
            parts: parts as u32,
            span: span as u32,
            groups: (units * tiles * parts) as u32,
        })
    }

    /// Room for the sums of the parts of all rows, if there are several: weighted values, and a
    /// block with the largest score and the sum of weights.
    pub(super) fn room(&self, rows: usize, q: &Tensor) -> Result<Option<Tensor>> {
        let shape = [rows * self.parts as usize, 4 * (self.columns as usize + 1)];
        (self.parts > 1).then(|| Tensor::scratch(q.context(), DType::F32, &shape)).transpose()
    }

    /// Adds the same to the call that joins the parts of rows.
    pub(super) fn dispatch_join(&self, call: Call, rows: u32, caps: &Caps) -> Call {
        let size = group_size(caps);
        let lanes = power_below((size / self.columns) as usize).min(JOINED) as u32;
        let call = call
            .constant("SIZE", size)
            .constant("COLUMNS", self.columns)
            .constant("LANES", lanes)
            .value("rows", rows)
            .value("parts", self.parts);
        dispatch(call, rows, size, caps)
    }

    /// Adds to a call its grid, its workgroup, and the numbers that say how the work is shared.
    pub(super) fn dispatch(&self, call: Call, caps: &Caps) -> Call {
        let call = call
            .constant("SIZE", self.size)
            .constant("ROWS", self.rows)
            .constant("PARTS", self.parts > 1)
            .value("tiles", self.tiles)
            .value("parts", self.parts)
            .value("span", self.span);
        let call = if self.on_units { self.for_units(call) } else { self.for_vectors(call) };
        dispatch(call, self.groups, self.size, caps)
    }

    fn for_units(&self, call: Call) -> Call {
        let [width, v_width] = self.widths.map(|width| width as u32);
        call.constant("KEYS", BLOCK).constant("WIDTH", width).constant("V_WIDTH", v_width)
    }

    fn for_vectors(&self, call: Call) -> Call {
        let keys = self.lines * self.turns;
        let lanes = power_below((self.size / self.columns) as usize).min(keys as usize / 4) as u32;
        let load = self.rows * self.turns;
        let deep = DEEP / load.max(2 * self.turns);
        call.constant("BLOCKS", self.blocks)
            .constant("COLUMNS", self.columns)
            .constant("STAGED", (self.rows * self.blocks).max(self.size))
            .constant("SHARE", self.share)
            .constant("LINES", self.lines)
            .constant("TURNS", self.turns)
            .constant("AT_ONCE", self.turns.min(ROWS as u32 / self.rows))
            .constant("DEEP", deep.clamp(1, self.blocks.div_ceil(self.share)))
            .constant("LANES", lanes)
            .constant("HELD", (8 * HELD / load).clamp(4, HELD).min(keys / lanes))
            .constant("CHUNKS", (self.size / self.rows).min(8))
    }
}

/// The largest power of two that is no more than `number`, which is no 0.
fn power_below(number: usize) -> usize {
    1 << number.ilog2()
}
