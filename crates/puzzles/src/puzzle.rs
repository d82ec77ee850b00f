//! Puzzles and their cases.

use crate::score::Score;
use std::fmt::{self, Display};
use tilewise::Edge;

/// One puzzle: its texts, and the inputs and the expected output of its kernel.
pub(crate) struct Puzzle {
    /// From 1 to 14.
    pub(crate) number: usize,
    /// The kernel's name in reports.
    pub(crate) name: &'static str,
    /// The task, in Markdown.
    pub(crate) problem: &'static str,
    /// The body to fill.
    pub(crate) skeleton: &'static str,
    /// A body that is right and at target.
    pub(crate) solution: &'static str,
    /// Names of the inputs.
    pub(crate) inputs: &'static [&'static str],
    /// Sizes at which an answer is checked.
    pub(crate) cases: &'static [Case],
    /// The right `out`, row-major.
    pub(crate) specification: fn(&[Array], &Case) -> Vec<f32>,
}

/// One size at which a puzzle is checked.
pub(crate) struct Case {
    /// Numbers that the body knows by name.
    pub(crate) constants: &'static [(&'static str, u32)],
    /// Shape of each input.
    pub(crate) inputs: &'static [&'static [usize]],
    /// Shape of `out`.
    pub(crate) output: &'static [usize],
    /// Threads along x, y and z.
    pub(crate) grid: [u32; 3],
    /// Threads of a workgroup along x, y and z.
    pub(crate) workgroup: [u32; 3],
    /// Whether the body runs in threads beyond the grid.
    pub(crate) edge: Edge,
    /// The score to reach: the most that a thread may do.
    pub(crate) target: Score,
    /// The least that the busiest thread must do: zeros, except for a memory that the puzzle is
    /// about.
    pub(crate) least: Score,
}

/// Numbers in a shape, row-major.
pub(crate) struct Array {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f32>,
}

impl Puzzle {
    /// The puzzle's name, from the heading of the problem text.
    pub(crate) fn title(&self) -> &'static str {
        let heading = self.problem.lines().next().unwrap_or_default();
        heading.split_once(": ").map_or(heading, |(_, title)| title)
    }
}

impl Case {
    /// Workgroups along x, y and z.
    pub(crate) fn workgroups(&self) -> [u32; 3] {
        std::array::from_fn(|axis| self.grid[axis].div_ceil(self.workgroup[axis]))
    }
}

/// Writes the constants: `SIZE = 8, GROUP = 4`.
impl Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.constants.iter().enumerate() {
            let comma = if index == 0 { "" } else { ", " };
            write!(f, "{comma}{name} = {value}")?;
        }
        Ok(())
    }
}

/// `8`, `4 × 5`, `3 × 3 × 2`: sizes along the axes, without ones at the end.
pub(crate) fn extent(sizes: [u32; 3]) -> String {
    let used = 1 + sizes.iter().rposition(|&size| size > 1).unwrap_or(0);
    sizes[..used].iter().map(u32::to_string).collect::<Vec<_>>().join(" × ")
}
