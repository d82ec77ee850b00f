//! `tilewise embed`.

use crate::args::EmbedArgs;
use crate::array::Array;
use crate::failure::{Failure, Result};
use crate::{product, progress};
use std::io::{Read, Write};
use std::path::Path;
use tilewise_core::problem::DType;
use tilewise_models::Encoder;

/// Texts that are computed together.
const BATCH: usize = 32;

pub(super) fn run(args: &EmbedArgs, out: &mut dyn Write) -> Result<()> {
    args.output.iter().try_for_each(|output| output.probe([]))?;
    let lines = lines(&args.file)?;
    let context = product::open(args.adapter.as_deref())?;
    let encoder = Encoder::open(&context, &args.model)?;
    let vectors = vectors(&encoder, &lines)?;
    let Some(output) = &args.output else {
        for vector in vectors {
            let numbers: Vec<_> = vector.iter().map(f32::to_string).collect();
            writeln!(out, "{}", numbers.join(" "))?;
        }
        return Ok(());
    };
    let shape = vec![vectors.len(), encoder.width()];
    let size = ("vectors", crate::array::shape_text(&shape));
    let bytes = vectors.iter().flatten().flat_map(|number| number.to_le_bytes()).collect();
    output.write(&Array { dtype: DType::F32, shape, bytes })?;
    product::report(out, &context, [size], None, output)
}

/// The lines of a file, or of standard input for `-`.
pub(super) fn lines(file: &Path) -> Result<Vec<String>> {
    let mut text = String::new();
    let read = match file == "-" {
        true => std::io::stdin().read_to_string(&mut text).map(drop),
        false => std::fs::read_to_string(file).map(|whole| text = whole),
    };
    read.map_err(|why| Failure::Other(format!("{}: {why}", file.display())))?;
    Ok(text.lines().map(str::to_owned).collect())
}

/// A vector for each line. Lines of like length are computed together, so little is padded.
pub(super) fn vectors(encoder: &Encoder, lines: &[String]) -> Result<Vec<Vec<f32>>> {
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|&line| lines[line].len());
    let mut vectors = vec![Vec::new(); lines.len()];
    let bar = progress::of_steps(lines.len() as u64, "computing vectors");
    for batch in order.chunks(BATCH) {
        let texts: Vec<&str> = batch.iter().map(|&line| &*lines[line]).collect();
        for (&line, vector) in batch.iter().zip(encoder.embed(&texts)?) {
            vectors[line] = vector;
        }
        bar.inc(batch.len() as u64);
    }
    bar.finish_and_clear();
    Ok(vectors)
}
