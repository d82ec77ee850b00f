//! Finds files that import each other in a circle, in each folder of each crate.

use std::collections::{BTreeMap, BTreeSet};

/// Folders that have circles, and why. No other folder may have any.
const KNOWN: [(&str, &str); 8] = [
    ("crates/cli/src/", "arguments name arrays, and errors of reading arrays name arguments"),
    ("crates/files/src/", "a model opens by its layouts, and a layout reads tensors of the model"),
    ("crates/sanitizer/src/", "a launch runs on the machine, which reads the launch's buffers"),
    ("crates/sanitizer/src/cli/", "an argument holds values, and errors of values name arguments"),
    ("crates/sanitizer/src/machine/", "a worker keeps events, and events are told to a worker"),
    ("crates/tilewise/src/gpu/", "calls know the buffers that they write, and buffers their calls"),
    ("crates/tilewise/src/kernel/", "a call names its outputs, and an output is found by its call"),
    ("tests/src/", "a case makes its problem by the runner, and the runner takes cases"),
];

/// For each file of a folder, the files that it imports. A file and the folder of its name are one.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// All folders of Rust that make crates.
#[derive(Default)]
pub(crate) struct Folders(BTreeMap<String, Imports>);

impl Folders {
    /// Adds a file by its path.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let path = path.strip_suffix(".rs");
        let in_src = path.and_then(|path| path.find("/src/").map(|at| path.split_at(at + 5)));
        let in_shaders = path.and_then(|path| Some(("shaders/", path.strip_prefix("shaders/")?)));
        let Some((root, inside)) = in_src.or(in_shaders) else { return };
        // The imports of these files do not count: they are re-exports for users.
        let inside = inside.strip_suffix("/mod").unwrap_or(inside);
        if ["lib", "main"].contains(&inside) {
            return;
        }
        let own: Vec<&str> = inside.split('/').collect();
        for depth in 0..own.len() {
            self.folder(root, &own[..depth]).entry(own[depth].to_owned()).or_default();
        }
        for path in imported(&code_of(text), &own) {
            let depth = own.iter().zip(&path).take_while(|(own, other)| own == other).count();
            if let (Some(&name), Some(&other)) = (own.get(depth), path.get(depth)) {
                let imports = self.folder(root, &own[..depth]).entry(name.to_owned()).or_default();
                imports.insert(other.to_owned());
            }
        }
    }

    fn folder(&mut self, root: &str, path: &[&str]) -> &mut Imports {
        let name = path.iter().fold(root.to_owned(), |name, folder| name + folder + "/");
        self.0.entry(name).or_default()
    }

    /// A line for each folder with circles.
    pub(crate) fn complaints(self) -> impl Iterator<Item = String> {
        let folders = self.0.into_iter().map(|(folder, imports)| (folder, circles(imports)));
        folders.filter_map(|(folder, circles)| {
            let known = KNOWN.iter().any(|(known, _)| *known == folder);
            match (circles.is_empty(), known) {
                (false, false) => Some(format!(
                    "{folder}: these files import each other in a circle: {}",
                    circles.join(", ")
                )),
                (true, true) => {
                    Some(format!("{folder}: it has no circles, so strike it off KNOWN"))
                }
                _ => None,
            }
        })
    }
}

/// The files in circles, and those between circles. Files that import none of the others, or are
/// imported by none, are taken away again and again; the rest is returned.
fn circles(mut files: Imports) -> Vec<String> {
    loop {
        let all: BTreeSet<String> = files.keys().cloned().collect();
        files.values_mut().for_each(|imports| imports.retain(|name| all.contains(name)));
        let imported: BTreeSet<String> = files.values().flatten().cloned().collect();
        let before = files.len();
        files.retain(|name, imports| !imports.is_empty() && imported.contains(name));
        if files.len() == before {
            return files.into_keys().collect();
        }
    }
}

/// The text without its comments, and without the items that only tests have.
fn code_of(text: &str) -> String {
    let (mut code, mut test) = (String::new(), None);
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.split("//").next().unwrap_or_default().trim();
        match test {
            _ if line == "#[cfg(test)]" => test = Some(indent),
            // The item ends on a line of its own indentation.
            Some(own) if own == indent && (line.ends_with(';') || line.starts_with('}')) => {
                test = None;
            }
            Some(_) => {}
            None => code.extend([line, " "]),
        }
    }
    code
}

/// The paths that a module names by `crate::` or `super::`, from the root of its crate.
fn imported<'t>(code: &'t str, own: &[&'t str]) -> Vec<Vec<&'t str>> {
    let mut found = Vec::new();
    for (at, first) in code.match_indices("crate::") {
        read_paths(&code[at + first.len()..], &[], &mut found);
    }
    for (at, _) in code.match_indices("super::") {
        let (mut rest, mut before) = (&code[at..], own);
        while let (Some(next), [above @ .., _]) = (rest.strip_prefix("super::"), before) {
            (rest, before) = (next, above);
        }
        if !code[..at].ends_with("super::") {
            read_paths(rest, before, &mut found);
        }
    }
    found
}

/// Reads a path, or several in braces, that follow `before`. Gives the rest of the text.
fn read_paths<'t>(text: &'t str, before: &[&'t str], found: &mut Vec<Vec<&'t str>>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = read_paths(rest, before, found);
            match rest.split_once([',', '}']) {
                Some((between, after)) if rest[between.len()..].starts_with(',') => rest = after,
                Some((_, after)) => return after,
                None => return "",
            }
        }
    }
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    let (word, rest) = text.split_at(end);
    let path = [before, &[word]].concat();
    match rest.strip_prefix("::") {
        Some(rest) if !word.is_empty() => read_paths(rest, &path, found),
        _ => {
            found.push(path);
            rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn circles_are_found() {
        let circles = |files: &[(&str, &str)]| {
            let mut folders = Folders::default();
            files.iter().for_each(|(path, text)| folders.add(&format!("x/src/{path}"), text));
            let complaints: Vec<_> = folders.complaints().collect();
            complaints.join(" ").split(": ").skip(2).map(str::to_owned).collect::<String>()
        };
        let open = [
            ("a.rs", "use crate::b::B;"),
            ("b/deep.rs", "use crate::c;"),
            ("c.rs", "// use crate::a;"),
        ];
        assert!(circles(&open).is_empty());
        let [a, b, _] = open;
        let above = ("above.rs", "use crate::a::A;");
        assert_eq!(circles(&[above, a, b, ("c.rs", "use crate::{d::{a, e}, a::A};")]), "a, b, c");
        assert_eq!(
            circles(&[("d/a.rs", "use super::b::B;"), ("d/b.rs", "use super::{C, a::A};")]),
            "a, b"
        );
        // By the path from the root, in a folder and in one below it.
        let deep =
            [("d/a.rs", "use crate::d::{b::B, x};"), ("d/b/e.rs", "use super::super::a::A;")];
        assert_eq!(circles(&deep), "a, b");
        let shaders = [("shaders/a.rs", "use crate::b;"), ("shaders/b.rs", "use crate::a;")];
        let mut folders = Folders::default();
        shaders.iter().for_each(|(path, text)| folders.add(path, text));
        assert_eq!(folders.complaints().count(), 1);
        // Imports of tests do not count, wherever it stands.
        let tests = "#[cfg(test)]\nmod tests;\nuse crate::c::C;";
        assert_eq!(circles(&[a, ("b.rs", tests), ("c.rs", "use crate::a::A;")]), "a, b, c");
        for test in ["use crate::{\n    a::A,\n};", "mod tests {\n    use crate::a::A;\n}"] {
            let text = format!("fn f() {{}}\n#[cfg(test)]\n{test}\nfn g() {{}}");
            assert!(circles(&[a, b, ("c.rs", &text)]).is_empty(), "{text}");
        }
        assert!(
            circles(&[a, ("b.rs", "use crate::{d::{x, a}};"), ("lib.rs", "pub use crate::a;")])
                .is_empty()
        );
    }
}
