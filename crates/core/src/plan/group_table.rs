//! Where a table of groups lies.

use super::packing::ALIGNMENT;
use super::piece::Piece;
use super::setup::Setup;

/// Where a table lies in the memory for packed operands.
#[derive(Clone, Copy)]
pub(super) struct GroupTable {
    /// The pass's file, and the one that knows the groups.
    pub(super) files: [&'static str; 2],
    start: u64,
    groups: u64,
    /// Whether passes take their number of workgroups from it.
    pub(super) counts: bool,
}

/// Entries behind those of the groups, which hold the number of workgroups of a mainloop.
const COUNT: u64 = 2;

impl GroupTable {
    /// Bytes for a group: the ends of its rows and of its tiles, or the end of its range of K.
    pub(super) const ENTRY: u64 = 8;

    /// Places the table behind the packed operands. Gives none if the schedule reads no table.
    pub(super) fn new(piece: &Piece, setup: &Setup, packed_bytes: u64) -> Option<Self> {
        Some(GroupTable {
            files: [setup.kit.table?, setup.scheduling.schedule.table?],
            start: packed_bytes.next_multiple_of(ALIGNMENT),
            groups: piece.first_group + piece.problem.entries(),
            counts: setup.scheduling.schedule.spares_idle,
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
}
