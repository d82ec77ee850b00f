//! Pictures of which thread touched which cell, in the terminal ([`terminal`]) and as SVG
//! ([`svg`]).

pub(crate) mod svg;
pub(crate) mod terminal;
mod variables;

use crate::puzzle::{Case, Puzzle};
use std::collections::{BTreeMap, BTreeSet};
use tilewise_sanitizer::{Access, Finding, Kind, Report, Shader};
use variables::Memory;

/// The most cells of a variable that is drawn.
const MOST_CELLS: usize = 256;

/// The picture of one run: a panel for every variable and direction.
pub(crate) struct Picture {
    /// Name of the case that was run.
    pub(crate) title: String,
    /// Panels of inputs, workgroup memory and output, for each what was written and what was read.
    pub(crate) panels: Vec<Panel>,
    /// Faults that no cell shows, such as `race: tile, out`: variables in which the sanitizer found
    /// races or accesses out of bounds.
    pub(crate) faults: Vec<String>,
}

/// The threads that read, or that wrote, one variable.
pub(crate) struct Panel {
    /// Variable and direction, such as `a, read` or `tile of workgroup 1, written`.
    pub(crate) title: String,
    /// The workgroup whose memory it is, by its place in the order of workgroups; none for inputs
    /// and output.
    pub(crate) workgroup: Option<u32>,
    /// Cells in a row.
    pub(crate) columns: usize,
    /// Touches of each cell, row after row, in the order of threads.
    pub(crate) cells: Vec<Vec<Touch>>,
}

impl Panel {
    /// Text in place of the cells, if they are too many to draw.
    fn excuse(&self) -> Option<String> {
        let cells = self.cells.len();
        (cells > MOST_CELLS).then(|| format!("{cells} cells, too many to draw"))
    }
}

/// Touches of one cell by one thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Touch {
    /// The thread's place in the grid, row after row; it chooses the colour.
    pub(crate) thread: u32,
    /// The thread's `global_id`, and the number of touches if more than one: `5`, `1,2`, `5×3`.
    pub(crate) label: String,
}

impl Picture {
    /// The picture of a run of `case`, which ran as `shader`, from all that it accessed.
    pub(crate) fn new(puzzle: &Puzzle, case: &Case, shader: &Shader, report: &Report) -> Picture {
        let variables = variables::variables(puzzle, case, shader);
        // Numbers of touches, by place in the picture, then by cell and thread.
        let mut panels: BTreeMap<Key, BTreeMap<(usize, u32), usize>> = BTreeMap::new();
        for access in &report.trace {
            let Some(variable) = variables.iter().position(|drawn| drawn.is_of(access)) else {
                continue;
            };
            let drawn = &variables[variable];
            let key = Key {
                memory: drawn.memory,
                workgroup: (drawn.memory == Memory::Workgroup)
                    .then(|| linear(access.place.workgroup, case.workgroups())),
                variable,
                read: !access.write,
            };
            let thread = linear(global(access, case), case.grid);
            let touches = panels.entry(key).or_default();
            for cell in drawn.cells(access) {
                *touches.entry((cell, thread)).or_default() += 1;
            }
        }
        let panel = |(key, touches): (Key, BTreeMap<(usize, u32), usize>)| {
            let drawn = &variables[key.variable];
            let mut cells = vec![Vec::new(); drawn.cells];
            for ((cell, thread), times) in touches {
                cells[cell].push(Touch { thread, label: label(thread, times, case) });
            }
            let several = key.workgroup.filter(|_| case.workgroups() != [1, 1, 1]);
            let of = several
                .map(|workgroup| format!(" of workgroup {}", name(workgroup, case.workgroups())));
            let done = if key.read { "read" } else { "written" };
            let title = format!("{}{}, {done}", drawn.name, of.unwrap_or_default());
            Panel { title, workgroup: key.workgroup, columns: drawn.columns, cells }
        };
        Picture {
            title: format!("{}: {case}", puzzle.title()),
            panels: panels.into_iter().map(panel).collect(),
            faults: faults(&report.findings),
        }
    }
}

/// The races and accesses out of bounds, each kind with its variables.
fn faults(findings: &[Finding]) -> Vec<String> {
    let of = |kind: Kind| {
        let variables: BTreeSet<&str> = findings
            .iter()
            .filter(|finding| finding.kind == kind)
            .map(|finding| finding.variable.as_deref().unwrap_or("a value"))
            .collect();
        let names: Vec<&str> = variables.into_iter().collect();
        (!names.is_empty()).then(|| format!("{kind}: {}", names.join(", ")))
    };
    [Kind::Race, Kind::OutOfBounds].into_iter().filter_map(of).collect()
}

/// The place of a panel in the picture.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    memory: Memory,
    workgroup: Option<u32>,
    variable: usize,
    read: bool,
}

/// `global_id` of the thread that made an access.
fn global(access: &Access, case: &Case) -> [u32; 3] {
    std::array::from_fn(|axis| {
        access.place.workgroup[axis] * case.workgroup[axis] + access.place.local[axis]
    })
}

/// The place of `id` if ids are counted along x, then y, then z.
fn linear(id: [u32; 3], sizes: [u32; 3]) -> u32 {
    (id[2] * sizes[1] + id[1]) * sizes[0] + id[0]
}

/// The id of a thread as the puzzle writes it: `5`, or `1,2` if there is a y.
fn name(linear: u32, sizes: [u32; 3]) -> String {
    let (x, y) = (linear % sizes[0], linear / sizes[0]);
    if sizes[1] > 1 { format!("{x},{y}") } else { x.to_string() }
}

fn label(thread: u32, times: usize, case: &Case) -> String {
    let thread = name(thread, case.grid);
    if times > 1 { format!("{thread}×{times}") } else { thread }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::PUZZLES;
    use tilewise_sanitizer::Place;

    /// A panel of cells touched by these threads.
    pub(super) fn touched(title: &str, columns: usize, cells: &[&[u32]]) -> Panel {
        let touch = |&thread: &u32| Touch { thread, label: thread.to_string() };
        let cells = cells.iter().map(|threads| threads.iter().map(touch).collect()).collect();
        Panel { title: title.to_owned(), workgroup: None, columns, cells }
    }

    /// Three threads that each read up to three cells; the middle one forgets to write.
    pub(super) fn pooling() -> Picture {
        let read = touched("a, read", 3, &[&[0, 1, 2], &[1, 2], &[2]]);
        let written = touched("out, written", 3, &[&[0], &[], &[2]]);
        Picture { title: "a test".to_owned(), panels: vec![read, written], faults: Vec::new() }
    }

    #[test]
    fn from_a_trace() {
        let puzzle = &PUZZLES[7];
        let access = |variable: &str, cell: u32, write, workgroup, local| Access {
            variable: variable.to_owned(),
            workgroup_memory: variable == "tile",
            offset: 4 * cell,
            bytes: 4,
            write,
            place: Place { workgroup: [workgroup, 0, 0], local: [local, 0, 0] },
        };
        let trace = vec![
            access("a", 5, false, 1, 1),
            access("tile", 1, true, 1, 1),
            access("tile", 1, false, 1, 1),
            access("tile", 1, false, 1, 1),
            access("out", 5, true, 1, 1),
            access("a_shape", 0, false, 1, 1),
        ];
        let shader =
            Shader::parse("test", "var<workgroup> tile: array<f32, 4>;").expect("valid WGSL");
        let mut report = Report::default();
        report.trace = trace;
        let picture = Picture::new(puzzle, &puzzle.cases[0], &shader, &report);
        let titles: Vec<&str> = picture.panels.iter().map(|panel| panel.title.as_str()).collect();
        assert_eq!(
            titles,
            [
                "a, read",
                "tile of workgroup 1, written",
                "tile of workgroup 1, read",
                "out, written"
            ]
        );
        let labels = |panel: usize| -> Vec<(usize, &str)> {
            let cells = picture.panels[panel].cells.iter().enumerate();
            cells
                .flat_map(|(cell, touches)| {
                    touches.iter().map(move |touch| (cell, touch.label.as_str()))
                })
                .collect()
        };
        assert_eq!(labels(0), [(5, "5")]);
        assert_eq!(labels(1), [(1, "5")]);
        assert_eq!(labels(2), [(1, "5×2")]);
        assert_eq!(labels(3), [(5, "5")]);
    }

    #[test]
    fn faults_name_each_variable_once() {
        let finding = |kind, variable: Option<&str>| {
            let mut finding = Finding::new(kind, "", Vec::new());
            finding.variable = variable.map(str::to_owned);
            finding
        };
        let findings = [
            finding(Kind::OutOfBounds, Some("a")),
            finding(Kind::Race, Some("tile")),
            finding(Kind::Race, Some("out")),
            finding(Kind::Race, Some("tile")),
            finding(Kind::NeverWritten, Some("b")),
        ];
        assert_eq!(faults(&findings), ["race: out, tile", "out-of-bounds: a"]);
        assert!(faults(&[]).is_empty());
    }
}
