//! Tells the mutation check what the tokens of a file are.

use super::grammar::{arguments, closing, line_at};
use std::ops::Range;
use tilewise_core::kernel::Language;
use tilewise_shaders::tokens::{Kind, Token};

/// The kind of place in which a token stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Code,
    /// The head of a loop that is repeated in the text: only its bound can change.
    Unrolled,
    /// Code that the compiler evaluates: sizes of arrays, and constants made of others.
    Constant,
    /// Declarations, and constants whose value the planner gives. Nothing is changed here.
    Declaration,
}

/// The place of each token.
pub(super) fn places(language: Language, text: &str, tokens: &[Token<'_>]) -> Vec<Place> {
    match language {
        Language::Wgsl => tokens.iter().map(|token| in_wgsl(line_at(text, token.start))).collect(),
        Language::Msl => in_msl(text, tokens),
    }
}

/// The place of a line's tokens: bindings, attributes, members of structs, and constants are
/// marked. An assertion only refuses texts that do not occur.
fn in_wgsl(line: &str) -> Place {
    match line {
        _ if line.ends_with("//unroll") => Place::Unrolled,
        _ if line.starts_with('@') || line.contains("@builtin") => Place::Declaration,
        _ if line.ends_with("//param") || line.starts_with("const_assert") => Place::Declaration,
        _ => Place::Code,
    }
}

/// The bodies of functions are code, and so are macros of one line that declare nothing.
fn in_msl(text: &str, tokens: &[Token<'_>]) -> Vec<Place> {
    let mut places = bodies(tokens);
    let end = |from: usize, what: &str| {
        tokens[from..]
            .iter()
            .position(|token| token.text == what)
            .map_or(tokens.len(), |at| from + at)
    };
    for index in 0..tokens.len() {
        let inside = |tokens| index + 1..closing(tokens, index).unwrap_or(index + 1);
        match tokens[index].text {
            "using" => places[index..end(index, ";")].fill(Place::Declaration),
            "case" => places[index..end(index, ":")].fill(Place::Declaration),
            "constexpr" => {
                let (value, last) = (end(index, "=") + 1, end(index, ";"));
                places[index..value].fill(Place::Declaration);
                places[value..last].fill(Place::Constant);
            }
            "SHARED" if tokens[index + 1].text == "(" => {
                places[index..end(index, ";")].fill(Place::Declaration);
                if let [.., size] = arguments(tokens, index + 1).as_slice() {
                    places[size.clone()].fill(Place::Constant);
                }
            }
            "<" if tokens[index].kind == Kind::Open => {
                places[inside(tokens)].fill(Place::Declaration)
            }
            "[" if declares_array(tokens, index) => places[inside(tokens)].fill(Place::Constant),
            _ => {}
        }
    }
    for directive in directives(text) {
        let within = |token: &Token<'_>| directive.contains(&token.start);
        let first = tokens.iter().position(within).unwrap_or(tokens.len());
        let last = first + tokens[first..].iter().take_while(|token| within(token)).count();
        places[first..last].fill(Place::Declaration);
        if let Some(body) = macro_body(&tokens[first..last]) {
            places[first + body..last].fill(Place::Code);
        }
    }
    places
}

/// Marks text in braces after a list of parameters as code.
fn bodies(tokens: &[Token<'_>]) -> Vec<Place> {
    let mut open: Vec<bool> = Vec::new();
    let mut places = Vec::with_capacity(tokens.len());
    for (index, token) in tokens.iter().enumerate() {
        let inside = open.last() == Some(&true);
        match token.text {
            "{" => {
                let qualifiers = |token: &&Token<'_>| matches!(token.text, "const" | "thread");
                let before = tokens[..index].iter().rev().find(|token| !qualifiers(token));
                open.push(inside || before.is_some_and(|token| token.text == ")"));
            }
            "}" => {
                open.pop();
            }
            _ => {}
        }
        places.push(if inside { Place::Code } else { Place::Declaration });
    }
    places
}

/// Whether the bracket at `open` holds the size of an array that is declared there. Then a type, a
/// name, and perhaps other sizes stand before it.
pub(super) fn declares_array(tokens: &[Token<'_>], open: usize) -> bool {
    let mut name = open;
    while name > 0 && tokens[name - 1].text == "]" {
        match tokens[..name].iter().rposition(|token| token.text == "[") {
            Some(other) => name = other,
            None => return false,
        }
    }
    name >= 2 && tokens[name - 1].kind == Kind::Word && is_type(&tokens[name - 2])
}

/// Whether a name after this token is declared there.
pub(super) fn is_type(token: &Token<'_>) -> bool {
    match token.kind {
        Kind::Word => !matches!(token.text, "return" | "else"),
        Kind::Close => token.text == ">",
        _ => false,
    }
}

/// The bytes of each directive, with the lines that continue it.
fn directives(text: &str) -> Vec<Range<usize>> {
    let (mut found, mut at, mut continued): (Vec<Range<usize>>, usize, bool) =
        (Vec::new(), 0, false);
    for line in text.split_inclusive('\n') {
        let next = at + line.len();
        match found.last_mut() {
            Some(last) if continued => last.end = next,
            _ if line.starts_with('#') => found.push(at..next),
            _ => {}
        }
        continued = line.trim_end().ends_with('\\') && (continued || line.starts_with('#'));
        at = next;
    }
    found
}

/// The index at which the code of a macro begins. Only macros of one line that declare nothing have
/// code.
fn macro_body(directive: &[Token<'_>]) -> Option<usize> {
    let [_, define, name, rest @ ..] = directive else { return None };
    let one_line = directive.iter().all(|token| token.text != "\\");
    let declares = name.text.ends_with("_ARGUMENTS") || name.text == "SHARED";
    if define.text != "define" || declares || !one_line {
        return None;
    }
    let parameters = rest.first().is_some_and(|token| token.text == "(" && !token.blank);
    Some(if parameters { closing(directive, 3)? + 1 } else { 3 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_shaders::tokens::tokens;

    /// The tokens in a place of this kind.
    fn of(place: Place, text: &str) -> Vec<&str> {
        let tokens = tokens(text);
        let places = places(Language::Msl, text, &tokens);
        tokens
            .iter()
            .zip(places)
            .filter(|(_, other)| *other == place)
            .map(|(token, _)| token.text)
            .collect()
    }

    #[test]
    fn code_is_in_bodies() {
        let text = "struct S {\n    uint a;\n    uint f(uint b) const thread {\n        return \
                    a;\n    }\n};";
        assert_eq!(of(Place::Code, text), ["return", "a", ";", "}"]);
    }

    #[test]
    fn macros_of_one_line() {
        assert_eq!(
            of(Place::Code, "#define F(a) (a) * 2\n#if G\n#define H \\\n    1\n"),
            ["(", "a", ")", "*", "2"]
        );
        assert_eq!(of(Place::Code, "#define X_ARGUMENTS , device half *x\n"), [""; 0]);
    }

    #[test]
    fn constants() {
        assert_eq!(of(Place::Constant, "constexpr constant uint A = B + 1;"), ["B", "+", "1"]);
        assert_eq!(
            of(Place::Constant, "void f() { float a[M][N] = {}; a[i][j] = 0; }"),
            ["M", "N"]
        );
        assert_eq!(of(Place::Constant, "void f() { SHARED(float, a, 2 * N); }"), ["2", "*", "N"]);
    }

    #[test]
    fn templates_are_declarations() {
        assert_eq!(
            of(Place::Code, "void f() { g<h, 8>(1); }"),
            ["g", "<", ">", "(", "1", ")", ";", "}"]
        );
    }
}
