//! The part of WGSL's grammar that is needed to make a module of a body: which words a text
//! mentions, and which of its statements belong outside a function.

use std::collections::HashSet;
use std::ops::Range;

/// A text of the user's, cut into tokens.
pub(super) struct Text<'a> {
    source: &'a str,
    tokens: Vec<Range<usize>>,
    /// The start of a block comment that is never closed.
    open_comment: Option<usize>,
}

impl<'a> Text<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        let (mut tokens, mut open_comment) = (Vec::new(), None);
        let mut at = 0;
        while let Some(first) = source[at..].chars().next() {
            let rest = &source[at..];
            let len = if rest.starts_with("//") {
                rest.find('\n').unwrap_or(rest.len())
            } else if rest.starts_with("/*") {
                comment(rest).unwrap_or_else(|| {
                    open_comment = Some(at);
                    rest.len()
                })
            } else if in_word(first) {
                rest.find(|c| !in_word(c)).unwrap_or(rest.len())
            } else {
                first.len_utf8()
            };
            if !rest.starts_with("//") && !rest.starts_with("/*") && !first.is_whitespace() {
                tokens.push(at..at + len);
            }
            at += len;
        }
        Text { source, tokens, open_comment }
    }

    fn token(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |range| &self.source[range.clone()])
    }

    /// Every name and keyword that occurs, except names of members, such as `x` in `v.x`.
    pub(super) fn words(&self) -> HashSet<&'a str> {
        let free = |&index: &usize| index == 0 || self.token(index - 1) != ".";
        (0..self.tokens.len())
            .filter(free)
            .map(|index| self.token(index))
            .filter(|t| t.starts_with(in_word))
            .collect()
    }

    /// Line and column, from 1, of the first occurrence of a word.
    pub(super) fn place_of(&self, word: &str) -> Option<(usize, usize)> {
        self.first(|token| token == word).map(|(_, place)| place)
    }

    /// The first token that is wanted, with line and column from 1.
    pub(super) fn first(&self, wanted: impl Fn(&str) -> bool) -> Option<(&'a str, (usize, usize))> {
        let found = (0..self.tokens.len()).find(|&index| wanted(self.token(index)))?;
        Some((self.token(found), self.place(self.tokens[found].start)))
    }

    fn place(&self, at: usize) -> (usize, usize) {
        let before = &self.source[..at];
        let line = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line..].chars().count() + 1)
    }

    /// Line and column of a block comment that is not closed. It would swallow what follows the
    /// text.
    pub(super) fn open_comment(&self) -> Option<(usize, usize)> {
        self.open_comment.map(|at| self.place(at))
    }

    /// The first use of a number or a type that naga has and WGSL has not (of 64 bits, or an
    /// integer of 16 bits), with line and column.
    pub(super) fn beyond_wgsl(&self) -> Option<(&'a str, (usize, usize))> {
        let beyond = |&index: &usize| {
            let token = self.token(index);
            let literal = token.starts_with(|c: char| c.is_ascii_digit())
                && ["lf", "li", "lu"].iter().any(|suffix| token.ends_with(suffix));
            let member = index > 0 && self.token(index - 1) == ".";
            literal || !member && ["f64", "i64", "u64", "i16", "u16"].contains(&token)
        };
        let found = (0..self.tokens.len()).find(beyond)?;
        Some((self.token(found), self.place(self.tokens[found].start)))
    }

    /// Line and column of an `&&` beside an `||` with no parentheses between them. WGSL refuses
    /// this; naga takes it.
    pub(super) fn mixed_operators(&self) -> Option<(usize, usize)> {
        // The operator of each bracket that is open.
        let mut open = vec![None];
        for index in 1..self.tokens.len() {
            let token = self.token(index - 1);
            match token {
                "(" | "[" => open.push(None),
                ")" | "]" if open.len() > 1 => drop(open.pop()),
                ";" | "," | "{" | "}" => *open.last_mut()? = None,
                "&" | "|" if self.token(index) == token && self.is_joined(index) => {
                    let before = open.last_mut()?.replace(token);
                    if before.is_some_and(|before| before != token) {
                        return Some(self.place(self.tokens[index - 1].start));
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Whether nothing stands between a token and the one before it.
    fn is_joined(&self, index: usize) -> bool {
        self.tokens[index - 1].end == self.tokens[index].start
    }

    /// The declarations at module scope: names, with line and column.
    pub(super) fn declared(&self) -> Vec<(&'a str, (usize, usize))> {
        let (mut depth, mut found) = (0usize, Vec::new());
        for index in 0..self.tokens.len() {
            match self.token(index) {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                "alias" | "const" | "fn" | "override" | "struct" | "var" if depth == 0 => {
                    let mut name = index + 1;
                    if self.token(name) == "<" {
                        name = (name..self.tokens.len())
                            .find(|&i| self.token(i) == ">")
                            .unwrap_or(name)
                            + 1;
                    }
                    if self.token(name).starts_with(in_word) {
                        found.push((self.token(name), self.place(self.tokens[name].start)));
                    }
                }
                _ => {}
            }
        }
        found
    }

    /// Line and column of a brace that has no counterpart. It would end the function around the
    /// text, or swallow what follows.
    pub(super) fn stray_brace(&self) -> Option<(usize, usize)> {
        let mut open = Vec::new();
        for (index, range) in self.tokens.iter().enumerate() {
            match self.token(index) {
                "{" => open.push(range.start),
                "}" if open.pop().is_none() => return Some(self.place(range.start)),
                _ => {}
            }
        }
        open.first().map(|&at| self.place(at))
    }

    /// Declarations in a body that belong to module scope: `var<workgroup>` anywhere, because WGSL
    /// has it only there, and `const` outside all blocks, because the former may need it.
    pub(super) fn module_declarations(&self) -> Vec<Range<usize>> {
        let mut depth = 0usize;
        self.statements(|index| {
            match self.token(index) {
                "{" => depth += 1,
                "}" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let workgroup = ["var", "<", "workgroup"]
                .iter()
                .enumerate()
                .all(|(i, t)| self.token(index + i) == *t);
            workgroup || depth == 0 && self.token(index) == "const"
        })
    }

    /// Directives, which must precede everything else in a module.
    pub(super) fn directives(&self) -> Vec<Range<usize>> {
        self.statements(|index| {
            let first = index == 0 || self.token(index - 1) == ";";
            first && ["enable", "requires", "diagnostic"].contains(&self.token(index))
        })
    }

    /// The statements, up to their semicolons, that begin at a token that `begins` accepts.
    fn statements(&self, mut begins: impl FnMut(usize) -> bool) -> Vec<Range<usize>> {
        let mut found = Vec::new();
        let mut index = 0;
        while index < self.tokens.len() {
            if begins(index) {
                let end = (index..self.tokens.len())
                    .find(|&i| self.token(i) == ";")
                    .unwrap_or(self.tokens.len() - 1);
                found.push(self.tokens[index].start..self.tokens[end].end);
                index = end;
            }
            index += 1;
        }
        found
    }

    /// Splits the text in two: the `ranges`, and the rest. In each, blanks stand for the other
    /// part, which keeps lines and columns.
    pub(super) fn split(&self, ranges: &[Range<usize>]) -> (String, String) {
        if ranges.is_empty() {
            return (String::new(), self.source.to_owned());
        }
        let (mut taken, mut rest) = (String::new(), String::new());
        for (at, character) in self.source.char_indices() {
            let (shown, blank) = match ranges.iter().any(|range| range.contains(&at)) {
                true => (&mut taken, &mut rest),
                false => (&mut rest, &mut taken),
            };
            shown.push(character);
            blank.push(if character.is_whitespace() { character } else { ' ' });
        }
        let lines: Vec<_> = taken.trim_end().lines().map(str::trim_end).collect();
        (lines.join("\n"), rest)
    }
}

fn in_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// Length of the block comment with which `text` begins; block comments nest. `None` if it does not
/// end.
fn comment(text: &str) -> Option<usize> {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let rest = &text[at..];
        if rest.starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_no_comments_and_no_members() {
        let words = Text::new("a[i] = v.grid /* b /* c */ d */ + 4u; // e\nψ_1(out);").words();
        assert_eq!(words, HashSet::from(["a", "i", "v", "4u", "ψ_1", "out"]));
    }

    #[test]
    fn declarations_keep_their_lines_and_columns() {
        let body = "const N = 4u;\nlet é = 1; var<workgroup> t: array<f32, N>; // t\n{ const M = \
                    2u; var< workgroup >u: u32; }";
        let text = Text::new(body);
        let (taken, rest) = text.split(&text.module_declarations());
        assert_eq!(
            taken,
            "const N = 4u;\n           var<workgroup> t: array<f32, N>;\n                var< \
             workgroup >u: u32;"
        );
        assert_eq!(
            rest,
            format!(
                "{}\nlet é = 1; {} // t\n{{ const M = 2u; {} }}",
                " ".repeat(13),
                " ".repeat(32),
                " ".repeat(23)
            )
        );
        assert_eq!(Text::new("x = 1;").split(&[]), (String::new(), "x = 1;".to_owned()));
        // A declaration without an end is left for naga to complain about.
        let open = Text::new("var<workgroup> t: u32");
        assert_eq!(open.split(&open.module_declarations()).0, "var<workgroup> t: u32");
    }

    #[test]
    fn directives_are_found_at_the_start() {
        let header = Text::new("enable f16; diagnostic(off, a.b);\nfn f() { enable(1); }");
        assert_eq!(header.split(&header.directives()).0, "enable f16; diagnostic(off, a.b);");
    }

    #[test]
    fn braces() {
        assert_eq!(Text::new("if a { b(); } // }").stray_brace(), None);
        assert_eq!(Text::new("a;\n }\nfn f() {").stray_brace(), Some((2, 2)));
        assert_eq!(Text::new("{ {}").stray_brace(), Some((1, 1)));
        for mixed in ["x = f(a &&\n b || c);", "y = 1;\na && (b) || c", "{ a || b\n && c; }"] {
            assert_eq!(
                Text::new(mixed).mixed_operators().map(|(line, _)| line),
                Some(2),
                "{mixed}"
            );
        }
        for plain in [
            "if a || (b && c) {",
            "f(a && b, c || d);",
            "x = a && b; y = a || b;",
            "if a && b { c = d || e; }",
            "p = &a; x = a & b | c;",
            "if a && b {} if c || d {}",
        ] {
            assert_eq!(Text::new(plain).mixed_operators(), None, "{plain}");
        }
    }

    #[test]
    fn comments_without_an_end() {
        let text = Text::new("a\n é /* b /* c */ d");
        assert_eq!(text.words(), HashSet::from(["a", "é"]));
        assert_eq!(text.open_comment(), Some((2, 4)));
        assert_eq!(Text::new("/* a /**/ */ // /*").open_comment(), None);
    }

    #[test]
    fn numbers_that_wgsl_does_not_have() {
        for (text, found) in [
            ("x = 1u;\nlet y = 0x1Flu;", Some(("0x1Flu", (2, 9)))),
            ("1.5lf", Some(("5lf", (1, 3)))),
            ("1e-5lf + 2li", Some(("5lf", (1, 4)))),
            ("var a: array<i64>", Some(("i64", (1, 14)))),
            ("v.u64 = 1f; half = 0x1f; // u16", None),
            ("a1lu = 1;", None),
        ] {
            assert_eq!(Text::new(text).beyond_wgsl(), found, "{text}");
        }
    }

    #[test]
    fn declarations() {
        let text = "const A = 1;\n  var<workgroup> b: f32; var<storage, read> c: f32;\nfn d(e: \
                    u32) { const f = 1; }\nstruct G { h: u32 }\nalias I = f32;";
        let names = [
            ("A", (1, 7)),
            ("b", (2, 18)),
            ("c", (2, 45)),
            ("d", (3, 4)),
            ("G", (4, 8)),
            ("I", (5, 7)),
        ];
        assert_eq!(Text::new(text).declared(), names);
        assert_eq!(Text::new("const").declared(), []);
        assert_eq!(Text::new("var<").declared(), []);
    }
}
