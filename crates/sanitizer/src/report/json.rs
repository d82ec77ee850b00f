//! Findings for programs.

use super::{Finding, Label, Report};
use crate::Shader;
use serde_json::{Value, json};

pub(super) fn to_json(report: &Report, shader: &Shader) -> String {
    let findings: Vec<Value> = report.findings.iter().map(|found| finding(found, shader)).collect();
    json!({ "findings": findings, "dropped": report.dropped, "counters": report.counters })
        .to_string()
}

fn finding(finding: &Finding, shader: &Shader) -> Value {
    json!({
        "kind": finding.kind.name(),
        "message": finding.message,
        "variable": finding.variable,
        "occurrences": finding.occurrences,
        "notes": finding.notes,
        "labels": finding.labels.iter().map(|found| label(found, shader)).collect::<Vec<_>>(),
    })
}

/// The JSON of a label. `start` and `end` are bytes of `file`; unknown values are null.
fn label(Label { span, text, place }: &Label, shader: &Shader) -> Value {
    let at = span.clone().and_then(|span| shader.text().position(span));
    json!({
        "text": text,
        "file": at.as_ref().map(|at| &at.file),
        "line": at.as_ref().map(|at| at.line),
        "column": at.as_ref().map(|at| at.column),
        "start": at.as_ref().map(|at| at.range.start),
        "end": at.as_ref().map(|at| at.range.end),
        "workgroup": place.map(|place| place.workgroup),
        "invocation": place.map(|place| place.local),
    })
}

#[cfg(test)]
mod tests {
    use super::super::human::samples::{SOURCE, race, shader};
    use super::*;
    use crate::{Counters, Measure};

    #[test]
    fn a_race_in_full() {
        let mut found = race();
        found.labels[1].span = None;
        found.labels[1].place = None;
        let counters =
            Counters { shared_reads: Measure { total: 64, max: 1 }, ..Counters::default() };
        let report = Report { findings: vec![found], dropped: 2, counters, ..Report::default() };
        let value: Value = serde_json::from_str(&report.to_json(&shader())).unwrap();
        let start = SOURCE.find("tile[i / 2u]").unwrap();
        let nothing = Value::Null;
        assert_eq!(
            value["findings"],
            json!([{
                "kind": "race",
                "message": "two invocations write `tile` and nothing orders them",
                "variable": "tile",
                "occurrences": 32,
                "notes": ["a workgroupBarrier() between them orders them"],
                "labels": [
                    { "text": "`tile[1]` is written here",
                      "file": "sample.wgsl", "line": 4, "column": 5,
                      "start": start, "end": start + 12,
                      "workgroup": [0, 1, 0], "invocation": [3, 0, 0] },
                    { "text": "`tile[1]` was read here before",
                      "file": nothing, "line": nothing, "column": nothing,
                      "start": nothing, "end": nothing,
                      "workgroup": nothing, "invocation": nothing },
                ],
            }])
        );
        assert_eq!(value["dropped"], 2);
        assert_eq!(value["counters"]["shared_reads"], json!({ "total": 64, "max": 1 }));
        assert_eq!(value["counters"]["bank_conflicts"], 0);
    }

    #[test]
    fn spans_of_a_part_count_from_its_beginning() {
        let start = SOURCE.find("tile[i / 2u]").unwrap();
        let shader =
            Shader::parse_parts(SOURCE, &[("body".to_owned(), start..start + 17)]).unwrap();
        let report = Report { findings: vec![race()], ..Report::default() };
        let value: Value = serde_json::from_str(&report.to_json(&shader)).unwrap();
        let label = &value["findings"][0]["labels"][0];
        assert_eq!(
            (&label["file"], &label["line"], &label["start"]),
            (&json!("body"), &json!(1), &json!(0))
        );
    }

    #[test]
    fn a_clean_report_has_no_findings() {
        let value: Value = serde_json::from_str(&Report::default().to_json(&shader())).unwrap();
        assert_eq!(value["findings"], json!([]));
    }
}
