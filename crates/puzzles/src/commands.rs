//! Commands of the program.

use crate::check;
use crate::picture::{svg, terminal};
use crate::puzzle::{Puzzle, extent};
use crate::score::COUNTED;
use crate::table::PUZZLES;
use crate::{numbers, run};
use clap::{Parser, Subcommand, value_parser};
use std::fmt::Write;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};

/// Fourteen GPU puzzles, from map to matrix multiplication, checked by a sanitizer.
#[derive(Debug, Parser)]
#[command(name = "tilewise-puzzles", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Lists the puzzles.
    List,
    /// Prints the problem: what to compute, what is given, the score to reach, and the skeleton.
    Show {
        /// The puzzle's number, from 1 to 14.
        #[arg(value_parser = value_parser!(u8).range(1..=14))]
        puzzle: u8,
    },
    /// Prints the skeleton alone, as a file to begin with.
    Skeleton {
        /// The puzzle's number, from 1 to 14.
        #[arg(value_parser = value_parser!(u8).range(1..=14))]
        puzzle: u8,
    },
    /// Checks an answer: numbers, sanitizer, score. Exits with 0 when it is solved, 1 when not, 2
    /// when there is nothing to check.
    Check {
        /// The puzzle's number, from 1 to 14.
        #[arg(value_parser = value_parser!(u8).range(1..=14))]
        puzzle: u8,
        /// The kernel's body; - for standard input.
        file: PathBuf,
        /// The case to draw, counted from 1. Otherwise the first that fails, or the first.
        #[arg(long)]
        case: Option<usize>,
        /// Also draws it as SVG, to this file.
        #[arg(long, value_name = "FILE")]
        svg: Option<PathBuf>,
        /// Also prints the whole module that is made of the body.
        #[arg(long)]
        wgsl: bool,
        /// Draws nothing in the terminal.
        #[arg(long)]
        no_picture: bool,
    },
    /// Prints a solution.
    Solution {
        /// The puzzle's number, from 1 to 14.
        #[arg(value_parser = value_parser!(u8).range(1..=14))]
        puzzle: u8,
    },
}

/// Output of a command, and its verdict for the shell.
pub(crate) struct Done {
    /// For standard output.
    pub(crate) text: String,
    /// False only for an answer that is no solution.
    pub(crate) is_solved: bool,
}

/// Runs the command. The error is a line for people that says what could not be read, written or
/// chosen.
pub(crate) fn run(arguments: &Arguments) -> Result<Done, String> {
    let text = match &arguments.command {
        Command::List => list(),
        Command::Show { puzzle } => show(of(*puzzle)),
        Command::Skeleton { puzzle } => of(*puzzle).skeleton.to_owned(),
        Command::Solution { puzzle } => of(*puzzle).solution.to_owned(),
        Command::Check { puzzle, file, case, svg, wgsl, no_picture } => {
            let output =
                Output { case: *case, svg: svg.as_deref(), wgsl: *wgsl, picture: !no_picture };
            return check(of(*puzzle), &read(file)?, &output);
        }
    };
    Ok(Done { text, is_solved: true })
}

fn of(number: u8) -> &'static Puzzle {
    &PUZZLES[usize::from(number) - 1]
}

fn list() -> String {
    let mut text = String::new();
    for puzzle in &PUZZLES {
        let cases = match puzzle.cases.len() {
            1 => String::new(),
            cases => format!("  ({cases} cases)"),
        };
        let _ = writeln!(text, "{:>2}  {}{cases}", puzzle.number, puzzle.title());
    }
    text
}

fn show(puzzle: &Puzzle) -> String {
    let mut text = puzzle.problem.to_owned();
    text.push('\n');
    for (index, case) in puzzle.cases.iter().enumerate() {
        let number =
            if puzzle.cases.len() == 1 { String::new() } else { format!(" {}", index + 1) };
        let _ = writeln!(text, "Case{number}: {case}");
        let _ = writeln!(
            text,
            "  {} threads, in {} of {}",
            extent(case.grid),
            match extent(case.workgroups()).as_str() {
                "1" => "one workgroup".to_owned(),
                several => format!("{several} workgroups"),
            },
            extent(case.workgroup)
        );
        let counters = COUNTED.iter().zip(case.target.0).zip(case.least.0);
        let most: Vec<String> =
            counters.clone().map(|((counted, most), _)| format!("{counted} {most}")).collect();
        let least: Vec<String> = counters
            .filter(|(_, least)| *least > 0)
            .map(|((counted, _), least)| format!("{counted} {least}"))
            .collect();
        let _ = writeln!(text, "  at most per thread: {}", most.join(", "));
        if !least.is_empty() {
            let _ = writeln!(text, "  at least in one thread: {}", least.join(", "));
        }
    }
    let _ = writeln!(
        text,
        "\n\
         The body knows the constants, inputs and `out` by name, `global_id`, `local_id`, \
         `workgroup_id` and `grid` (x, y, z), and `local_index`.\n\n\
         Skeleton:\n\n\
         {}",
        puzzle.skeleton
    );
    text
}

/// Options of a check: what it prints and writes besides its result.
struct Output<'a> {
    case: Option<usize>,
    svg: Option<&'a Path>,
    wgsl: bool,
    picture: bool,
}

fn check(puzzle: &Puzzle, body: &str, output: &Output<'_>) -> Result<Done, String> {
    if let Some(case) = output.case.filter(|case| !(1..=puzzle.cases.len()).contains(case)) {
        return Err(format!(
            "puzzle {} has no case {case}: it has {}",
            puzzle.number,
            puzzle.cases.len()
        ));
    }
    let color = std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let checked = check::check(puzzle, body, color);
    let mut text = format!("Puzzle {}: {}\n\n{}", puzzle.number, puzzle.title(), checked.text);
    let chosen = output.case.map(|case| case - 1).or(checked.first_at_fault).unwrap_or(0);
    if output.wgsl {
        let case = &puzzle.cases[chosen];
        let generated = run::wgsl(puzzle, case, body, &numbers::inputs(case, 0))
            .unwrap_or_else(|error| error.to_string());
        let _ = writeln!(text, "\nThe whole module ({case}):\n\n{}", generated.trim_end());
    }
    if let Some(picture) = checked.pictures.get(chosen) {
        if output.picture {
            let _ = write!(text, "\n{}", terminal::draw(picture, color));
        }
        if let Some(path) = output.svg {
            std::fs::write(path, svg::draw(picture))
                .map_err(|error| format!("cannot write {}: {error}", path.display()))?;
        }
    }
    let is_solved = checked.complaints.is_empty();
    let verdict = if is_solved {
        "Solved: right, clean and at target.".to_owned()
    } else {
        let complaints: Vec<String> = checked.complaints.iter().map(ToString::to_string).collect();
        format!("Not solved: {}.", complaints.join(", "))
    };
    let _ = writeln!(text, "\n{verdict}");
    Ok(Done { text, is_solved })
}

/// An answer, from a file or from standard input.
fn read(file: &Path) -> Result<String, String> {
    let mut text = String::new();
    let read = if file == Path::new("-") {
        std::io::stdin().read_to_string(&mut text).map(|_| text)
    } else {
        std::fs::read_to_string(file)
    };
    let text = read.map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    // Some editors begin a file with a byte-order mark, which WGSL does not have.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
