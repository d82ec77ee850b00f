//! `tilewise generate`: a text by a language model.

use crate::args::GenerateArgs;
use crate::failure::{Failure, Result};
use crate::product::{adapter_text, open};
use crate::table::{NUMBER, TEXT, table};
use std::io::Write;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};
use tilewise::Weights;
use tilewise_models::{Model, Sampling, Session, Timed};

pub(super) fn run(args: &GenerateArgs, out: &mut dyn Write) -> Result<()> {
    if args.model.name().is_some() {
        return Err(Failure::Usage(format!("{}: name a model, without #TENSOR", args.model)));
    }
    let context = open(args.adapter.as_deref())?;
    let model = Model::new(&Weights::new(&context, args.model.model()?))?;
    let tokenizer = model.tokenizer();
    let prompt = match args.raw {
        true => tokenizer.encode(&args.prompt)?,
        false => tokenizer.chat(&args.prompt)?,
    };
    let sampling = Sampling {
        temperature: args.temperature,
        top_k: args.top_k.map_or(usize::MAX, NonZeroUsize::get),
        top_p: args.top_p,
        min_p: args.min_p,
        seed: args.seed,
    };
    let start = Instant::now();
    let mut answer = model.generate_blocking(&prompt, args.tokens.get(), sampling)?;
    let (of_prompt, start) = (start.elapsed(), Instant::now());
    while let Some(text) = answer.next_blocking()? {
        write!(out, "{text}")?;
        out.flush()?;
    }
    // The prompt's pass gave the first token.
    let steps = answer.tokens().len() - 1;
    writeln!(out, "\n\nadapter  {}", adapter_text(&context))?;
    writeln!(out, "prompt   {}", speed(prompt.len(), of_prompt))?;
    writeln!(out, "answer   {}", speed(steps, start.elapsed()))?;
    if args.profile {
        drop(answer);
        let times = |rows| {
            let session: Session = model.decoder().session(prompt.len(), sampling)?;
            session.profile_blocking(rows)
        };
        write!(out, "\n{}", profile(&times(prompt.len())?, &times(1)?))?;
    }
    Ok(())
}

/// A number of tokens, with the time that they took.
fn speed(tokens: usize, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    format!("{tokens} tokens, {seconds:.2} s, {:.1} tokens/s", tokens as f64 / seconds)
}

/// A table of the times of calls, in a pass over the prompt and over one token.
fn profile(prompt: &[Timed], token: &[Timed]) -> String {
    let total = |times: &[Timed]| times.iter().map(|timed| timed.time).sum::<Duration>();
    let (all, each) = (total(prompt), total(token));
    let shown = |time: Duration, of: Duration| {
        let share = 100.0 * time.as_secs_f64() / of.as_secs_f64();
        [format!("{:.3}", 1e3 * time.as_secs_f64()), format!("{share:.1}")]
    };
    let row = |(long, short): (&Timed, &Timed)| {
        let name = [long.name.to_owned(), long.calls.to_string()];
        [name, shown(long.time, all), shown(short.time, each)].concat()
    };
    let mut table_rows: Vec<_> = prompt.iter().zip(token).map(row).collect();
    let calls: usize = prompt.iter().map(|timed| timed.calls).sum();
    let sums = ["all".to_owned(), calls.to_string()];
    table_rows.push([sums, shown(all, all), shown(each, each)].concat());
    let columns = [
        ("call", TEXT),
        ("number", NUMBER),
        ("ms of prompt", NUMBER),
        ("%", NUMBER),
        ("ms of token", NUMBER),
        ("%", NUMBER),
    ];
    table(&columns, table_rows)
}
