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
    /// The pass's file, and the one that knows the groups.
    files: [&'static str; 2],
    start: u64,
    groups: u64,
    /// Whether passes take their number of workgroups from it.
    counts: bool,
}

/// Entries behind those of the groups, which hold the number of workgroups of a mainloop.
const COUNT: u64 = 2;

impl GroupTable {
    /// Bytes for a group: the ends of its rows and of its tiles, or the end of its range of K.
    pub(super) const ENTRY: u64 = 8;

    /// Places the table behind the packed operands. Gives none if the schedule reads no table.
    pub(super) fn new(piece: &Piece, setup: &Setup, packed_bytes: u64) -> Option<Self> {
        Some(GroupTable {
            files: [setup.kit.table?, setup.schedule.table?],
            start: packed_bytes.next_multiple_of(ALIGNMENT),
            groups: piece.first_group + piece.problem.entries(),
            counts: setup.schedule.spares_idle,
        })
    }

    /// Start and length in bytes.
    pub(super) fn place(self) -> [u64; 2] {
        [self.start, (self.groups + COUNT) * Self::ENTRY]
    }

    /// The first byte of the number of workgroups, for passes that take it from the table.
    pub(super) fn workgroups(self) -> Option<u64> {
        self.counts.then_some(self.start + self.groups * Self::ENTRY)
    }

    /// Bytes of the memory for packed operands up to its end.
    pub(super) fn end(self) -> u64 {
        let [start, bytes] = self.place();
        start + bytes
    }

    /// The pass that makes the table, for a `reader` with tiles of this shape.
    pub(super) fn pass(
        self,
        piece: &Piece,
        whole: Grouping,
        caps: &Caps,
        setup: &Setup,
        [bm, bn]: [u32; 2],
        reader: &Params,
    ) -> Pass {
        let threads = THREADS.min(caps.max_threads());
        let own = params(piece, setup);
        let Params { tiles_n, splits, grid_x, .. } = *reader;
        let (params, bm) = match piece.problem.grouping.has_whole_k() {
            true if self.counts => (Params { tiles_n, splits, ..own }, bm),
            // The table counts the columns of each product of a list.
            false if self.counts => (Params { tiles_n: 1, splits: 1, ..own }, bm),
            true => (own, bm),
            // Ranges of K end as rows do, and no piece cuts them. The tile counts of this table are
            // not read.
            false => (Params { m: own.k, first_row: 0, ..own }, 1),
        };
        let mut builder =
            Builder::new("groups".into(), params, threads, 4 * threads, (setup.kit, setup.windows));
        builder.table(whole, self);
        let [pass, groups] = self.files;
        builder.part(groups, None, Vec::new());
        if whole.is_listed() {
            builder.constant(("BN", bn));
        }
        let follow = u32::from(!self.counts);
        builder.part(pass, None, vec![("BM", bm), ("FOLLOW", follow), ("THREADS", threads)]);
        let mut pass = builder.finish(1, caps);
        // This pass is one workgroup and does not read the width of its grid.
        pass.params.grid_x = if self.counts { grid_x } else { 1 };
        pass
    }
}
