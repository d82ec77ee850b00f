//! Scores: what the busiest thread did, what it may do and what it must do.

use std::fmt::Write;
use tilewise_sanitizer::Counters;

/// Names of the counters, in the order of a [`Score`].
pub(crate) const COUNTED: [&str; 4] =
    ["global reads", "global writes", "shared reads", "shared writes"];

/// For each counter of [`COUNTED`], the most that one thread does: loads and stores of storage,
/// loads and stores of workgroup memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Score(pub(crate) [u64; 4]);

impl Score {
    /// The score that a run reached.
    pub(crate) fn of(counters: &Counters) -> Score {
        let Counters { global_reads, global_writes, shared_reads, shared_writes, .. } = counters;
        Score([global_reads.max, global_writes.max, shared_reads.max, shared_writes.max])
    }

    /// The worse of two, counter by counter.
    pub(crate) fn worse(self, other: Score) -> Score {
        Score(std::array::from_fn(|counter| self.0[counter].max(other.0[counter])))
    }

    /// The counters of [`COUNTED`] in which the score is over `target`.
    pub(crate) fn over(self, target: Score) -> impl Iterator<Item = usize> {
        (0..COUNTED.len()).filter(move |&counter| self.0[counter] > target.0[counter])
    }

    /// The counters of [`COUNTED`] in which the score is under `least`.
    pub(crate) fn under(self, least: Score) -> impl Iterator<Item = usize> {
        least.over(self)
    }
}

/// A case in the table.
pub(crate) struct Column {
    /// Its name.
    pub(crate) name: String,
    /// The score that was reached.
    pub(crate) reached: Score,
    /// The most that is allowed.
    pub(crate) target: Score,
    /// The least that is asked for.
    pub(crate) least: Score,
}

/// The table of scores: a line for each counter, a column for each case.
pub(crate) fn table(columns: &[Column]) -> String {
    let width = |name: &str| name.chars().count().max("12 of 12, under".len());
    let mut text = format!("{:<15}", "most per thread");
    for Column { name, .. } in columns {
        let _ = write!(text, "  {name:<0$}", width(name));
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    for (counter, counted) in COUNTED.iter().enumerate() {
        let mut line = format!("{counted:<15}");
        for Column { name, reached, target, least } in columns {
            let (reached, target, least) =
                (reached.0[counter], target.0[counter], least.0[counter]);
            let verdict = match reached {
                _ if reached > target => ", over",
                _ if reached < least => ", under",
                _ => "",
            };
            let cell = format!("{reached} of {target}{verdict}");
            let _ = write!(line, "  {cell:<0$}", width(name));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn over_target() {
        let (reached, target) = (Score([3, 1, 0, 2]), Score([1, 1, 0, 1]));
        assert_eq!(reached.over(target).collect::<Vec<_>>(), [0, 3]);
        assert_eq!(target.over(reached).count(), 0);
        assert_eq!(target.under(Score([0, 0, 1, 1])).collect::<Vec<_>>(), [2]);
        assert_eq!(reached.under(Score::default()).count(), 0);
        assert_eq!(reached.worse(Score([0, 4, 0, 0])), Score([3, 4, 0, 2]));
    }

    #[test]
    fn a_line_for_each_counter() {
        let text = table(&[Column {
            name: "SIZE = 8".to_owned(),
            reached: Score([3, 1, 0, 0]),
            target: Score([1, 1, 3, 1]),
            least: Score([0, 0, 0, 1]),
        }]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "most per thread  SIZE = 8",
                "global reads     3 of 1, over",
                "global writes    1 of 1",
                "shared reads     0 of 3",
                "shared writes    0 of 1, under",
            ]
        );
    }
}
