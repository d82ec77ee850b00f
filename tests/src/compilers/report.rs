//! Reports what compilers refuse, in the words of our files.

use super::{Compiler, Met, Outcome};
use crate::texts::Text;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Most complaints to show for a compiler.
const TOLD: usize = 20;

/// Most texts to name for the time that they take.
const SLOWEST: usize = 5;

/// The complaints, each once with the number of texts that meet it, and the texts that took
/// longest.
pub fn report(compiler: Compiler, met: &[Met<'_>]) -> String {
    let mut complaints = BTreeMap::<_, Vec<_>>::new();
    for own in met {
        let why = match &own.outcome {
            Outcome::Taken => continue,
            Outcome::Slow => format!("{}: too slow", own.text.name),
            Outcome::Refused(words) => refusal(compiler, own, words),
        };
        complaints.entry(why).or_default().push(own);
    }
    let refused: usize = complaints.values().map(Vec::len).sum();
    let mut text = String::new();
    for (why, texts) in complaints.iter().take(TOLD) {
        let first = &texts[0];
        let wgsl = first.path.with_extension("wgsl");
        // Keeps the WGSL: the file that the compiler read tells little without its source.
        let _ = std::fs::write(&wgsl, &first.text.wgsl);
        let _ = writeln!(text, "{}: {why}", compiler.name());
        let _ = writeln!(
            text,
            "    {} texts, of {}; {}",
            texts.len(),
            names(texts),
            first.path.display()
        );
    }
    if complaints.len() > TOLD {
        let _ = writeln!(text, "... and {} complaints more", complaints.len() - TOLD);
    }
    let mut slowest: Vec<_> = met.iter().collect();
    slowest.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    let named = |own: &&Met<'_>| {
        let file = own.path.file_stem().unwrap_or_default().display();
        format!("{file} {:.1} s", own.seconds)
    };
    let slowest: Vec<_> = slowest.iter().take(SLOWEST).map(named).collect();
    let _ = writeln!(
        text,
        "{}: {} texts, {refused} refused; slowest: {}",
        compiler.name(),
        met.len(),
        slowest.join(", ")
    );
    text
}

/// The names of texts, each once.
fn names(texts: &[&Met<'_>]) -> String {
    let mut names: Vec<_> = texts.iter().map(|own| own.text.name.as_str()).collect();
    names.dedup();
    match names.len() {
        ..=8 => names.join(", "),
        count => format!("{} and {} more", names[..7].join(", "), count - 7),
    }
}

/// The first error, with its place in our files: the line, or for HLSL the function around it.
fn refusal(compiler: Compiler, met: &Met<'_>, words: &str) -> String {
    let error = words.lines().find(|line| line.contains("error")).or(words.lines().next());
    let error = error.unwrap_or("no message");
    let Some((line, message)) = numbered(error) else { return error.to_owned() };
    let place = match compiler {
        Compiler::Tint => met.text.place(line),
        _ => std::fs::read_to_string(&met.path)
            .ok()
            .and_then(|hlsl| in_function(met.text, &hlsl, line)),
    };
    match place {
        Some(place) => format!("{place}: {message}"),
        None => error.to_owned(),
    }
}

/// The line that a message names, and its words. Tint writes `10:2: words`, DXC `hlsl.hlsl:10:2:
/// words`, and FXC `(10,2-8): words`.
fn numbered(message: &str) -> Option<(usize, &str)> {
    let (place, words) = message.split_once(": ")?;
    let number = match place.rsplit_once('(') {
        Some((_, number)) => number,
        None => place.trim_start_matches("hlsl.hlsl:"),
    };
    let number = number.split([':', ',']).next()?;
    Some((number.parse().ok()?, words))
}

/// The function of ours that holds a line of the HLSL.
fn in_function(text: &Text, hlsl: &str, line: usize) -> Option<String> {
    let lines: Vec<_> = hlsl.lines().take(line).collect();
    let head = lines.iter().rev().find(|line| {
        line.contains('(')
            && line.starts_with(|first: char| first.is_alphabetic())
            && !line.contains('=')
    })?;
    let name = head.split_once('(')?.0.rsplit(' ').next()?;
    // naga adds an underscore to names that end with a digit, and numbers to names that are taken.
    let own = name.trim_end_matches('_');
    let declared = |line: &str| {
        line.starts_with(&format!("fn {own}(")) || line.starts_with(&format!("fn {name}("))
    };
    let place = text.wgsl.lines().position(declared).and_then(|at| text.place(at + 1));
    Some(place.map_or_else(|| format!("{name} of the HLSL"), |place| format!("{place} ({own})")))
}

#[cfg(test)]
mod tests {
    use super::numbered;

    #[test]
    fn places_in_messages() {
        for message in ["10:2: no", "hlsl.hlsl:10:2: no", "(10,2-8): no", "Z:\\a\\b@0(10,2): no"] {
            assert_eq!(numbered(message), Some((10, "no")), "{message}");
        }
        assert_eq!(numbered("error: no place"), None);
    }
}
