//! A report as one page that needs nothing else, and its pictures as files.

use crate::plot::{self, THEMES, Theme};
use crate::report::{Report, Row};
use crate::{shapes, table};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::path::Path;

/// The page.
///
/// # Errors
/// The errors of the plotting library.
pub fn page(report: &Report, others: &[Report]) -> Result<String, String> {
    let mut sections = Vec::new();
    for (group, rows) in report.groups() {
        let bars = both(|theme| plot::bars(report, others, group, &rows, theme))?;
        sections.push(section(report, others, group, &rows, &bars));
    }
    let title = format!("{} on {}", report.label(), report.adapter);
    let roofline = both(|theme| plot::roofline(report, others, theme))?;
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(include_str!("report.css"))) }
            }
            body {
                h1 { (title) }
                (facts(report))
                @for other in others {
                    p { "Compared with " (other.title()) "." }
                }
                (roofline)
                @for section in &sections { (section) }
                @let notes = table::notes(report, others);
                @if !notes.is_empty() {
                    h2 { "Notes" }
                    ul { @for note in notes { li { (note) } } }
                }
                (method(report))
            }
        }
    };
    Ok(page.into_string())
}

/// Writes the roofline and each group's bars into a folder, as `roofline-light.svg`,
/// `roofline-dark.svg` and so on, and returns how many files there are.
///
/// # Errors
/// A text that names the file; the errors of the plotting library.
pub fn write_pictures(report: &Report, others: &[Report], folder: &Path) -> Result<usize, String> {
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut written = 0;
    for theme in &THEMES {
        let mut pictures = vec![("roofline", plot::roofline(report, others, theme)?)];
        for (group, rows) in report.groups() {
            pictures.push((group, plot::bars(report, others, group, &rows, theme)?));
        }
        for (name, picture) in pictures {
            let path = folder.join(format!("{name}-{}.svg", theme.name));
            std::fs::write(&path, picture)
                .map_err(|error| format!("{}: {error}", path.display()))?;
            written += 1;
        }
    }
    Ok(written)
}

/// A picture for light pages and one for dark pages; the style sheet shows the one that fits.
fn both(draw: impl Fn(&Theme) -> Result<String, String>) -> Result<Markup, String> {
    let drawn: Vec<(&str, String)> =
        THEMES.iter().map(|theme| Ok((theme.name, draw(theme)?))).collect::<Result<_, String>>()?;
    Ok(html! {
        figure { @for (name, picture) in drawn { div class=(name) { (PreEscaped(picture)) } } }
    })
}

fn facts(report: &Report) -> Markup {
    html! {
        dl {
            dt { "chip" } dd { (report.adapter) }
            dt { "interface" } dd { (report.backend) }
            dt { "driver" } dd { (report.driver) }
            dt { "commit" } dd { (report.commit) }
            dt { "date" } dd { (report.date) }
            dt { "ceilings" } dd { (report.ceilings()) }
        }
    }
}

fn section(
    report: &Report,
    others: &[Report],
    group: &str,
    rows: &[&Row],
    bars: &Markup,
) -> Markup {
    html! {
        h2 { (group) }
        p { (shapes::about(group)) }
        (bars)
        div.scroll {
            table {
                thead { tr { @for head in table::heads(report, others) { th { (head) } } } }
                tbody {
                    @for cells in table::cells(report, others, rows) {
                        tr { @for cell in cells { td { (cell) } } }
                    }
                }
            }
        }
    }
}

/// How the figures were measured.
fn method(report: &Report) -> Markup {
    let mut methods: Vec<&str> = report.rows.iter().map(|row| row.method.as_str()).collect();
    methods.sort_unstable();
    methods.dedup();
    html! {
        footer {
            p {
                "Shapes are M×N×K. Times are medians, spread is (greatest − least) / median. GB/s \
                 count A, B and C once. "
                "Speedup is the other's time divided by this one's. Operands are random, and \
                 rotate among sets that exceed the caches. "
                @for method in methods { (explain(method)) " " }
            }
        }
    }
}

fn explain(method: &str) -> &str {
    match method {
        "timestamps" => {
            "Times are between the device's timestamps at the two ends of a compute pass."
        }
        "difference" => {
            "Times are by the host's clock: the difference between submissions with many and with \
             one repetition."
        }
        "wallclock" => "Times are by the host's clock, on the CPU executor.",
        other => other,
    }
}
