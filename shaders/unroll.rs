//! Rule 4 of the assembly: a loop `for (var i = 0u; i < N; i += 1u) { //unroll` with constant N becomes N blocks that begin with
//! `const i = 0u;`, `const i = 1u;` and so on, so that indices into register arrays are constants.
//!
//! Drivers unroll loops only up to some size of function; beyond it an array indexed in a loop goes to memory, at a tenth of the speed.

use std::collections::HashMap;

/// The text with every marked loop repeated.
///
/// # Panics
/// When a marked loop is not of the form above or its bound is no constant of the module, which a test finds for every shader.
pub(crate) fn unroll(text: &str) -> String {
    let constants: HashMap<&str, &str> = text.lines().filter_map(constant).collect();
    let lines: Vec<&str> = text.lines().collect();
    let mut out = String::with_capacity(2 * text.len());
    emit(&lines, &constants, &mut out);
    out
}

/// Name and expression of a line that declares a u32 constant of the module.
fn constant(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.strip_prefix("const ")?.split_once(": u32 = ")?;
    Some((name, rest.split_once(';')?.0))
}

fn emit(lines: &[&str], constants: &HashMap<&str, &str>, out: &mut String) {
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        let Some(head) = line.trim_end().strip_suffix("//unroll") else {
            out.push_str(line);
            out.push('\n');
            at += 1;
            continue;
        };
        let (name, bound) = parse(head).unwrap_or_else(|| panic!("cannot unroll {line:?}"));
        let end = at + closing(&lines[at..]);
        for i in 0..evaluate(bound, constants) {
            out.push_str(&format!("{{ const {name} = {i}u;\n"));
            emit(&lines[at + 1..end], constants, out);
            out.push_str("}\n");
        }
        at = end + 1;
    }
}

/// Variable and bound of `for (var i = 0u; i < N; i += 1u) {`.
fn parse(head: &str) -> Option<(&str, &str)> {
    let (name, rest) = head.trim().strip_prefix("for (var ")?.split_once(" = 0u; ")?;
    let (bound, step) = rest.strip_prefix(name)?.strip_prefix(" < ")?.split_once("; ")?;
    (step.trim_end().strip_prefix(name)? == " += 1u) {").then_some((name, bound))
}

/// Index of the line that closes the block which the first line opens.
fn closing(lines: &[&str]) -> usize {
    let mut depth = 0i32;
    for (index, line) in lines.iter().enumerate() {
        let code = line.split("//").next().unwrap_or("");
        depth += code.matches('{').count() as i32 - code.matches('}').count() as i32;
        if depth == 0 {
            return index;
        }
    }
    panic!("a loop to unroll is not closed: {:?}", lines.first())
}

/// Value of an expression of u32 literals, constants, `+ - * / %` and parentheses.
fn evaluate(expression: &str, constants: &HashMap<&str, &str>) -> u32 {
    let mut rest = expression;
    let value = sum(&mut rest, constants);
    assert!(rest.trim().is_empty(), "cannot evaluate {expression:?}: stopped at {rest:?}");
    value
}

fn sum(rest: &mut &str, constants: &HashMap<&str, &str>) -> u32 {
    let mut value = product(rest, constants);
    while let Some(operator) = operator(rest, "+-") {
        let right = product(rest, constants);
        value = if operator == '+' { value + right } else { value - right };
    }
    value
}

fn product(rest: &mut &str, constants: &HashMap<&str, &str>) -> u32 {
    let mut value = atom(rest, constants);
    while let Some(operator) = operator(rest, "*/%") {
        let right = atom(rest, constants);
        value = match operator {
            '*' => value * right,
            '/' => value / right,
            _ => value % right,
        };
    }
    value
}

fn operator(rest: &mut &str, among: &str) -> Option<char> {
    let trimmed = rest.trim_start();
    let found = trimmed.chars().next().filter(|c| among.contains(*c))?;
    *rest = &trimmed[1..];
    Some(found)
}

fn atom(rest: &mut &str, constants: &HashMap<&str, &str>) -> u32 {
    let trimmed = rest.trim_start();
    if let Some(inner) = trimmed.strip_prefix('(') {
        *rest = inner;
        let value = sum(rest, constants);
        *rest = rest.trim_start().strip_prefix(')').unwrap_or_else(|| panic!("no ) in {trimmed:?}"));
        return value;
    }
    let end = trimmed.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(trimmed.len());
    let (word, after) = trimmed.split_at(end);
    *rest = after;
    match word.strip_suffix('u').and_then(|digits| digits.parse().ok()) {
        Some(literal) => literal,
        None => evaluate(constants.get(word).unwrap_or_else(|| panic!("{word:?} is no constant")), constants),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evaluates_constants_of_constants() {
        let text = "const BM: u32 = 64u; //param\nconst N: u32 = (BM * 3u + 31u) / 32u % 4u;\n";
        let constants: HashMap<_, _> = text.lines().filter_map(constant).collect();
        assert_eq!(evaluate("N - 1u", &constants), 1);
    }

    #[test]
    fn repeats_nested_loops() {
        let text = "const N: u32 = 2u;\nfor (var i = 0u; i < N; i += 1u) { //unroll\nfor (var j = 0u; j < i + 1u; j += 1u) {\nx(i, j);\n}\n}\n";
        let unrolled = unroll(text);
        assert_eq!(unrolled.matches("const i = ").count(), 2);
        assert_eq!(unrolled.matches("x(i, j);").count(), 2);
        assert!(!unrolled.contains("//unroll"));
        let both = unroll(&text.replace("j += 1u) {", "j += 1u) { //unroll").replace("i + 1u", "3u"));
        assert_eq!(both.matches("x(i, j);").count(), 6);
    }

    #[test]
    #[should_panic(expected = "cannot unroll")]
    fn refuses_other_loops() {
        unroll("for (var i = 1u; i < 4u; i += 1u) { //unroll\n}\n");
    }
}
