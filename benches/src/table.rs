//! A report as tables: the cells, and their text in Markdown.

use crate::compare::{counterpart, missing};
use crate::report::{Report, Row, figure};
use comfy_table::{CellAlignment, Table, presets::ASCII_MARKDOWN};

/// One column: its head, and a row's cell.
struct Column<'a> {
    head: String,
    cell: Box<dyn Fn(&Row) -> String + 'a>,
}

fn column<'a>(head: impl Into<String>, cell: impl Fn(&Row) -> String + 'a) -> Column<'a> {
    Column { head: head.into(), cell: Box::new(cell) }
}

fn columns<'a>(report: &'a Report, others: &'a [Report]) -> Vec<Column<'a>> {
    let mut columns = vec![
        column("shape", |row| row.shape.clone()),
        column("kernel", Row::ran),
        column("ms", |row| figure(row.ms, 4)),
        column("spread", |row| percent(row.spread, 1)),
        column("TFLOP/s", |row| figure(row.tflops, 4)),
        column("GB/s", |row| figure(row.gbs, 4)),
    ];
    if report.rows.iter().any(|row| row.roofline > 0.0) {
        columns.push(column("of roofline", |row| percent(row.roofline, 0)));
    }
    if report.near_best.is_some() {
        columns.push(column("best kernel", Row::best));
        columns.push(column("regret", |row| {
            row.regret.map_or_else(String::new, |regret| percent(regret, 1))
        }));
    }
    for other in others {
        let cell = move |row: &Row, show: &dyn Fn(&Row) -> String| {
            counterpart(row, other).map_or_else(String::new, show)
        };
        columns.push(column(format!("{}: ms", other.label()), move |row| {
            cell(row, &|found| figure(found.ms, 4))
        }));
        columns.push(column("speedup", move |row| {
            cell(row, &|found| format!("{:.2}×", found.ms / row.ms))
        }));
    }
    columns
}

fn percent(fraction: f64, digits: usize) -> String {
    format!("{:.digits$}%", 100.0 * fraction)
}

/// The heads of a report's columns, with those of the reports compared with it. The first two
/// columns are text, the others figures.
pub(crate) fn heads(report: &Report, others: &[Report]) -> Vec<String> {
    columns(report, others).into_iter().map(|column| column.head).collect()
}

/// The cells of some rows of `report` under its [`heads`].
pub(crate) fn cells(report: &Report, others: &[Report], rows: &[&Row]) -> Vec<Vec<String>> {
    let columns = columns(report, others);
    rows.iter().map(|row| columns.iter().map(|column| (column.cell)(row)).collect()).collect()
}

/// Notes below the rows: regret over all shapes, skipped shapes, and shapes that only one report
/// has.
pub(crate) fn notes(report: &Report, others: &[Report]) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(near) = report.near_best {
        notes.push(format!(
            "the planner's choice is within 10% of the best kernel on {} of the shapes",
            percent(near, 0)
        ));
    }
    notes.extend(
        report
            .skipped
            .iter()
            .map(|skipped| format!("skipped {}: {}", skipped.shape, skipped.reason)),
    );
    for other in others {
        for (one, another) in [(report, other), (other, report)] {
            let names = missing(one, another);
            if !names.is_empty() {
                notes.push(format!("only in {}: {}", one.label(), names.join(", ")));
            }
        }
    }
    notes
}

/// The report as text: a table in Markdown for each group. Each row stands beside the same shape of
/// `others`.
pub fn markdown(report: &Report, others: &[Report]) -> String {
    let mut out = format!("{}\nceilings: {}\n", report.title(), report.ceilings());
    for (group, rows) in report.groups() {
        let mut table = Table::new();
        table
            .load_style(ASCII_MARKDOWN)
            .set_header(heads(report, others))
            .add_rows(cells(report, others, &rows));
        for figures in table.column_iter_mut().skip(2) {
            figures.set_cell_alignment(CellAlignment::Right);
        }
        out += &format!("\n{group}\n\n{table}\n");
    }
    for note in notes(report, others) {
        out += &format!("\n{note}\n");
    }
    out
}
