//! References in comments and Markdown to files, sections and names that are gone.

use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Kinds of files whose names are looked up in the checkout.
const NAMED: [&str; 7] = ["rs", "wgsl", "metal", "h", "cpp", "py", "md"];

/// Files that belong to the user, to other projects, and to running kernels.
const ELSEWHERE: [&str; 5] =
    ["mine.wgsl", "file.wgsl", "kernel.metal", "mlx/backend/cpu/quantized.cpp", "metal/device.rs"];

/// Words that stand for any name.
const ANY: [&str; 3] = ["NAME", "FILE", "KIND"];

/// Everything that can be referred to.
#[derive(Default)]
pub(super) struct Checkout {
    /// Paths of files, and all their ends.
    ends: BTreeSet<String>,
    /// Paths of files and folders.
    paths: BTreeSet<String>,
    /// The headings of every Markdown file.
    headings: BTreeMap<String, Vec<String>>,
    /// Every word of code.
    words: HashSet<String>,
}

impl Checkout {
    /// Adds a file without its contents.
    pub(super) fn add_path(&mut self, path: &str) {
        let slashes = || path.match_indices('/').map(|(at, _)| at);
        self.ends.insert(path.to_owned());
        self.ends.extend(slashes().map(|at| path[at + 1..].to_owned()));
        self.paths.insert(path.to_owned());
        self.paths.extend(slashes().map(|at| path[..at].to_owned()));
    }

    /// Adds the contents of a file.
    pub(super) fn add_text(&mut self, path: &str, text: &str) {
        let lines = lines(path, text);
        for code in lines.iter().map(|line| line.code) {
            let words = code.split(|c: char| !is_word(c)).filter(|word| !word.is_empty());
            self.words.extend(words.map(str::to_owned));
        }
        if path.ends_with(".md") {
            let prose = lines.iter().filter(|line| line.prose.starts_with('#'));
            let headings = prose.map(|line| line.prose.trim_start_matches('#').trim().to_owned());
            self.headings.insert(path.to_owned(), headings.collect());
        }
    }

    /// The references of a file that lead nowhere, by lines from 0. Records may refer to what is
    /// gone.
    pub(super) fn complaints(&self, path: &str, text: &str) -> Vec<(usize, String)> {
        if path.starts_with("benches/record/") {
            return Vec::new();
        }
        let lines = lines(path, text);
        let mut complaints = Vec::new();
        for (number, line) in lines.iter().enumerate() {
            let next = lines.get(number + 1).map_or("", |line| line.prose);
            let gone = self.files(line.prose).chain(self.sections(line.prose, next));
            let gone = gone.chain(self.names(line.prose));
            let links = path.ends_with(".md").then(|| self.links(path, line.prose));
            complaints.extend(gone.chain(links.into_iter().flatten()).map(|what| (number, what)));
        }
        complaints
    }

    /// Paths of files, or ends of them.
    fn files(&self, prose: &str) -> impl Iterator<Item = String> {
        let words = prose.split_whitespace().filter(|word| !word.contains("://"));
        let words = words.flat_map(|word| {
            word.split(|c: char| !(is_word(c) || "./-*{}<>".contains(c)))
                .map(|word| word.trim_end_matches('.'))
        });
        let gone = words.filter(|word| {
            let (stem, kind) = word.rsplit_once('.').unwrap_or_default();
            let is_any = word.starts_with('-')
                || word.contains(['*', '{', '}', '<', '>'])
                || ANY.iter().any(|any| word.contains(any));
            let end = word.trim_start_matches("../").trim_start_matches("./");
            !stem.is_empty()
                && NAMED.contains(&kind)
                && !is_any
                && !self.ends.contains(end)
                && !ELSEWHERE.contains(&end)
        });
        gone.map(|word| format!("no file of the checkout is called {word}: name the one it is now"))
    }

    /// A file of Markdown and one of its sections in quotes, perhaps in the next line.
    fn sections(&self, prose: &str, next: &str) -> impl Iterator<Item = String> {
        let joined = format!("{prose} {next}");
        let mut gone = Vec::new();
        for (at, separator) in joined.match_indices(".md, \"") {
            let start = joined[..at].rfind(|c: char| !(is_word(c) || "./-".contains(c)));
            let file = &joined[start.map_or(0, |start| start + 1)..at + 3];
            let Some((title, _)) = joined[at + separator.len()..].split_once('"') else { continue };
            let file = file.trim_start_matches("../");
            let mut files = self.headings.iter().filter(|(path, _)| path.ends_with(file));
            let is_there = files.any(|(_, all)| all.iter().any(|heading| heading == title));
            if at < prose.len() && !is_there {
                gone.push(format!("{file} has no section \"{title}\": name the one it is now"));
            }
        }
        gone.into_iter()
    }

    /// `name()` and `Type::name` whose last word occurs in no code.
    fn names(&self, prose: &str) -> impl Iterator<Item = String> {
        let quoted = prose.split('`').skip(1).step_by(2);
        let gone = quoted.filter(|quoted| {
            let path = quoted.split_once('(').map_or(*quoted, |(path, _)| path);
            let is_call = quoted.ends_with(')') && path != *quoted;
            let words = path.split("::");
            let are_words = words.clone().all(|word| {
                word.starts_with(|c: char| !c.is_numeric()) && word.chars().all(is_word)
            });
            are_words
                && (is_call || path.contains("::") && path == *quoted)
                && words.last().is_some_and(|last| !self.words.contains(last))
        });
        gone.map(|name| format!("`{name}` occurs in no code: name that which is there now"))
    }

    /// Links of Markdown to files, folders and headings.
    fn links(&self, path: &str, prose: &str) -> impl Iterator<Item = String> {
        let targets = prose.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
        let gone = targets.filter(|target| {
            let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if file.is_empty() { path.to_owned() } else { beside(path, file) };
            let has_anchor = || {
                let headings = self.headings.get(&file).into_iter().flatten();
                anchor.is_empty() || headings.map(|heading| slug(heading)).any(|it| it == anchor)
            };
            !(target.contains("://") || self.paths.contains(&file) && has_anchor())
        });
        gone.map(|target| format!("the link to {target} leads nowhere: mend or drop it"))
    }
}

/// A line by its parts.
#[derive(Clone, Copy, Default)]
struct Line<'a> {
    code: &'a str,
    /// A comment without its marks, or a line of Markdown.
    prose: &'a str,
}

/// Splits a text into code and prose. Examples in Markdown are code.
fn lines<'a>(path: &str, text: &'a str) -> Vec<Line<'a>> {
    let mark = if path.ends_with(".py") || path.ends_with(".toml") { "#" } else { "//" };
    let mut is_example = false;
    let line = |line: &'a str| {
        if path.ends_with(".md") {
            let is_fence = line.trim_start().starts_with("```");
            is_example ^= is_fence;
            return match is_example || is_fence {
                true => Line { code: line, prose: "" },
                false => Line { code: "", prose: line },
            };
        }
        let begins = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
        match line.match_indices(mark).map(|(at, _)| at).find(begins) {
            None => Line { code: line, prose: "" },
            Some(at) => Line {
                code: &line[..at],
                prose: line[at..].trim_start_matches(['/', '!', '#']).trim(),
            },
        }
    };
    text.lines().map(line).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The path that a relative path means in the file `path`.
fn beside(path: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in relative.trim_end_matches('/').split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// The anchor of a heading.
fn slug(heading: &str) -> String {
    let kept = heading.chars().filter(|c| is_word(*c) || matches!(c, ' ' | '-'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many references of a line lead nowhere, in a small checkout.
    fn gone(path: &str, line: &str) -> usize {
        let mut checkout = Checkout::default();
        let sources = [
            ("crates/a/src/plan.rs", "fn admits() -> Kind { Kind::Whole } // dropped()"),
            ("docs/safety.md", "# Safety\n## Shaders, unchecked\n```\n# no heading\nrun()\n```"),
            ("README.md", "# A `b`"),
        ];
        for (path, text) in sources {
            checkout.add_path(path);
            checkout.add_text(path, text);
        }
        checkout.complaints(path, line).len()
    }

    #[test]
    fn files_exist() {
        for (line, count) in [
            ("// In plan.rs, a/src/plan.rs, and crates/a/src/plan.rs.", 0),
            ("/// (`src/plan.rs:7`) of docs/safety.md's", 0),
            ("// an.rs", 1),
            ("let a = 1; // plans.rs", 1),
            ("let a = \"plans.rs\";", 0),
            ("// crates/b/src/plan.rs and docs/unsafe.md.", 2),
            ("// a.rest, 1.5, https://docs.rs/gone.rs, corpus/KIND/*.rs, NAME.wgsl, mine.wgsl", 0),
        ] {
            assert_eq!(gone("a.rs", line), count, "{line}");
        }
        assert_eq!(gone("a.md", "As plans.rs has it."), 1);
        assert_eq!(gone("a.md", "```\nplans.rs\n```"), 0);
        assert_eq!(gone("benches/record/a.md", "plans.rs"), 0);
        assert_eq!(gone("a.py", "x = 1  # plans.rs"), 1);
    }

    #[test]
    fn links_lead_somewhere() {
        for (line, count) in [
            ("[a](../README.md), [b](safety.md#shaders-unchecked), [c](../crates/a/)", 0),
            ("[a](#safety), [b](https://a.b/c.md), [c](../README.md#a-b)", 0),
            ("[a](#gone) [b](../docs/safety.md#no-heading) [c](../crates/b)", 3),
        ] {
            assert_eq!(gone("docs/safety.md", line), count, "{line}");
        }
        assert_eq!(gone("a.rs", "// [a](b) is no link of Markdown's"), 0);
    }

    #[test]
    fn sections_exist() {
        for (text, count) in [
            ("// (safety.md, \"Shaders, unchecked\")", 0),
            ("// docs/safety.md,\n// \"Shaders, unchecked\"", 0),
            ("// safety.md, \"Shaders,\n// unchecked\"", 0),
            ("// safety.md, \"Shaders\"", 1),
            ("// README.md, \"Safety\"", 1),
            ("// safety.md, \"no heading\"", 1),
        ] {
            assert_eq!(gone("a.rs", text), count, "{text}");
        }
    }

    #[test]
    fn names_occur() {
        for (line, count) in [
            ("// `admits()`, `Kind::Whole`, `crate::plan::admits`, `run(a, b)`", 0),
            ("// `dropped()` and `Kind::Half`", 2),
            ("// `dropped`, `mlx.gone(a)`, `a + gone()`, `1::2`, dropped()", 0),
        ] {
            assert_eq!(gone("a.rs", line), count, "{line}");
        }
    }
}
