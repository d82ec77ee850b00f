//! Finds WGSL that naga takes and that other compilers refuse. The library's own texts and those of
//! users' kernels are checked.

use crate::tokens::{Kind, Token};

/// Each `&&` beside an `||`, and each `||` beside an `&&`, with no parentheses between them.
///
/// ```
/// use tilewise_shaders::{portable::mixed_operators, tokens::tokens};
///
/// assert_eq!(mixed_operators(&tokens("if a || b && c {"))[0].column, 11);
/// ```
pub fn mixed_operators<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    // The last operator in this bracket, and in each bracket around it.
    let (mut operator, mut outer) = (None, Vec::new());
    let mut found = Vec::new();
    for token in tokens {
        match token.text {
            "(" | "[" => outer.push(operator.take()),
            ")" | "]" => operator = outer.pop().flatten(),
            ";" | "," | "{" | "}" => operator = None,
            own @ ("&&" | "||") => {
                let before = operator.replace(own);
                found.extend(before.filter(|&other| other != own).map(|_| *token));
            }
            _ => {}
        }
    }
    found
}

/// Each number and each type that WGSL lacks: those of 64 bits, and integers of 16 bits.
///
/// ```
/// use tilewise_shaders::{portable::beyond_wgsl, tokens::tokens};
///
/// assert_eq!(beyond_wgsl(&tokens("let a = 1lu;"))[0].text, "1lu");
/// ```
pub fn beyond_wgsl<'a>(tokens: &[Token<'a>]) -> Vec<Token<'a>> {
    let beyond = |&index: &usize| {
        let Token { kind, text, .. } = tokens[index];
        let member = index > 0 && tokens[index - 1].text == ".";
        match kind {
            Kind::Number => ["lf", "li", "lu"].iter().any(|suffix| text.ends_with(suffix)),
            _ => !member && ["f64", "i64", "u64", "i16", "u16"].contains(&text),
        }
    };
    (0..tokens.len()).filter(beyond).map(|index| tokens[index]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tokens::tokens;

    #[test]
    fn operators_side_by_side() {
        for mixed in [
            "x = f(a &&\n b || c);",
            "y = 1;\na && (b) || c",
            "{ a || b\n && c; }",
            "if a ||\nb && c {",
        ] {
            let lines: Vec<_> = mixed_operators(&tokens(mixed)).iter().map(|t| t.line).collect();
            assert_eq!(lines, [2], "{mixed}");
        }
        for plain in [
            "if a || (b && c) {",
            "f(a && b, c || d);",
            "x = (a && b) && c; y = a || b;",
            "if a && b { c = d || e; }",
            "p = &a; x = a & b | c;",
            "if a && b {} if c || d {}",
        ] {
            assert_eq!(mixed_operators(&tokens(plain)), [], "{plain}");
        }
    }

    #[test]
    fn numbers_that_wgsl_does_not_have() {
        for (text, found) in [
            ("x = 1u;\nlet y = 0x1Flu;", Some(("0x1Flu", 2, 9))),
            ("1.5lf", Some(("1.5lf", 1, 1))),
            ("1e-5lf + 2li", Some(("5lf", 1, 4))),
            ("var a: array<i64>", Some(("i64", 1, 14))),
            ("v.u64 = 1f; half = 0x1f; // u16", None),
            ("a1lu = 1;", None),
        ] {
            let first = beyond_wgsl(&tokens(text)).first().map(|t| (t.text, t.line, t.column));
            assert_eq!(first, found, "{text}");
        }
    }
}
