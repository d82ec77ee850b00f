//! `tilewise search`.

use super::embed::{lines, vectors};
use crate::args::SearchArgs;
use crate::failure::Result;
use crate::product;
use crate::table::{NUMBER, TEXT, table};
use std::io::Write;
use tilewise_models::Encoder;

pub(super) fn run(args: &SearchArgs, out: &mut dyn Write) -> Result<()> {
    let lines = lines(&args.file)?;
    let context = product::open(args.adapter.as_deref())?;
    let encoder = Encoder::open(&context, &args.model)?;
    let query = &encoder.embed(&[&args.query])?[0];
    let score = |vector: Vec<f32>| query.iter().zip(vector).map(|(q, x)| q * x).sum::<f32>();
    let mut found: Vec<_> =
        vectors(&encoder, &lines)?.into_iter().map(score).zip(1..).zip(lines).collect();
    found.retain(|(_, text)| !text.trim().is_empty());
    found.sort_by(|((a, _), _), ((b, _), _)| b.total_cmp(a));
    let row = |((score, number), text): ((f32, usize), String)| {
        vec![format!("{score:.3}"), number.to_string(), text]
    };
    let rows = found.into_iter().take(args.top).map(row).collect();
    write!(out, "{}", table(&[("score", NUMBER), ("line", NUMBER), ("text", TEXT)], rows))?;
    Ok(())
}
