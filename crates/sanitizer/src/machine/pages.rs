//! Shadows of storage buffers: sparse, because a workgroup touches little of a large buffer.

use super::shadow::{Cell, Touch};
use crate::program::SiteId;

/// Locations of one page.
const PAGE: u32 = 256;

/// The invocation that first touched a location in one way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Toucher {
    pub(super) workgroup: u32,
    pub(super) lane: u32,
    pub(super) site: SiteId,
}

/// The first access of each way, indexed by `Touch`.
pub(super) type Summary = [Option<Toucher>; 4];

struct Page {
    cells: Vec<Cell>,
    summaries: Vec<Summary>,
}

/// The locations of a buffer that one workgroup touched.
#[derive(Default)]
pub(super) struct Pages {
    /// For each page of the buffer: its index in `pages` plus one, or 0.
    table: Vec<u32>,
    pages: Vec<Page>,
}

impl Pages {
    pub(super) fn cell(&mut self, location: u32) -> (&mut Cell, &mut Summary) {
        let number = (location / PAGE) as usize;
        if self.table.len() <= number {
            self.table.resize(number + 1, 0);
        }
        if self.table[number] == 0 {
            self.pages.push(Page {
                cells: vec![Cell::default(); PAGE as usize],
                summaries: vec![Summary::default(); PAGE as usize],
            });
            self.table[number] = self.pages.len() as u32;
        }
        let page = &mut self.pages[self.table[number] as usize - 1];
        let at = (location % PAGE) as usize;
        (&mut page.cells[at], &mut page.summaries[at])
    }

    /// Whether this workgroup has written the location.
    pub(super) fn written(&self, location: u32) -> bool {
        let page = self.table.get((location / PAGE) as usize).copied().unwrap_or(0);
        page != 0 && {
            let summary = &self.pages[page as usize - 1].summaries[(location % PAGE) as usize];
            summary[Touch::Write as usize].is_some()
                || summary[Touch::AtomicWrite as usize].is_some()
        }
    }

    /// Every touched page's first location and summaries, in ascending order.
    pub(super) fn summaries(&self) -> impl Iterator<Item = (u32, &[Summary])> {
        let touched = self.table.iter().enumerate().filter(|(_, index)| **index != 0);
        touched.map(|(number, index)| {
            (number as u32 * PAGE, &self.pages[*index as usize - 1].summaries[..])
        })
    }
}

/// The summaries of all workgroups so far, merged.
#[derive(Default)]
pub(super) struct Merged {
    pages: Vec<Option<Box<[Summary]>>>,
}

impl Merged {
    pub(super) fn get(&self, location: u32) -> Option<&Summary> {
        let page = self.pages.get((location / PAGE) as usize)?.as_ref()?;
        Some(&page[(location % PAGE) as usize])
    }

    pub(super) fn entry(&mut self, location: u32) -> &mut Summary {
        let number = (location / PAGE) as usize;
        if self.pages.len() <= number {
            self.pages.resize(number + 1, None);
        }
        let page = self.pages[number]
            .get_or_insert_with(|| vec![Summary::default(); PAGE as usize].into());
        &mut page[(location % PAGE) as usize]
    }
}
