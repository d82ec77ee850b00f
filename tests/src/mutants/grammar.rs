//! Knows the grammar of WGSL and MSL that is needed to plant mistakes: matching brackets, and the
//! operands of an operator.

use std::ops::Range;
use tilewise_shaders::tokens::{Kind, Token};

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
pub(super) fn opening(tokens: &[Token<'_>], close: usize) -> Option<usize> {
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

/// How tightly a binary operator binds in C++. (If WGSL differs, it has parentheses.) `None` for
/// tokens that end an operand.
fn precedence(operator: &str) -> Option<u8> {
    Some(match operator {
        "||" => 1,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | "<=" | ">" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

/// The line that holds a byte, trimmed.
pub(super) fn line_at(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..].lines().next().unwrap_or("").trim()
}

/// Whether the token at `index` is an operator between two operands: such an operator has a blank
/// after it, other operators do not.
pub(super) fn is_binary(tokens: &[Token<'_>], index: usize) -> bool {
    let operand_before = index > 0
        && match tokens[index - 1].kind {
            Kind::Word => tokens[index - 1].text != "return",
            Kind::Number | Kind::Close => true,
            Kind::Operator | Kind::Open | Kind::OpenComment => false,
        };
    let blank_after = tokens.get(index + 1).is_some_and(|next| next.blank);
    tokens[index].kind == Kind::Operator
        && precedence(tokens[index].text).is_some()
        && operand_before
        && blank_after
}

/// Whether an operator is part of a member's name or of a qualified name.
pub(super) fn is_member(operator: &str) -> bool {
    matches!(operator, "." | "->" | "::")
}

/// Whether the operator at `index` stands before its only operand.
fn is_prefix(tokens: &[Token<'_>], index: usize) -> bool {
    matches!(tokens[index].text, "-" | "!" | "~" | "*" | "&") && !is_binary(tokens, index)
}

/// The operands of the binary operator at `index`, as ranges of tokens. All operators group to the
/// left.
pub(super) fn operands(tokens: &[Token<'_>], index: usize) -> Option<[Range<usize>; 2]> {
    let own = precedence(tokens[index].text)?;
    let [left, right] =
        [operand_before(tokens, index, own)?, operand_after(tokens, index + 1, own)?];
    (!left.is_empty() && !right.is_empty()).then_some([left, right])
}

/// The condition and both values of the `?` at `index`.
pub(super) fn choice(tokens: &[Token<'_>], index: usize) -> Option<[Range<usize>; 3]> {
    let condition = operand_before(tokens, index, 0)?;
    let mut depth = 0;
    let mut colon = index + 1;
    while depth > 0 || tokens.get(colon)?.text != ":" {
        match tokens.get(colon)? {
            token if token.kind == Kind::Open => colon = closing(tokens, colon)?,
            token if token.text == "?" => depth += 1,
            token if token.text == ":" => depth -= 1,
            _ => {}
        }
        colon += 1;
    }
    let mut other = operand_after(tokens, colon + 1, 0)?;
    if tokens.get(other.end).is_some_and(|next| next.text == "?") {
        other.end = choice(tokens, other.end)?[2].end;
    }
    Some([condition, index + 1..colon, other])
}

/// The operand that ends before `end` and binds at least as tightly as `own`.
fn operand_before(tokens: &[Token<'_>], end: usize, own: u8) -> Option<Range<usize>> {
    let mut start = end;
    while start > 0 {
        let before = &tokens[start - 1];
        match before.kind {
            Kind::Close if before.text != "}" => start = opening(tokens, start - 1)?,
            Kind::Word if !matches!(before.text, "return" | "if") => start -= 1,
            Kind::Number => start -= 1,
            Kind::Operator if is_member(before.text) => start -= 1,
            Kind::Operator
                if is_binary(tokens, start - 1) && precedence(before.text) >= Some(own) =>
            {
                start -= 1
            }
            Kind::Operator if is_prefix(tokens, start - 1) => start -= 1,
            _ => break,
        }
    }
    Some(start..end)
}

/// The operand that begins at `start` and binds more tightly than `own`.
fn operand_after(tokens: &[Token<'_>], start: usize, own: u8) -> Option<Range<usize>> {
    let mut end = start;
    while end < tokens.len() {
        let next = &tokens[end];
        match next.kind {
            Kind::Open if next.text != "{" => end = closing(tokens, end)? + 1,
            Kind::Word | Kind::Number => end += 1,
            Kind::Operator if is_member(next.text) => end += 1,
            Kind::Operator if is_binary(tokens, end) && precedence(next.text) > Some(own) => {
                end += 1
            }
            Kind::Operator if is_prefix(tokens, end) => end += 1,
            _ => break,
        }
    }
    Some(start..end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_shaders::tokens::tokens;

    #[test]
    fn arguments_of_templates() {
        let tokens = tokens("var v: array<vec4<f32>, A * 2u>;");
        let open = tokens.iter().position(|t| t.text == "<").unwrap();
        assert_eq!(arguments(&tokens, open).len(), 2);
    }

    fn joined(text: &str, operator: &str) -> [String; 2] {
        let tokens = tokens(text);
        let index = tokens.iter().position(|t| t.text == operator).unwrap();
        operands(&tokens, index)
            .unwrap()
            .map(|range| tokens[range].iter().map(|t| t.text).collect())
    }

    #[test]
    fn operands_by_precedence() {
        assert_eq!(joined("let a = b + c * d(e, f) % g - h;", "%"), ["c*d(e,f)", "g"]);
        assert_eq!(joined("let a = b + c[i].x - d / 2u * e;", "-"), ["b+c[i].x", "d/2u*e"]);
        assert_eq!(joined("return (a - b) / c;", "/"), ["(a-b)", "c"]);
        assert_eq!(joined("return x / (1.0 + exp(-y));", "/"), ["x", "(1.0+exp(-y))"]);
        assert_eq!(joined("f(a, b - c, d)", "-"), ["b", "c"]);
        assert_eq!(joined("if a && b < c + 1u { }", "<"), ["b", "c+1u"]);
        assert_eq!(
            joined("return vec2<f32>(a) >> vec2<u32>(0u, 4u);", ">>"),
            ["vec2<f32>(a)", "vec2<u32>(0u,4u)"]
        );
    }

    #[test]
    fn pointers_are_not_binary() {
        let tokens = tokens("void f(S &s) { p->a *q = r::b * 2; }");
        let binary: Vec<_> =
            (0..tokens.len()).filter(|&i| is_binary(&tokens, i)).map(|i| tokens[i].text).collect();
        assert_eq!(binary, ["*"]);
        assert_eq!(joined("x = p->a * r::b;", "*"), ["p->a", "r::b"]);
    }

    #[test]
    fn choices() {
        let parts = |text: &str, at: usize| {
            let tokens = tokens(text);
            let index = tokens.iter().enumerate().filter(|(_, t)| t.text == "?").nth(at).unwrap().0;
            choice(&tokens, index)
                .unwrap()
                .map(|range| tokens[range].iter().map(|t| t.text).collect::<String>())
        };
        assert_eq!(parts("f(a && b < c ? d + e : g, h)", 0), ["a&&b<c", "d+e", "g"]);
        assert_eq!(parts("x = a ? b : c ? d : e;", 0), ["a", "b", "c?d:e"]);
        assert_eq!(parts("x = a ? b ? c : d : e;", 0), ["a", "b?c:d", "e"]);
    }

    #[test]
    fn signs_are_not_binary() {
        let tokens = tokens("return -a - -b;");
        let minus: Vec<_> = (0..tokens.len())
            .filter(|&i| tokens[i].text == "-")
            .map(|i| is_binary(&tokens, i))
            .collect();
        assert_eq!(minus, [false, true, false]);
    }
}
