//! The picture as text: a column for each cell, under it the threads that touched it.

use super::{Panel, Picture, Touch};
use std::fmt::Write;

/// The most workgroups whose memory is drawn.
const MOST_WORKGROUPS: u32 = 2;
/// The most threads named under one cell.
const MOST_THREADS: usize = 8;
/// The most cells side by side.
const MOST_COLUMNS: usize = 24;
/// Colours of the usual 256 that read well on black and on white.
const COLORS: [u8; 12] = [33, 208, 35, 162, 99, 136, 38, 197, 70, 133, 172, 66];

/// Draws a picture; `color` adds ANSI colours for the threads, which repeat after the last.
pub(crate) fn draw(picture: &Picture, color: bool) -> String {
    let mut text = format!(
        "who touched what ({}): under each cell the threads, by global_id\n",
        picture.title
    );
    let is_drawn =
        |panel: &&Panel| panel.workgroup.is_none_or(|workgroup| workgroup < MOST_WORKGROUPS);
    for panel in picture.panels.iter().filter(is_drawn) {
        let _ = writeln!(text, "\n{}", panel.title);
        match panel.excuse() {
            Some(excuse) => {
                let _ = writeln!(text, "  {excuse}");
            }
            None => draw_cells(&mut text, panel, color),
        }
    }
    let workgroups =
        picture.panels.iter().filter_map(|panel| panel.workgroup).max().map_or(0, |last| last + 1);
    if workgroups > MOST_WORKGROUPS {
        let _ = writeln!(
            text,
            "\nThe memory of {} more workgroups is in the SVG only.",
            workgroups - MOST_WORKGROUPS
        );
    }
    text
}

fn draw_cells(text: &mut String, panel: &Panel, color: bool) {
    let labels = panel.cells.iter().flatten().map(|touch| touch.label.chars().count());
    let heading = format!("[{}]", panel.columns.saturating_sub(1)).len();
    let width = labels.max().unwrap_or(0).max(heading);
    let rows = panel.cells.chunks(panel.columns.max(1));
    let is_matrix = rows.len() > 1;
    for first in (0..panel.columns).step_by(MOST_COLUMNS) {
        let columns = first..panel.columns.min(first + MOST_COLUMNS);
        let _ = write!(text, "{:6}", "");
        for column in columns.clone() {
            let _ = write!(text, " {:>width$}", format!("[{column}]"));
        }
        text.push('\n');
        for (index, row) in rows.clone().enumerate() {
            let cells = &row[columns.start.min(row.len())..columns.end.min(row.len())];
            let name = if is_matrix { format!("[{index}]") } else { String::new() };
            draw_row(text, &name, cells, width, color);
        }
    }
}

/// One row of cells, as many lines high as its busiest cell needs.
fn draw_row(text: &mut String, name: &str, cells: &[Vec<Touch>], width: usize, color: bool) {
    let busiest = cells.iter().map(Vec::len).max().unwrap_or(0);
    // A row of a matrix takes a line even if nobody touched it.
    let lines = busiest.min(MOST_THREADS).max(usize::from(!name.is_empty()));
    for line in 0..lines {
        let mut written = format!("{:>6}", if line == 0 { name } else { "" });
        for cell in cells {
            let left = cell.len().saturating_sub(MOST_THREADS);
            match cell.get(line) {
                Some(_) if left > 0 && line == MOST_THREADS - 1 => {
                    let _ = write!(written, " {:>width$}", format!("+{}", left + 1));
                }
                Some(touch) if color => {
                    let shade = COLORS[touch.thread as usize % COLORS.len()];
                    let _ =
                        write!(written, " \u{1b}[38;5;{shade}m{:>width$}\u{1b}[0m", touch.label);
                }
                Some(touch) => {
                    let _ = write!(written, " {:>width$}", touch.label);
                }
                None => {
                    let _ = write!(written, " {:>width$}", if line == 0 { "·" } else { "" });
                }
            }
        }
        let _ = writeln!(text, "{}", written.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::picture::tests::{pooling, touched};

    #[test]
    fn threads_stand_under_their_cells() {
        let expected = "\
who touched what (a test): under each cell the threads, by global_id

a, read
       [0] [1] [2]
         0   1   2
         1   2
         2

out, written
       [0] [1] [2]
         0   ·   2
";
        assert_eq!(draw(&pooling(), false), expected);
    }

    #[test]
    fn colors_change_nothing_else() {
        let mut plain = String::new();
        for part in draw(&pooling(), true).split('\u{1b}') {
            plain.push_str(
                part.split_once('m')
                    .filter(|_| part.starts_with('['))
                    .map_or(part, |(_, rest)| rest),
            );
        }
        assert_eq!(plain, draw(&pooling(), false));
    }

    #[test]
    fn crowds_are_counted() {
        let crowd: Vec<u32> = (0..20).collect();
        let picture = Picture {
            title: String::new(),
            panels: vec![touched("a, read", 1, &[&crowd])],
            faults: Vec::new(),
        };
        let text = draw(&picture, false);
        assert!(text.ends_with("         6\n       +13\n"), "{text}");
    }

    #[test]
    fn large_variables_are_not_drawn() {
        let cells: Vec<&[u32]> = vec![&[1]; 1000];
        let picture = Picture {
            title: String::new(),
            panels: vec![touched("a, read", 1000, &cells)],
            faults: Vec::new(),
        };
        assert!(draw(&picture, false).ends_with("\na, read\n  1000 cells, too many to draw\n"));
    }

    #[test]
    fn matrices_have_rows() {
        let picture = Picture {
            title: String::new(),
            panels: vec![touched("a, read", 2, &[&[0], &[], &[], &[3]])],
            faults: Vec::new(),
        };
        let text = draw(&picture, false);
        assert!(text.ends_with("[0] [1]\n   [0]   0   ·\n   [1]   ·   3\n"), "{text}");
    }
}
