//! The mistakes that are planted: one change of a file's text each.

use super::Mutant;
use super::token::{Kind, Token, arguments, closing, is_binary, operands, tokens};
use std::collections::HashSet;
use std::ops::Range;

/// Every mutant of a file, in the order of the text; two operators that come to the same text are one mutant.
pub(super) fn mutants(file: &'static str, text: &str) -> Vec<Mutant> {
    let mut planter = Planter { file, text, tokens: tokens(text), found: Vec::new(), known: HashSet::new() };
    for index in 0..planter.tokens.len() {
        match planter.place(planter.tokens[index].start) {
            Place::Code => planter.at(index),
            Place::Unrolled => planter.at_unrolled(index),
            Place::Declaration => {}
        }
    }
    planter.found.sort_by_key(|mutant| mutant.range.start);
    planter.found
}

struct Planter<'a> {
    file: &'static str,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    found: Vec<Mutant>,
    known: HashSet<(usize, usize, String)>,
}

/// What a line is to the mutation check.
enum Place {
    Code,
    /// The head of a loop that is repeated in the text: only its bound can change.
    Unrolled,
    /// Bindings, attributes and the members of structs, and constants whose value the planner gives.
    Declaration,
}

impl<'a> Planter<'a> {
    fn place(&self, at: usize) -> Place {
        let line = line_at(self.text, at);
        match line {
            _ if line.ends_with("//unroll") => Place::Unrolled,
            _ if line.starts_with('@') || line.contains("@builtin") => Place::Declaration,
            _ if line.ends_with("//param") => Place::Declaration,
            _ => Place::Code,
        }
    }

    /// Everything that can go wrong at a token.
    fn at(&mut self, index: usize) {
        let token = self.tokens[index];
        match token.kind {
            Kind::Word => self.word(index),
            Kind::Number => self.number(index),
            Kind::Operator => self.operator(index),
            Kind::Open if token.text == "[" => self.bracket(index),
            Kind::Open | Kind::Close => {}
        }
    }

    fn at_unrolled(&mut self, index: usize) {
        if self.tokens[index].text == "<"
            && is_binary(&self.tokens, index)
            && let Some([_, bound]) = operands(&self.tokens, index)
        {
            let text = self.span(&bound).to_owned();
            self.plant("bound", &bound, format!("{text} - 1u"));
            self.plant("bound", &bound, format!("{text} + 1u"));
        }
    }

    fn word(&mut self, index: usize) {
        let text = self.tokens[index].text;
        let next = self.tokens.get(index + 1).map_or("", |token| token.text);
        let before = if index > 0 { self.tokens[index - 1].text } else { "" };
        if matches!(before, "fn" | "struct" | "let" | "var" | "const") || next == ":" {
            return;
        }
        match text {
            "workgroupBarrier" | "storageBarrier" => {
                let end =
                    self.tokens[index..].iter().position(|token| token.text == ";").map_or(index, |at| index + at);
                self.plant("barrier", &(index..end + 1), String::new());
            }
            "if" => {
                let end =
                    self.tokens[index..].iter().position(|token| token.text == "{").map_or(index, |at| index + at);
                for value in ["true", "false"] {
                    self.plant("condition", &(index + 1..end), value.to_owned());
                }
            }
            "true" | "false" => {
                self.plant("constant", &(index..index + 1), if text == "true" { "false" } else { "true" }.to_owned());
            }
            _ => {
                for other in other_names(text, before == ".") {
                    if before == "." || self.exists(&other) {
                        self.plant("name", &(index..index + 1), other);
                    }
                }
            }
        }
        if next == "(" && !matches!(text, "if" | "for" | "switch") {
            self.call(index);
        }
        if next == "<" && self.tokens[index + 1].kind == Kind::Open {
            // A constructor: its arguments follow the template's.
            if let Some(open) = closing(&self.tokens, index + 1).map(|close| close + 1)
                && self.tokens.get(open).is_some_and(|token| token.text == "(")
            {
                self.exchanges(&arguments(&self.tokens, open));
            }
        }
    }

    fn call(&mut self, index: usize) {
        let arguments = arguments(&self.tokens, index + 1);
        let Some(close) = closing(&self.tokens, index + 1) else { return };
        let whole = index..close + 1;
        let parts: Vec<String> = arguments.iter().map(|range| self.span(range).to_owned()).collect();
        match (self.tokens[index].text, parts.as_slice()) {
            ("min" | "max", [a, b]) => {
                self.plant("guard", &whole, format!("({a})"));
                self.plant("guard", &whole, format!("({b})"));
            }
            ("clamp", [x, low, high]) => {
                self.plant("guard", &whole, format!("max({x}, {low})"));
                self.plant("guard", &whole, format!("min({x}, {high})"));
            }
            ("select", [reject, accept, condition]) => {
                self.plant("select", &whole, format!("({reject})"));
                self.plant("select", &whole, format!("({accept})"));
                self.plant("select", &whole, format!("select({accept}, {reject}, {condition})"));
            }
            ("fma", [a, b, c]) => {
                self.plant("swap", &whole, format!("fma({a}, {c}, {b})"));
                self.plant("swap", &whole, format!("fma({c}, {b}, {a})"));
            }
            _ => self.exchanges(&arguments),
        }
    }

    /// Whether a name is one of this file's, or of what another operand's instance of a file may bring. Others would only give mutants that are not
    /// valid.
    fn exists(&self, name: &str) -> bool {
        ["a_", "b_"].iter().any(|operand| name.starts_with(operand))
            || self.tokens.iter().any(|token| token.text == name)
    }

    /// Neighbouring arguments in each other's place.
    fn exchanges(&mut self, arguments: &[Range<usize>]) {
        for pair in arguments.windows(2) {
            let [first, second] = [self.span(&pair[0]), self.span(&pair[1])];
            let exchanged = format!("{second}, {first}");
            self.plant("swap", &(pair[0].start..pair[1].end), exchanged);
        }
    }

    fn number(&mut self, index: usize) {
        let text = self.tokens[index].text;
        let Some(digits) = text.strip_suffix('u') else { return };
        let (value, hex) = match digits.strip_prefix("0x") {
            Some(hex) => (u32::from_str_radix(hex, 16), true),
            None => (digits.parse(), false),
        };
        let Ok(value) = value else { return };
        for other in [value.checked_sub(1), value.checked_add(1)].into_iter().flatten() {
            let text = if hex { format!("{other:#x}u") } else { format!("{other}u") };
            self.plant("constant", &(index..index + 1), text);
        }
    }

    fn operator(&mut self, index: usize) {
        let text = self.tokens[index].text;
        let own = index..index + 1;
        if matches!(text, "+=" | "-=" | "/=" | "*=") {
            self.plant("arithmetic", &own, if text == "+=" { "-=" } else { "+=" }.to_owned());
        }
        if !is_binary(&self.tokens, index) {
            return;
        }
        let (operator, others): (_, &[&str]) = match text {
            "<" => ("compare", &["<=", ">"]),
            "<=" => ("compare", &["<"]),
            ">" => ("compare", &[">=", "<"]),
            ">=" => ("compare", &[">"]),
            "==" => ("compare", &["!="]),
            "!=" => ("compare", &["=="]),
            "&&" => ("logic", &["||"]),
            "||" => ("logic", &["&&"]),
            "+" => ("arithmetic", &["-"]),
            "-" => ("arithmetic", &["+"]),
            "*" => ("arithmetic", &["/"]),
            "/" => ("arithmetic", &["*", "%"]),
            "%" => ("arithmetic", &["/"]),
            "<<" => ("arithmetic", &[">>"]),
            ">>" => ("arithmetic", &["<<"]),
            "&" => ("arithmetic", &["|"]),
            "|" => ("arithmetic", &["&"]),
            "^" => ("arithmetic", &["|"]),
            _ => return,
        };
        for other in others {
            self.plant(operator, &own, (*other).to_owned());
        }
        if text == "+" {
            self.plant("index", &own, "+ 1u +".to_owned());
        }
        if let ("-" | "/" | "%" | "<<" | ">>", Some([left, right])) = (text, operands(&self.tokens, index)) {
            let grouped = |range: &Range<usize>| match range.len() {
                1 => self.span(range).to_owned(),
                _ => format!("({})", self.span(range)),
            };
            let swapped = format!("{} {text} {}", grouped(&right), grouped(&left));
            self.plant("swap", &(left.start..right.end), swapped);
        }
    }

    fn bracket(&mut self, index: usize) {
        let Some(close) = closing(&self.tokens, index) else { return };
        let inside = index + 1..close;
        let text = self.span(&inside).to_owned();
        let grouped = if inside.len() == 1 { text } else { format!("({text})") };
        self.plant("index", &inside, format!("{grouped} + 1u"));
        self.plant("index", &inside, format!("{grouped} - 1u"));
    }

    /// The text of a range of tokens.
    fn span(&self, range: &Range<usize>) -> &'a str {
        &self.text[self.tokens[range.start].start..self.tokens[range.end - 1].end()]
    }

    fn plant(&mut self, operator: &'static str, range: &Range<usize>, replacement: String) {
        if range.is_empty() || self.span(range) == replacement {
            return;
        }
        let range = self.tokens[range.start].start..self.tokens[range.end - 1].end();
        if self.known.insert((range.start, range.end, replacement.clone())) {
            self.found.push(Mutant::new(self.file, self.text, operator, range, replacement));
        }
    }
}

/// The line that holds a byte, trimmed.
fn line_at(text: &str, at: usize) -> &str {
    let start = text[..at].rfind('\n').map_or(0, |newline| newline + 1);
    text[start..].lines().next().unwrap_or("").trim()
}

/// Names that are easily taken for each other, as whole words.
const WORDS: [[&str; 2]; 18] = [
    ["a", "b"],
    ["row", "col"],
    ["rows", "columns"],
    ["m", "n"],
    ["x", "k"],
    ["nx", "nk"],
    ["count", "length"],
    ["x_end", "k_end"],
    ["BM", "BN"],
    ["BM", "BK"],
    ["TM", "TN4"],
    ["k", "kk"],
    ["word", "lane"],
    ["batch", "group"],
    ["split", "batch"],
    ["entries", "splits"],
    ["start", "end"],
    ["row", "row_end"],
];

/// Parts of names, between underscores.
const PARTS: [[&str; 2]; 4] = [["a", "b"], ["m", "n"], ["ld", "batch"], ["scales", "biases"]];

/// Members of vectors.
const MEMBERS: [[&str; 2]; 3] = [["x", "y"], ["z", "w"], ["xy", "zw"]];

/// What `name` may be mistaken for.
fn other_names(name: &str, member: bool) -> Vec<String> {
    let other = |pairs: &[[&'static str; 2]], word: &str| {
        let of = |[one, two]: &[&'static str; 2]| match word {
            _ if word == *one => Some(*two),
            _ if word == *two => Some(*one),
            _ => None,
        };
        pairs.iter().filter_map(of).collect::<Vec<_>>()
    };
    if member && name.chars().all(|c| "xyzw".contains(c)) {
        return other(&MEMBERS, name).into_iter().map(str::to_owned).collect();
    }
    let mut found: Vec<String> = other(&WORDS, name).into_iter().map(str::to_owned).collect();
    let parts: Vec<&str> = name.split('_').collect();
    if parts.len() > 1 {
        for (at, part) in parts.iter().enumerate() {
            let upper = part.chars().all(|c| c.is_ascii_uppercase());
            for other in other(&PARTS, &part.to_lowercase()) {
                let mut parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
                parts[at] = if upper { other.to_uppercase() } else { other.to_owned() };
                found.push(parts.join("_"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the one line `text` becomes, by operator.
    fn lines(operator: &str, text: &str) -> Vec<String> {
        let of_operator = mutants("f.wgsl", text).into_iter().filter(|mutant| mutant.operator == operator);
        of_operator.map(|mutant| mutant.apply(text)).collect()
    }

    #[test]
    fn guards() {
        assert_eq!(lines("compare", "if i <= n { }"), ["if i < n { }"]);
        assert_eq!(lines("logic", "if a && c { }"), ["if a || c { }"]);
        assert_eq!(lines("condition", "if i < n { }"), ["if true { }", "if false { }"]);
        assert_eq!(lines("guard", "let e = min(q + 1u, p);"), ["let e = (q + 1u);", "let e = (p);"]);
        assert_eq!(lines("select", "p(select(0u, q, r))"), ["p((0u))", "p((q))", "p(select(q, 0u, r))"]);
        assert_eq!(lines("compare", "var<workgroup> v: array<vec4<f32>, 4>;"), [""; 0]);
    }

    #[test]
    fn barriers() {
        assert_eq!(lines("barrier", "f(); storageBarrier(); g();"), ["f();  g();"]);
    }

    #[test]
    fn indices() {
        assert_eq!(lines("index", "v[i] = 0.0;"), ["v[i + 1u] = 0.0;", "v[i - 1u] = 0.0;"]);
        assert_eq!(lines("index", "v(i + j)"), ["v(i + 1u + j)"]);
    }

    #[test]
    fn operands_in_each_others_place() {
        assert_eq!(lines("swap", "let c = d - e * f;"), ["let c = (e * f) - d;"]);
        assert_eq!(lines("swap", "s = fma(p, q, s);"), ["s = fma(p, s, q);", "s = fma(s, q, p);"]);
        assert_eq!(lines("swap", "f(p, q + 1u)"), ["f(q + 1u, p)"]);
        assert_eq!(lines("swap", "vec2<u32>(p, q)"), ["vec2<u32>(q, p)"]);
        assert_eq!(
            lines("name", "f(a_base, tile.row)"),
            ["f(b_base, tile.row)", "f(a_base, tile.col)", "f(a_base, tile.row_end)"]
        );
        assert_eq!(
            lines("name", "v.x = THREADS_M + THREADS_N;"),
            ["v.y = THREADS_M + THREADS_N;", "v.x = THREADS_N + THREADS_N;", "v.x = THREADS_M + THREADS_M;"]
        );
        assert_eq!(lines("name", "v = THREADS_M;"), [""; 0]);
        assert_eq!(lines("name", "let row = p;"), [""; 0]);
    }

    #[test]
    fn unrolled_loops_keep_their_form() {
        let text = "for (var i = 0u; i < TM * TN4; i += 1u) { //unroll";
        let all: Vec<_> = mutants("f.wgsl", text).iter().map(|mutant| mutant.apply(text)).collect();
        let with = |bound| format!("for (var i = 0u; i < TM * TN4 {bound}; i += 1u) {{ //unroll");
        assert_eq!(all, [with("- 1u"), with("+ 1u")]);
    }

    #[test]
    fn declarations_stay() {
        for text in ["@group(0) @binding(3) var<storage, read> v: array<u32>;", "const BM: u32 = 64u; //param"] {
            assert!(mutants("f.wgsl", text).is_empty(), "{text}");
        }
    }
}
