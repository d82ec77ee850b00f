//! `tilewise generate`: a text by a language model.

use crate::args::GenerateArgs;
use crate::failure::{Failure, Result};
use crate::product::{adapter_text, open};
use crate::table::{NUMBER, TEXT, table};
use std::io::Write;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};
use tilewise::Weights;
use tilewise_models::{Model, Profile, Sampling, Session, Timed};

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
    // The prompt's pass gave the first token, so the rate is that of the others.
    let (tokens, time) = (answer.tokens().len(), start.elapsed());
    let rate = (tokens - 1) as f64 / time.as_secs_f64();
    let rate = if tokens > 1 { format!(", {rate:.1} tokens/s") } else { String::new() };
    writeln!(out, "\n\nadapter  {}", adapter_text(&context))?;
    let how = match args.raw || !tokenizer.has_chat() {
        true => "continued",
        false => "a message",
    };
    writeln!(out, "prompt   {}, {how}", speed(prompt.len(), of_prompt))?;
    writeln!(out, "answer   {tokens} tokens, {:.2} s{rate}", time.as_secs_f64())?;
    if args.profile {
        drop(answer);
        let times = |rows| {
            let session: Session = model.decoder().session(prompt.len(), sampling)?;
            session.profile_blocking(rows)
        };
        // The CPU executor computes while it records.
        let records = !context.is_cpu();
        write!(out, "\n{}", profile(&times(prompt.len())?, &times(1)?, records))?;
    }
    Ok(())
}

/// A number of tokens, with the time that they took.
fn speed(tokens: usize, time: Duration) -> String {
    let seconds = time.as_secs_f64();
    format!("{tokens} tokens, {seconds:.2} s, {:.1} tokens/s", tokens as f64 / seconds)
}

/// A table of the times of a pass over the prompt, and of one over a token.
fn profile(prompt: &Profile, token: &Profile, records: bool) -> String {
    let shown = |time: Duration, of: Duration| {
        let share = 100.0 * time.as_secs_f64() / of.as_secs_f64();
        [format!("{:.3}", 1e3 * time.as_secs_f64()), format!("{share:.1}")]
    };
    let [all, each] = [prompt.pass, token.pass];
    let row = |(long, short): (&Timed, &Timed)| {
        let name = [long.name.to_owned(), long.calls.to_string()];
        [name, shown(long.time, all), shown(short.time, each)].concat()
    };
    let mut table_rows: Vec<_> = prompt.calls.iter().zip(&token.calls).map(row).collect();
    let calls: usize = prompt.calls.iter().map(|timed| timed.calls).sum();
    let recording = ("recording, by the host", prompt.recording, token.recording);
    let sums = [Some(("all", all, each)), records.then_some(recording)];
    for (name, of_prompt, of_token) in sums.into_iter().flatten() {
        let name = [name.to_owned(), calls.to_string()];
        table_rows.push([name, shown(of_prompt, all), shown(of_token, each)].concat());
    }
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
