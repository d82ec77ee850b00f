//! Rule 4 of the assembly: a loop `for (var i = 0u; i < N; i += 1u) { //unroll` with constant N
//! becomes N blocks that begin with `const i = 0u;`, `const i = 1u;` and so on, so that indices
//! into register arrays are constants. A bound consists of constants of the module, indices of
//! repeated loops around it, and what `let NAME: u32 = ...;` makes of these.
//!
//! Drivers unroll loops only up to some size of function; beyond it an array indexed in a loop goes
//! to memory, at a tenth of the speed.

use std::borrow::Cow;
use std::collections::HashMap;

/// The expressions of names that a bound may have.
type Constants<'a> = HashMap<&'a str, Cow<'a, str>>;

/// Repetitions of a loop, at most: none of ours needs more, and a bound with a mistake in it must
/// not fill the memory.
const MOST_REPETITIONS: u32 = 256;

/// The text with every marked loop repeated.
///
/// # Errors
/// When a marked loop is not of the form above or its bound is no constant of the module, which a
/// test finds for every shader.
pub fn unroll(text: &str) -> Result<String, String> {
    let constants = text.lines().filter_map(|line| named("const ", line)).collect();
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::with_capacity(2 * text.len());
    emit(&lines, &constants, &mut out)?;
    Ok(out)
}

/// Name and expression of a u32 that a line declares with this keyword.
fn named<'a>(keyword: &str, line: &'a str) -> Option<(&'a str, Cow<'a, str>)> {
    let (name, rest) = line.strip_prefix(keyword)?.split_once(": u32 = ")?;
    Some((name, rest.split_once(';')?.0.into()))
}

fn emit<'a>(lines: &[&'a str], constants: &Constants<'a>, out: &mut String) -> Result<(), String> {
    let mut constants = constants.clone();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let Some(head) = line.trim_end().strip_suffix("//unroll") else {
            constants.extend(named("let ", line.trim_start()));
            out.push_str(line);
            out.push('\n');
            at += 1;
            continue;
        };
        let (name, bound) = parse(head).ok_or_else(|| format!("cannot unroll {line:?}"))?;
        let end = at + closing(&lines[at..])?;
        let count = evaluate(bound, &constants, 0)?;
        if count > MOST_REPETITIONS {
            return Err(format!("{count} repetitions of {line:?}, at most {MOST_REPETITIONS}"));
        }
        for i in 0..count {
            out.push_str(&format!("{{ const {name} = {i}u;\n"));
            constants.insert(name, format!("{i}u").into());
            emit(&lines[at + 1..end], &constants, out)?;
            out.push_str("}\n");
        }
        at = end + 1;
    }
    Ok(())
}

/// Variable and bound of `for (var i = 0u; i < N; i += 1u) {`.
fn parse(head: &str) -> Option<(&str, &str)> {
    let (name, rest) = head.trim().strip_prefix("for (var ")?.split_once(" = 0u; ")?;
    let (bound, step) = rest.strip_prefix(name)?.strip_prefix(" < ")?.split_once("; ")?;
    (step.trim_end().strip_prefix(name)? == " += 1u) {").then_some((name, bound))
}

/// Index of the line that closes the block which the first line opens.
fn closing(lines: &[&str]) -> Result<usize, String> {
    let mut depth = 0i32;
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        depth += code.matches('{').count() as i32 - code.matches('}').count() as i32;
        if depth == 0 {
            return Ok(index);
        }
    }
    Err(format!("a loop to unroll is not closed: {:?}", lines.first()))
}

/// Depth of constants that refer to each other, at most.
const MOST_DEPTH: u32 = 16;

/// Value of an expression of u32 literals, constants, `+ - * / %` and parentheses.
fn evaluate(expression: &str, constants: &Constants<'_>, depth: u32) -> Result<u32, String> {
    if depth > MOST_DEPTH {
        return Err(format!("{expression:?} leads in a circle"));
    }
    let mut rest = expression;
    let value = sum(&mut rest, constants, depth)?;
    if rest.trim().is_empty() {
        Ok(value)
    } else {
        Err(format!("cannot evaluate {expression:?}: stopped at {rest:?}"))
    }
}

fn sum(rest: &mut &str, constants: &Constants<'_>, depth: u32) -> Result<u32, String> {
    let mut value = product(rest, constants, depth)?;
    while let Some(operator) = operator(rest, "+-") {
        let right = product(rest, constants, depth)?;
        let result =
            if operator == '+' { value.checked_add(right) } else { value.checked_sub(right) };
        value = result.ok_or_else(|| format!("{value} {operator} {right} is no u32"))?;
    }
    Ok(value)
}

fn product(rest: &mut &str, constants: &Constants<'_>, depth: u32) -> Result<u32, String> {
    let mut value = atom(rest, constants, depth)?;
    while let Some(operator) = operator(rest, "*/%") {
        let right = atom(rest, constants, depth)?;
        let result = match operator {
            '*' => value.checked_mul(right),
            '/' => value.checked_div(right),
            _ => value.checked_rem(right),
        };
        value = result.ok_or_else(|| format!("{value} {operator} {right} is no u32"))?;
    }
    Ok(value)
}

fn operator(rest: &mut &str, among: &str) -> Option<char> {
    let trimmed = rest.trim_start();
    let found = trimmed.chars().next().filter(|c| among.contains(*c))?;
    *rest = &trimmed[1..];
    Some(found)
}

fn atom(rest: &mut &str, constants: &Constants<'_>, depth: u32) -> Result<u32, String> {
    let trimmed = rest.trim_start();
    if let Some(inner) = trimmed.strip_prefix('(') {
        *rest = inner;
        let value = sum(rest, constants, depth)?;
        *rest =
            rest.trim_start().strip_prefix(')').ok_or_else(|| format!("no ) in {trimmed:?}"))?;
        return Ok(value);
    }
    let end = trimmed.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(trimmed.len());
    let (word, after) = trimmed.split_at(end);
    *rest = after;
    match word.strip_suffix('u').and_then(|digits| digits.parse().ok()) {
        Some(literal) => Ok(literal),
        None => {
            let expression =
                constants.get(word).ok_or_else(|| format!("{word:?} is no constant"))?;
            evaluate(expression, constants, depth + 1)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluates_constants_of_constants() {
        let text = "const BM: u32 = 64u; //param\nconst N: u32 = (BM * 3u + 31u) / 32u % 4u;\n";
        let constants = text.lines().filter_map(|line| named("const ", line)).collect();
        assert_eq!(evaluate("N - 1u", &constants, 0), Ok(1));
        assert!(evaluate("N - 3u", &constants, 0).unwrap_err().contains("2 - 3"));
        let circle = HashMap::from([("A", "B".into()), ("B", "A".into())]);
        assert!(evaluate("A", &circle, 0).unwrap_err().contains("circle"));
    }

    #[test]
    fn repeats_nested_loops() {
        let text = "const N: u32 = 2u;\n\
                    for (var i = 0u; i < N; i += 1u) { //unroll\n\
                    for (var j = 0u; j < i + 1u; j += 1u) {\n\
                    x(i, j);\n\
                    }\n\
                    }\n";
        let unrolled = unroll(text).unwrap();
        assert_eq!(unrolled.matches("const i = ").count(), 2);
        assert_eq!(unrolled.matches("x(i, j);").count(), 2);
        assert!(!unrolled.contains("//unroll"));
        let both =
            unroll(&text.replace("j += 1u) {", "j += 1u) { //unroll").replace("i + 1u", "3u"))
                .unwrap();
        assert_eq!(both.matches("x(i, j);").count(), 6);
        let inner = text.replace("for (var j", "    let most: u32 = 2u * i + 1u;\nfor (var j");
        let inner = inner.replace("j < i + 1u; j += 1u) {", "j < most; j += 1u) { //unroll");
        assert_eq!(unroll(&inner).unwrap().matches("x(i, j);").count(), 1 + 3);
    }

    #[test]
    fn refuses_other_loops() {
        for (head, why) in
            [("var i = 1u; i < 4u", "cannot unroll"), ("var i = 0u; i < 1000u", "at most")]
        {
            let refused = unroll(&format!("for ({head}; i += 1u) {{ //unroll\n}}\n")).unwrap_err();
            assert!(refused.contains(why), "{refused}");
        }
    }
}
