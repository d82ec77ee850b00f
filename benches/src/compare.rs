//! Reports side by side: matching shapes, and regressions against earlier runs.

use crate::report::{Report, Row};
use tilewise::Precision;

/// A shape that takes longer than in an earlier run.
#[derive(Clone, Debug, PartialEq)]
pub struct Regression {
    /// Name of the shape.
    pub shape: String,
    /// Label of the earlier run.
    pub earlier: String,
    /// Milliseconds: now, and then.
    pub ms: [f64; 2],
}

impl std::fmt::Display for Regression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Regression { shape, earlier, ms: [now, before] } = self;
        let longer = 100.0 * (now / before - 1.0);
        write!(f, "{shape}: {now:.4} ms, {before:.4} ms in {earlier} ({longer:+.1}%)")
    }
}

/// The row of the same shape in another report; the fastest if the shape was measured more than
/// once.
pub fn counterpart<'a>(row: &Row, other: &'a Report) -> Option<&'a Row> {
    let same = other.rows.iter().filter(|candidate| candidate.key() == row.key());
    same.min_by(|a, b| a.ms.total_cmp(&b.ms))
}

/// Whether `other` is an earlier run of the same library, and not a peer: then the names before the
/// version are equal.
pub fn is_earlier_run(report: &Report, other: &Report) -> bool {
    let name = |report: &Report| report.library.split_whitespace().next().map(str::to_owned);
    name(report) == name(other)
}

/// Shapes that take more than `percent` longer than in an earlier run. Peers do not count.
pub fn regressions(report: &Report, others: &[Report], percent: f64) -> Vec<Regression> {
    let mut found: Vec<Regression> = Vec::new();
    for other in others.iter().filter(|other| is_earlier_run(report, other)) {
        for row in &report.rows {
            // If several kernels were forced for one shape, the fastest of them counts.
            let fastest = counterpart(row, report).unwrap_or(row);
            let Some(before) = counterpart(row, other) else { continue };
            if fastest.ms > before.ms * (1.0 + percent / 100.0) {
                let regression = Regression {
                    shape: row.shape.clone(),
                    earlier: other.label(),
                    ms: [fastest.ms, before.ms],
                };
                // A shape may be in two groups.
                if !found.contains(&regression) {
                    found.push(regression);
                }
            }
        }
    }
    found
}

/// How many shapes `other` has with another precision only, which `report` in turn lacks. Also
/// returns both precisions of the first such shape, in `report` and in `other`.
pub fn other_precisions(report: &Report, other: &Report) -> Option<(usize, [String; 2])> {
    let named = |row: &Row| match row.precision.as_str() {
        "" => Precision::F32.name().to_owned(),
        less => less.to_owned(),
    };
    let alone = |row: &&Row| counterpart(row, report).is_none();
    let found = report.rows.iter().filter(|row| counterpart(row, other).is_none());
    let found: Vec<_> = found
        .filter_map(|row| {
            let same = |there: &&Row| there.but_precision() == row.but_precision();
            let there = other.rows.iter().filter(alone).find(same)?;
            Some([named(row), named(there)])
        })
        .collect();
    Some((found.len(), found.into_iter().next()?))
}

/// Names of the shapes of `one` that `other` lacks.
pub fn missing<'a>(one: &'a Report, other: &Report) -> Vec<&'a str> {
    let mut names: Vec<&str> = one
        .rows
        .iter()
        .filter(|row| counterpart(row, other).is_none())
        .map(|row| row.shape.as_str())
        .collect();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(library: &str, times: &[(usize, f64)]) -> Report {
        let row = |&(m, ms): &(usize, f64)| Row {
            shape: format!("{m}x1x1"),
            m,
            n: 1,
            k: 1,
            batch: 1,
            ms,
            ..Row::default()
        };
        Report {
            library: library.into(),
            rows: times.iter().map(row).collect(),
            ..Report::default()
        }
    }

    #[test]
    fn only_an_earlier_run_regresses() {
        let now = report("tilewise", &[(1, 1.0), (2, 1.09), (3, 1.2), (4, 5.0)]);
        let before = report("tilewise 0.1", &[(1, 1.0), (2, 1.0), (3, 1.0), (5, 1.0)]);
        let peer = report("torch 2", &[(1, 0.1)]);
        let found = |percent| {
            regressions(&now, &[peer.clone(), before.clone()], percent)
                .into_iter()
                .map(|r| r.shape)
                .collect::<Vec<_>>()
        };
        assert_eq!(found(10.0), ["3x1x1"]);
        assert_eq!(found(5.0), ["2x1x1", "3x1x1"]);
        assert_eq!(found(20.1), [""; 0]);
        assert_eq!(
            (missing(&now, &before), missing(&before, &now)),
            (vec!["4x1x1"], vec!["5x1x1"])
        );
    }

    #[test]
    fn shapes_that_differ_in_the_precision_alone_are_told() {
        let with = |precisions: &[&str]| {
            let mut report = report("tilewise", &vec![(1, 1.0); precisions.len()]);
            for (row, precision) in report.rows.iter_mut().zip(precisions) {
                row.precision = (*precision).into();
            }
            report
        };
        for (here, there, count, words) in [
            (&["f16-sums"][..], &[""][..], 1, ["f16-sums", "f32"]),
            (&["", ""], &["split-f32"], 2, ["f32", "split-f32"]),
            (&["", "split-f32"], &[""], 0, [""; 2]),
            (&[""], &["", "split-f32"], 0, [""; 2]),
        ] {
            let found = other_precisions(&with(here), &with(there));
            let expected = (count > 0).then(|| (count, words.map(str::to_owned)));
            assert_eq!(found, expected, "{here:?} {there:?}");
        }
        let other = report("tilewise", &[(2, 1.0)]);
        assert_eq!(other_precisions(&with(&["f16-sums"]), &other), None);
    }

    #[test]
    fn the_fastest_of_a_shape_speaks_for_it() {
        let now = report("tilewise", &[(1, 3.0), (1, 1.0)]);
        assert!(regressions(&now, &[report("tilewise", &[(1, 2.0), (1, 1.0)])], 10.0).is_empty());
    }
}
