//! Finds files that import each other in a circle: in each crate, in which a file and the folder of
//! its name count as one, and in each folder.

use std::collections::{BTreeMap, BTreeSet};

/// Folders that still have circles. No other folder may have any.
const KNOWN: [&str; 9] = [
    "crates/cli/src/",
    "crates/files/src/",
    "crates/msl/src/",
    "crates/sanitizer/src/",
    "crates/sanitizer/src/cli/",
    "crates/sanitizer/src/machine/",
    "crates/tilewise/src/gpu/",
    "crates/tilewise/src/kernel/",
    "tests/src/",
];

/// All folders of Rust below a `src`.
#[derive(Default)]
pub(crate) struct Folders(BTreeMap<String, Imports>);

impl Folders {
    /// Adds a file by its path.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let Some((base, inside)) = path.strip_suffix(".rs").and_then(|it| it.split_once("/src/"))
        else {
            return;
        };
        let owner = inside.split('/').next().unwrap_or_default();
        self.0.entry(format!("{base}/src/")).or_default().add(owner, "crate::", text);
        if let Some((folder, own)) = inside.rsplit_once('/') {
            let folder = format!("{base}/src/{folder}/");
            self.0.entry(folder).or_default().add(own, "super::", text);
        }
    }

    /// A line for each folder with circles.
    pub(crate) fn complaints(self) -> impl Iterator<Item = String> {
        let folders = self.0.into_iter().map(|(folder, imports)| (folder, imports.circles()));
        folders.filter_map(|(folder, circles)| {
            match (circles.is_empty(), KNOWN.contains(&folder.as_str())) {
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

/// For each file, the files that it imports.
#[derive(Default)]
struct Imports(BTreeMap<String, BTreeSet<String>>);

impl Imports {
    /// Adds a file. `before` is the path that precedes the names of the files beside it.
    fn add(&mut self, owner: &str, before: &str, text: &str) {
        // The imports of these files do not count: they are re-exports for users.
        if ["lib", "main", "mod"].contains(&owner) {
            return;
        }
        let code = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
        let code: Vec<&str> =
            code.map(|line| line.split("//").next().unwrap_or_default()).collect();
        let imported = code.join(" ");
        let imported = imported.split(before).skip(1).flat_map(first_names);
        self.0.entry(owner.to_owned()).or_default().extend(imported.filter(|name| name != owner));
    }

    /// The files in circles, and those between circles. Files that import none of the others, or
    /// are imported by none, are taken away again and again; the rest is returned.
    fn circles(mut self) -> Vec<String> {
        loop {
            let all: BTreeSet<String> = self.0.keys().cloned().collect();
            self.0.values_mut().for_each(|imports| imports.retain(|name| all.contains(name)));
            let imported: BTreeSet<String> = self.0.values().flatten().cloned().collect();
            let before = self.0.len();
            self.0.retain(|name, imports| !imports.is_empty() && imported.contains(name));
            if self.0.len() == before {
                return self.0.into_keys().collect();
            }
        }
    }
}

/// The files named behind `crate::`: one, or those in braces.
fn first_names(rest: &str) -> Vec<String> {
    let word = |text: &str| {
        text.trim().chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect::<String>()
    };
    let Some(list) = rest.strip_prefix('{') else { return vec![word(rest)] };
    let mut depth = 0;
    let outermost = list.split(';').next().unwrap_or_default().split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    outermost.map(word).collect()
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
        assert!(circles(&[a, b, ("c.rs", "fn f() {}\n#[cfg(test)]\nuse crate::a::A;")]).is_empty());
        assert!(
            circles(&[a, ("b.rs", "use crate::{d::{x, a}};"), ("lib.rs", "pub use crate::a;")])
                .is_empty()
        );
    }
}
