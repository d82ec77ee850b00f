//! The linker: which files a text has, and in which order.
//!
//! Each file lists at its top the names that it needs from other files, and the names that it
//! provides. The planner chooses the files that have alternatives or constants
//! ([`Kit`](tilewise_core::kernel::Kit)). All others are glue: such a file joins a text that needs
//! a name which it provides and no file there does. If its names have the prefix `x_`, it joins
//! for the operand whose name is needed.

use std::collections::{BTreeSet, HashMap};
use tilewise_core::plan::Part;

/// The operands that glue joins for.
const OPERANDS: [&str; 7] = ["a", "b", "c", "bias", "residual", "row", "column"];

/// The files of a language.
#[derive(Clone, Copy)]
pub struct Sources {
    /// Path and text of each.
    pub files: &'static [(&'static str, &'static str)],
    /// The file that stands first in every text, if one must.
    pub first: Option<&'static str>,
    /// The files that join a text when their names are needed.
    pub glue: &'static [&'static str],
}

impl Sources {
    /// The text of a file.
    ///
    /// # Errors
    /// No file has this path.
    pub fn text(&self, path: &str) -> Result<&'static str, String> {
        let found = self.files.iter().find(|(own, _)| *own == path);
        found.map(|(_, text)| *text).ok_or_else(|| format!("no file {path}"))
    }

    /// The chosen files and their glue. A file stands behind those that provide what it needs,
    /// unless they need it too.
    ///
    /// # Errors
    /// Two files provide a name, or none provides a name that a file needs.
    pub fn link(&self, chosen: &[Part]) -> Result<Vec<Part>, String> {
        let mut linker = Linker {
            sources: self,
            parts: Vec::new(),
            providers: HashMap::new(),
            met: BTreeSet::new(),
            linked: Vec::new(),
        };
        let first = self.first.map(|file| Part { file, operand: None, constants: Vec::new() });
        for part in first.iter().chain(chosen) {
            linker.add(part.clone())?;
        }
        for index in 0..linker.parts.len() {
            linker.place(index)?;
        }
        Ok(linker.linked)
    }

    /// The part of a file that provides a name: for no operand, or for the one in the name.
    fn instance(&self, file: &'static str, name: &str) -> Result<Option<Part>, String> {
        let (prefix, rest) = name.split_once('_').unwrap_or_default();
        let operand = OPERANDS.into_iter().find(|own| own.eq_ignore_ascii_case(prefix));
        let x = if prefix.starts_with(char::is_uppercase) { "X" } else { "x" };
        let of_operand = operand.map(|_| format!("{x}_{rest}"));
        let mut provides = listed(self.text(file)?, "provides").into_iter().flatten();
        let found = provides.find(|own| *own == name || of_operand.as_deref() == Some(*own));
        let operand = found.and_then(|own| operand.filter(|_| own != name));
        Ok(found.map(|_| Part { file, operand, constants: Vec::new() }))
    }

    /// The names in one of a part's lists. `Params` stands before all files.
    fn names(&self, part: &Part, list: &str) -> Result<BTreeSet<String>, String> {
        let names = listed(self.text(part.file)?, list);
        let names = names.ok_or_else(|| format!("{} lacks the list `{list}`", part.file))?;
        Ok(names.filter(|name| *name != "Params").map(|name| part.instantiate(name)).collect())
    }
}

/// The names of one list in the comment at the top of a file. A list goes on over lines that are
/// indented by eight blanks; `nothing` stands for no names.
pub fn listed<'a>(text: &'a str, list: &str) -> Option<impl Iterator<Item = &'a str> + use<'a>> {
    let mut head = text.lines().take_while(|line| line.starts_with("//"));
    let first =
        head.find_map(|line| line.strip_prefix("// ")?.strip_prefix(list)?.strip_prefix(": "))?;
    let more = head.map_while(|line| line.strip_prefix("//        "));
    let names = std::iter::once(first).chain(more).flat_map(str::split_whitespace);
    Some(names.filter(|name| *name != "nothing"))
}

/// A text under construction.
struct Linker<'a> {
    sources: &'a Sources,
    /// Its files: the chosen ones, then glue.
    parts: Vec<Part>,
    /// Which of them provides a name.
    providers: HashMap<String, usize>,
    /// Which of them are placed, or wait for others to be.
    met: BTreeSet<usize>,
    linked: Vec<Part>,
}

impl Linker<'_> {
    /// Adds a file to the text.
    fn add(&mut self, part: Part) -> Result<usize, String> {
        let index = self.parts.len();
        for name in self.sources.names(&part, "provides")? {
            if let Some(other) = self.providers.get(&name) {
                let other = self.parts[*other].file;
                return Err(format!("{name} is provided twice: by {other} and by {}", part.file));
            }
            self.providers.insert(name, index);
        }
        self.parts.push(part);
        Ok(index)
    }

    /// Places a file behind the providers of what it needs.
    fn place(&mut self, index: usize) -> Result<(), String> {
        if !self.met.insert(index) {
            return Ok(());
        }
        let part = self.parts[index].clone();
        for name in self.sources.names(&part, "needs")? {
            let known = self.providers.get(&name).copied();
            let provider = known.map_or_else(|| self.join(&name, &part), Ok)?;
            self.place(provider)?;
        }
        let is_first = self.sources.first == Some(part.file);
        self.linked.insert(if is_first { 0 } else { self.linked.len() }, part);
        Ok(())
    }

    /// Adds the glue that provides a name, which `user` needs.
    fn join(&mut self, name: &str, user: &Part) -> Result<usize, String> {
        match &self.glue(name, &BTreeSet::new())?[..] {
            [part] => self.add(part.clone()),
            [] => Err(format!("{name} is provided by no file, and {} needs it", user.file)),
            [one, other, ..] => {
                let files = [one.file, other.file].join(" and by ");
                Err(format!("{name} is provided twice: by {files}"))
            }
        }
    }

    /// The glue that provides a name, but none that is provided or `taken`, and whose own needs can
    /// be met.
    fn glue(&self, name: &str, taken: &BTreeSet<String>) -> Result<Vec<Part>, String> {
        let mut found = Vec::new();
        for file in self.sources.glue {
            let Some(part) = self.sources.instance(file, name)? else { continue };
            let provided = self.sources.names(&part, "provides")?;
            let is_taken = |name| self.providers.contains_key(name) || taken.contains(name);
            if provided.iter().any(is_taken) {
                continue;
            }
            let taken = taken | &provided;
            let mut met = true;
            for name in self.sources.names(&part, "needs")? {
                met &= self.providers.contains_key(&name)
                    || taken.contains(&name)
                    || !self.glue(&name, &taken)?.is_empty();
            }
            found.extend(met.then_some(part));
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_core::plan::Part;

    const SOURCES: Sources = Sources {
        files: &[
            ("header", "// needs: entry\n// provides: lane\n"),
            ("entry", "// needs: lane\n// provides: entry\n"),
            ("four", "// needs: lane\n// provides: x_four\n"),
            ("one", "// needs: nothing\n// provides: x_one\n"),
            ("ones of fours", "// needs: x_four\n// provides: x_one X_N\n"),
            ("fours of ones", "// needs: x_one\n// provides: x_four X_N\n"),
            ("pair", "// needs: x_four\n// provides: x_pair\n"),
            ("lost", "// needs: x_lost\n// provides: x_pair\n"),
            ("main", "// needs: a_pair\n//        b_pair B_N Params\n// provides: main\n"),
        ],
        first: Some("header"),
        glue: &["entry", "ones of fours", "fours of ones", "pair", "lost"],
    };

    fn part(file: &'static str, operand: Option<&'static str>) -> Part {
        Part { file, operand, constants: Vec::new() }
    }

    #[test]
    fn glue_joins_in_order() {
        let chosen = [part("one", Some("a")), part("main", None), part("four", Some("b"))];
        let linked = SOURCES.link(&chosen).unwrap();
        let linked = linked.iter().map(|part| (part.file, part.operand.unwrap_or_default()));
        let expected = [
            ("header", ""),
            ("entry", ""),
            ("one", "a"),
            ("four", "b"),
            ("ones of fours", "b"),
            ("fours of ones", "a"),
            ("pair", "a"),
            ("pair", "b"),
            ("main", ""),
        ];
        assert_eq!(Vec::from_iter(linked), expected);
    }

    #[test]
    fn names_have_one_provider() {
        let error = |chosen: &[_], sources: &Sources| sources.link(chosen).unwrap_err();
        let [a, b] = [part("one", Some("a")), part("one", Some("b"))];
        let main = part("main", None);
        let nobody = error(&[a.clone(), main.clone()], &SOURCES);
        assert_eq!(nobody, "B_N is provided by no file, and main needs it");
        let twice = error(&[a.clone(), part("ones of fours", Some("a"))], &SOURCES);
        assert_eq!(twice, "a_one is provided twice: by one and by ones of fours");
        let glue = &["entry", "fours of ones", "ones of fours", "pair", "pair"];
        let twice = error(&[a, b, main], &Sources { glue, ..SOURCES });
        assert_eq!(twice, "a_pair is provided twice: by pair and by pair");
        let absent = error(&[part("absent", None)], &SOURCES);
        assert_eq!(absent, "no file absent");
    }
}
