//! `cargo xtask browser`: runs the suite for browsers (`tests/src/browser.rs`) in one browser, and
//! builds the example for a page.

mod place;
mod server;
mod site;
mod tally;

use std::path::Path;
use std::time::{Duration, Instant};

use crate::process::{Beside, Result, is_required};
use place::Place;
use server::Server;
use site::Builder;
use tally::Tally;

/// The folder for all that is built and installed for browsers.
const FOLDER: &str = "target/browser";

/// The longest that a case takes, with room for a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// A section in which every case has numbers.
const WITH_NUMBERS: &str = "types";

#[derive(clap::Args)]
pub(crate) struct Options {
    /// Where.
    #[arg(long, value_enum, default_value_t = Place::Chromium)]
    place: Place,
    /// Only build what the page needs.
    #[arg(long)]
    build: bool,
    /// A part of the names of sections to run.
    #[arg(default_value = "")]
    only: String,
}

/// The command. It installs what is missing if packages may be installed. Otherwise there is
/// nothing to run: it says so, or fails if `TILEWISE_REQUIRE` has `browser`. If `TILEWISE_TURN` is
/// set, it runs a part of each section.
pub(crate) fn main(options: &Options) -> Result {
    let place = if options.build { None } else { Some(options.place) };
    let builder = match prepare(place)? {
        Ok(builder) => builder,
        Err(why) => {
            println!("skipped: {why}");
            return Ok(());
        }
    };
    builder.build()?;
    if options.build { Ok(()) } else { test(options.place, &options.only) }
}

/// Begins to build the page on the processors that other steps leave idle. The inner error says why
/// nothing can be run in Chromium here.
pub(crate) fn start() -> Result<std::result::Result<Beside, String>> {
    if let Err(why) = prepare(Some(Place::Chromium))? {
        return Ok(Err(why));
    }
    Beside::start(&["browser", "--build"]).map(Ok)
}

/// Finds or installs what the suite needs; the inner error says why it cannot be had.
fn prepare(place: Option<Place>) -> Result<std::result::Result<Builder, String>> {
    let found = match place.map_or(Ok(Ok(())), Place::prepare)? {
        Ok(()) => Builder::find()?,
        Err(why) => Err(why),
    };
    match found {
        Err(why) if is_required("browser") => Err(format!("a browser is required here, but {why}")),
        found => Ok(found),
    }
}

/// Runs the suite. Then runs one section with nothing submitted: all of its cases must fail.
fn test(place: Place, only: &str) -> Result {
    println!("-- {}", place.version()?);
    let start = Instant::now();
    let tally = run(place, only, false)?;
    println!("{tally} in {:.0} s", start.elapsed().as_secs_f64());
    tally.all_passed()?;
    if WITH_NUMBERS.contains(only) && place != Place::Other {
        println!("-- {WITH_NUMBERS} again, on a GPU that does nothing: its cases must fail");
        let idle = run(place, WITH_NUMBERS, true)?;
        println!("{idle}");
        idle.all_failed()?;
    }
    Ok(())
}

/// Opens the page, and listens until it has ended.
fn run(place: Place, only: &str, idle: bool) -> Result<Tally> {
    let server = Server::start(&Path::new(FOLDER).join(site::PAGE))?;
    let mut query = format!("only={only}");
    if idle {
        query += "&idle";
    }
    if let Ok(turn) = std::env::var("TILEWISE_TURN") {
        let turn: u32 = turn.parse().map_err(|why| format!("TILEWISE_TURN={turn}: {why}"))?;
        query += &format!("&turn={turn}");
    }
    let mut running =
        place.open(&format!("http://localhost:{}/index.html?{query}", server.port))?;
    let mut tally = Tally::default();
    let mut heard = Instant::now();
    while !tally.has_ended() {
        if let Some(event) = server.event(Duration::from_secs(1)) {
            heard = Instant::now();
            if let Some(line) = tally.hear(&event)? {
                // Failures on the idle GPU are expected.
                if !idle {
                    println!("{line}");
                }
            }
            continue;
        }
        if let Some(why) = running.ended() {
            return Err(format!("{why}; {}", tally.last()));
        }
        if place != Place::Other && heard.elapsed() > PATIENCE {
            return Err(format!("nothing for {} s; {}", PATIENCE.as_secs(), tally.last()));
        }
    }
    Ok(tally)
}
