//! The lists at the top of every file of shaders, and whether they are true. The tests of both
//! languages share this; each finds the names of its language by itself.

use std::collections::BTreeSet;
use tilewise_shaders::{DECLARED, listed};

/// The names of one file.
#[derive(Default)]
pub(crate) struct Names<'a> {
    /// Declared at module scope.
    pub(crate) declared: BTreeSet<&'a str>,
    /// Used, and not declared in the function or the struct that uses them.
    pub(crate) free: BTreeSet<&'a str>,
}

/// Whether a token is a name, or a word of the language.
pub(crate) fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Whether a name is that of a constant or a macro. Names that begin with `_` are the language's.
pub(crate) fn is_capital(name: &str) -> bool {
    !name.starts_with('_') && name.chars().all(|c| !c.is_lowercase())
}

/// Compares the lists of files with their names. `names` finds the names of a file, and `serves`
/// says whether other files can use them. A name is needed if it is free in the file and another
/// file declares it. A free name in capitals that no file declares is a constant of the planner.
pub(crate) fn complaints(
    files: &[(&str, &str)],
    names: fn(&str) -> Names<'_>,
    serves: impl Fn(&str) -> bool,
) -> Vec<String> {
    let all: Vec<_> = files.iter().map(|(path, text)| (*path, *text, names(text))).collect();
    let others =
        all.iter().filter(|(path, ..)| serves(path)).flat_map(|(.., names)| &names.declared);
    let mut declared: BTreeSet<String> = others.flat_map(|name| instances(name)).collect();
    // `Params` stands before all files.
    declared.insert("Params".to_owned());
    let mut complaints = Vec::new();
    for (path, text, Names { declared: own, free }) in &all {
        let (needs, others): (BTreeSet<&str>, BTreeSet<&str>) =
            free.difference(own).copied().partition(|name| declared.contains(*name));
        let constants = others.into_iter().filter(|name| is_capital(name)).collect();
        // Glue offers its names, other files provide theirs.
        let declared = DECLARED.into_iter().find(|list| listed(text, list).is_some());
        for (list, wanted) in [
            ("needs", needs),
            (declared.unwrap_or("provides"), own.clone()),
            ("constants", constants),
        ] {
            let mut met = BTreeSet::new();
            let twice = listed(text, list).into_iter().flatten().filter(|name| !met.insert(*name));
            complaints.extend(twice.map(|name| format!("{path}: `{list}` has {name} twice")));
            let listed = listed(text, list).map(BTreeSet::from_iter);
            if listed.is_none() && list != "constants" {
                complaints.push(format!("{path}: add the line `// {list}: ...`"));
            }
            let listed = listed.unwrap_or_default();
            let join = |names: BTreeSet<&str>| Vec::from_iter(names).join(" ");
            let (add, remove) = (join(&wanted - &listed), join(&listed - &wanted));
            if !add.is_empty() {
                complaints.push(format!("{path}: add to `{list}`: {add}"));
            }
            if !remove.is_empty() {
                complaints.push(format!("{path}: remove from `{list}`: {remove}"));
            }
        }
    }
    complaints
}

/// All spellings of a name: a file for every operand says `x_`, and its instances say `a_`, `b_`
/// and so on.
fn instances(name: &str) -> Vec<String> {
    let operands = ["x", "a", "b", "c", "bias", "residual", "row", "column"];
    let lower = operands.map(|operand| format!("{operand}_"));
    let upper = lower.clone().map(|operand| operand.to_uppercase());
    for prefixes in [lower, upper] {
        if let Some(rest) = prefixes.iter().find_map(|prefix| name.strip_prefix(prefix.as_str())) {
            return prefixes.map(|prefix| prefix + rest).to_vec();
        }
    }
    vec![name.to_owned()]
}
