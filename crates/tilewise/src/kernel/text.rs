//! The part of WGSL's grammar that is needed to make a module of a body: which words a text
//! mentions, and which of its statements belong outside a function.

use std::collections::HashSet;
use std::ops::Range;
use tilewise_shaders::tokens::{Kind, Token, tokens};

/// A text of the user's, cut into tokens.
pub(super) struct Text<'a> {
    source: &'a str,
    pub(super) tokens: Vec<Token<'a>>,
}

impl<'a> Text<'a> {
    pub(super) fn new(source: &'a str) -> Self {
        Text { source, tokens: tokens(source) }
    }

    fn token(&self, index: usize) -> &'a str {
        self.tokens.get(index).map_or("", |token| token.text)
    }

    /// Every name and keyword that occurs, except names of members, such as `x` in `v.x`.
    pub(super) fn words(&self) -> HashSet<&'a str> {
        let free = |&index: &usize| {
            self.tokens[index].kind == Kind::Word && (index == 0 || self.token(index - 1) != ".")
        };
        (0..self.tokens.len()).filter(free).map(|index| self.token(index)).collect()
    }

    /// The first word that is wanted.
    pub(super) fn first(&self, wanted: impl Fn(&str) -> bool) -> Option<&Token<'a>> {
        self.tokens.iter().find(|token| token.kind == Kind::Word && wanted(token.text))
    }

    /// A block comment that is not closed. It would swallow what follows the text.
    pub(super) fn open_comment(&self) -> Option<&Token<'a>> {
        self.tokens.last().filter(|token| token.kind == Kind::OpenComment)
    }

    /// The names that are declared at module scope.
    pub(super) fn declared(&self) -> Vec<Token<'a>> {
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
                    let name = self.tokens.get(name).filter(|name| name.kind == Kind::Word);
                    found.extend(name.copied());
                }
                _ => {}
            }
        }
        found
    }

    /// A brace that has no counterpart. It would end the function around the text, or swallow what
    /// follows.
    pub(super) fn stray_brace(&self) -> Option<&Token<'a>> {
        let mut open = Vec::new();
        for token in &self.tokens {
            match token.text {
                "{" => open.push(token),
                "}" if open.pop().is_none() => return Some(token),
                _ => {}
            }
        }
        open.first().copied()
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
                found.push(self.tokens[index].start..self.tokens[end].end());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_no_comments_and_no_members() {
        let words = Text::new("a[i] = v.grid /* b /* c */ d */ + 4u; // e\nψ_1(out);").words();
        assert_eq!(words, HashSet::from(["a", "i", "v", "ψ_1", "out"]));
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
    fn braces_and_comments_without_a_counterpart() {
        let place = |token: Option<&Token<'_>>| token.map(|token| (token.line, token.column));
        assert_eq!(place(Text::new("if a { b(); } // }").stray_brace()), None);
        assert_eq!(place(Text::new("a;\n }\nfn f() {").stray_brace()), Some((2, 2)));
        assert_eq!(place(Text::new("{ {}").stray_brace()), Some((1, 1)));
        let text = Text::new("a\n é /* b /* c */ d");
        assert_eq!(text.words(), HashSet::from(["a", "é"]));
        assert_eq!(place(text.open_comment()), Some((2, 4)));
        assert_eq!(place(Text::new("/* a /**/ */ // /*").open_comment()), None);
    }

    #[test]
    fn declarations() {
        let text = "const A = 1;\n  var<workgroup> b: f32; var<storage, read> c: f32;\nfn d(e: \
                    u32) { const f = 1; }\nstruct G { h: u32 }\nalias I = f32;";
        let names: Vec<_> = Text::new(text).declared().iter().map(|name| name.text).collect();
        assert_eq!(names, ["A", "b", "c", "d", "G", "I"]);
        assert_eq!(Text::new("const").declared(), []);
        assert_eq!(Text::new("var<").declared(), []);
    }
}
