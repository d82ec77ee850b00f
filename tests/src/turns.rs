//! Work by turns: each commit does another part of the work that takes too long for every run.

use crate::Case;
use std::env;

/// Which of `turns` parts is to be done: the number `TILEWISE_TURN` decides, which `cargo xtask
/// test` takes from the commit. None, that is all parts, where it is not set.
///
/// # Panics
/// When it is no number.
pub fn turn(turns: usize) -> Option<usize> {
    let number = env::var("TILEWISE_TURN").ok().filter(|number| !number.is_empty())?;
    let number: usize =
        number.parse().unwrap_or_else(|why| panic!("TILEWISE_TURN={number}: {why}"));
    Some(number % turns)
}

/// A third of the cases, if there are many, by turns.
pub fn some(cases: &[Case]) -> Vec<Case> {
    of(cases.iter().cloned(), if cases.len() > MANY { 3 } else { 1 }).collect()
}

/// Cases that are run whatever the turn.
const MANY: usize = 100;

/// Every so many-th entry of a list, from the one whose turn it is.
pub fn of<T>(entries: impl IntoIterator<Item = T>, turns: usize) -> impl Iterator<Item = T> {
    let (from, step) = turn(turns).map_or((0, 1), |turn| (turn, turns));
    entries.into_iter().skip(from).step_by(step)
}

/// Like [`of`], for each group of entries that have one name and follow each other: one at least.
pub fn of_each<T: Clone>(entries: &[T], name: impl Fn(&T) -> &str, turns: usize) -> Vec<T> {
    let groups = entries.chunk_by(|a, b| name(a) == name(b));
    groups.flat_map(|group| of(group.iter().cloned(), turns.min(group.len()))).collect()
}
