//! The elements of its operands that a case may touch.

use super::Job;
use super::ranges::Elements;
use std::ops::Range;
use tilewise_core::kernel::Role;
use tilewise_core::{Axis, Problem, Segment};
use tilewise_sanitizer::Buffer;

impl Job {
    fn segments(&self) -> Vec<Segment> {
        let Problem { m, k, batch, grouping, .. } = self.plan.problem;
        let groups = &self.filled.case.groups;
        grouping.segments([m, k], batch, groups.as_ref().map_or(&[], |groups| &groups.ends))
    }

    /// Rows of an entry of A and C that are used: rows up to the last end of a group. If one entry
    /// serves all, it is the first.
    pub(super) fn rows(&self, entry: u64) -> u64 {
        let own = self.segments().into_iter().filter(|segment| segment.entry == entry);
        own.map(|segment| segment.rows.end).max().unwrap_or(0)
    }

    /// The steps along K that are used: steps up to the last end.
    pub(super) fn steps(&self) -> u64 {
        self.segments().into_iter().map(|segment| segment.k.end).max().unwrap_or(0)
    }

    /// The elements of an operand of each product of a list, in whole vectors of `vector` elements;
    /// and the vector at `idle`, which matrix units read if there is nothing to do.
    pub(super) fn listed(&self, role: Role, vector: u64, idle: Option<u64>) -> Vec<Elements> {
        let numbers = self.filled.case.groups.as_ref().map_or(&[][..], |groups| &groups.ends);
        let all = self.plan.problem.listed(numbers).into_iter().map(|one| {
            let (operand, shape) = match role {
                Role::A => (one.a, [one.m, one.k]),
                Role::C => (one.c, [one.m, one.n]),
                _ => (one.b, if one.m == 0 { [0, 0] } else { [one.k, one.n] }),
            };
            let all = Elements::new(operand, 0, vec![operand.offset], shape);
            Elements { width: all.width.next_multiple_of(vector), ..all }
        });
        let Problem { a, b, .. } = self.plan.problem;
        let own = if role == Role::A { a } else { b };
        let idle = idle
            .map(|first| Elements { width: vector, ..Elements::new(own, 0, vec![first], [1, 1]) });
        all.chain(idle).collect()
    }

    /// The elements of an operand, with `rows` rows of each entry if it is A or goes with C, and
    /// with `k` steps along K.
    pub(super) fn elements(&self, role: Role, rows: impl Fn(u64) -> u64, k: u64) -> Vec<Elements> {
        let problem = &self.plan.problem;
        if problem.grouping.traits().listed {
            return self.listed(role, 1, None);
        }
        let (n, batch, entries) = (problem.n, problem.batch, problem.entries());
        // Groups of rows share the only entry of A and C.
        let rows =
            |entry: u64| rows(if !problem.grouping.traits().shares_rows { entry } else { 0 });
        let elements = |operand, entries: u64, shape: &dyn Fn(u64) -> [u64; 2]| {
            let mut alike: Vec<([u64; 2], Vec<u64>)> = Vec::new();
            for entry in 0..entries {
                let (own, first) = (shape(entry), problem.entry(&operand, entry).offset);
                match alike.iter_mut().find(|(shape, _)| *shape == own) {
                    Some((_, firsts)) => firsts.push(first),
                    None => alike.push((own, vec![first])),
                }
            }
            let each = |(shape, firsts)| Elements::new(operand, role.plane(), firsts, shape);
            alike.into_iter().map(each).collect()
        };
        match role {
            Role::A if problem.gathered.is_some() => {
                elements(problem.a, 1, &|_| [problem.stored_rows(), k])
            }
            Role::A => elements(problem.a, batch, &|entry| [rows(entry), k]),
            Role::C => {
                let columns = n / problem.epilogue.columns();
                elements(problem.c, batch, &|entry| [rows(entry), columns])
            }
            Role::Residual => {
                let residual = problem.epilogue.residual.unwrap_or(problem.c);
                elements(residual, batch, &|entry| [rows(entry), n])
            }
            Role::Bias => {
                let bias = problem.epilogue.bias.expect("a bias is bound only where there is one");
                let length = |entry| if bias.axis == Axis::M { rows(entry) } else { n };
                elements(bias.operand, entries, &|entry| [length(entry), 1])
            }
            _ => elements(problem.b, entries, &|_| [k, n]),
        }
    }
}

/// Declares all elements as the logical range of `buffer`.
pub(super) fn declare(all: &[Elements], buffer: Buffer, words: bool, bound: &Range<u64>) -> Buffer {
    // If there are no elements, nothing may be touched.
    let buffer = if all.is_empty() { buffer.range(0..0) } else { buffer };
    all.iter().fold(buffer, |buffer, elements| elements.declare(buffer, words, bound))
}
