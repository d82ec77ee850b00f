//! The mistakes that are planted: one change of a file's text each.

use super::Mutant;
use super::grammar::{arguments, choice, closing, is_binary, operands};
use super::names::other_names;
use super::place::{Place, declares_array, is_type, places};
use std::collections::HashSet;
use std::ops::Range;
use tilewise_core::kernel::Language;
use tilewise_shaders::tokens::{Kind, Token, tokens};

/// Every mutant of a file, in the order of the text. Two operators that give the same text give one
/// mutant.
pub(super) fn mutants(language: Language, file: &'static str, text: &str) -> Vec<Mutant> {
    let tokens = tokens(text);
    let places = places(language, text, &tokens);
    let msl = language == Language::Msl;
    let mut planter =
        Planter { msl, file, text, tokens, places, found: Vec::new(), known: HashSet::new() };
    for index in 0..planter.tokens.len() {
        match planter.places[index] {
            Place::Code => planter.at(index),
            Place::Unrolled => planter.at_unrolled(index),
            Place::Constant => planter.terms(index),
            Place::Declaration => {}
        }
    }
    planter.found.sort_by_key(|mutant| mutant.range.start);
    planter.found
}

struct Planter<'a> {
    msl: bool,
    file: &'static str,
    text: &'a str,
    tokens: Vec<Token<'a>>,
    places: Vec<Place>,
    found: Vec<Mutant>,
    known: HashSet<(usize, usize, String)>,
}

impl<'a> Planter<'a> {
    /// Everything that can go wrong at a token.
    fn at(&mut self, index: usize) {
        let token = self.tokens[index];
        match token.kind {
            Kind::Word => self.word(index),
            Kind::Number => self.number(index),
            Kind::Operator => self.operator(index),
            Kind::Open if token.text == "[" => self.bracket(index),
            Kind::Open | Kind::Close | Kind::OpenComment => {}
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
        let declared = match self.msl {
            true => self.is_declared(index),
            false => matches!(before, "fn" | "struct" | "let" | "var" | "const") || next == ":",
        };
        if declared {
            return;
        }
        match text {
            "workgroupBarrier" | "storageBarrier" | "threadgroup_barrier" | "simdgroup_barrier" => {
                let end = self.tokens[index..]
                    .iter()
                    .position(|token| token.text == ";")
                    .map_or(index, |at| index + at);
                self.plant("barrier", &(index..end + 1), String::new());
                if text == "threadgroup_barrier" {
                    self.plant("barrier", &(index..index + 1), "simdgroup_barrier".to_owned());
                }
            }
            "mem_threadgroup" | "mem_device" => {
                self.plant("barrier", &(index..index + 1), "mem_none".to_owned())
            }
            "if" => {
                let end = self.tokens[index..].iter().position(|token| token.text == "{");
                let end = end.map_or(index, |at| index + at);
                let condition = if self.msl { index + 2..end - 1 } else { index + 1..end };
                for value in ["true", "false"] {
                    self.plant("condition", &condition, value.to_owned());
                }
            }
            "return" => {
                if let [value, end, ..] = self.tokens[index + 1..]
                    && value.kind == Kind::Word
                    && end.text == ";"
                {
                    self.plant("index", &(index + 1..index + 2), format!("{} + 1u", value.text));
                }
            }
            "true" | "false" => {
                self.plant(
                    "constant",
                    &(index..index + 1),
                    if text == "true" { "false" } else { "true" }.to_owned(),
                );
            }
            _ => {
                let member = matches!(before, "." | "->");
                for other in other_names(text, member) {
                    if member || self.exists(&other) {
                        self.plant("name", &(index..index + 1), other);
                    }
                }
            }
        }
        let initializer = self.msl && next == "{" && !self.tokens[index + 1].blank;
        if (next == "(" || initializer) && !matches!(text, "if" | "for" | "switch") {
            self.call(index);
        }
        if next == "<" && self.tokens[index + 1].kind == Kind::Open {
            // A constructor: its arguments follow those of the template.
            if let Some(open) = closing(&self.tokens, index + 1).map(|close| close + 1)
                && self.tokens.get(open).is_some_and(|token| token.text == "(")
            {
                self.exchanges(&arguments(&self.tokens, open));
            }
        }
    }

    /// Whether the word at `index` of an MSL file is a type, or is declared there.
    fn is_declared(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1).map(|at| &self.tokens[at]) else { return true };
        let pointer = matches!(before.text, "*" | "&") && !is_binary(&self.tokens, index - 1);
        let before = if pointer { &self.tokens[index.saturating_sub(2)] } else { before };
        let next = self.tokens.get(index + 1);
        let own_type = next.is_some_and(|next| next.kind == Kind::Word);
        own_type && !matches!(self.tokens[index].text, "return" | "else") || is_type(before)
    }

    fn call(&mut self, index: usize) {
        let arguments = arguments(&self.tokens, index + 1);
        let Some(close) = closing(&self.tokens, index + 1) else { return };
        let whole = index..close + 1;
        let parts: Vec<String> =
            arguments.iter().map(|range| self.span(range).to_owned()).collect();
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

    /// Whether a name occurs in this file, or is one that another operand's instance of a file may
    /// bring. All other names would only give invalid mutants.
    fn exists(&self, name: &str) -> bool {
        ["a_", "b_"].iter().any(|operand| name.starts_with(operand))
            || self.tokens.iter().any(|token| token.text == name)
    }

    /// Exchanges neighbouring arguments.
    fn exchanges(&mut self, arguments: &[Range<usize>]) {
        for pair in arguments.windows(2) {
            let [first, second] = [self.span(&pair[0]), self.span(&pair[1])];
            let exchanged = format!("{second}, {first}");
            self.plant("swap", &(pair[0].start..pair[1].end), exchanged);
        }
    }

    fn number(&mut self, index: usize) {
        let text = self.tokens[index].text;
        let digits = match text.strip_suffix('u') {
            Some(digits) => digits,
            None if self.msl => text,
            None => return,
        };
        let suffix = &text[digits.len()..];
        // A loop that counts by nothing would only cost time.
        let counts = self.msl && index > 0 && self.tokens[index - 1].text == "+=";
        let (value, hex) = match digits.strip_prefix("0x") {
            Some(hex) => (u32::from_str_radix(hex, 16), true),
            None => (digits.parse(), false),
        };
        let Ok(value) = value else { return };
        for other in [value.checked_sub(1), value.checked_add(1)].into_iter().flatten() {
            let text = if hex { format!("{other:#x}{suffix}") } else { format!("{other}{suffix}") };
            if !(counts && other == 0) {
                self.plant("constant", &(index..index + 1), text);
            }
        }
    }

    fn operator(&mut self, index: usize) {
        let text = self.tokens[index].text;
        let own = index..index + 1;
        if matches!(text, "+=" | "-=" | "/=" | "*=" | "<<=") {
            self.plant("arithmetic", &own, if text == "+=" { "-=" } else { "+=" }.to_owned());
        }
        if self.msl {
            self.terms(index);
        }
        if !is_binary(&self.tokens, index) {
            return;
        }
        let (operator, others): (_, &[&str]) = match text {
            "<" => ("compare", &["<=", ">"]),
            "<=" => ("compare", &["<", "<= 1u +"]),
            ">" => ("compare", &[">=", "<"]),
            ">=" => ("compare", &[">", "+ 1u >="]),
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
        if let ("-" | "/" | "%" | "<<" | ">>", Some([left, right])) =
            (text, operands(&self.tokens, index))
        {
            let swapped = format!("{} {text} {}", self.grouped(&right), self.grouped(&left));
            self.plant("swap", &(left.start..right.end), swapped);
        }
    }

    fn bracket(&mut self, index: usize) {
        let Some(close) = closing(&self.tokens, index) else { return };
        let inside = index + 1..close;
        let grouped = self.grouped(&inside);
        if self.msl && declares_array(&self.tokens, index) {
            self.plant("bound", &inside, format!("{grouped} - 1u"));
            return;
        }
        self.plant("index", &inside, format!("{grouped} + 1u"));
        self.plant("index", &inside, format!("{grouped} - 1u"));
    }

    /// Changes choices and `!`. Leaves out a term or factor: the last and the first of a chain,
    /// because chains group to the left.
    fn terms(&mut self, index: usize) {
        let text = self.tokens[index].text;
        match text {
            "?" => {
                let Some([condition, yes, no]) = choice(&self.tokens, index) else { return };
                let whole = condition.start..no.end;
                let [condition, yes, no] = [condition, yes, no].map(|range| self.span(&range));
                self.plant("select", &whole, format!("({yes})"));
                self.plant("select", &whole, format!("({no})"));
                self.plant("select", &whole, format!("{condition} ? {no} : {yes}"));
            }
            "!" => self.plant("logic", &(index..index + 1), String::new()),
            "+" | "-" | "*" | "/" | "%" if is_binary(&self.tokens, index) => {
                let Some([left, right]) = operands(&self.tokens, index) else { return };
                let whole = left.start..right.end;
                self.plant("term", &whole, self.span(&left).to_owned());
                let same = |at: usize| match text {
                    "+" | "-" => matches!(self.tokens[at].text, "+" | "-"),
                    _ => matches!(self.tokens[at].text, "*" | "/" | "%"),
                };
                let mut at = left.start;
                let mut first = true;
                while at < left.end {
                    first &= !(same(at) && is_binary(&self.tokens, at));
                    at = match self.tokens[at].kind {
                        Kind::Open => closing(&self.tokens, at).map_or(left.end, |close| close + 1),
                        _ => at + 1,
                    };
                }
                if first && matches!(text, "+" | "*") {
                    self.plant("term", &whole, self.span(&right).to_owned());
                }
            }
            _ => {}
        }
    }

    fn grouped(&self, range: &Range<usize>) -> String {
        let text = self.span(range);
        if range.len() == 1 { text.to_owned() } else { format!("({text})") }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The results of an operator on the one line `text`.
    fn lines(operator: &str, text: &str) -> Vec<String> {
        let of_operator = mutants(Language::Wgsl, "f.wgsl", text)
            .into_iter()
            .filter(|mutant| mutant.operator == operator);
        of_operator.map(|mutant| mutant.apply(text)).collect()
    }

    #[test]
    fn guards() {
        assert_eq!(lines("compare", "if i <= n { }"), ["if i < n { }", "if i <= 1u + n { }"]);
        assert_eq!(lines("logic", "if a && c { }"), ["if a || c { }"]);
        assert_eq!(lines("condition", "if i < n { }"), ["if true { }", "if false { }"]);
        assert_eq!(
            lines("guard", "let e = min(q + 1u, p);"),
            ["let e = (q + 1u);", "let e = (p);"]
        );
        assert_eq!(
            lines("select", "p(select(0u, q, r))"),
            ["p((0u))", "p((q))", "p(select(q, 0u, r))"]
        );
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
        assert_eq!(lines("index", "return i;"), ["return i + 1u;"]);
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
            [
                "v.y = THREADS_M + THREADS_N;",
                "v.x = THREADS_N + THREADS_N;",
                "v.x = THREADS_M + THREADS_M;"
            ]
        );
        assert_eq!(lines("name", "v = THREADS_M;"), [""; 0]);
        assert_eq!(lines("name", "let row = p;"), [""; 0]);
    }

    #[test]
    fn unrolled_loops_keep_their_form() {
        let text = "for (var i = 0u; i < TM * TN4; i += 1u) { //unroll";
        let all: Vec<_> = mutants(Language::Wgsl, "f.wgsl", text)
            .iter()
            .map(|mutant| mutant.apply(text))
            .collect();
        let with = |bound| format!("for (var i = 0u; i < TM * TN4 {bound}; i += 1u) {{ //unroll");
        assert_eq!(all, [with("- 1u"), with("+ 1u")]);
    }

    #[test]
    fn declarations_stay() {
        for text in [
            "@group(0) @binding(3) var<storage, read> v: array<u32>;",
            "const BM: u32 = 64u; //param",
        ] {
            assert!(mutants(Language::Wgsl, "f.wgsl", text).is_empty(), "{text}");
        }
    }

    /// Like [`lines`], for MSL.
    fn in_msl(operator: &str, text: &str) -> Vec<String> {
        let text = format!("void f() {{ {text} }}");
        let of_operator = mutants(Language::Msl, "f.metal", &text)
            .into_iter()
            .filter(|it| it.operator == operator);
        of_operator
            .map(|mutant| mutant.apply(&text)[11..].strip_suffix(" }").unwrap().to_owned())
            .collect()
    }

    #[test]
    fn barriers_of_msl() {
        let text = "threadgroup_barrier(mem_flags::mem_threadgroup);";
        let weaker = [
            "",
            "simdgroup_barrier(mem_flags::mem_threadgroup);",
            "threadgroup_barrier(mem_flags::mem_none);",
        ];
        assert_eq!(in_msl("barrier", text), weaker);
    }

    #[test]
    fn guards_of_msl() {
        assert_eq!(in_msl("condition", "if (i < n) { }"), ["if (true) { }", "if (false) { }"]);
        let chosen = ["x = (p);", "x = (q);", "x = i < n ? q : p;"];
        assert_eq!(in_msl("select", "x = i < n ? p : q;"), chosen);
        assert_eq!(in_msl("logic", "f(!p);"), ["f(p);"]);
    }

    #[test]
    fn terms() {
        assert_eq!(
            in_msl("term", "x = p + q * r;"),
            ["x = p;", "x = q * r;", "x = p + q;", "x = p + r;"]
        );
        assert_eq!(in_msl("term", "x = p + q - r;"), ["x = p - r;", "x = q - r;", "x = p + q;"]);
        assert_eq!(in_msl("term", "x = p % q;"), ["x = p;"]);
        assert_eq!(lines("term", "x = p + q;"), [""; 0]);
    }

    #[test]
    fn declarations_of_msl_stay() {
        assert_eq!(in_msl("name", "uint row = p; const T *col = p;"), [""; 0]);
        assert_eq!(
            in_msl("name", "uint row = p; uint col = row;"),
            ["uint row = p; uint col = col;"]
        );
        assert_eq!(in_msl("bound", "float v[N] = {};"), ["float v[N - 1u] = {};"]);
        assert_eq!(in_msl("constant", "i += 1;"), ["i += 2;"]);
    }
}
