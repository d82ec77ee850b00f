//! Hands the library's texts to the compilers of its platforms; `cargo xtask compilers` runs it.

use clap::Parser;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Instant;
use tilewise_tests::compilers::{Compiler, Outcome, Tools, report};
use tilewise_tests::{texts, turns};

/// Hands every text of the library to the compilers of the platforms.
#[derive(Parser)]
#[command(name = "cargo xtask compilers", bin_name = "cargo xtask compilers")]
struct Args {
    /// The compilers.
    #[arg(long, value_delimiter = ',')]
    only: Vec<Compiler>,
    /// Only texts whose name contains this, as gemv/8x32.
    #[arg(long, default_value = "")]
    kernel: String,
    /// Seconds of CPU time that DXC and FXC have for a text.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Where the compilers are, and the texts are put.
    #[arg(long, default_value = "target/compilers")]
    folder: PathBuf,
    /// Wine.
    #[arg(long, default_value = "wine64")]
    wine: PathBuf,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// Runs the compilers, and returns whether every text is taken.
fn run(args: Args) -> Result<bool, String> {
    let folder = std::path::absolute(&args.folder).map_err(|error| error.to_string())?;
    let tools = Tools { wine: args.wine, folder, seconds: args.seconds };
    let mut all = texts::all();
    all.retain(|text| text.name.contains(&args.kernel));
    if all.is_empty() {
        return Err(format!("no text's name contains {:?}", args.kernel));
    }
    let mut taken = true;
    for compiler in args.only {
        let began = Instant::now();
        let texts: Vec<_> = all.iter().filter(|text| compiler.takes(text)).collect();
        let texts = turns::of_each(&texts, |text| text.kernel(), compiler.turns());
        let folder = tools.folder.join("texts").join(compiler.name());
        let met = compiler.compile(&tools, &texts, &folder)?;
        print!("{}", report(compiler, &met));
        println!("{}: {:.0} s", compiler.name(), began.elapsed().as_secs_f64());
        taken &= met.iter().all(|own| own.outcome == Outcome::Taken);
    }
    Ok(taken)
}
