//! The command line.

use super::dtype::DType;
use super::value::Value;
use clap::{Parser, ValueEnum};
use std::fmt;
use std::io::IsTerminal;
use std::ops::Range;
use std::path::PathBuf;
use tilewise_sanitizer::{CostModel, Options, ZeroInit};

const VALUES: &str = "\
Values of --bind, where DTYPE is i8, u8, i16, u16, i32, u32, i64, u64, f16, bf16, f32 or f64:
  FILE.npy            the elements of a numpy file, in C order
  FILE.bin            the bytes of a file
  out:DTYPE:COUNT     an output: not to be read before it is written, and all to be written
  poison:DTYPE:COUNT  not to be read before it is written
  zero:DTYPE:COUNT    zeros
  random:DTYPE:COUNT  the same numbers every time: floats in [-1, 1), integers over all their range
  DTYPE:V,V,...       these numbers
Elements may be narrower than the shader's scalars (u8 packed into u32) but not wider.

Exit status: 0 when nothing was found, 1 on findings, 2 on usage errors and input that cannot \
    be used.";

/// Runs a WGSL compute shader on the CPU and reports data races, accesses out of bounds,
/// uninitialised reads and divergent barriers.
#[derive(Debug, Parser)]
#[command(name = "tilewise-sanitizer", version, after_help = VALUES)]
pub(crate) struct Args {
    /// The shader
    #[arg(value_name = "FILE.wgsl")]
    pub(crate) file: PathBuf,
    /// The entry point; needed if there are several
    #[arg(long, value_name = "NAME")]
    pub(crate) entry: Option<String>,
    /// Workgroups along x, y and z; what is left out is 1
    #[arg(long, value_name = "X,Y,Z", default_value = "1", value_parser = grid)]
    pub(crate) grid: [u32; 3],
    /// Value to bind to @binding(B) of @group(G), by default group 0; see below
    #[arg(long = "bind", value_name = "[G.]B=VALUE", value_parser = bind)]
    pub(crate) bindings: Vec<(Slot, Value)>,
    /// Elements of a binding that belong to the operand; accesses to the others are findings.
    /// Several add up
    #[arg(long = "range", value_name = "[G.]B=START..END", value_parser = range)]
    pub(crate) ranges: Vec<(Slot, Range<u64>)>,
    /// Write a buffer to FILE.npy or FILE.bin after the run (bf16 as u2)
    #[arg(long = "save", value_name = "[G.]B=FILE", value_parser = save)]
    pub(crate) saves: Vec<(Slot, PathBuf)>,
    /// A value for an override, by name or by the number of its @id: decimal, hexadecimal after 0x,
    /// true or false
    #[arg(long = "override", value_name = "NAME=VALUE", value_parser = constant)]
    pub(crate) overrides: Vec<(String, f64)>,
    /// Contents of var<immediate>, as hexadecimal bytes or numbers; several are joined
    #[arg(long, value_name = "HEX|DTYPE:V,V,...", value_parser = immediates)]
    pub(crate) immediates: Vec<Vec<u8>>,
    /// Invocations per subgroup, a power of two up to 128
    #[arg(long, value_name = "N", default_value_t = Options::default().subgroup_size)]
    pub(crate) subgroup_size: u32,
    /// Memory that starts as zeros; reads of the rest before a write are findings
    #[arg(long, value_name = "SPACES", value_delimiter = ',')]
    pub(crate) zero_init: Vec<Space>,
    /// Iterations of one loop after which it counts as endless
    #[arg(
        long,
        value_name = "N",
        default_value_t = Options::default().max_iterations,
        value_parser = clap::value_parser!(u64).range(1..)
    )]
    pub(crate) max_iterations: u64,
    /// Report f16 arithmetic whose operands are finite and whose result is not
    #[arg(long)]
    pub(crate) f16_overflow: bool,
    /// Findings shown; the others are counted
    #[arg(
        long,
        value_name = "N",
        default_value_t = 100,
        value_parser = clap::value_parser!(u32).range(1..)
    )]
    pub(crate) max_findings: u32,
    /// Bytes of one transaction of device memory, a power of two
    #[arg(
        long,
        value_name = "N",
        default_value_t = CostModel::default().segment_bytes,
        value_parser = power_of_two
    )]
    pub(crate) segment_bytes: u32,
    /// Banks of workgroup memory, 4 bytes wide each
    #[arg(
        long,
        value_name = "N",
        default_value_t = CostModel::default().banks,
        value_parser = clap::value_parser!(u32).range(1..=1024)
    )]
    pub(crate) banks: u32,
    /// Print what the run cost; JSON always has it
    #[arg(long)]
    pub(crate) counters: bool,
    /// Run one workgroup after the other
    #[arg(long)]
    pub(crate) sequential: bool,
    /// Form of the report: for people or for programs
    #[arg(long, value_name = "FORM", default_value = "human")]
    pub(crate) report: Form,
    /// Colours in the report for people; auto: on a terminal, unless NO_COLOR is set
    #[arg(long, value_name = "WHEN", default_value = "auto")]
    pub(crate) color: When,
}

/// A binding's number within its group. Shown as it is typed: `3`, or `1.3` outside group 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Slot {
    pub(crate) group: u32,
    pub(crate) binding: u32,
}

impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.group {
            0 => write!(f, "{}", self.binding),
            group => write!(f, "{group}.{}", self.binding),
        }
    }
}

/// An address space that can be zeroed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Space {
    Workgroup,
    Private,
    Function,
    All,
}

/// The form of the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    Human,
    Json,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    Auto,
    Always,
    Never,
}

impl Args {
    /// How to run, and what to look for.
    pub(crate) fn options(&self) -> Options {
        let zeroed =
            |space| self.zero_init.iter().any(|&named| named == space || named == Space::All);
        let mut options = Options::default();
        options.subgroup_size = self.subgroup_size;
        options.zero_init = ZeroInit {
            workgroup: zeroed(Space::Workgroup),
            private: zeroed(Space::Private),
            function: zeroed(Space::Function),
        };
        options.max_iterations = self.max_iterations;
        options.f16_overflow = self.f16_overflow;
        options.costs = Some(CostModel { segment_bytes: self.segment_bytes, banks: self.banks });
        options.max_findings = self.max_findings as usize;
        options.parallel = !self.sequential;
        options
    }

    /// Whether the report for people has colours.
    pub(crate) fn colored(&self) -> bool {
        match self.color {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                std::io::stdout().is_terminal()
                    && std::env::var_os("NO_COLOR").is_none_or(|it| it.is_empty())
            }
        }
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{text:?} is no whole number from 0 that fits"))
}

fn grid(text: &str) -> Result<[u32; 3], String> {
    let mut grid = [1; 3];
    if text.split(',').count() > 3 {
        return Err("there are three dimensions".to_owned());
    }
    for (extent, text) in grid.iter_mut().zip(text.split(',')) {
        *extent = number(text)?;
    }
    if grid.contains(&0) {
        return Err(format!("a grid of {grid:?} workgroups runs nothing"));
    }
    Ok(grid)
}

/// `[G.]B=REST`.
fn slot(text: &str) -> Result<(Slot, &str), String> {
    let (slot, rest) = text.split_once('=').ok_or("an equals sign is missing")?;
    let (group, binding) = slot.split_once('.').unwrap_or(("0", slot));
    Ok((Slot { group: number(group)?, binding: number(binding)? }, rest))
}

fn bind(text: &str) -> Result<(Slot, Value), String> {
    let (slot, value) = slot(text)?;
    Ok((slot, Value::parse(value)?))
}

fn range(text: &str) -> Result<(Slot, Range<u64>), String> {
    let (slot, range) = slot(text)?;
    let (start, end) = range.split_once("..").ok_or("START..END is missing")?;
    let range = number(start)?..number(end)?;
    if range.is_empty() {
        return Err("it is empty".to_owned());
    }
    Ok((slot, range))
}

fn save(text: &str) -> Result<(Slot, PathBuf), String> {
    let (slot, file) = slot(text)?;
    if !file.ends_with(".npy") && !file.ends_with(".bin") {
        return Err("the file must end in .npy or .bin".to_owned());
    }
    Ok((slot, file.into()))
}

fn constant(text: &str) -> Result<(String, f64), String> {
    let (name, value) = text.split_once('=').ok_or("an equals sign is missing")?;
    let parsed = match value {
        "true" => Some(1.0),
        "false" => Some(0.0),
        _ => hexadecimal(value).or_else(|| value.parse().ok()),
    };
    match parsed {
        Some(parsed) => Ok((name.to_owned(), parsed)),
        None => Err(format!(
            "{value:?} for {name} is neither a number, decimal or hexadecimal after 0x, nor true \
             nor false"
        )),
    }
}

/// `0xff` or `-0xff`: 32 bits, all of which an f64 holds exactly.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, digits) = text.strip_prefix('-').map_or((1.0, text), |digits| (-1.0, digits));
    let digits = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X"))?;
    // The standard library would take another sign here.
    let value = u32::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'))?;
    Some(sign * f64::from(value))
}

fn immediates(text: &str) -> Result<Vec<u8>, String> {
    if let Some((dtype, values)) = text.split_once(':') {
        return DType::parse(dtype)?.numbers(values);
    }
    let digits: Option<Vec<u8>> =
        text.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect();
    match digits {
        Some(digits) if digits.len().is_multiple_of(2) => {
            Ok(digits.chunks_exact(2).map(|two| 16 * two[0] + two[1]).collect())
        }
        _ => Err("neither DTYPE:V,V,... nor pairs of hexadecimal digits".to_owned()),
    }
}

fn power_of_two(text: &str) -> Result<u32, String> {
    let value: u32 = number(text)?;
    if value.is_power_of_two() { Ok(value) } else { Err("it must be a power of two".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }

    #[test]
    fn grids() {
        assert_eq!(grid("4,5,6"), Ok([4, 5, 6]));
        assert_eq!(grid("7"), Ok([7, 1, 1]));
        for bad in ["", "0", "1,0,1", "1,,1", "1,2,3,4", "-1", "4294967296", "1x1"] {
            assert!(grid(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn slots_and_ranges() {
        assert_eq!(range("2.3=4..8"), Ok((Slot { group: 2, binding: 3 }, 4..8)));
        assert_eq!(range("3=0..1").unwrap().0.to_string(), "3");
        for bad in ["3", "x=1..2", "3=1", "3=2..2", "3=2..1", "1.2.3=0..1", "3=..4"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn immediates_in_either_form() {
        assert_eq!(immediates("0aFF"), Ok(vec![10, 255]));
        assert_eq!(immediates("u32:1,0x10"), Ok(vec![1, 0, 0, 0, 16, 0, 0, 0]));
        for bad in ["0", "0g", "éé", "u32:", "f31:1"] {
            assert!(immediates(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn overrides_are_numbers_or_booleans() {
        assert_eq!(constant("BM=32"), Ok(("BM".to_owned(), 32.0)));
        assert_eq!(constant("on=true"), Ok(("on".to_owned(), 1.0)));
        assert_eq!(constant("BM=0x20"), Ok(("BM".to_owned(), 32.0)));
        assert_eq!(constant("BM=-0XfF"), Ok(("BM".to_owned(), -255.0)));
        for bad in
            ["BM", "BM=many", "BM=", "BM=0x", "BM=0x+1", "BM=0x-1", "BM=0x1ffffffff", "BM=--0x1"]
        {
            assert!(constant(bad).is_err(), "{bad}");
        }
    }
}
