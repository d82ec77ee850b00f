//! The picture as SVG: a box for each cell, in it a coloured strip for each thread that touched it.

use super::{Panel, Picture};
use std::fmt::Write;

/// Width beyond which panels continue below.
const PAGE: usize = 1000;
/// Room around everything and between panels.
const MARGIN: usize = 16;
/// Height of a strip, and of a line of text.
const STRIP: usize = 16;
/// Approximate width of a character of the 11 pixel font.
const CHARACTER: usize = 7;
/// Height of a panel's title and of the numbers of its columns.
const HEADING: usize = 36;
/// Room for the numbers of the rows.
const ROW_NUMBERS: usize = 26;

/// Meaning of the numbers.
const LEGEND: &str = "in each cell the threads that touched it, by global_id; ×3: three times";

/// Draws a picture as one SVG document.
pub(crate) fn draw(picture: &Picture) -> String {
    let mut body = String::new();
    let notes: Vec<String> =
        [LEGEND.to_owned()].into_iter().chain(picture.faults.iter().cloned()).collect();
    let (mut x, mut y) = (MARGIN, MARGIN + (2 + notes.len()) * STRIP);
    let longest = notes.iter().map(|note| note.chars().count()).max().unwrap_or(0);
    let (mut lowest, mut rightmost) = (y, (PAGE / 2).max(MARGIN + longest * CHARACTER));
    for panel in &picture.panels {
        let size = Size::of(panel);
        if x > MARGIN && x + size.width > PAGE {
            (x, y) = (MARGIN, lowest + MARGIN);
        }
        draw_panel(&mut body, panel, &size, x, y);
        lowest = lowest.max(y + size.height);
        rightmost = rightmost.max(x + size.width);
        x += size.width + 2 * MARGIN;
    }
    let (width, height) = (rightmost + MARGIN, lowest + MARGIN);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"monospace\" font-size=\"11\" \
         fill=\"#222\">\n<rect width=\"{width}\" height=\"{height}\" fill=\"#fff\"/>\n"
    );
    let _ = writeln!(
        text,
        "<text x=\"{MARGIN}\" y=\"{}\" font-size=\"14\">{}</text>",
        2 * MARGIN,
        escape(&picture.title)
    );
    for (line, note) in notes.iter().enumerate() {
        let (y, color) = (2 * MARGIN + (line + 1) * STRIP, if line == 0 { "#888" } else { "#c00" });
        let _ = writeln!(
            text,
            "<text x=\"{MARGIN}\" y=\"{y}\" fill=\"{color}\">{}</text>",
            escape(note)
        );
    }
    text.push_str(&body);
    text.push_str("</svg>\n");
    text
}

/// The sizes of a panel's parts.
struct Size {
    cell: usize,
    /// Height of each row, by its busiest cell.
    rows: Vec<usize>,
    width: usize,
    height: usize,
}

impl Size {
    fn of(panel: &Panel) -> Size {
        if let Some(excuse) = panel.excuse() {
            let longest = excuse.len().max(panel.title.chars().count());
            return Size { cell: 0, rows: Vec::new(), width: longest * CHARACTER, height: HEADING };
        }
        let longest = panel
            .cells
            .iter()
            .flatten()
            .map(|touch| touch.label.chars().count())
            .max()
            .unwrap_or(0);
        let cell = (longest * CHARACTER + 8).max(30);
        let height =
            |row: &[Vec<_>]| row.iter().map(Vec::len).max().unwrap_or(0).max(1) * STRIP + 2;
        let rows: Vec<usize> = panel.cells.chunks(panel.columns.max(1)).map(height).collect();
        let title = panel.title.chars().count() * CHARACTER;
        let width = (ROW_NUMBERS + panel.columns * cell).max(title);
        Size { cell, width, height: HEADING + rows.iter().sum::<usize>(), rows }
    }
}

fn draw_panel(text: &mut String, panel: &Panel, size: &Size, x: usize, y: usize) {
    let _ = writeln!(text, "<g transform=\"translate({x} {y})\">");
    let _ = writeln!(text, "<text y=\"12\" font-weight=\"bold\">{}</text>", escape(&panel.title));
    if let Some(excuse) = panel.excuse() {
        let _ = writeln!(text, "<text y=\"31\" fill=\"#888\">{excuse}</text>\n</g>");
        return;
    }
    for column in 0..panel.columns {
        let middle = ROW_NUMBERS + column * size.cell + size.cell / 2;
        let _ = writeln!(
            text,
            "<text x=\"{middle}\" y=\"31\" text-anchor=\"middle\" fill=\"#888\">{column}</text>"
        );
    }
    let mut top = HEADING;
    for (index, (row, &height)) in
        panel.cells.chunks(panel.columns.max(1)).zip(&size.rows).enumerate()
    {
        if size.rows.len() > 1 {
            let _ = writeln!(
                text,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\" fill=\"#888\">{index}</text>",
                ROW_NUMBERS - 6,
                top + 13
            );
        }
        for (column, touches) in row.iter().enumerate() {
            let left = ROW_NUMBERS + column * size.cell;
            for (line, touch) in touches.iter().enumerate() {
                let strip = top + 1 + line * STRIP;
                let _ = writeln!(
                    text,
                    "<rect x=\"{left}\" y=\"{strip}\" width=\"{}\" height=\"{STRIP}\" fill=\"{}\"/>\
                     <text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                    size.cell,
                    fill(touch.thread),
                    left + size.cell / 2,
                    strip + 12,
                    escape(&touch.label)
                );
            }
            let _ = writeln!(
                text,
                "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{height}\" fill=\"none\" \
                 stroke=\"#666\"/>",
                size.cell
            );
        }
        top += height;
    }
    text.push_str("</g>\n");
}

/// A light colour for each thread. Hues go round by the golden angle: neighbours differ, and few
/// repeat.
fn fill(thread: u32) -> String {
    let hue = (f64::from(thread) * 137.508) % 360.0;
    format!("hsl({hue:.0},70%,80%)")
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::{pooling, touched};

    #[test]
    fn every_touch_is_a_strip() {
        let svg = draw(&pooling());
        let document = roxmltree::Document::parse(&svg).expect("well-formed XML");
        let strips = document
            .descendants()
            .filter(|node| node.attribute("fill").is_some_and(|fill| fill.starts_with("hsl")));
        assert_eq!(strips.count(), 6 + 2);
        let cells = document.descendants().filter(|node| node.attribute("fill") == Some("none"));
        assert_eq!(cells.count(), 3 + 3);
        assert_ne!(fill(0), fill(1));
    }

    #[test]
    fn everything_lies_on_the_page() {
        let wide: Vec<&[u32]> = vec![&[1]; 12];
        let panels = (0..9).map(|index| touched(&format!("panel {index}"), 12, &wide)).collect();
        let svg = draw(&Picture { title: "many".to_owned(), panels, faults: Vec::new() });
        let document = roxmltree::Document::parse(&svg).expect("well-formed XML");
        let number = |name: &str| {
            document.root_element().attribute(name).and_then(|text| text.parse::<usize>().ok())
        };
        let (width, height) =
            (number("width").expect("a width"), number("height").expect("a height"));
        let mut seen = 0;
        for place in document.descendants().filter_map(|node| node.attribute("transform")) {
            let inner = place.trim_start_matches("translate(").trim_end_matches(')');
            let (x, y) = inner.split_once(' ').expect("two numbers");
            let (x, y): (usize, usize) = (x.parse().expect("x"), y.parse().expect("y"));
            assert!(
                x + ROW_NUMBERS + 12 * 30 <= width && y + HEADING + STRIP <= height,
                "{place} is off {width}×{height}"
            );
            seen += 1;
        }
        assert_eq!(seen, 9);
    }

    #[test]
    fn large_variables_are_not_drawn() {
        let cells: Vec<&[u32]> = vec![&[1]; 1000];
        let svg = draw(&Picture {
            title: String::new(),
            panels: vec![touched("a, read", 1000, &cells)],
            faults: Vec::new(),
        });
        let document = roxmltree::Document::parse(&svg).expect("well-formed XML");
        assert!(
            document.descendants().any(|node| node.text() == Some("1000 cells, too many to draw"))
        );
        assert!(svg.len() < 1000);
    }

    #[test]
    fn the_numbers_and_the_faults_are_told() {
        let faults = vec!["race: tile, out".to_owned(), "out-of-bounds: a".to_owned()];
        let lines = |picture: &Picture| {
            let svg = draw(picture);
            let document = roxmltree::Document::parse(&svg).expect("well-formed XML");
            let of_document =
                document.root_element().children().filter(|node| node.has_tag_name("text"));
            of_document.filter_map(|node| node.text().map(str::to_owned)).collect::<Vec<_>>()
        };
        assert_eq!(lines(&pooling()), ["a test", LEGEND]);
        assert!(LEGEND.contains("global_id"));
        assert_eq!(
            lines(&Picture { faults, ..pooling() }),
            ["a test", LEGEND, "race: tile, out", "out-of-bounds: a"]
        );
    }

    #[test]
    fn names_are_escaped() {
        let svg = draw(&Picture {
            title: "a < b & c > d".to_owned(),
            panels: Vec::new(),
            faults: Vec::new(),
        });
        let document = roxmltree::Document::parse(&svg).expect("well-formed XML");
        assert!(document.descendants().any(|node| node.text() == Some("a < b & c > d")));
    }
}
