//! Files of a crate that import each other in a circle. A file and the folder of its name count as
//! one.

use std::collections::{BTreeMap, BTreeSet};

/// The crates that have none.
pub(crate) const WITHOUT: [&str; 2] = ["crates/core/src/", "crates/tilewise/src/"];

/// Who imports whom.
#[derive(Default)]
pub(crate) struct Imports(BTreeMap<String, BTreeSet<String>>);

impl Imports {
    /// Adds a file by its path below the crate's folder.
    pub(crate) fn add(&mut self, path: &str, text: &str) {
        let owner = path.trim_end_matches(".rs").split('/').next().unwrap_or_default();
        // Re-exports are for users.
        if owner == "lib" {
            return;
        }
        let code = text.lines().take_while(|line| line.trim() != "#[cfg(test)]");
        let code: Vec<&str> =
            code.map(|line| line.split("//").next().unwrap_or_default()).collect();
        let imported = code.join(" ");
        let imported = imported.split("crate::").skip(1).flat_map(first_names);
        self.0.entry(owner.to_owned()).or_default().extend(imported.filter(|name| name != owner));
    }

    /// The files in circles, and between them: those that are left once all are taken away, again
    /// and again, that import none of the others or are imported by none.
    pub(crate) fn circles(mut self) -> Vec<String> {
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

/// The files that stand behind `crate::`: one, or those in braces.
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
            let mut imports = Imports::default();
            files.iter().for_each(|(path, text)| imports.add(path, text));
            imports.circles()
        };
        let open = [
            ("a.rs", "use crate::b::B;"),
            ("b/deep.rs", "use crate::c;"),
            ("c.rs", "// use crate::a;"),
        ];
        assert!(circles(&open).is_empty());
        let [a, b, _] = open;
        let above = ("above.rs", "use crate::a::A;");
        assert_eq!(
            circles(&[above, a, b, ("c.rs", "use crate::{d::{a, e}, a::A};")]),
            ["a", "b", "c"]
        );
        assert!(circles(&[a, b, ("c.rs", "fn f() {}\n#[cfg(test)]\nuse crate::a::A;")]).is_empty());
        assert!(
            circles(&[a, ("b.rs", "use crate::{d::{x, a}};"), ("lib.rs", "pub use crate::a;")])
                .is_empty()
        );
    }
}
