//! `cargo xtask bench`: times named shapes on a device; prints a table, and writes JSON, a page and
//! pictures on request. With `--first-hour` it writes the file of
//! [`tilewise_benches::first_hour`] instead.

mod args;

use args::Args;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::HashSet;
use std::path::Path;
use std::process::ExitCode;
use tilewise::{Context, ContextOptions, Error, Precision, Switch};
use tilewise_benches::ceiling::Ceiling;
use tilewise_benches::first_hour::{Hour, SHAPES};
use tilewise_benches::inputs::is_wrong;
use tilewise_benches::measure::{Bench, is_software};
use tilewise_benches::report::{Report, Row, Skipped, language_name};
use tilewise_benches::shapes::{self, Shape};
use tilewise_benches::{compare, html, table};
use tilewise_core::kernel::Language;

fn main() -> ExitCode {
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn")).init();
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("bench: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Measures or reads a report, and shows it. Returns whether all is well: nothing wrong was
/// computed, and nothing is slower than before.
///
/// # Errors
/// A text: nothing was measured, a name is unknown, there is no such device, or a file cannot be
/// read or written.
fn run(args: &Args) -> Result<bool, String> {
    if args.first_hour {
        return first_hour(args);
    }
    if args.list_shapes {
        return list(args).map(|()| true);
    }
    // Errors in the files and the shapes are reported before a device is opened.
    let others =
        args.compare.iter().map(|path| Report::load(path)).collect::<Result<Vec<_>, _>>()?;
    let shapes = shapes::parse(&args.shapes)?;
    let (mut report, mut right) = match &args.from {
        Some(path) => {
            let mut report = Report::load(path)?;
            args.ceilings.replace(&mut report.ceiling);
            (report, true)
        }
        None => match measured(args, shapes)? {
            Some(measured) => measured,
            None => return Ok(true),
        },
    };
    report.conclude();
    let (shown, wgsl) = report.side_by_side();
    let beside: Vec<Report> = wgsl.into_iter().chain(others.iter().cloned()).collect();
    if !args.quiet {
        print!("{}", table::markdown(&shown, &beside));
    }
    if let Some(path) = &args.json {
        let text = serde_json::to_string_pretty(&report).map_err(|error| error.to_string())?;
        write_and_say(path, &(text + "\n"))?;
    }
    if let Some(path) = &args.html {
        write_and_say(path, &html::page(&shown, &beside)?)?;
    }
    if let Some(folder) = &args.svg {
        let pictures = html::write_pictures(&shown, &beside, folder)?;
        eprintln!("{pictures} pictures: {}", folder.display());
    }
    if report.rows.is_empty() {
        return Err("nothing was measured".into());
    }
    for other in &others {
        if let Some((count, [here, there])) = compare::other_precisions(&report, other) {
            eprintln!(
                "bench: {count} of these shapes differ from {} in the precision alone: \
                 {here} here, {there} there",
                other.label()
            );
        }
    }
    for other in others.iter().filter(|other| compare::is_earlier_run(&report, other)) {
        if !report.rows.iter().any(|row| compare::counterpart(row, other).is_some()) {
            eprintln!(
                "bench: {} has none of these shapes: there is nothing to compare",
                other.label()
            );
            right = false;
        }
        if other.adapter != report.adapter {
            eprintln!(
                "bench: {} was measured on {}, this on {}",
                other.label(),
                other.adapter,
                report.adapter
            );
        }
    }
    let regressions = compare::regressions(&report, &others, args.regression);
    for regression in &regressions {
        eprintln!("regression: {regression}");
    }
    Ok(right && regressions.is_empty())
}

/// Prints the shapes that would be measured on a GPU, each once.
fn list(args: &Args) -> Result<(), String> {
    let mut shapes = shapes::parse(&args.shapes)?;
    if shapes.is_empty() {
        shapes = args.default_shapes(false)?;
    }
    let mut seen = HashSet::new();
    for shape in shapes.iter().filter(|shape| seen.insert(&shape.name)) {
        println!("{}", shape.name);
    }
    Ok(())
}

/// Writes a file and its folder, and prints the path.
fn write_and_say(path: &Path, text: &str) -> Result<(), String> {
    write(path, text)?;
    eprintln!("written: {}", path.display());
    Ok(())
}

/// Writes a file and its folder.
fn write(path: &Path, text: &str) -> Result<(), String> {
    let failed = |error| format!("{}: {error}", path.display());
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(failed)?;
    }
    std::fs::write(path, text).map_err(failed)
}

/// Runs the bench. Returns the report and whether every product was right. Returns nothing if the
/// adapter is missing and `--skip-missing` permits that. If no shape is named, the device decides.
fn measured(args: &Args, mut shapes: Vec<Shape>) -> Result<Option<(Report, bool)>, String> {
    let options = args.options()?;
    let said = |error: Error| error.to_string();
    let Some(ctx) = opened(args, &options)? else { return Ok(None) };
    if shapes.is_empty() {
        shapes = args.default_shapes(is_software(&ctx))?;
    }
    for shape in &mut shapes {
        shape.precision =
            shape.precision.or((args.precision != Precision::F32).then_some(args.precision));
    }
    let mut report = Report {
        library: "tilewise".into(),
        adapter: ctx.adapter_name().into(),
        backend: ctx.backend_name().into(),
        driver: ctx.driver(),
        commit: args.commit.clone(),
        date: today(),
        ceiling: Ceiling::of(&ctx, &args.ceilings).map_err(said)?,
        ..Report::default()
    };
    let languages = args.languages(ctx.backend_name() == "metal" && options.msl != Switch::Off);
    // If there is no choice of language, WGSL is measured.
    let in_language = |&language: &Language| {
        let msl = if language == Language::Msl { Switch::On } else { Switch::Off };
        let options = options.clone().msl(msl);
        Ok((Context::request_blocking(&options)?, vec![By::Language(language)]))
    };
    let ways = match (&languages[..], &args.kernel[..]) {
        ([], []) => vec![(ctx, vec![By::Planner])],
        ([], kernels) => vec![(ctx, kernels.iter().map(|name| By::Kernel(name)).collect())],
        (languages, _) => {
            languages.iter().map(in_language).collect::<Result<_, _>>().map_err(said)?
        }
    };
    let right = measure_all(args, &ways, &shapes, &mut report)?;
    report.name_groups();
    Ok(Some((report, right)))
}

/// The device that is asked for. A missing adapter is an error, or nothing with `--skip-missing`.
fn opened(args: &Args, options: &ContextOptions) -> Result<Option<Context>, String> {
    match Context::request_blocking(options) {
        Err(Error::Device { text: error, .. })
            if args.skip_missing && error.starts_with("no adapter: ") =>
        {
            eprintln!("skipped everything: {error}");
            Ok(None)
        }
        opened => opened.map(Some).map_err(|error| error.to_string()),
    }
}

/// Asks Apple's compiler about every text, then measures some shapes. Writes the file after each.
fn first_hour(args: &Args) -> Result<bool, String> {
    let Some(ctx) = opened(args, &args.options()?)? else { return Ok(true) };
    let path = args.json.as_deref().unwrap_or(Path::new("target/bench/first-hour.json"));
    let save = |hour: &Hour| {
        let text = serde_json::to_string_pretty(hour).map_err(|error| error.to_string())?;
        write_and_say(path, &(text + "\n"))
    };
    let mut hour = Hour::compiled(&ctx);
    save(&hour)?;
    let shapes = if is_software(&ctx) { Vec::new() } else { shapes::parse(SHAPES)? };
    let Some((report, right)) = measured(args, shapes)? else { return Ok(true) };
    hour.report = Some(report);
    save(&hour)?;
    eprintln!("CONTRIBUTING.md says where to send it");
    Ok(right)
}

fn today() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%d").to_string()
}

/// A bar of `steps` steps.
fn progress(args: &Args, steps: u64) -> Result<ProgressBar, String> {
    let bar = if args.quiet { ProgressBar::hidden() } else { ProgressBar::new(steps) };
    bar.set_style(ProgressStyle::with_template(PROGRESS).map_err(|error| error.to_string())?);
    bar.enable_steady_tick(std::time::Duration::from_millis(200));
    Ok(bar)
}

/// Who chooses the kernel.
enum By<'a> {
    Planner,
    Kernel(&'a str),
    Language(Language),
}

/// Adds a row for each shape and each way to compute it, or the reason why there is none. A shape
/// that is in two groups is measured once.
fn measure_all(
    args: &Args,
    ways: &[(Context, Vec<By<'_>>)],
    shapes: &[Shape],
    report: &mut Report,
) -> Result<bool, String> {
    let all = || {
        ways.iter().enumerate().flat_map(|(at, (_, ways))| ways.iter().map(move |way| (at, way)))
    };
    let bar = progress(args, (shapes.len() * all().count()) as u64)?;
    let mut benches: Vec<_> = ways.iter().map(|(ctx, _)| Bench::new(ctx)).collect();
    let samples = args.samples.get();
    let mut right = true;
    for shape in shapes {
        let before = report
            .rows
            .iter()
            .find(|row| row.key() == shape.key() && args.kernel.is_empty())
            .cloned();
        if let Some(first) = before {
            let other = report
                .rows
                .iter()
                .find(|row| row.key() == first.key() && row.language != first.language)
                .cloned();
            let renamed =
                |row| Row { shape: shape.name.clone(), group: shape.group.to_owned(), ..row };
            report.rows.extend([first].into_iter().chain(other).map(renamed));
            bar.inc(all().count() as u64);
            continue;
        }
        for (at, by) in all() {
            let bench = &mut benches[at];
            bar.set_message(shape.name.clone());
            let measured = match (by, args.choices) {
                (By::Planner, Some(factor)) => {
                    bench.measure_choices(shape, samples, factor, |name| {
                        bar.set_message(format!("{} {name}", shape.name))
                    })
                }
                (By::Planner, None) => bench.measure(shape, None, samples),
                (By::Kernel(name), _) => bench.measure(shape, Some(name), samples),
                (By::Language(language), _) => bench.measure_in(*language, shape, samples),
            };
            bar.inc(1);
            match measured {
                Ok(measured) => report.rows.push(Row::new(shape, &measured)),
                // No shape is at fault, and all others would fail alike.
                Err(error @ Error::Misuse(_)) => {
                    return Err(error.to_string());
                }
                Err(error) => {
                    right &= !is_wrong(&error) && !matches!(error, Error::DeviceLost(_));
                    // The table says it too.
                    let reason = match by {
                        By::Language(language) => {
                            format!("in {}: {error}", language_name(*language))
                        }
                        _ => error.to_string(),
                    };
                    if args.quiet {
                        eprintln!("skipped {}: {reason}", shape.name);
                    }
                    report.skipped.push(Skipped { shape: shape.name.clone(), reason });
                    if matches!(error, Error::DeviceLost(_)) {
                        bar.finish_and_clear();
                        return Ok(false);
                    }
                }
            }
        }
    }
    bar.finish_and_clear();
    Ok(right)
}

const PROGRESS: &str = "{msg:32} {wide_bar} {pos}/{len}, {eta} left";
