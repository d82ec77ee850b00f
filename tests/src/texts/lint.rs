//! Finds code that some compiler refuses although naga takes it, if it is easy to see in a text.

use tilewise_shaders::portable::{beyond_wgsl, mixed_operators};
use tilewise_shaders::tokens::tokens;

/// Functions whose values decide for a whole workgroup, before barriers.
const CONDITIONS: [&str; 2] = ["schedule", "divided"];

/// Lines, counted from 1, and what is wrong with them.
pub fn lint(wgsl: &str) -> Vec<(usize, &'static str)> {
    let tokens = tokens(wgsl);
    let mixed = mixed_operators(&tokens).into_iter();
    let mut found: Vec<_> = mixed
        .map(|token| (token.line, "Tint wants parentheses where `&&` meets `||`"))
        .chain(beyond_wgsl(&tokens).iter().map(|token| (token.line, "WGSL has no such number")))
        .collect();
    // The returns of the current function. One that only texts for matrix units have is not
    // counted.
    let mut returns = None;
    let mut in_units_alone = false;
    let mut before = "";
    for token in tokens {
        let mut complain = |why| found.push((token.line, why));
        match token.text {
            "alias" => complain("naga's HLSL has helpers twice if a type has two names"),
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
    found.sort_by_key(|(line, _)| *line);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_reasons() {
        let text = "    alias V = u32;\n@must_use fn schedule() -> u32 {\n    \
                    if a { return 0u; }\n    if RETURNS_EARLY {\n        return 2u;\n    }\n    \
                    return 1u;\n}\nfn f() {\n    if a { return; }\n    return;\n}\n\
                    fn divided() { if a { return; } else { return; } }\n\
                    const b = c && d\n|| 1li == e;\n";
        let lines: Vec<_> = lint(text).into_iter().map(|(number, _)| number).collect();
        assert_eq!(lines, [1, 7, 13, 15, 15]);
    }
}
