//! Schedules: how workgroups find their tile.

use super::Kit;
use crate::problem::Grouping;

/// How workgroups find their tile.
#[derive(Clone, Copy)]
pub struct ScheduleDef {
    /// Its file.
    pub file: &'static str,
    /// The file that says what each entry has: rows, a range of K, or a product. Absent: an entry
    /// has all rows and all of K, or the schedule's own file says what it has.
    pub extents: Option<&'static str>,
    /// The file that gives the first element of an entry of each operand. Absent: one stride of
    /// each operand gives it, or the schedule's own file does.
    pub bases: Option<&'static str>,
    /// Whether it serves this grouping, which says how many tiles, operands and segments there are.
    pub serves: fn(Grouping) -> bool,
    /// Whether its file shares the groups among lanes ([`Kit::lanes`]).
    pub lanes: bool,
    /// The file by which the pass [`Kit::table`] makes the table of groups that it reads; none if
    /// it reads the grouping's operands itself.
    pub table: Option<&'static str>,
    /// Whether it is taken only if its table takes less time than the idle workgroups that it
    /// spares; another schedule serves the same groupings.
    pub spares_idle: bool,
    /// Whether workgroups without a tile come last, so that a fixed number of workgroups can stride
    /// over all tiles.
    pub strides: bool,
    /// The files that tell a pass that divides lines by powers of two which range of K shares them.
    /// Absent: all of K.
    pub powers: &'static [&'static str],
    /// The file that tells a pass that packs A how many rows of an entry to pack. Absent: all rows.
    pub wanted: Option<&'static str>,
    /// Whether its file has the constant `RETURNS_EARLY`, which is true in texts for matrix units.
    pub returns_early: bool,
}

/// Files by which 32 invocations of a workgroup, its lanes, tell each other numbers.
#[derive(Clone, Copy)]
pub struct Lanes {
    /// Through workgroup memory.
    pub shared: &'static str,
    /// Bytes of workgroup memory that they take.
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
        self.schedule_for(grouping, false)
    }

    /// The schedule for a grouping; if `idle`, it may be one that spares workgroups without a tile.
    pub fn schedule_for(&self, grouping: Grouping, idle: bool) -> Option<&'static ScheduleDef> {
        let serves = |one: &&ScheduleDef| (one.serves)(grouping) && (idle || !one.spares_idle);
        self.schedules.iter().find(serves)
    }
}
