//! Shadows: for each location of memory, the accesses from which races are found.
//!
//! Two accesses race when they touch one location, at least one writes, at least one is not atomic,
//! they come from different invocations, and no barrier lies between them. For each location the
//! last plain write, two plain reads and two atomic accesses suffice to find a race wherever there
//! is one. Of three or more concurrent readers two are kept, from different subgroups if possible:
//! a writer that races with any of the readers races with at least one of these two.

use crate::program::SiteId;

/// One access.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Stamp {
    /// Barriers of the workgroup passed before the access; 0 for no access. They count over the
    /// machine's life, so nothing must be cleared between workgroups.
    pub(super) epoch: u32,
    /// Barriers of the subgroup passed before the access.
    pub(super) sub_epoch: u32,
    pub(super) lane: u32,
    pub(super) site: SiteId,
    /// Whether an atomic access may have written.
    pub(super) writes: bool,
    /// Whether the access is part of a cooperative matrix: `lane` is then consistent among such
    /// accesses, but does not name an invocation.
    pub(super) cooperative: bool,
}

impl Stamp {
    fn exists(&self) -> bool {
        self.epoch != 0
    }
}

/// Accesses of one location that later accesses may race with.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    write: Stamp,
    reads: [Stamp; 2],
    atomics: [Stamp; 2],
}

/// How a location is touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Touch {
    Read,
    Write,
    AtomicRead,
    AtomicWrite,
}

impl Touch {
    pub(super) fn writes(self) -> bool {
        matches!(self, Touch::Write | Touch::AtomicWrite)
    }

    pub(super) fn is_atomic(self) -> bool {
        matches!(self, Touch::AtomicRead | Touch::AtomicWrite)
    }

    /// Participle in findings: "read", "written", ...
    pub(super) fn verb(self) -> &'static str {
        match self {
            Touch::Read => "read",
            Touch::Write => "written",
            Touch::AtomicRead => "read atomically",
            Touch::AtomicWrite => "changed atomically",
        }
    }
}

impl Cell {
    /// Records an access and returns an earlier one that it races with.
    pub(super) fn touch(
        &mut self,
        touch: Touch,
        now: Stamp,
        subgroup_size: u32,
    ) -> Option<(Touch, Stamp)> {
        let unordered = |before: &Stamp| {
            before.exists()
                && (before.lane != now.lane || before.cooperative != now.cooperative)
                && before.epoch == now.epoch
                && (before.lane / subgroup_size != now.lane / subgroup_size
                    || before.sub_epoch >= now.sub_epoch)
        };
        let mut found = unordered(&self.write).then_some((Touch::Write, self.write));
        if found.is_none() && touch.writes() {
            found = self.reads.iter().find(|read| unordered(read)).map(|&read| (Touch::Read, read));
        }
        if found.is_none() && !touch.is_atomic() {
            let conflicts =
                |atomic: &&Stamp| unordered(atomic) && (atomic.writes || touch.writes());
            let kind =
                |stamp: Stamp| if stamp.writes { Touch::AtomicWrite } else { Touch::AtomicRead };
            found = self.atomics.iter().find(conflicts).map(|&atomic| (kind(atomic), atomic));
        }
        match touch {
            Touch::Write => self.write = now,
            Touch::Read => keep(&mut self.reads, now, subgroup_size),
            Touch::AtomicRead | Touch::AtomicWrite => keep(&mut self.atomics, now, subgroup_size),
        }
        found
    }
}

/// Keeps two accesses out of many: an access that is unordered with any of them is unordered with
/// one of the two.
fn keep(kept: &mut [Stamp; 2], now: Stamp, subgroup_size: u32) {
    let same_subgroup = |a: &Stamp, b: &Stamp| a.lane / subgroup_size == b.lane / subgroup_size;
    // An access before the last barrier, of the workgroup or of the same subgroup, is superseded.
    // So is an access of the same invocation, unless it wrote and the new one does not.
    for old in kept.iter_mut() {
        let superseded = old.epoch != now.epoch
            || same_subgroup(old, &now) && old.sub_epoch < now.sub_epoch
            || old.lane == now.lane
                && old.cooperative == now.cooperative
                && (now.writes || !old.writes);
        if superseded {
            *old = Stamp::default();
        }
    }
    let [first, second] = kept;
    if !first.exists() {
        *first = now;
    } else if !second.exists() {
        *second = now;
    } else if now.writes && !first.writes {
        *first = now;
    } else if now.writes && !second.writes
        || same_subgroup(first, second) && !same_subgroup(first, &now)
    {
        *second = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(lane: u32, epoch: u32, sub_epoch: u32) -> Stamp {
        Stamp { epoch, sub_epoch, lane, ..Stamp::default() }
    }

    fn race(accesses: &[(Touch, Stamp)]) -> Option<(Touch, u32)> {
        let mut cell = Cell::default();
        accesses
            .iter()
            .filter_map(|&(touch, stamp)| {
                cell.touch(touch, Stamp { writes: touch.writes(), ..stamp }, 4)
            })
            .last()
            .map(|(touch, stamp)| (touch, stamp.lane))
    }

    #[test]
    fn plain_accesses() {
        use Touch::{Read, Write};
        assert_eq!(race(&[(Write, at(0, 1, 0)), (Write, at(0, 1, 0))]), None);
        assert_eq!(race(&[(Write, at(0, 1, 0)), (Write, at(1, 1, 0))]), Some((Write, 0)));
        assert_eq!(race(&[(Write, at(0, 1, 0)), (Read, at(1, 2, 0))]), None);
        assert_eq!(
            race(&[(Read, at(0, 1, 0)), (Read, at(1, 1, 0)), (Write, at(0, 1, 0))]),
            Some((Read, 1))
        );
        assert_eq!(race(&[(Read, at(0, 1, 0)), (Read, at(9, 1, 0)), (Read, at(5, 1, 0))]), None);
    }

    #[test]
    fn subgroup_barriers_order_one_subgroup_only() {
        use Touch::{Read, Write};
        assert_eq!(race(&[(Write, at(0, 1, 0)), (Read, at(1, 1, 1))]), None);
        assert_eq!(race(&[(Write, at(0, 1, 0)), (Read, at(4, 1, 1))]), Some((Write, 0)));
        // The first reader is superseded, the last one still counts.
        assert_eq!(
            race(&[(Read, at(0, 1, 0)), (Read, at(1, 1, 1)), (Write, at(6, 1, 0))]),
            Some((Read, 1))
        );
    }

    #[test]
    fn atomics_race_with_plain_accesses_only() {
        use Touch::{AtomicRead, AtomicWrite, Read, Write};
        assert_eq!(race(&[(AtomicWrite, at(0, 1, 0)), (AtomicWrite, at(1, 1, 0))]), None);
        assert_eq!(
            race(&[(AtomicWrite, at(0, 1, 0)), (Read, at(1, 1, 0))]),
            Some((AtomicWrite, 0))
        );
        assert_eq!(race(&[(AtomicRead, at(0, 1, 0)), (Read, at(1, 1, 0))]), None);
        assert_eq!(race(&[(AtomicRead, at(0, 1, 0)), (Write, at(1, 1, 0))]), Some((AtomicRead, 0)));
        // A lane's own atomic does not hide another's.
        let own = [(AtomicWrite, at(0, 1, 0)), (AtomicWrite, at(1, 1, 0)), (Read, at(1, 1, 0))];
        assert_eq!(race(&own), Some((AtomicWrite, 0)));
    }
}
