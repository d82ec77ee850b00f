//! Findings for people.

use super::{Finding, Kind, Label, Place, Report};
use crate::Shader;
use codespan_reporting::diagnostic::Diagnostic;

pub(super) fn render(report: &Report, shader: &Shader, color: bool) -> String {
    if report.findings.is_empty() {
        return String::new();
    }
    let text = shader.text();
    let mut out = String::new();
    for finding in &report.findings {
        let (labels, mut notes) =
            text.labels(finding.labels.iter().map(|label| (label.span.clone(), label_text(label))));
        notes.extend(occurrences(finding));
        notes.extend(finding.notes.iter().map(|note| format!("note: {note}")));
        let diagnostic = Diagnostic::error()
            .with_code(finding.kind)
            .with_message(&finding.message)
            .with_labels(labels)
            .with_notes(notes);
        out.push_str(&text.render(&diagnostic, color));
        if !out.ends_with("\n\n") {
            out.push('\n');
        }
    }
    out + &summary(report) + "\n"
}

/// Text of a label: the event, and the invocation unless the text names it.
fn label_text(Label { text, place, .. }: &Label) -> String {
    // The text of an access is in the passive, `is read here`, and takes a `by`; other texts are
    // complete sentences.
    let access =
        ["read here", "written here", "atomically here"].iter().any(|access| text.contains(access));
    match place {
        Some(place) if !text.contains("invocation (") => {
            format!("{text}{} {}", if access { " by" } else { ":" }, who(*place))
        }
        _ => text.clone(),
    }
}

fn who(Place { workgroup, local }: Place) -> String {
    format!("invocation {} of workgroup {}", triple(local), triple(workgroup))
}

fn triple([x, y, z]: [u32; 3]) -> String {
    format!("({x}, {y}, {z})")
}

fn occurrences(finding: &Finding) -> Option<String> {
    (finding.occurrences > 1)
        .then(|| format!("note: the same at these places {} times", finding.occurrences))
}

/// One line, such as `3 findings: 2 race, 1 out-of-bounds; 4 more are not shown`.
fn summary(report: &Report) -> String {
    let of_kind = |kind: Kind| {
        let count = report.findings.iter().filter(|finding| finding.kind == kind).count();
        (count > 0).then(|| format!("{count} {kind}"))
    };
    let kinds: Vec<String> = Kind::ALL.into_iter().filter_map(of_kind).collect();
    let found = report.findings.len();
    let plural = if found == 1 { "" } else { "s" };
    let dropped = match report.dropped {
        0 => String::new(),
        1 => "; 1 more is not shown".to_owned(),
        more => format!("; {more} more are not shown"),
    };
    format!("{found} finding{plural}: {}{dropped}", kinds.join(", "))
}

#[cfg(test)]
mod tests {
    use super::samples::{SOURCE, race, shader, span};
    use super::*;

    fn rendered(findings: Vec<Finding>) -> String {
        render(&Report { findings, ..Report::default() }, &shader(), false)
    }

    #[test]
    fn a_clean_report_is_empty() {
        assert_eq!(rendered(vec![]), "");
    }

    #[test]
    fn both_sides_of_a_race_in_the_manner_of_rustc() {
        let expected = "\
error[race]: two invocations write `tile` and nothing orders them
  --> sample.wgsl:4:5
  |
4 |     tile[i / 2u] = i;
  |     ^^^^^^^^^^^^ `tile[1]` is written here by invocation (3, 0, 0) of workgroup (0, 1, 0)
5 |     data[i] = tile[i];
  |               ------- `tile[1]` was read here before by invocation (2, 0, 0) of workgroup \
      (0, 1, 0)
  |
  = note: the same at these places 32 times
  = note: a workgroupBarrier() between them orders them

1 finding: 1 race
";
        assert_eq!(rendered(vec![race()]), expected);
    }

    #[test]
    fn labels_without_a_span_are_notes() {
        let finding = Finding {
            kind: Kind::NeverWritten,
            message: "4 bytes of `data` are never written".to_owned(),
            labels: vec![Label { span: None, text: "element 3".to_owned(), place: None }],
            notes: vec![],
            variable: Some("data".to_owned()),
            occurrences: 1,
        };
        let expected = "\
error[never-written]: 4 bytes of `data` are never written
 = note: element 3

1 finding: 1 never-written
";
        assert_eq!(rendered(vec![finding]), expected);
    }

    #[test]
    fn who_is_said_once() {
        let mut finding = race();
        finding.labels[0].text = "written by invocation (3, 0, 0)".to_owned();
        let shown = rendered(vec![finding]);
        assert!(shown.contains("^ written by invocation (3, 0, 0)\n"), "{shown}");
    }

    #[test]
    fn who_fits_the_sentence() {
        let mut finding = race();
        finding.labels[0].text = "the divisor is 0".to_owned();
        let shown = rendered(vec![finding]);
        assert!(
            shown.contains("^ the divisor is 0: invocation (3, 0, 0) of workgroup (0, 1, 0)\n"),
            "{shown}"
        );
    }

    #[test]
    fn the_summary_counts_kinds_in_order() {
        let bounds = Finding { kind: Kind::OutOfBounds, ..race() };
        let report =
            Report { findings: vec![bounds, race(), race()], dropped: 4, ..Report::default() };
        assert_eq!(summary(&report), "3 findings: 2 race, 1 out-of-bounds; 4 more are not shown");
    }

    #[test]
    fn colour_adds_only_escapes() {
        let report = Report { findings: vec![race()], ..Report::default() };
        let plain = render(&report, &shader(), false);
        let colored = render(&report, &shader(), true);
        assert!(!plain.contains('\u{1b}') && colored.contains("\u{1b}[0m"));
        let mut stripped = String::new();
        for (index, piece) in colored.split('\u{1b}').enumerate() {
            stripped.push_str(if index == 0 { piece } else { piece.split_once('m').unwrap().1 });
        }
        assert_eq!(stripped, plain);
    }

    #[test]
    fn conflicts_across_parts_show_both() {
        let at = SOURCE.find("data[i]").unwrap();
        let parts = [("body.wgsl".to_owned(), at..at + "data[i] = tile[i];".len())];
        let shader = Shader::parse_parts(SOURCE, &parts).unwrap();
        let mut finding = race();
        finding.labels[1].span = Some(span("tile[i];"));
        let report = Report { findings: vec![finding], ..Report::default() };
        let shown = report.render(&shader, false);
        assert!(shown.contains("--> generated:4:5"), "{shown}");
        assert!(
            shown.contains("--> body.wgsl:1:11") && shown.contains("1 | data[i] = tile[i];"),
            "{shown}"
        );
    }
}

/// Findings made by hand, for tests.
#[cfg(test)]
pub(super) mod samples {
    use super::*;
    use std::ops::Range;

    pub(in crate::report) const SOURCE: &str = "\
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    tile[i / 2u] = i;
    data[i] = tile[i];
}
";

    pub(in crate::report) fn shader() -> Shader {
        Shader::parse("sample.wgsl", SOURCE).unwrap()
    }

    /// The bytes of the first occurrence of `piece`, less a final semicolon.
    pub(in crate::report) fn span(piece: &str) -> Range<usize> {
        let start = SOURCE.find(piece).unwrap();
        start..start + piece.trim_end_matches(';').len()
    }

    pub(in crate::report) fn race() -> Finding {
        let place = |x| Some(Place { workgroup: [0, 1, 0], local: [x, 0, 0] });
        Finding {
            kind: Kind::Race,
            message: "two invocations write `tile` and nothing orders them".to_owned(),
            labels: vec![
                Label {
                    span: Some(span("tile[i / 2u]")),
                    text: "`tile[1]` is written here".to_owned(),
                    place: place(3),
                },
                Label {
                    span: Some(span("tile[i];")),
                    text: "`tile[1]` was read here before".to_owned(),
                    place: place(2),
                },
            ],
            notes: vec!["a workgroupBarrier() between them orders them".to_owned()],
            variable: Some("tile".to_owned()),
            occurrences: 32,
        }
    }
}
