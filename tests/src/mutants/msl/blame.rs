//! Finds the mutants that clang complains about, in a text of many mutants.

use crate::mutants::sites::Rendered;
use std::collections::HashMap;

/// The mutants that clang complains about.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Blamed {
    /// Mutants whose changed text is wrong in itself.
    pub(super) invalid: Vec<u32>,
    /// Mutants that may be right in a text of their own.
    pub(super) alone: Vec<u32>,
}

/// A complaint about a line of several mutants counts only if no complaint is about one mutant,
/// because one error causes others.
pub(super) fn blamed(complaints: &str, files: &HashMap<&str, Rendered>) -> Blamed {
    let (mut blamed, mut around) = (Blamed::default(), Vec::new());
    let (mut error, mut found): (&str, Vec<Vec<u32>>) = ("", Vec::new());
    for line in complaints.lines().chain(["::: error:"]) {
        let parts: Vec<&str> = line.splitn(4, ':').collect();
        let [path, line, _, what] = parts[..] else { continue };
        if what.contains("error:") {
            // clang first names the place where a macro is used, then the macro's text.
            match found.iter().find(|ids| ids.len() == 1) {
                Some(ids) if error.contains("incompatible operand types") => {
                    blamed.alone.extend(ids)
                }
                Some(ids) => blamed.invalid.extend(ids),
                None => around.extend(found.iter().flatten()),
            }
            (error, found) = (what, Vec::new());
        }
        if what.contains("error:") || what.contains("expanded from macro") {
            found.extend(files.get(path).zip(line.parse().ok()).map(|(file, line)| file.at(line)));
        }
    }
    if blamed == Blamed::default() {
        blamed.alone = around;
    }
    blamed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutants::sites::{in_order, render};
    use crate::mutants::{Language, operators};

    #[test]
    fn complaints_name_mutants() {
        let text = "void f() {\n    g(a + c);\n}\n#define H(x) (x * 2)\n";
        let all = operators::mutants(Language::Msl, "f.metal", text);
        let numbered: Vec<_> = (1..).zip(in_order(text, all.iter())).collect();
        let rendered = render("f.metal", text, &numbered);
        let line = |words: &str| {
            1 + rendered.text.lines().skip(1).position(|line| line.contains(words)).unwrap()
        };
        let id = |after: &str| numbered.iter().find(|(_, mutant)| mutant.after == after).unwrap().0;
        let (minus, macros) = (line("? (a - c)"), line("? (x)"));
        let files = HashMap::from([("f.metal", rendered.clone())]);
        let of = |text: String| blamed(&text, &files);
        let (wrong, one) = (vec![id("g(a - c);")], Vec::new());
        assert_eq!(
            of(format!("f.metal:{minus}:3: error: no")),
            Blamed { invalid: wrong.clone(), alone: one.clone() }
        );
        let mixed =
            format!("f.metal:{minus}:3: error: incompatible operand types\nf.metal:1:1: error: no");
        assert_eq!(of(mixed), Blamed { invalid: one.clone(), alone: wrong });
        let used = format!(
            "f.metal:1:1: error: no\nnote\nf.metal:{macros}:9: note: expanded from macro 'H'"
        );
        assert_eq!(of(used), Blamed { invalid: vec![id("#define H(x) (x)")], alone: one });
        // A complaint about a line of the file itself concerns all sites there.
        let around = of("f.metal:2:1: error: no".into()).alone;
        assert_eq!(around.len(), numbered.iter().filter(|(_, mutant)| mutant.line == 2).count());
    }

    /// clang names the first line of a call whose arguments continue on later lines.
    #[test]
    fn complaints_about_a_statement_name_its_other_lines() {
        let text =
            "void f() {\n    g(a);\n    float x = h(a,\n        q(0, 1), !b);\n    g(2);\n}\n";
        let all = operators::mutants(Language::Msl, "f.metal", text);
        let numbered: Vec<_> = (1..).zip(in_order(text, all.iter())).collect();
        let rendered = render("f.metal", text, &numbered);
        let first = rendered.text.lines().position(|line| line.contains("float x =")).unwrap();
        let files = HashMap::from([("f.metal", rendered)]);
        let alone = blamed(&format!("f.metal:{first}:15: error: no"), &files).alone;
        let line = |id: &u32| numbered.iter().find(|(own, _)| own == id).unwrap().1.line;
        let below = || numbered.iter().filter(|(_, mutant)| mutant.line == 4);
        assert!(below().count() > 0 && below().all(|(id, _)| alone.contains(id)), "{alone:?}");
        assert!(alone.iter().all(|id| [3, 4].contains(&line(id))), "{alone:?}");
    }
}
