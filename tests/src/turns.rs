//! Work by turns: what takes too long for every run, a part of it at each commit.

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

/// Every so many-th entry of a list, from the one whose turn it is.
pub fn of<T>(entries: impl IntoIterator<Item = T>, turns: usize) -> impl Iterator<Item = T> {
    let (from, step) = turn(turns).map_or((0, 1), |turn| (turn, turns));
    entries.into_iter().skip(from).step_by(step)
}
