//! One file per command.

mod convert;
mod demo;
mod dequantize;
mod embed;
mod gather_matmul;
mod generate;
mod grouped;
mod info;
mod inspect;
mod matmul;
mod moe;
mod plan;
mod qmatmul;
mod quantize;
mod search;

use crate::args::Command;
use crate::failure::Result;
use std::io::Write;

/// Runs a command, which prints to `out`.
pub(crate) fn run(command: Command, out: &mut dyn Write) -> Result<()> {
    match command {
        Command::Info(args) => info::run(&args, out),
        Command::Matmul(args) => matmul::run(&args, out),
        Command::Quantize(args) => quantize::run(&args, out),
        Command::Dequantize(args) => dequantize::run(&args, out),
        Command::Qmatmul(args) => qmatmul::run(&args, out),
        Command::Inspect(args) => inspect::run(&args, out),
        Command::Convert(args) => convert::run(&args, out),
        Command::Grouped(args) => grouped::run(&args, out),
        Command::GatherMatmul(args) => gather_matmul::run(&args, out),
        Command::Moe(args) => moe::run(&args, out),
        Command::Plan(args) => plan::run(&args, out),
        Command::Generate(args) => generate::run(&args, out),
        Command::Demo(args) => demo::run(&args, out),
        Command::Embed(args) => embed::run(&args, out),
        Command::Search(args) => search::run(&args, out),
    }
}
