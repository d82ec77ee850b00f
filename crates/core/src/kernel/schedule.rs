//! Schedules: how workgroups find their tile.

use super::Kit;
use crate::problem::Grouping;

/// How workgroups find their tile.
#[derive(Clone, Copy)]
pub struct ScheduleDef {
    /// Its file.
    pub file: &'static str,
    /// The files that give the end of an entry's rows and its range of K, if its file asks.
    pub extents: &'static [&'static str],
    /// The file that gives the first element of an entry of each operand; none in a language whose
    /// files do so themselves.
    pub bases: Option<&'static str>,
    /// Whether it serves this grouping, which says the rest: tiles, operands, segments.
    pub serves: fn(Grouping) -> bool,
    /// Whether its file shares the groups among lanes ([`Kit::lanes`]).
    pub lanes: bool,
    /// The file of the pass that makes the table which it reads in place of the grouping's
    /// operands; none if it reads these.
    pub table: Option<&'static str>,
    /// The files by which a pass that divides lines by powers of two knows what of an entry shares
    /// them; those of all of K share them unless ranges of K are summed.
    pub powers: &'static [&'static str],
    /// Whether its file has the numbers of a pass, of which each tile has some for itself.
    pub has_params: bool,
}

/// Files by which 32 invocations of a workgroup, its lanes, tell each other numbers.
#[derive(Clone, Copy)]
pub struct Lanes {
    /// Through workgroup memory.
    pub shared: &'static str,
    /// Bytes of it.
    pub shared_bytes: u32,
    /// In each subgroup, in mainloops for matrix units.
    pub subgroups: &'static str,
}

impl Kit {
    /// Bytes of workgroup memory that the schedule of a grouping takes. In mainloops for matrix
    /// units it takes none.
    pub fn schedule_bytes(&self, grouping: Grouping) -> u32 {
        let asks = self.schedule(grouping).is_some_and(|schedule| schedule.lanes);
        self.lanes.filter(|_| asks).map_or(0, |lanes| lanes.shared_bytes)
    }

    /// The schedule for a grouping.
    pub fn schedule(&self, grouping: Grouping) -> Option<&'static ScheduleDef> {
        self.schedules.iter().find(|schedule| (schedule.serves)(grouping))
    }
}
