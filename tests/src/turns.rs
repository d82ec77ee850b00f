//! Work by turns: each commit does another part of the work that takes too long for every run.

use crate::Case;
use std::env;

/// The part of the work that is to be done, of `turns` parts. The number in `TILEWISE_TURN`
/// decides; `cargo xtask test` takes it from the commit. None, which means all parts, if it is not
/// set.
///
/// # Panics
/// When the number is invalid.
pub fn turn(turns: usize) -> Option<usize> {
    let number = env::var("TILEWISE_TURN").ok().filter(|number| !number.is_empty())?;
    let number: usize =
        number.parse().unwrap_or_else(|why| panic!("TILEWISE_TURN={number}: {why}"));
    Some(number % turns)
}

/// The cases; if there are many, a third of them by turns.
pub fn some(cases: &[Case]) -> Vec<Case> {
    of(cases.iter().cloned(), if cases.len() > MANY { 3 } else { 1 }).collect()
}

/// Most cases that always run whole.
const MANY: usize = 100;

/// One of every `turns` entries of a list, from the one whose turn it is.
pub fn of<T>(entries: impl IntoIterator<Item = T>, turns: usize) -> impl Iterator<Item = T> {
    let (from, step) = turn(turns).map_or((0, 1), |turn| (turn, turns));
    entries.into_iter().skip(from).step_by(step)
}

/// Like [`of`], for each group of neighbouring entries that have one name. Each group gives at
/// least one.
pub fn of_each<T: Clone>(entries: &[T], name: impl Fn(&T) -> &str, turns: usize) -> Vec<T> {
    let groups = entries.chunk_by(|a, b| name(a) == name(b));
    groups.flat_map(|group| of(group.iter().cloned(), turns.min(group.len()))).collect()
}
