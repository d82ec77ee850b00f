//! The rules for names: of a kernel, its inputs, outputs and templates, and of what its text
//! declares.

use super::built_in::BUILT_IN;
use super::functions::{LOADS, ROW, STORES};
use super::text::Text;
use naga::keywords::wgsl::{BUILTIN_IDENTIFIERS, RESERVED};
use std::collections::{HashMap, HashSet};
use tilewise_core::{Error, Result};
use tilewise_shaders::tokens::Token;

/// Suffixes of the names that derive from a tensor's name, besides those of its functions.
const DERIVED: [&str; 3] = ["_shape", "_strides", "_ndim"];

/// The prefix of all names that the generated module adds.
pub(super) const OWN: &str = "tilewise_";

/// Words of WGSL that the generated text uses, and that must keep their meaning.
const USED: [&str; 20] = [
    "any",
    "array",
    "atomic",
    "atomicLoad",
    "atomicStore",
    "atomicXor",
    "bitcast",
    "bool",
    "f16",
    "f32",
    "i32",
    "read",
    "read_write",
    "select",
    "storage",
    "u32",
    "uniform",
    "vec2",
    "vec3",
    "vec4",
];

/// The meanings of a call's names.
pub(super) struct Names<'a> {
    taken: HashMap<String, &'static str>,
    kernel: &'a str,
}

impl<'a> Names<'a> {
    /// `Misuse` unless the kernel's name can be printed, and every other name is an identifier of
    /// WGSL that is used once.
    pub(super) fn new(
        kernel: &'a str,
        inputs: &[&str],
        outputs: &[&str],
        templates: &[&str],
        values: &[&str],
    ) -> Result<Self> {
        if kernel.is_empty() || kernel.contains(char::is_control) {
            return Err(Error::Misuse(format!(
                "the name {kernel:?} of a kernel is empty or has control characters"
            )));
        }
        let mut taken: HashMap<String, &str> =
            BUILT_IN.iter().map(|b| (b.name.to_owned(), "a built-in")).collect();
        taken.insert("grid".into(), "a built-in");
        taken.insert("main".into(), "the entry point");
        let derived = inputs.iter().chain(outputs).flat_map(|name| {
            let suffixes = DERIVED.iter().chain(&LOADS).chain(&STORES).chain([&ROW]);
            suffixes.map(move |suffix| format!("{name}{suffix}"))
        });
        let derived: HashSet<String> = derived.collect();
        for (what, names) in [
            ("an input", inputs),
            ("an output", outputs),
            ("a template", templates),
            ("a value", values),
        ] {
            for &name in names {
                let why = if !is_identifier(name) {
                    "is no identifier of WGSL".to_owned()
                } else if RESERVED.contains(&name) {
                    "is a keyword of WGSL".to_owned()
                } else if BUILTIN_IDENTIFIERS.contains(&name) {
                    "is a built-in of WGSL".to_owned()
                } else if name.starts_with(OWN) {
                    "begins with tilewise_, as generated names do".to_owned()
                } else if derived.contains(name) {
                    "is the name of the shape, strides, number of dimensions or function of another"
                        .to_owned()
                } else if let Some(earlier) = taken.insert(name.to_owned(), what) {
                    format!("is taken: {earlier} has it already")
                } else {
                    continue;
                };
                return Err(Error::Misuse(format!("{kernel}: the name {name:?} of {what} {why}")));
            }
        }
        let what = "the shape, the strides, the number of dimensions or a function of a tensor";
        taken.extend(derived.into_iter().map(|name| (name, what)));
        Ok(Names { taken, kernel })
    }

    /// `Misuse` if the user's text declares something at module scope under a name that already has
    /// a meaning there. `part` is the text's name.
    pub(super) fn allow(&self, part: &str, text: &Text<'_>) -> Result<()> {
        for Token { text: name, line, column, .. } in text.declared() {
            let meaning = match self.taken.get(name) {
                Some(&meaning) => meaning,
                None if USED.contains(&name) => "a built-in of WGSL that the generated text uses",
                None if name.starts_with(OWN) => "reserved, as all names that begin with tilewise_",
                None => continue,
            };
            return Err(Error::Misuse(format!(
                "{} ({part}):{line}:{column}: `{name}` cannot be declared here, because it is \
                 {meaning}",
                self.kernel
            )));
        }
        Ok(())
    }
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c == '_' || c.is_alphabetic());
    first
        && name != "_"
        && !name.starts_with("__")
        && characters.all(|c| c == '_' || c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        Names::new("k", &["a", "b_2", "größe"], &["out"], &["T", "N"], &["rate"]).unwrap();
        for (inputs, outputs, templates, why) in [
            (vec!["1a"], vec![], vec![], "identifier"),
            (vec![""], vec![], vec![], "identifier"),
            (vec!["a b"], vec![], vec![], "identifier"),
            (vec!["_"], vec![], vec![], "identifier"),
            (vec![], vec!["__a"], vec![], "identifier"),
            (vec!["a;"], vec![], vec![], "identifier"),
            (vec!["var"], vec![], vec![], "keyword"),
            (vec!["a"], vec![], vec!["atomic"], "a built-in of WGSL"),
            (vec!["a", "a"], vec![], vec![], "\"a\" of an input is taken: an input"),
            (vec!["a"], vec!["a"], vec![], "\"a\" of an output is taken: an input"),
            (vec![], vec!["a"], vec!["a"], "\"a\" of a template is taken: an output"),
            (vec![], vec!["a"], vec!["N", "N"], "\"N\" of a template is taken: a template"),
            (vec!["grid"], vec![], vec![], "a built-in"),
            (vec!["a"], vec![], vec!["local_id"], "a built-in"),
            (vec!["main"], vec![], vec![], "the entry point"),
            (vec!["a", "a_shape"], vec![], vec![], "shape"),
            (vec!["a"], vec![], vec!["a_ndim"], "dimensions"),
            (vec!["a", "a_load2"], vec![], vec![], "function"),
            (vec!["tilewise_call"], vec![], vec![], "generated"),
        ] {
            let error = Names::new("k", &inputs, &outputs, &templates, &[])
                .err()
                .expect("a bad name")
                .to_string();
            assert!(
                error.contains(why) && error.contains("k:"),
                "{inputs:?} {outputs:?} {templates:?}: {error}"
            );
        }
        for (value, why) in
            [("N", "a template has it"), ("a", "an input has it"), ("if", "keyword")]
        {
            let error = Names::new("k", &["a"], &[], &["N"], &[value]).err().expect("a bad name");
            assert!(error.to_string().contains(why), "{error}");
        }
        for kernel in ["", "a\nb", "\u{1b}[31m"] {
            assert!(
                matches!(Names::new(kernel, &[], &["out"], &[], &[]), Err(Error::Misuse(_))),
                "{kernel:?}"
            );
        }
    }

    #[test]
    fn declarations() {
        let names = Names::new("k", &["a"], &["out"], &["T"], &["rate"]).unwrap();
        names
            .allow(
                "header",
                &Text::new("const b = 1; fn f(a: u32, any: u32) { let T = 1; } alias ptr2 = u32;"),
            )
            .unwrap();
        for (text, what) in [
            (
                "const any = 1;",
                "(header):1:7: `any` cannot be declared here, because it is a built-in of \
                 WGSL",
            ),
            ("\nalias u32 = i32;", ":2:7: `u32`"),
            ("fn vec3() {}", "`vec3`"),
            ("const a = 1;", "`a` cannot be declared here, because it is an input"),
            ("var<private> out: u32;", "an output"),
            ("alias T = u32;", "a template"),
            ("const rate = 1;", "a value"),
            ("const out_strides = 1;", "the strides"),
            ("const grid = 1;", "a built-in"),
            ("fn main() {}", "the entry point"),
            ("struct tilewise_Call { a: u32 }", "reserved"),
        ] {
            let error = names.allow("header", &Text::new(text)).unwrap_err().to_string();
            assert!(error.contains(what), "{text}: {error}");
        }
    }
}
