//! The fourteen puzzles, in one table.
//!
//! They follow the puzzles of Sasha Rush's GPU-Puzzles and their edition for Metal; texts, kernels
//! and checks are our own. Sizes are equal or close to the originals'. Matrices are rectangular
//! here, so rows taken for columns do not go unnoticed.

use crate::puzzle::{Case, Puzzle};
use crate::score::Score;
use crate::specification;
use tilewise::Edge;

/// One puzzle; the name of its folder finds its three texts.
macro_rules! puzzle {
    (
        $number:literal, $name:literal, $folder:literal, $inputs:expr, $specification:path,
        $cases:expr
    ) => {
        Puzzle {
            number: $number,
            name: $name,
            problem: include_str!(concat!("../puzzles/", $folder, "/problem.md")),
            skeleton: include_str!(concat!("../puzzles/", $folder, "/skeleton.wgsl")),
            solution: include_str!(concat!("../solutions/", $folder, ".wgsl")),
            inputs: $inputs,
            cases: $cases,
            specification: $specification,
        }
    };
}

/// A case in which all threads run, even those beyond the data.
const fn case(
    constants: &'static [(&'static str, u32)],
    inputs: &'static [&'static [usize]],
    output: &'static [usize],
    [grid, workgroup]: [[u32; 3]; 2],
    target: [u64; 4],
) -> Case {
    Case {
        constants,
        inputs,
        output,
        grid,
        workgroup,
        edge: Edge::Whole,
        target: Score(target),
        least: Score([0; 4]),
    }
}

/// The case without threads beyond the grid.
const fn clipped(case: Case) -> Case {
    Case { edge: Edge::Clip, ..case }
}

/// The case with workgroup memory required: some thread must write there, and some thread must
/// read.
const fn shared(case: Case) -> Case {
    Case { least: Score([0, 0, 1, 1]), ..case }
}

/// Every puzzle, in the order of their numbers. A case is: constants, shapes of the inputs, shape
/// of `out`, threads and workgroup, and the most that a thread may do: global reads and writes,
/// shared reads and writes.
pub(crate) static PUZZLES: [Puzzle; 14] = [
    puzzle!(
        1,
        "map",
        "01_map",
        &["a"],
        specification::plus_10,
        &[clipped(case(&[("SIZE", 4)], &[&[4]], &[4], [[4, 1, 1], [4, 1, 1]], [1, 1, 0, 0]))]
    ),
    puzzle!(
        2,
        "zip",
        "02_zip",
        &["a", "b"],
        specification::zip,
        &[clipped(case(&[("SIZE", 4)], &[&[4], &[4]], &[4], [[4, 1, 1], [4, 1, 1]], [2, 1, 0, 0]))]
    ),
    puzzle!(
        3,
        "guard",
        "03_guard",
        &["a"],
        specification::plus_10,
        &[case(&[("SIZE", 4), ("GROUP", 8)], &[&[4]], &[4], [[8, 1, 1], [8, 1, 1]], [1, 1, 0, 0])]
    ),
    puzzle!(
        4,
        "map_2d",
        "04_map_2d",
        &["a"],
        specification::plus_10,
        &[case(
            &[("ROWS", 2), ("COLUMNS", 3), ("GROUP", 4)],
            &[&[2, 3]],
            &[2, 3],
            [[4, 4, 1], [4, 4, 1]],
            [1, 1, 0, 0]
        )]
    ),
    puzzle!(
        5,
        "broadcast",
        "05_broadcast",
        &["a", "b"],
        specification::broadcast,
        &[case(
            &[("ROWS", 2), ("COLUMNS", 3), ("GROUP", 4)],
            &[&[2, 1], &[1, 3]],
            &[2, 3],
            [[4, 4, 1], [4, 4, 1]],
            [2, 1, 0, 0]
        )]
    ),
    puzzle!(
        6,
        "workgroups",
        "06_workgroups",
        &["a"],
        specification::plus_10,
        &[case(&[("SIZE", 9), ("GROUP", 4)], &[&[9]], &[9], [[12, 1, 1], [4, 1, 1]], [1, 1, 0, 0])]
    ),
    puzzle!(
        7,
        "workgroups_2d",
        "07_workgroups_2d",
        &["a"],
        specification::plus_10,
        &[case(
            &[("ROWS", 4), ("COLUMNS", 5), ("GROUP", 3)],
            &[&[4, 5]],
            &[4, 5],
            [[6, 6, 1], [3, 3, 1]],
            [1, 1, 0, 0]
        )]
    ),
    puzzle!(
        8,
        "workgroup_memory",
        "08_workgroup_memory",
        &["a"],
        specification::plus_10,
        &[shared(case(
            &[("SIZE", 9), ("GROUP", 4)],
            &[&[9]],
            &[9],
            [[12, 1, 1], [4, 1, 1]],
            [1, 1, 1, 1]
        ))]
    ),
    puzzle!(
        9,
        "pooling",
        "09_pooling",
        &["a"],
        specification::pooling,
        &[case(&[("SIZE", 8), ("GROUP", 8)], &[&[8]], &[8], [[8, 1, 1], [8, 1, 1]], [1, 1, 3, 1])]
    ),
    puzzle!(
        10,
        "dot_product",
        "10_dot_product",
        &["a", "b"],
        specification::dot_product,
        &[
            case(
                &[("SIZE", 8), ("GROUP", 8)],
                &[&[8], &[8]],
                &[1],
                [[8, 1, 1], [8, 1, 1]],
                [2, 1, 8, 4]
            ),
            case(
                &[("SIZE", 5), ("GROUP", 8)],
                &[&[5], &[5]],
                &[1],
                [[8, 1, 1], [8, 1, 1]],
                [2, 1, 8, 4]
            ),
        ]
    ),
    puzzle!(
        11,
        "convolution",
        "11_convolution",
        &["a", "b"],
        specification::convolution,
        &[
            case(
                &[("SIZE", 6), ("CONV", 3), ("GROUP", 8)],
                &[&[6], &[3]],
                &[6],
                [[8, 1, 1], [8, 1, 1]],
                [2, 1, 6, 2]
            ),
            case(
                &[("SIZE", 15), ("CONV", 4), ("GROUP", 8)],
                &[&[15], &[4]],
                &[15],
                [[16, 1, 1], [8, 1, 1]],
                [2, 1, 8, 2]
            ),
        ]
    ),
    puzzle!(
        12,
        "prefix_sum",
        "12_prefix_sum",
        &["a"],
        specification::prefix_sum,
        &[
            case(&[("SIZE", 8), ("GROUP", 8)], &[&[8]], &[1], [[8, 1, 1], [8, 1, 1]], [1, 1, 8, 4]),
            case(
                &[("SIZE", 15), ("GROUP", 8)],
                &[&[15]],
                &[2],
                [[16, 1, 1], [8, 1, 1]],
                [1, 1, 8, 4]
            ),
        ]
    ),
    puzzle!(
        13,
        "axis_sum",
        "13_axis_sum",
        &["a"],
        specification::axis_sum,
        &[case(
            &[("ROWS", 4), ("COLUMNS", 6), ("GROUP", 8)],
            &[&[4, 6]],
            &[4, 1],
            [[8, 4, 1], [8, 1, 1]],
            [1, 1, 8, 4]
        )]
    ),
    puzzle!(
        14,
        "matrix_multiply",
        "14_matrix_multiply",
        &["a", "b"],
        specification::matrix_multiply,
        &[
            case(
                &[("M", 2), ("N", 2), ("K", 2), ("GROUP", 3)],
                &[&[2, 2], &[2, 2]],
                &[2, 2],
                [[3, 3, 1], [3, 3, 1]],
                [2, 1, 6, 2]
            ),
            case(
                &[("M", 8), ("N", 8), ("K", 8), ("GROUP", 3)],
                &[&[8, 8], &[8, 8]],
                &[8, 8],
                [[9, 9, 1], [3, 3, 1]],
                [6, 1, 18, 6]
            ),
            case(
                &[("M", 5), ("N", 4), ("K", 7), ("GROUP", 3)],
                &[&[5, 7], &[7, 4]],
                &[5, 4],
                [[6, 6, 1], [3, 3, 1]],
                [6, 1, 18, 6]
            ),
        ]
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn in_the_order_of_their_numbers() {
        for (index, puzzle) in PUZZLES.iter().enumerate() {
            assert_eq!(puzzle.number, index + 1);
            assert!(puzzle.problem.starts_with(&format!(
                "# Puzzle {}: {}\n",
                puzzle.number,
                puzzle.title()
            )));
        }
    }

    #[test]
    fn problems_name_what_is_given() {
        for puzzle in &PUZZLES {
            for part in ["**Given.**", "**Score.**", "**Hint.**"] {
                assert!(puzzle.problem.contains(part), "puzzle {} has no {part}", puzzle.number);
            }
            let constants = puzzle
                .cases
                .iter()
                .flat_map(|case| case.constants)
                .map(|&(name, _)| name.to_owned());
            for name in puzzle.inputs.iter().map(|input| format!("`{input}`")).chain(constants) {
                assert!(
                    puzzle.problem.contains(&name),
                    "puzzle {} does not speak of {name}",
                    puzzle.number
                );
            }
        }
    }

    /// Checks that constants agree with the shapes and workgroups that they repeat.
    #[test]
    fn constants_say_what_shapes_say() {
        for puzzle in &PUZZLES {
            for case in puzzle.cases {
                assert_eq!(case.inputs.len(), puzzle.inputs.len());
                for &(name, value) in case.constants {
                    let first = case.inputs[0];
                    let meant = match name {
                        "SIZE" => first[0],
                        "CONV" => case.inputs[1][0],
                        "GROUP" => case.workgroup[0] as usize,
                        "ROWS" | "M" => first[0],
                        "COLUMNS" | "N" => case.inputs.last().map_or(0, |last| last[1]),
                        "K" => first[1],
                        _ => panic!("what does {name} mean?"),
                    };
                    assert_eq!(value as usize, meant, "{name} in puzzle {}", puzzle.number);
                }
                assert!(
                    (0..3).all(|axis| case.grid[axis] % case.workgroup[axis] == 0),
                    "puzzle {}",
                    puzzle.number
                );
            }
        }
    }

    /// Checks that the score asks for workgroup memory if the text does.
    #[test]
    fn by_way_of_workgroup_memory_where_the_text_says_so() {
        for puzzle in &PUZZLES {
            let says_so = puzzle.problem.contains("by way of");
            for case in puzzle.cases {
                assert_eq!(
                    case.least,
                    if says_so { Score([0, 0, 1, 1]) } else { Score::default() },
                    "{}",
                    puzzle.name
                );
                assert_eq!(case.target.under(case.least).count(), 0, "{}", puzzle.name);
            }
        }
    }

    #[test]
    fn skeletons_have_a_gap_and_solutions_none() {
        for puzzle in &PUZZLES {
            assert!(puzzle.skeleton.contains(crate::check::GAP), "puzzle {}", puzzle.number);
            assert!(!puzzle.solution.contains(crate::check::GAP), "puzzle {}", puzzle.number);
        }
    }
}
