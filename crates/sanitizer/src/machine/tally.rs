//! Counting. Costs of all invocations are added once for all; costs of some are added one by one.

use super::mask::Mask;
use crate::{Counters, Measure};

/// Counters of an invocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Count {
    GlobalReads,
    GlobalWrites,
    GlobalReadBytes,
    GlobalWriteBytes,
    UniformReads,
    SharedReads,
    SharedWrites,
    SharedReadBytes,
    SharedWriteBytes,
    Atomics,
    Arithmetic,
    Barriers,
}

const KINDS: usize = Count::Barriers as usize + 1;

/// The counts of one workgroup.
pub(super) struct Tally {
    full: Mask,
    everyone: [u64; KINDS],
    single: Vec<[u64; KINDS]>,
    pub(super) operations: u64,
    pub(super) read_transactions: u64,
    pub(super) write_transactions: u64,
    pub(super) bank_conflicts: u64,
}

impl Tally {
    pub(super) fn new(invocations: usize) -> Self {
        Tally {
            full: Mask::first(invocations),
            everyone: [0; KINDS],
            single: vec![[0; KINDS]; invocations],
            operations: 0,
            read_transactions: 0,
            write_transactions: 0,
            bank_conflicts: 0,
        }
    }

    pub(super) fn add(&mut self, kind: Count, mask: &Mask, amount: u64) {
        if *mask == self.full {
            self.everyone[kind as usize] += amount;
        } else {
            mask.lanes().for_each(|lane| self.single[lane][kind as usize] += amount);
        }
    }

    /// Adds this workgroup's counts to a run's.
    pub(super) fn add_to(&self, counters: &mut Counters) {
        let measure = |kind: Count| {
            let of = |lane: &[u64; KINDS]| self.everyone[kind as usize] + lane[kind as usize];
            Measure {
                total: self.single.iter().map(of).sum(),
                max: self.single.iter().map(of).max().unwrap_or(0),
            }
        };
        let fields = [
            (&mut counters.global_reads, Count::GlobalReads),
            (&mut counters.global_writes, Count::GlobalWrites),
            (&mut counters.global_read_bytes, Count::GlobalReadBytes),
            (&mut counters.global_write_bytes, Count::GlobalWriteBytes),
            (&mut counters.uniform_reads, Count::UniformReads),
            (&mut counters.shared_reads, Count::SharedReads),
            (&mut counters.shared_writes, Count::SharedWrites),
            (&mut counters.shared_read_bytes, Count::SharedReadBytes),
            (&mut counters.shared_write_bytes, Count::SharedWriteBytes),
            (&mut counters.atomics, Count::Atomics),
            (&mut counters.arithmetic, Count::Arithmetic),
            (&mut counters.barriers, Count::Barriers),
        ];
        for (field, kind) in fields {
            let here = measure(kind);
            field.total += here.total;
            field.max = field.max.max(here.max);
        }
        counters.invocations += self.single.len() as u64;
        counters.operations += self.operations;
        counters.read_transactions += self.read_transactions;
        counters.write_transactions += self.write_transactions;
        counters.bank_conflicts += self.bank_conflicts;
    }
}
