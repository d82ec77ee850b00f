//! What some compiler refuses although naga takes it, as far as it is cheap to see in a text.

/// Functions whose values decide, for a whole workgroup, what lies before barriers.
const CONDITIONS: [&str; 2] = ["schedule(", "divided"];

/// Lines, counted from 1, and what is wrong with them.
pub fn lint(wgsl: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    // Returns of the function at hand, but for one that texts for matrix units alone have.
    let mut returns = None;
    let mut in_units_alone = false;
    for (number, line) in (1..).zip(wgsl.lines()) {
        let code = line.split("//").next().unwrap_or_default();
        if code.starts_with("alias ") {
            found.push((number, "naga's HLSL has helpers twice where a type has two names"));
        }
        if mixes_operators(code) {
            found.push((number, "Tint wants parentheses where `&&` meets `||`"));
        }
        if code.starts_with("fn ") {
            let is_condition = CONDITIONS.iter().any(|name| code[3..].starts_with(name));
            returns = is_condition.then_some(0);
        }
        in_units_alone |= code.trim() == "if RETURNS_EARLY {";
        if !has_word(code, "return") || std::mem::take(&mut in_units_alone) {
            continue;
        }
        if let Some(count) = &mut returns {
            *count += 1;
            if *count == 2 {
                found.push((number, "FXC takes barriers behind it for divided: return once"));
            }
        }
    }
    found
}

fn has_word(code: &str, word: &str) -> bool {
    code.split(|it: char| !it.is_alphanumeric() && it != '_').any(|own| own == word)
}

/// Whether `&&` and `||` stand side by side within one pair of parentheses.
fn mixes_operators(code: &str) -> bool {
    // The operator of each pair that is open.
    let mut open = vec![None];
    for at in 0..code.len() {
        match code.as_bytes()[at] {
            b'(' | b'[' => open.push(None),
            b')' | b']' if open.len() > 1 => drop(open.pop()),
            b';' | b'{' | b'}' | b',' => *open.last_mut().expect("one is left") = None,
            own @ (b'&' | b'|') if code.as_bytes().get(at + 1) == Some(&own) => {
                let before = open.last_mut().expect("one is left").replace(own);
                if before.is_some_and(|before| before != own) {
                    return true;
                }
            }
            _ => {}
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mixed_operators() {
        for mixed in ["if a || b && c {", "x = f(a && b || c);", "return a && (b) || c;"] {
            assert!(mixes_operators(mixed), "{mixed}");
        }
        for plain in ["if a || (b && c) {", "f(a && b, c || d);", "x = (a && b) && c; y = a || b;"]
        {
            assert!(!mixes_operators(plain), "{plain}");
        }
    }

    #[test]
    fn lines_and_reasons() {
        let text = "alias V = u32;\nfn schedule() -> u32 {\n    if a { return 0u; }\n    \
                    if RETURNS_EARLY {\n        return 2u;\n    }\n    return 1u;\n}\nfn f() {\n    if a { return; }\n    return;\n}\n";
        let lines: Vec<_> = lint(text).into_iter().map(|(number, _)| number).collect();
        assert_eq!(lines, [1, 7]);
    }
}
