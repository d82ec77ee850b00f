//! Prints how many sentences a second an encoder takes, in f32 and f16, by the size of the batch:
//! `cargo run --release -p tilewise-models --example sentences -- target/models/minilm`.
//! `TILEWISE_ADAPTER` names the adapter.

use std::time::{Duration, Instant};
use tilewise::{Context, DType, Result};
use tilewise_models::Encoder;

/// It has 26 tokens, with the two around it.
const SENTENCE: &str = "When the river was low that summer, the ferry ran aground twice before its \
                        captain learned where the sandbanks were.";

/// The time that each line measures at least.
const LONG: Duration = Duration::from_secs(5);

fn main() -> Result<()> {
    let folder = std::env::args().nth(1).unwrap_or("target/models/minilm".into());
    let context = Context::new()?;
    println!("{}", context.adapter_name());
    for dtype in [DType::F32, DType::F16] {
        let encoder = Encoder::open_as(&context, &folder, dtype)?;
        for batch in [1, 32, 256] {
            let texts = vec![SENTENCE; batch];
            // The first call compiles.
            encoder.embed(&texts)?;
            let (begin, mut calls) = (Instant::now(), 0);
            while calls == 0 || begin.elapsed() < LONG {
                encoder.embed(&texts)?;
                calls += 1;
            }
            let rate = (calls * batch) as f64 / begin.elapsed().as_secs_f64();
            println!("{dtype}, batch {batch:3}: {rate:8.1} sentences/s");
        }
    }
    Ok(())
}
