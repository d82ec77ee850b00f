//! Finds code that some compiler refuses although naga takes it, if it is easy to see in a text.

use crate::mutants::token::tokens;

/// Functions whose values decide for a whole workgroup, before barriers.
const CONDITIONS: [&str; 2] = ["schedule", "divided"];

/// Lines, counted from 1, and what is wrong with them.
pub fn lint(wgsl: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    // The operator in each open bracket.
    let mut open = vec![None];
    // The returns of the current function. One that only texts for matrix units have is not
    // counted.
    let mut returns = None;
    let mut in_units_alone = false;
    let mut before = "";
    for token in tokens(wgsl) {
        let mut complain = |why| {
            found.push((wgsl[..token.start].matches('\n').count() + 1, why));
        };
        match token.text {
            "alias" => complain("naga's HLSL has helpers twice where a type has two names"),
            "(" | "[" => open.push(None),
            ")" | "]" if open.len() > 1 => drop(open.pop()),
            ";" | "," | "{" | "}" => *open.last_mut().expect("one is left") = None,
            operator @ ("&&" | "||") => {
                let other = open.last_mut().expect("one is left").replace(operator);
                if other.is_some_and(|other| other != operator) {
                    complain("Tint wants parentheses where `&&` meets `||`");
                }
            }
            name if before == "fn" => returns = CONDITIONS.contains(&name).then_some(0),
            "RETURNS_EARLY" => in_units_alone = before == "if",
            "return" if std::mem::take(&mut in_units_alone) => {}
            "return" => {
                if let Some(count) = &mut returns {
                    *count += 1;
                    if *count == 2 {
                        complain("FXC takes barriers behind it for divided: return once");
                    }
                }
            }
            _ => {}
        }
        before = token.text;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_operators() {
        for mixed in ["if a || b && c {", "x = f(a && b\n|| c);", "return a && (b) || c;"] {
            assert_eq!(lint(mixed).len(), 1, "{mixed}");
        }
        for plain in [
            "if a || (b && c) {",
            "f(a && b, c || d);",
            "x = (a && b) && c; y = a || b;",
            "if a && b {} if c || d {}",
        ] {
            assert_eq!(lint(plain), [], "{plain}");
        }
    }

    #[test]
    fn lines_and_reasons() {
        let text = "    alias V = u32;\n@must_use fn schedule() -> u32 {\n    \
                    if a { return 0u; }\n    if RETURNS_EARLY {\n        return 2u;\n    }\n    \
                    return 1u;\n}\nfn f() {\n    if a { return; }\n    return;\n}\n\
                    fn divided() { if a { return; } else { return; } }\n";
        let lines: Vec<_> = lint(text).into_iter().map(|(number, _)| number).collect();
        assert_eq!(lines, [1, 7, 13]);
    }
}
