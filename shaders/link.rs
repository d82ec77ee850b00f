//! The linker: which files a text has, and in which order.
//!
//! Each file lists at its top the names that it needs from other files, and the names that it
//! declares. A file that *provides* its names is in a text if the planner chooses it
//! ([`Kit`](tilewise_core::kernel::Kit)): it has alternatives or constants. A file that *offers*
//! its names is glue: it joins a text that needs one of them which no file there declares. If the
//! names have the prefix `x_`, it joins for the operand whose name is needed.

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

    /// The chosen files and their glue. A file stands behind the providers of what it needs,
    /// unless they need it too.
    ///
    /// # Errors
    /// Two files declare a name, or none declares a name that a file needs.
    pub fn link(&self, chosen: &[Part]) -> Result<Vec<Part>, String> {
        let offers = |(file, text): &(_, &'static str)| Some((*file, listed(text, "offers")?));
        let glue = self.files.iter().filter_map(offers);
        let mut linker = Linker {
            sources: self,
            glue: glue.map(|(file, names)| (file, names.collect())).collect(),
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

    /// The names that a part's file needs. `Params` stands before all files.
    fn needs(&self, part: &Part) -> Result<BTreeSet<String>, String> {
        let names = listed(self.text(part.file)?, "needs").into_iter().flatten();
        Ok(names.filter(|name| *name != "Params").map(|name| part.instantiate(name)).collect())
    }

    /// The names that a part's file declares.
    fn declares(&self, part: &Part) -> Result<BTreeSet<String>, String> {
        let text = self.text(part.file)?;
        let names = DECLARED.into_iter().filter_map(|list| listed(text, list)).flatten();
        Ok(names.map(|name| part.instantiate(name)).collect())
    }
}

/// The lists of declared names, of which each file has one.
pub const DECLARED: [&str; 2] = ["provides", "offers"];

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
    /// Glue, and the names that each file offers.
    glue: Vec<(&'static str, Vec<&'static str>)>,
    /// Its files: the chosen ones, then glue.
    parts: Vec<Part>,
    /// Which of them declares a name.
    providers: HashMap<String, usize>,
    /// Which of them are placed, or wait for others to be.
    met: BTreeSet<usize>,
    linked: Vec<Part>,
}

impl Linker<'_> {
    /// Adds a file to the text.
    fn add(&mut self, part: Part) -> Result<usize, String> {
        let index = self.parts.len();
        for name in self.sources.declares(&part)? {
            if let Some(other) = self.providers.get(&name) {
                let other = self.parts[*other].file;
                return Err(format!("{name} is declared twice: by {other} and by {}", part.file));
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
        for name in self.sources.needs(&part)? {
            let known = self.providers.get(&name).copied();
            let provider = known.map_or_else(|| self.join(&name, &part), Ok)?;
            self.place(provider)?;
        }
        let is_first = self.sources.first == Some(part.file);
        self.linked.insert(if is_first { 0 } else { self.linked.len() }, part);
        Ok(())
    }

    /// Adds the glue that offers a name, which `user` needs.
    fn join(&mut self, name: &str, user: &Part) -> Result<usize, String> {
        match &self.glue(name, &BTreeSet::new())?[..] {
            [part] => self.add(part.clone()),
            [] => Err(format!("{name} is declared by no file, and {} needs it", user.file)),
            [one, other, ..] => {
                let files = [one.file, other.file].join(" and by ");
                Err(format!("{name} is declared twice: by {files}"))
            }
        }
    }

    /// The parts that offer a name: each for no operand, or for the one in the name.
    fn offers(&self, name: &str) -> impl Iterator<Item = Part> {
        let (prefix, rest) = name.split_once('_').unwrap_or_default();
        let operand = OPERANDS.into_iter().find(|own| own.eq_ignore_ascii_case(prefix));
        let x = if prefix.starts_with(char::is_uppercase) { "X" } else { "x" };
        let of_operand = operand.map(|_| format!("{x}_{rest}"));
        self.glue.iter().filter_map(move |(file, names)| {
            let is_own = |own: &&&str| **own == name || of_operand.as_deref() == Some(**own);
            let own = *names.iter().find(is_own)?;
            let operand = operand.filter(|_| own != name);
            Some(Part { file, operand, constants: Vec::new() })
        })
    }

    /// The glue that offers a name, but none that is declared or `taken`, and whose own needs can
    /// be met.
    fn glue(&self, name: &str, taken: &BTreeSet<String>) -> Result<Vec<Part>, String> {
        let mut found = Vec::new();
        for part in self.offers(name) {
            let own = self.sources.declares(&part)?;
            let is_taken = |name| self.providers.contains_key(name) || taken.contains(name);
            if own.iter().any(is_taken) {
                continue;
            }
            let taken = taken | &own;
            let mut met = true;
            for name in self.sources.needs(&part)? {
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

    const FILES: &[(&str, &str)] = &[
        ("header", "// needs: entry\n// provides: lane\n"),
        ("entry", "// needs: lane\n// offers: entry\n"),
        ("four", "// needs: lane\n// provides: x_four\n"),
        ("one", "// needs: nothing\n// provides: x_one\n"),
        ("ones of fours", "// needs: x_four\n// offers: x_one X_N\n"),
        ("fours of ones", "// needs: x_one\n// offers: x_four X_N\n"),
        ("pair", "// needs: x_four\n// offers: x_pair\n"),
        ("lost", "// needs: x_lost\n// offers: x_pair\n"),
        ("main", "// needs: a_pair\n//        b_pair B_N Params\n// provides: main\n"),
        ("lone", "// needs: a_lone\n// provides: main\n"),
        ("more", "// needs: nothing\n// offers: x_more\n"),
        ("most", "// needs: nothing\n// offers: x_more\n"),
        ("unsure", "// needs: a_more\n// provides: main\n"),
    ];
    const SOURCES: Sources = Sources { files: FILES, first: Some("header") };

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
    fn names_have_one_file() {
        for (chosen, why) in [
            (["lone", "four"], "a_lone is declared by no file, and lone needs it"),
            (["unsure", "four"], "a_more is declared twice: by more and by most"),
            (["one", "ones of fours"], "a_one is declared twice: by one and by ones of fours"),
            (["one", "absent"], "no file absent"),
        ] {
            let error = SOURCES.link(&chosen.map(|file| part(file, Some("a")))).unwrap_err();
            assert_eq!(error, why);
        }
    }
}
