//! Puts many mutants in one text, to compile it once. Code around a change asks at run time whether
//! the change is wanted.
//!
//! The *site* of changes is an expression, `(!MUTANTS(7, 7) ? (unchanged) : (MUTANT(7) ? (changed)
//! : ..))`, or a statement, `if (MUTANT(7)) changed; else unchanged;`. Sites nest: the unchanged
//! text has sites of its own. Each changed text stands on lines of its own, so the lines of clang's
//! complaints name mutants.

use super::Mutant;
use super::grammar::{closing, opening};
use super::place::{Place, places};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;
use tilewise_core::kernel::Language;
use tilewise_shaders::tokens::{Kind, Token, tokens};

/// A file with sites.
#[derive(Clone, Debug, Default)]
pub(super) struct Rendered {
    pub(super) text: String,
    lines: Vec<Line>,
    /// Each site's mutant, and the lines of the file that the site covers, from the first line of
    /// its statement on: a compiler names that line for a call that continues on later lines.
    sites: Vec<(u32, Range<usize>)>,
}

/// The origin of a line of the text.
#[derive(Clone, Copy, Debug)]
struct Line {
    /// Line of the file, from 0.
    original: usize,
    /// The change that wrote the line, if one did.
    mutant: Option<u32>,
}

impl Rendered {
    /// The mutants that a complaint about a line, from 1, may be about: the mutant of the changed
    /// text there, or all mutants of the sites around it.
    pub(super) fn at(&self, line: usize) -> Vec<u32> {
        match self.lines.get(line.wrapping_sub(1)) {
            None => Vec::new(),
            Some(Line { mutant: Some(id), .. }) => vec![*id],
            Some(Line { original, .. }) => self
                .sites
                .iter()
                .filter(|(_, lines)| lines.contains(original))
                .map(|(id, _)| *id)
                .collect(),
        }
    }

    /// The mutants that have a site.
    pub(super) fn mutants(&self) -> impl Iterator<Item = u32> + '_ {
        self.sites.iter().map(|(id, _)| *id)
    }

    fn push(&mut self, text: &str, original: usize, mutant: Option<u32>) {
        for (offset, _) in text.matches('\n').enumerate() {
            let original = if mutant.is_some() { original } else { original + offset + 1 };
            self.lines.push(Line { original, mutant });
        }
        self.text += text;
    }

    /// Adds a changed text on lines of its own.
    fn changed(&mut self, text: &str, original: usize, mutant: u32, newline: &str) {
        self.text += newline;
        self.lines.push(Line { original, mutant: Some(mutant) });
        self.push(text, original, Some(mutant));
        self.text += newline;
        self.lines.push(Line { original, mutant: None });
    }
}

/// The mutants of an MSL file in the order of their sites. Mutants without a site are at the end.
/// Numbered in this order, the mutants of a site follow each other.
pub(super) fn in_order<'a>(
    text: &str,
    mutants: impl Iterator<Item = &'a Mutant>,
) -> Vec<&'a Mutant> {
    let tokens = tokens(text);
    let places = places(Language::Msl, text, &tokens);
    let grower = Grower { tokens: &tokens, places: &places };
    let site = |mutant: &Mutant| {
        grower.site(mutant).map_or((usize::MAX, Reverse(0)), |site| (site.start, Reverse(site.end)))
    };
    let mut mutants: Vec<_> = mutants.collect();
    mutants.sort_by_cached_key(|mutant| site(mutant));
    mutants
}

/// The text of an MSL file, with a site for each of these mutants that can have one.
pub(super) fn render(file: &str, text: &str, mutants: &[(u32, &Mutant)]) -> Rendered {
    let tokens = tokens(text);
    let places = places(Language::Msl, text, &tokens);
    let grower = Grower { tokens: &tokens, places: &places };
    let mut sites = BTreeMap::<(usize, Reverse<usize>), Changes<'_>>::new();
    for (id, mutant) in mutants {
        if let Some(site) = grower.site(mutant) {
            sites.entry((site.start, Reverse(site.end))).or_default().push((*id, mutant));
        }
    }
    let mut rendered = Rendered::default();
    // Complaints name lines from here on.
    let _ = writeln!(rendered.text, "#line 1 \"{file}\"");
    rendered.lines.push(Line { original: 0, mutant: None });
    let sites: Vec<_> =
        sites.into_iter().map(|((start, Reverse(end)), mutants)| (start..end, mutants)).collect();
    Renderer { text, sites: &sites, rendered: &mut rendered }.range(0..text.len(), 0);
    rendered
}

/// Mutants of one place, with their numbers.
type Changes<'a> = Vec<(u32, &'a Mutant)>;

type Site<'a> = (Range<usize>, Changes<'a>);

struct Renderer<'a, 'b> {
    text: &'a str,
    sites: &'a [Site<'a>],
    rendered: &'b mut Rendered,
}

impl Renderer<'_, '_> {
    /// Renders a range of the file. Its sites are those from `next` on. Returns the first site
    /// beyond the range.
    fn range(&mut self, range: Range<usize>, mut next: usize) -> usize {
        let mut at = range.start;
        while let Some((site, mutants)) =
            self.sites.get(next).filter(|(site, _)| site.start < range.end)
        {
            self.verbatim(at..site.start);
            at = site.end;
            next = self.site(site, mutants, next + 1);
        }
        self.verbatim(at..range.end);
        next
    }

    fn site(&mut self, site: &Range<usize>, mutants: &[(u32, &Mutant)], next: usize) -> usize {
        let first = self.line(site.start);
        let lines = self.statement(first)..self.line(site.end - 1) + 1;
        self.rendered.sites.extend(mutants.iter().map(|(id, _)| (*id, lines.clone())));
        let in_macro =
            self.text[..site.start].rsplit('\n').next().is_some_and(|line| line.starts_with('#'));
        let newline = if in_macro { "\\\n" } else { "\n" };
        let text = self.text;
        let changed = |mutant: &Mutant| {
            [
                &text[site.start..mutant.range.start],
                &mutant.replacement,
                &text[mutant.range.end..site.end],
            ]
            .concat()
        };
        if text[site.clone()].ends_with(';') {
            for (id, mutant) in mutants {
                let _ = write!(self.rendered.text, "if (MUTANT({id})) {{");
                self.rendered.changed(&changed(mutant), first, *id, newline);
                self.rendered.text += "} else ";
            }
            return self.range(site.clone(), next);
        }
        // One question asks for all mutants of the site: usually none is wanted.
        let ids = mutants.iter().map(|(id, _)| *id);
        let _ = write!(
            self.rendered.text,
            "(!MUTANTS({}, {}) ? (",
            ids.clone().min().unwrap_or(0),
            ids.max().unwrap_or(0)
        );
        let next = self.range(site.clone(), next);
        self.rendered.text += ") : ";
        for (id, mutant) in mutants {
            let _ = write!(self.rendered.text, "(MUTANT({id})");
            self.rendered.changed(&format!("? ({})", changed(mutant)), first, *id, newline);
            self.rendered.text += ": ";
        }
        self.rendered.push(&format!("({})", text[site.clone()].replace('\n', " ")), first, None);
        self.rendered.text += &")".repeat(mutants.len() + 1);
        next
    }

    fn verbatim(&mut self, range: Range<usize>) {
        let line = self.line(range.start);
        self.rendered.push(&self.text[range], line, None);
    }

    /// The line on which the statement in a line begins.
    fn statement(&self, line: usize) -> usize {
        let lines: Vec<&str> = self.text.lines().take(line).map(str::trim).collect();
        let ends = |line: &&str| {
            line.is_empty() || line.ends_with([';', '{', '}']) || line.starts_with(['#', '/'])
        };
        lines.iter().rposition(ends).map_or(0, |end| end + 1)
    }

    fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count()
    }
}

struct Grower<'a> {
    tokens: &'a [Token<'a>],
    places: &'a [Place],
}

impl Grower<'_> {
    /// The bytes of a mutant's site; none if the compiler evaluates the change.
    fn site(&self, mutant: &Mutant) -> Option<Range<usize>> {
        let first = self.tokens.iter().position(|token| token.start >= mutant.range.start)?;
        let last = self.tokens.iter().rposition(|token| token.end() <= mutant.range.end)?;
        if self.places[first..=last].contains(&Place::Constant) {
            return None;
        }
        // A name or argument in another's place may have another type. That matters less if the
        // site is a whole statement.
        let member = first > 0 && matches!(self.tokens[first - 1].text, "." | "->");
        let whole = mutant.operator == "swap" || mutant.operator == "name" && !member;
        let tokens = match self.tokens[last].text {
            ";" => first..last + 1,
            _ => self.expression(first..last + 1, whole)?,
        };
        let tokens = if whole { self.statement(&tokens).unwrap_or(tokens) } else { tokens };
        Some(self.tokens[tokens.start].start..self.tokens[tokens.end - 1].end())
    }

    /// The expression around some tokens. It reaches to the nearest brackets, commas, choices and
    /// assignments, or is the outermost expression.
    fn expression(&self, mut range: Range<usize>, outermost: bool) -> Option<Range<usize>> {
        loop {
            range = self.grown(range)?;
            let commas = self.between(&range).any(|at| self.tokens[at].text == ",");
            if !commas && !outermost {
                return Some(range);
            }
            match self.enclosing(range.start) {
                // Values of some types have no common type.
                Some(open) if self.tokens[open].text == "{" && self.is_expression(open) => {
                    return None;
                }
                Some(open) if self.is_expression(open) => {
                    range = open..closing(self.tokens, open)? + 1
                }
                _ if commas => return None,
                // The target of an assignment may be a constant after the change, so the site is
                // the whole assignment.
                _ if self.tokens.get(range.end).is_some_and(|next| is_assignment(next.text)) => {
                    return self.grown(range.start..range.end + 1);
                }
                _ => return Some(range),
            }
        }
    }

    /// The statement that is an expression, assigns it, or returns it.
    fn statement(&self, expression: &Range<usize>) -> Option<Range<usize>> {
        let Range { mut start, end } = *expression;
        let in_block = self.enclosing(start).is_some_and(|open| self.tokens[open].text == "{");
        if !in_block || self.tokens.get(end)?.text != ";" {
            return None;
        }
        let before = |at: usize| self.tokens[at - 1].text;
        if before(start) != "return" && is_assignment(before(start)) {
            start = self.grown(start - 1..end)?.start;
        }
        match before(start) {
            "return" => Some(start - 1..end + 1),
            ";" | "{" | "}" if !declares(&self.tokens[start..]) => Some(start..end + 1),
            _ => None,
        }
    }

    /// Extends a range to both sides, to the ends of its expression.
    fn grown(&self, range: Range<usize>) -> Option<Range<usize>> {
        let assigns = self.between(&range).any(|at| is_assignment(self.tokens[at].text));
        let ends = |at: usize| {
            let token = &self.tokens[at];
            match token.kind {
                Kind::Operator if is_assignment(token.text) => !assigns,
                Kind::Operator if matches!(token.text, "?" | ":") => !assigns,
                Kind::Operator => matches!(token.text, ";" | "," | "#"),
                Kind::Word => matches!(token.text, "return" | "else" | "const"),
                _ => false,
            }
        };
        let Range { mut start, mut end } = range;
        while start > 0 && !ends(start - 1) && self.places[start - 1] != Place::Declaration {
            match self.tokens[start - 1].kind {
                Kind::Close if self.is_expression(opening(self.tokens, start - 1)?) => {
                    start = opening(self.tokens, start - 1)?;
                }
                Kind::Open | Kind::Close => break,
                _ => start -= 1,
            }
        }
        while end < self.tokens.len() && !ends(end) && self.places[end] != Place::Declaration {
            match self.tokens[end].kind {
                Kind::Open if self.is_expression(end) => end = closing(self.tokens, end)? + 1,
                Kind::Open | Kind::Close => break,
                _ => end += 1,
            }
        }
        Some(start..end)
    }

    /// The tokens of a range that are inside none of its brackets.
    fn between(&self, range: &Range<usize>) -> impl Iterator<Item = usize> {
        let mut found = Vec::new();
        let mut at = range.start;
        while at < range.end {
            found.push(at);
            at = match self.tokens[at].kind {
                Kind::Open => closing(self.tokens, at).map_or(range.end, |close| close + 1),
                _ => at + 1,
            };
        }
        found.into_iter()
    }

    /// The bracket that is open before a token.
    fn enclosing(&self, before: usize) -> Option<usize> {
        let mut at = before;
        while at > 0 {
            match self.tokens[at - 1].kind {
                Kind::Open => return Some(at - 1),
                Kind::Close => at = opening(self.tokens, at - 1)?,
                _ => at -= 1,
            }
        }
        None
    }

    /// Whether a bracket belongs to an expression, and not to a block or a statement.
    fn is_expression(&self, open: usize) -> bool {
        let Some(before) = open.checked_sub(1).map(|at| &self.tokens[at]) else { return false };
        match self.tokens[open].text {
            "{" => !self.tokens[open].blank && before.kind == Kind::Word,
            "(" => !matches!(before.text, "if" | "for" | "switch" | "while"),
            _ => true,
        }
    }
}

/// Whether a statement begins with a type and a name.
fn declares(statement: &[Token<'_>]) -> bool {
    statement.first().is_some_and(|first| first.kind == Kind::Word)
        && statement
            .get(1)
            .is_some_and(|second| second.kind == Kind::Word || matches!(second.text, "*" | "&"))
}

fn is_assignment(operator: &str) -> bool {
    operator.ends_with('=') && !matches!(operator, "==" | "!=" | "<=" | ">=")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::operators;

    /// The lines of a text with the mutants of one operator, numbered from 1.
    fn lines(operator: &str, text: &str) -> Vec<String> {
        let all = operators::mutants(Language::Msl, "f.metal", text);
        let mutants = all.iter().filter(|mutant| mutant.operator == operator);
        let numbered: Vec<_> = (1..).zip(in_order(text, mutants)).collect();
        render("f.metal", text, &numbered).text.lines().skip(1).map(str::to_owned).collect()
    }

    #[test]
    fn sites_nest() {
        let expected = [
            "void f() { x = (!MUTANTS(1, 1) ? (p + (!MUTANTS(2, 2) ? (q + r) : (MUTANT(2)",
            "? (q - r)",
            ": (q + r)))) : (MUTANT(1)",
            "? (p - v[q + r])",
            ": (p + v[q + r]))); }",
        ];
        let expected =
            expected.map(|line| line.replace("p + (!", "p + v[(!").replace("r)))) :", "r)))]) :"));
        assert_eq!(lines("arithmetic", "void f() { x = p + v[q + r]; }"), expected);
    }

    #[test]
    fn statements() {
        let expected = ["void f() { if (MUTANT(1)) {", "", "} else simdgroup_barrier(x); }"];
        assert_eq!(lines("barrier", "void f() { simdgroup_barrier(x); }"), expected);
        let expected =
            ["void f() { if (MUTANT(1)) {", "return g(q, p);", "} else return g(p, q); }"];
        assert_eq!(lines("swap", "void f() { return g(p, q); }"), expected);
        // If the value of a variable changes, it is declared for the code that follows.
        let expected = [
            "void f() { uint x = (!MUTANTS(1, 1) ? (g(p, q)) : (MUTANT(1)",
            "? (g(q, p))",
            ": (g(p, q)))); }",
        ];
        assert_eq!(lines("swap", "void f() { uint x = g(p, q); }"), expected);
    }

    #[test]
    fn heads_of_loops() {
        let text = "void f() { for (uint i = p; i < n; i += q) { } }";
        let expected = [
            "void f() { for (uint i = p; i < n; (!MUTANTS(1, 1) ? (i += q) : (MUTANT(1)",
            "? (i -= q)",
            ": (i += q)))) { } }",
        ];
        assert_eq!(lines("arithmetic", text), expected);
    }

    #[test]
    fn macros_stay_one() {
        let expected = [
            "#define F(a) g((!MUTANTS(1, 1) ? (a - 1) : (MUTANT(1)\\",
            "? (a + 1)\\",
            ": (a - 1))))",
        ];
        assert_eq!(lines("arithmetic", "#define F(a) g(a - 1)\n"), expected);
    }

    #[test]
    fn constants_have_no_site() {
        let text = "constexpr constant uint A = B * 8;\nvoid f() { float v[A - 1]; }";
        assert_eq!(lines("term", text), text.lines().collect::<Vec<_>>());
        let all = operators::mutants(Language::Msl, "f.metal", text);
        assert!(all.iter().filter(|mutant| mutant.operator == "term").count() == 3);
    }
}
