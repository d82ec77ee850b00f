//! The text of a shader, into which messages point.

use codespan_reporting::diagnostic::{Diagnostic, Label};
use codespan_reporting::files::{Files, Location, SimpleFiles};
use codespan_reporting::term;
use codespan_reporting::term::termcolor::{Ansi, NoColor, WriteColor};
use std::ops::Range;

/// The text of a shader: the whole, and the parts that have names of their own.
#[derive(Debug)]
pub(crate) struct Text {
    /// The whole under number 0, then the parts.
    files: SimpleFiles<String, String>,
    /// The places of the parts in the whole; part `i` is file `i + 1`.
    parts: Vec<Range<usize>>,
}

/// A piece of the text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Position {
    /// The file's or the part's name.
    pub(crate) file: String,
    /// Line of its beginning, from 1.
    pub(crate) line: usize,
    /// Column of its beginning in characters, from 1.
    pub(crate) column: usize,
    /// Bytes of the file or the part.
    pub(crate) range: Range<usize>,
}

impl Text {
    pub(crate) fn new(name: &str, source: &str) -> Self {
        let mut files = SimpleFiles::new();
        files.add(name.to_owned(), printable(source));
        Text { files, parts: Vec::new() }
    }

    /// Gives the piece of the source at `range` a name of its own.
    pub(crate) fn add_part(&mut self, name: &str, piece: &str, range: Range<usize>) {
        self.files.add(name.to_owned(), printable(piece));
        self.parts.push(range);
    }

    /// The file that holds these bytes of the whole, and their place in it: the first part that
    /// holds all of them, or else the whole. Spans that end beyond the text or inside a character
    /// are moved to the nearest characters. `None` for an empty text.
    fn find(&self, span: Range<usize>) -> Option<(usize, Range<usize>)> {
        let whole = self.files.source(0).ok().filter(|whole| !whole.is_empty())?;
        let start = whole.floor_char_boundary(span.start);
        let end = whole.ceil_char_boundary(span.end).max(start);
        let part = self.parts.iter().position(|part| part.start <= start && end <= part.end);
        Some(match part {
            Some(index) => {
                let base = self.parts[index].start;
                (index + 1, start - base..end - base)
            }
            None => (0, start..end),
        })
    }

    /// The position of these bytes of the whole; `None` for an empty text.
    pub(crate) fn position(&self, span: Range<usize>) -> Option<Position> {
        let (file, range) = self.find(span)?;
        let Location { line_number, column_number } =
            self.files.location(file, range.start).ok()?;
        Some(Position {
            file: self.files.name(file).ok()?,
            line: line_number,
            column: column_number,
            range,
        })
    }

    /// Labels for a diagnostic, the first one primary. Those that point nowhere become notes,
    /// unless they are empty.
    pub(crate) fn labels(
        &self,
        labels: impl IntoIterator<Item = (Option<Range<usize>>, String)>,
    ) -> (Vec<Label<usize>>, Vec<String>) {
        let (mut placed, mut notes) = (Vec::new(), Vec::new());
        for (index, (span, message)) in labels.into_iter().enumerate() {
            match span.and_then(|span| self.find(span)) {
                Some((file, range)) if index == 0 => {
                    placed.push(Label::primary(file, range).with_message(message))
                }
                Some((file, range)) => {
                    placed.push(Label::secondary(file, range).with_message(message))
                }
                None if message.is_empty() => {}
                None => notes.push(format!("note: {message}")),
            }
        }
        (placed, notes)
    }

    /// The diagnostic in rustc's manner.
    pub(crate) fn render(&self, diagnostic: &Diagnostic<usize>, color: bool) -> String {
        let bytes = if color {
            let mut writer = Ansi::new(Vec::new());
            self.emit(&mut writer, diagnostic);
            writer.into_inner()
        } else {
            let mut writer = NoColor::new(Vec::new());
            self.emit(&mut writer, diagnostic);
            writer.into_inner()
        };
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn emit(&self, writer: &mut impl WriteColor, diagnostic: &Diagnostic<usize>) {
        let config = term::Config { chars: term::Chars::ascii(), ..term::Config::default() };
        // Writing to memory does not fail, and `find` gives only places in the files. If it failed
        // anyway, the message would still be given.
        if term::emit_to_write_style(writer, &config, &self.files, diagnostic).is_err() {
            let _ = writeln!(writer, "error: {}", diagnostic.message);
        }
    }
}

/// The text with characters that would steer a terminal replaced by harmless ones of as many bytes.
fn printable(source: &str) -> String {
    let mut characters = source.chars().peekable();
    let mut text = String::with_capacity(source.len());
    while let Some(character) = characters.next() {
        text.push(match character {
            '\t' | '\n' => character,
            '\r' if characters.peek() == Some(&'\n') => character,
            _ if !character.is_control() => character,
            _ if character.len_utf8() == 1 => '?',
            _ => '¿',
        });
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_span_of_a_nasty_text_is_rendered() {
        let source = "\t\u{1F980}é\r\n\r\n\tx\u{1b}\u{80}\r\u{2028}漢字\n\0é";
        let mut text = Text::new("nasty", source);
        text.add_part("part", &source[8..], 8..source.len());
        for start in 0..source.len() + 3 {
            for end in 0..source.len() + 3 {
                let position = text.position(start..end).unwrap();
                let (labels, notes) = text.labels([
                    (Some(start..end), "first".to_owned()),
                    (Some(end..start), "second".to_owned()),
                    (None, "third".to_owned()),
                ]);
                let diagnostic =
                    Diagnostic::error().with_message("m").with_labels(labels).with_notes(notes);
                for color in [false, true] {
                    let shown = text.render(&diagnostic, color);
                    for piece in ["first", "second", "note: third", position.file.as_str()] {
                        assert!(shown.contains(piece), "{start}..{end}: {shown}");
                    }
                }
            }
        }
    }

    #[test]
    fn replacements_keep_every_byte_where_it_is() {
        let source = "a\u{1b}b\u{9b}c\rd\r\n\te\u{7f}";
        assert_eq!(printable(source), "a?b¿c?d\r\n\te?");
        assert_eq!(printable(source).len(), source.len());
    }

    #[test]
    fn an_empty_text_has_no_positions() {
        assert_eq!(Text::new("empty", "").position(0..0), None);
    }

    #[test]
    fn positions_at_the_end() {
        let text = Text::new("t", "ab\ncd");
        let at = |span| text.position(span).map(|at| (at.line, at.column, at.range)).unwrap();
        assert_eq!(at(3..5), (2, 1, 3..5));
        assert_eq!(at(5..5), (2, 3, 5..5));
        assert_eq!(at(7..9), (2, 3, 5..5));
    }
}
