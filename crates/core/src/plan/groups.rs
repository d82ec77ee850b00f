//! A table of groups, which a pass makes before a mainloop that has many.

use super::Pass;
use super::build::params;
use super::builder::Builder;
use super::pack::ALIGNMENT;
use super::piece::Piece;
use super::setup::Setup;
use crate::caps::Caps;
use crate::params::Params;
use crate::problem::Grouping;

/// Invocations of the pass, at most.
const THREADS: u32 = 256;

/// Where a table lies in the memory for packed operands.
#[derive(Clone, Copy)]
pub(super) struct GroupTable {
    file: &'static str,
    start: u64,
    groups: u64,
}

impl GroupTable {
    /// Bytes for a group: the ends of its rows and of its tiles, or that of its range of K.
    pub(super) const ENTRY: u64 = 8;

    /// Places the table behind the packed operands. Gives none if the schedule reads no table.
    pub(super) fn new(piece: &Piece, setup: &Setup, packed_bytes: u64) -> Option<Self> {
        Some(GroupTable {
            file: setup.schedule.table?,
            start: packed_bytes.next_multiple_of(ALIGNMENT),
            groups: piece.first_group + piece.problem.entries(),
        })
    }

    /// Start and length in bytes.
    pub(super) fn place(self) -> [u64; 2] {
        [self.start, self.groups * Self::ENTRY]
    }

    /// Bytes of the memory for packed operands up to its end.
    pub(super) fn end(self) -> u64 {
        self.start + self.groups * Self::ENTRY
    }

    /// The pass that makes it, for tiles of `bm` rows.
    pub(super) fn pass(
        self,
        piece: &Piece,
        whole: Grouping,
        caps: &Caps,
        setup: &Setup,
        bm: u32,
    ) -> Pass {
        let threads = THREADS.min(caps.max_invocations).min(caps.max_workgroup_size_x);
        let own = params(piece, setup);
        let params = match piece.problem.grouping.has_whole_k() {
            true => own,
            // Ranges of K end as rows do, and no piece cuts them.
            false => Params { m: own.k, first_row: 0, ..own },
        };
        let mut builder =
            Builder::new("groups".into(), params, threads, 4 * threads, (setup.kit, setup.windows));
        builder.table(whole, self);
        builder.part(self.file, None, vec![("BM", bm), ("THREADS", threads)]);
        builder.finish(1, caps)
    }
}
