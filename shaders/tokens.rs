//! The tokens of WGSL and of MSL, for everything that reads texts of shaders.

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An identifier or a keyword.
    Word,
    /// A number with its suffix.
    Number,
    /// An operator, or any other punctuation except brackets.
    Operator,
    /// `(`, `[`, `{`, or the `<` of a template.
    Open,
    /// `)`, `]`, `}`, or the `>` of a template.
    Close,
    /// A block comment without an end. It is the last token; other comments are no tokens.
    OpenComment,
}

/// A token and its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token<'a> {
    /// Its kind.
    pub kind: Kind,
    /// Its text.
    pub text: &'a str,
    /// Whether a blank, a comment or nothing stands before it.
    pub blank: bool,
    /// Its first byte.
    pub start: usize,
    /// Its line, from 1.
    pub line: usize,
    /// Its column, from 1.
    pub column: usize,
}

impl Token<'_> {
    /// The byte after its last one.
    pub fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Operators, longer ones first.
const OPERATORS: [&str; 22] = [
    "<<=", ">>=", "->", "::", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=",
    "/=", "%=", "&=", "|=", "^=", "++", "--",
];

/// The tokens of a text, without comments and string literals. Comparisons have blanks before
/// them, which tells them from brackets of templates. Block comments nest, as in WGSL.
///
/// ```
/// use tilewise_shaders::tokens::tokens;
///
/// let texts: Vec<_> = tokens("let a = b.x >> 2u; // c").iter().map(|token| token.text).collect();
/// assert_eq!(texts, ["let", "a", "=", "b", ".", "x", ">>", "2u", ";"]);
/// ```
pub fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let (mut start, mut line, mut column, mut blank) = (0, 1, 1, true);
    while let Some(first) = text[start..].chars().next() {
        let rest = &text[start..];
        let (kind, length) = begin(rest, first, blank);
        let text = &rest[..length];
        tokens.extend(kind.map(|kind| Token { kind, text, blank, start, line, column }));
        blank = kind.is_none();
        start += length;
        if let Some((lines, last)) = text.rsplit_once('\n') {
            line += 1 + lines.matches('\n').count();
            column = 1 + last.chars().count();
        } else {
            column += text.chars().count();
        }
    }
    tokens
}

/// Kind and length of the part that a text begins with. The kind is `None` for blanks, comments and
/// string literals.
fn begin(text: &str, first: char, blank: bool) -> (Option<Kind>, usize) {
    let length = |found: Option<usize>| found.unwrap_or(text.len());
    match first {
        _ if first.is_whitespace() => (None, first.len_utf8()),
        '/' if text.starts_with("//") => (None, length(text.find('\n'))),
        '/' if text.starts_with("/*") => match comment(text) {
            Some(length) => (None, length),
            None => (Some(Kind::OpenComment), text.len()),
        },
        '"' => (None, length(text[1..].find('"').map(|end| end + 2))),
        '0'..='9' => (Some(Kind::Number), length(text.find(|c| !in_word(c) && c != '.'))),
        _ if in_word(first) => (Some(Kind::Word), length(text.find(|c| !in_word(c)))),
        '(' | '[' | '{' => (Some(Kind::Open), 1),
        ')' | ']' | '}' => (Some(Kind::Close), 1),
        '<' if !blank => (Some(Kind::Open), 1),
        '>' if !blank => (Some(Kind::Close), 1),
        _ => {
            let operator = OPERATORS.iter().find(|operator| text.starts_with(**operator));
            (Some(Kind::Operator), operator.map_or(first.len_utf8(), |operator| operator.len()))
        }
    }
}

fn in_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Length of the block comment that a text begins with. `None` if it has no end.
fn comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    while let Some(pair) = text.as_bytes().get(at..at + 2) {
        match pair {
            b"/*" => depth += 1,
            b"*/" => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str) -> Vec<&str> {
        tokens(text).iter().map(|token| token.text).collect()
    }

    #[test]
    fn templates_and_comparisons() {
        let text = "var v: array<vec4<f32>, A * 2u>; // a < b\nif a >> 2u <= b { x += 1.5; }";
        let tokens = tokens(text).into_iter();
        let operators: Vec<_> =
            tokens.filter(|token| token.kind == Kind::Operator).map(|token| token.text).collect();
        assert_eq!(operators, [":", ",", "*", ";", ">>", "<=", "+=", ";"]);
    }

    #[test]
    fn numbers_and_members() {
        assert_eq!(texts("y.x = 0x7fu + 1.5;"), ["y", ".", "x", "=", "0x7fu", "+", "1.5", ";"]);
    }

    #[test]
    fn comments_and_string_literals() {
        assert_eq!(texts("a /* b /* c */ d */ \"e /* f\" g // h\nψ_1"), ["a", "g", "ψ_1"]);
        assert_eq!(texts("/* a /**/ */ // /*"), [""; 0]);
        let tokens = tokens("a\n é /* b /* c */ d");
        let last = tokens.last().unwrap();
        assert_eq!((last.kind, last.line, last.column), (Kind::OpenComment, 2, 4));
    }

    #[test]
    fn places() {
        let tokens = tokens("é+a/**/b\n\n  \"\n\" c");
        let places: Vec<_> = tokens.iter().map(|t| (t.line, t.column, t.start, t.blank)).collect();
        let [e, plus, a, b, c] = places[..] else { panic!("{places:?}") };
        assert_eq!([e, plus, a], [(1, 1, 0, true), (1, 2, 2, false), (1, 3, 3, false)]);
        assert_eq!([b, c], [(1, 8, 8, true), (4, 3, 17, true)]);
    }
}
