//! Parsed and validated WGSL.

mod text;

use crate::compile::{self, compile};
use crate::deep::deep;
use crate::program::Program;
use crate::{Error, Launch, Options};
use codespan_reporting::diagnostic::Diagnostic;
use naga::WithSpan;
use naga::front::wgsl::{self, Frontend, ParseError};
use naga::valid::{Capabilities, ModuleInfo, ValidationError, ValidationFlags, Validator};
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
pub(crate) use text::{Position, Text};

/// Parsed and validated WGSL, with its text for the reports.
#[derive(Debug)]
pub struct Shader {
    name: String,
    source: String,
    text: Text,
    module: naga::Module,
    info: ModuleInfo,
    /// The last compiled program, and its key: most shaders are run many times in one way.
    compiled: Mutex<Option<(compile::Key, Arc<Program>)>>,
}

impl Shader {
    /// Parses and validates `source`. `name` stands for it in reports, as a file's name would.
    ///
    /// # Errors
    /// `Invalid`, with a text that points at the source; `Limit` if there is no thread to parse on.
    pub fn parse(name: &str, source: &str) -> Result<Self, Error> {
        let text = Text::new(name, source);
        let module = module(source, &text)?;
        Self::validated(name, source, text, module)
    }

    /// Like [`parse`](Self::parse), for a module that a program put together. Each part is a name
    /// and the bytes of `source` that hold it. A finding in a part is reported under the part's
    /// name, with the lines counted from the part's own beginning. The rest of `source` is called
    /// `generated`.
    ///
    /// # Errors
    /// `Invalid` for a part that is not a piece of `source`; otherwise as [`parse`](Self::parse).
    pub fn parse_parts(source: &str, parts: &[(String, Range<usize>)]) -> Result<Self, Error> {
        let name = "generated";
        let mut text = Text::new(name, source);
        for (part, range) in parts {
            let piece = source.get(range.clone()).ok_or_else(|| {
                Error::Invalid(format!(
                    "part {part:?}: bytes {range:?} are no piece of a source of {} bytes",
                    source.len()
                ))
            })?;
            text.add_part(part, piece, range.clone());
        }
        let module = module(source, &text)?;
        Self::validated(name, source, text, module)
    }

    /// Takes a module made elsewhere; `source` is the text that its spans point into, and may be
    /// empty.
    ///
    /// # Errors
    /// `Invalid`, with a text that points at the source.
    pub fn from_module(name: &str, source: &str, module: naga::Module) -> Result<Self, Error> {
        Self::validated(name, source, Text::new(name, source), module)
    }

    fn validated(
        name: &str,
        source: &str,
        text: Text,
        module: naga::Module,
    ) -> Result<Self, Error> {
        let info = Validator::new(ValidationFlags::all(), Capabilities::all())
            .validate(&module)
            .map_err(|error| invalid(&text, &validation_diagnostic(&error, &text)))?;
        Ok(Shader {
            name: name.to_owned(),
            source: source.to_owned(),
            text,
            module,
            info,
            compiled: Mutex::default(),
        })
    }

    /// The name given to [`parse`](Self::parse); `generated` after
    /// [`parse_parts`](Self::parse_parts).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The text.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The place where these bytes of the source begin, such as `file.wgsl:3:5`: the file or the
    /// part, the line, and the column in characters, both from 1. `None` if there is no source.
    pub fn locate(&self, span: Range<usize>) -> Option<String> {
        self.text
            .position(span)
            .map(|Position { file, line, column, .. }| format!("{file}:{line}:{column}"))
    }

    /// naga's module.
    pub fn module(&self) -> &naga::Module {
        &self.module
    }

    /// Results of naga's validator.
    pub fn info(&self) -> &ModuleInfo {
        &self.info
    }

    /// Names of the compute entry points.
    pub fn entry_points(&self) -> impl Iterator<Item = &str> {
        let compute = |entry: &&naga::EntryPoint| entry.stage == naga::ShaderStage::Compute;
        self.module.entry_points.iter().filter(compute).map(|entry| entry.name.as_str())
    }

    /// Whether launches of this shader and of `other`, each with one entry point and with these
    /// options, do the same, whatever is bound. If `true`, the two differ at most in functions that
    /// are never called, in branches that a constant closes, and in the places of their text. If
    /// `false`, they may do the same or not.
    ///
    /// # Errors
    /// The errors of [`Launch::run`], for what is not executed here.
    pub fn is_same_program(&self, other: &Shader, options: &Options) -> Result<bool, Error> {
        let program =
            |shader: &Shader| shader.compiled(&Launch::new(shader).options(options.clone()));
        Ok(program(self)?.is_same(&*program(other)?))
    }

    /// The compiled form for a launch of this shader.
    pub(crate) fn compiled(&self, launch: &Launch<'_>) -> Result<Arc<Program>, Error> {
        let key = compile::Key::of(launch);
        let last = || self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, program)) = last().as_ref().filter(|(known, _)| *known == key) {
            return Ok(program.clone());
        }
        let program = Arc::new(compile(launch)?);
        *last() = Some((key, program.clone()));
        Ok(program)
    }

    /// The text as the reports show it.
    pub(crate) fn text(&self) -> &Text {
        &self.text
    }
}

fn module(source: &str, text: &Text) -> Result<naga::Module, Error> {
    let mut options = wgsl::Options::new();
    options.capabilities = Capabilities::all();
    deep(|| Frontend::new_with_options(options).parse(source))
        .map_err(|error| Error::Limit(format!("no thread to parse on: {error}")))?
        .map_err(|error| invalid(text, &parse_diagnostic(&error, text)))
}

fn invalid(text: &Text, diagnostic: &Diagnostic<usize>) -> Error {
    Error::Invalid(text.render(diagnostic, false).trim_end().to_owned())
}

fn parse_diagnostic(error: &ParseError, text: &Text) -> Diagnostic<usize> {
    let labels = error.labels().map(|(span, label)| (span.to_range(), label.to_owned()));
    let (labels, mut notes) = text.labels(labels);
    notes.extend(error.notes().map(|note| format!("note: {note}")));
    Diagnostic::error().with_message(error.message()).with_labels(labels).with_notes(notes)
}

fn validation_diagnostic(error: &WithSpan<ValidationError>, text: &Text) -> Diagnostic<usize> {
    // naga labels a span with the Rust type of what it holds.
    let short = |label: &str| without_numbers(label.rsplit("::").next().unwrap_or_default());
    let labels = error.spans().map(|(span, label)| (span.to_range(), short(label)));
    let (labels, mut notes) = text.labels(labels);
    let mut cause = std::error::Error::source(error.as_inner());
    while let Some(error) = cause {
        notes.push(format!("note: {}", without_numbers(&error.to_string())));
        cause = error.source();
    }
    Diagnostic::error()
        .with_message(without_numbers(&error.to_string()))
        .with_labels(labels)
        .with_notes(notes)
}

/// A message of naga's validator without indices into naga's own tables, such as `Type [4]`, which
/// say nothing about the text.
fn without_numbers(message: &str) -> String {
    let message = message.replace(": [", ":[");
    let mut words: Vec<&str> = Vec::new();
    let mut rest = message.split(' ').peekable();
    while let Some(word) = rest.next() {
        let inner = word.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        if inner.is_none_or(|number| {
            number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit())
        }) {
            words.push(word);
            continue;
        }
        match words.last().map(|last| last.to_lowercase()).as_deref() {
            // The place of an argument is counted in the text.
            Some("argument") => words.push(word),
            Some(
                "constant" | "expression" | "function" | "handle" | "override" | "pointer" | "type"
                | "value" | "variable",
            ) => {}
            _ if rest.peek() == Some(&"bounds") => {}
            _ => words.push("this"),
        }
    }
    words.join(" ").replace(":[", ": [")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel's body inside a module made around it, as `parse_parts` takes them.
    fn assembled(body: &str) -> (String, Vec<(String, Range<usize>)>) {
        let head = "@group(0) @binding(0) var<storage, read_write> data: array<u32>;\n@compute \
                    @workgroup_size(1) fn main() {\n";
        let parts = vec![("body.wgsl".to_owned(), head.len()..head.len() + body.len())];
        (format!("{head}{body}\n}}\n"), parts)
    }

    fn refusal(result: Result<Shader, Error>) -> String {
        match result {
            Err(Error::Invalid(text)) => text,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn locations_count_characters_from_one() {
        let source = "// é\n@compute @workgroup_size(1)\n\tfn main() { /* ö */ }\n";
        let shader = Shader::parse("a.wgsl", source).unwrap();
        let at = |part: &str| {
            let start = source.find(part).unwrap();
            shader.locate(start..start + part.len()).unwrap()
        };
        assert_eq!(at("@compute"), "a.wgsl:2:1");
        assert_eq!(at("fn main"), "a.wgsl:3:2");
        assert_eq!(at(" */"), "a.wgsl:3:18");
        assert_eq!(shader.locate(source.len()..source.len()).unwrap(), "a.wgsl:4:1");
        assert_eq!(shader.locate(9999..99999).unwrap(), "a.wgsl:4:1");
    }

    #[test]
    fn parts_are_numbered_on_their_own() {
        let (source, parts) = assembled("let a = 1u;\ndata[a] = 2u;");
        let shader = Shader::parse_parts(&source, &parts).unwrap();
        let at = |piece: &str| {
            shader.locate(source.find(piece).unwrap()..source.find(piece).unwrap() + 1).unwrap()
        };
        assert_eq!(at("data[a]"), "body.wgsl:2:1");
        assert_eq!(at("@compute"), "generated:2:1");
        assert_eq!(shader.locate(0..source.len()).unwrap(), "generated:1:1");
        assert_eq!(shader.name(), "generated");
    }

    #[test]
    fn errors_point_into_the_part() {
        let (source, parts) = assembled("let a = 1u;\ndata[a] = missing;");
        let parse = refusal(Shader::parse_parts(&source, &parts));
        assert!(parse.starts_with("error: ") && parse.contains("--> body.wgsl:2:11"), "{parse}");
        assert!(parse.contains("2 | data[a] = missing;"), "{parse}");

        // Parses, and is refused by the validator.
        let (source, parts) = assembled("var f = 1f;\nworkgroupBarrier(); f = f << 1u;");
        let valid = refusal(Shader::parse_parts(&source, &parts));
        assert!(valid.contains("--> body.wgsl:2:") && valid.contains("= note: "), "{valid}");
        assert!(!valid.contains("::"), "{valid}");
    }

    #[test]
    fn numbers_of_tables_are_not_told() {
        for (told, shown) in [
            ("Accessing index 7 is out of [6] bounds", "Accessing index 7 is out of bounds"),
            ("Type [4]", "Type"),
            ("Function [0] 'main' is invalid", "Function 'main' is invalid"),
            ("Loading of [12] can't be done", "Loading of this can't be done"),
            (
                "Argument [0] to Max as expression [3] has an invalid type.",
                "Argument [0] to Max as expression has an invalid type.",
            ),
            ("with Array { base: [4], size: Dynamic }", "with Array { base: [4], size: Dynamic }"),
            ("an array of [u32] and []", "an array of [u32] and []"),
        ] {
            assert_eq!(without_numbers(told), shown);
        }
        let source =
            "var<private> a: array<u32, 4>;\n@compute @workgroup_size(1) fn main() { a[7] = 1u; }";
        let text = refusal(Shader::parse("a.wgsl", source));
        assert!(text.contains("index 7 is out of bounds") && !text.contains(" ["), "{text}");
    }

    #[test]
    fn a_part_must_be_a_piece_of_the_source() {
        #[expect(clippy::reversed_empty_ranges, reason = "that is what is tried")]
        for range in [0..100, 5..3, 4..5] {
            let text = refusal(Shader::parse_parts("// é", &[("p".to_owned(), range)]));
            assert!(text.contains("part \"p\""), "{text}");
        }
    }

    #[test]
    fn a_module_without_source() {
        let module = |body| {
            naga::front::wgsl::parse_str(&format!(
                "@compute @workgroup_size(1) fn main() {{ {body} }}"
            ))
            .unwrap()
        };
        let shader = Shader::from_module("m", "", module("")).unwrap();
        assert_eq!(shader.locate(3..9), None);
        assert_eq!(shader.entry_points().collect::<Vec<_>>(), ["main"]);
        let text = refusal(Shader::from_module("m", "", module("var f = 1f; f = f << 1u;")));
        assert!(text.starts_with("error: ") && text.contains("= note: "), "{text}");
        // A source that is not the module's own must not matter either.
        refusal(Shader::from_module("m", "é\t\r\n", module("var f = 1f; f = f << 1u;")));
    }

    #[test]
    fn broken_text_is_an_error_and_no_panic() {
        for source in [
            "@",
            "fn",
            "\u{1F980}",
            "fn f() {\r\n\tlet é = ",
            "/*",
            "\0",
            "// \u{1b}[31m\nfn",
            "fn main() { let x = ;\r}",
        ] {
            let text = refusal(Shader::parse("broken.wgsl", source));
            assert!(text.contains("--> broken.wgsl:"), "{text}");
            assert!(!text.contains('\u{1b}'), "{text}");
        }
    }
}
