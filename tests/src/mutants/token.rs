//! As much of WGSL's grammar as it takes to plant mistakes: words, numbers and operators, brackets that match, and what an operator joins.

use std::ops::Range;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// An identifier or a keyword.
    Word,
    /// A literal.
    Number,
    /// An operator, or any other punctuation but brackets.
    Operator,
    /// `(`, `[`, `{`, or the `<` of a template.
    Open,
    /// What closes them.
    Close,
}

/// A token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    pub(super) start: usize,
}

impl Token<'_> {
    pub(super) fn end(&self) -> usize {
        self.start + self.text.len()
    }
}

/// Longer ones first.
const OPERATORS: [&str; 20] = [
    "<<=", ">>=", "->", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=",
    "++",
];

/// The tokens of a file, without comments. Brackets of templates are told from comparisons by the blanks that stand around those.
pub(super) fn tokens(text: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let rest = &text[at..];
        let first = bytes[at];
        if first.is_ascii_whitespace() {
            at += 1;
            continue;
        }
        if rest.starts_with("//") {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        let blank_before = at == 0 || bytes[at - 1].is_ascii_whitespace();
        let (kind, length) = match first {
            b'0'..=b'9' => (Kind::Number, word(rest, true)),
            b'(' | b'[' | b'{' => (Kind::Open, 1),
            b')' | b']' | b'}' => (Kind::Close, 1),
            b'<' if !blank_before => (Kind::Open, 1),
            b'>' if !blank_before => (Kind::Close, 1),
            _ if first.is_ascii_alphabetic() || first == b'_' => (Kind::Word, word(rest, false)),
            _ => {
                let operator = OPERATORS.iter().find(|operator| rest.starts_with(**operator));
                (
                    Kind::Operator,
                    operator.map_or(rest.chars().next().map_or(1, char::len_utf8), |operator| operator.len()),
                )
            }
        };
        tokens.push(Token { kind, text: &text[at..at + length], start: at });
        at += length;
    }
    tokens
}

fn word(text: &str, number: bool) -> usize {
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_' || number && c == '.';
    text.find(|c| !inside(c)).unwrap_or(text.len())
}

/// Index of the bracket that closes the one at `open`.
pub(super) fn closing(tokens: &[Token<'_>], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (index, token) in tokens.iter().enumerate().skip(open) {
        match token.kind {
            Kind::Open => depth += 1,
            Kind::Close => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// Index of the bracket that the one at `close` closes.
fn opening(tokens: &[Token<'_>], close: usize) -> Option<usize> {
    let mut depth = 0usize;
    for index in (0..=close).rev() {
        match tokens[index].kind {
            Kind::Close => depth += 1,
            Kind::Open => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(index);
        }
    }
    None
}

/// The arguments between the bracket at `open` and its end, as ranges of tokens.
pub(super) fn arguments(tokens: &[Token<'_>], open: usize) -> Vec<Range<usize>> {
    let Some(close) = closing(tokens, open) else { return Vec::new() };
    let (mut found, mut start, mut index) = (Vec::new(), open + 1, open + 1);
    while index < close {
        if tokens[index].text == "," {
            found.push(start..index);
            start = index + 1;
        } else if tokens[index].kind == Kind::Open {
            index = closing(tokens, index).unwrap_or(close);
        }
        index += 1;
    }
    found.push(start..close);
    found.retain(|range| !range.is_empty());
    found
}

/// How tightly a binary operator binds; `None` for what ends an operand.
fn precedence(operator: &str) -> Option<u8> {
    Some(match operator {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "<" | "<=" | ">" | ">=" | "==" | "!=" => 6,
        "<<" | ">>" => 7,
        "+" | "-" => 8,
        "*" | "/" | "%" => 9,
        _ => return None,
    })
}

/// Whether the token at `index` is an operator between two operands.
pub(super) fn is_binary(tokens: &[Token<'_>], index: usize) -> bool {
    let operand_before = index > 0
        && match tokens[index - 1].kind {
            Kind::Word => tokens[index - 1].text != "return",
            Kind::Number | Kind::Close => true,
            Kind::Operator | Kind::Open => false,
        };
    tokens[index].kind == Kind::Operator && precedence(tokens[index].text).is_some() && operand_before
}

/// The operands of the binary operator at `index`, as ranges of tokens. All operators group to the left.
pub(super) fn operands(tokens: &[Token<'_>], index: usize) -> Option<[Range<usize>; 2]> {
    let own = precedence(tokens[index].text)?;
    let mut start = index;
    while start > 0 {
        let before = &tokens[start - 1];
        match before.kind {
            Kind::Close if before.text != "}" => start = opening(tokens, start - 1)?,
            Kind::Word if !matches!(before.text, "return" | "if") => start -= 1,
            Kind::Number => start -= 1,
            Kind::Operator if before.text == "." => start -= 1,
            Kind::Operator if is_binary(tokens, start - 1) && precedence(before.text) >= Some(own) => start -= 1,
            Kind::Operator if matches!(before.text, "-" | "!" | "~") && !is_binary(tokens, start - 1) => start -= 1,
            _ => break,
        }
    }
    let mut end = index + 1;
    while end < tokens.len() {
        let next = &tokens[end];
        match next.kind {
            Kind::Open if next.text != "{" => end = closing(tokens, end)? + 1,
            Kind::Word | Kind::Number => end += 1,
            Kind::Operator if next.text == "." => end += 1,
            Kind::Operator if is_binary(tokens, end) && precedence(next.text) > Some(own) => end += 1,
            Kind::Operator if matches!(next.text, "-" | "!" | "~") && !is_binary(tokens, end) => end += 1,
            _ => break,
        }
    }
    (start < index && end > index + 1).then_some([start..index, index + 1..end])
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
        let tokens = tokens(text);
        let operators: Vec<_> = tokens.iter().filter(|t| t.kind == Kind::Operator).map(|t| t.text).collect();
        assert_eq!(operators, [":", ",", "*", ";", ">>", "<=", "+=", ";"]);
        let open = tokens.iter().position(|t| t.text == "<").unwrap();
        assert_eq!(arguments(&tokens, open).len(), 2);
    }

    #[test]
    fn numbers_and_members() {
        assert_eq!(texts("y.x = 0x7fu + 1.5;"), ["y", ".", "x", "=", "0x7fu", "+", "1.5", ";"]);
    }

    fn joined(text: &str, operator: &str) -> [String; 2] {
        let tokens = tokens(text);
        let index = tokens.iter().position(|t| t.text == operator).unwrap();
        operands(&tokens, index).unwrap().map(|range| tokens[range].iter().map(|t| t.text).collect())
    }

    #[test]
    fn operands_by_precedence() {
        assert_eq!(joined("let a = b + c * d(e, f) % g - h;", "%"), ["c*d(e,f)", "g"]);
        assert_eq!(joined("let a = b + c[i].x - d / 2u * e;", "-"), ["b+c[i].x", "d/2u*e"]);
        assert_eq!(joined("return (a - b) / c;", "/"), ["(a-b)", "c"]);
        assert_eq!(joined("return x / (1.0 + exp(-y));", "/"), ["x", "(1.0+exp(-y))"]);
        assert_eq!(joined("f(a, b - c, d)", "-"), ["b", "c"]);
        assert_eq!(joined("if a && b < c + 1u { }", "<"), ["b", "c+1u"]);
        assert_eq!(joined("return vec2<f32>(a) >> vec2<u32>(0u, 4u);", ">>"), ["vec2<f32>(a)", "vec2<u32>(0u,4u)"]);
    }

    #[test]
    fn signs_are_not_binary() {
        let tokens = tokens("return -a - -b;");
        let minus: Vec<_> =
            (0..tokens.len()).filter(|&i| tokens[i].text == "-").map(|i| is_binary(&tokens, i)).collect();
        assert_eq!(minus, [false, true, false]);
    }
}
