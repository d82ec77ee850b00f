//! Which names a kernel's inputs, outputs and templates may have.

use super::generate::{BUILT_IN, DERIVED};
use naga::keywords::wgsl::{BUILTIN_IDENTIFIERS, RESERVED};
use std::collections::HashSet;
use tilewise_core::{Error, Result};

/// What the generated module calls things of its own.
pub(super) const OWN: &str = "tilewise_";

/// `Kernel` unless every name is an identifier of WGSL that nothing else bears. `operands` are those of tensors, from which others derive.
pub(super) fn check(kernel: &str, operands: &[&str], templates: &[&str]) -> Result<()> {
    let mut taken: HashSet<String> = BUILT_IN.iter().map(|built_in| built_in.name.to_owned()).collect();
    taken.extend(["grid", "main"].map(str::to_owned));
    let derived = operands.iter().flat_map(|name| DERIVED.map(|suffix| format!("{name}{suffix}")));
    let derived: HashSet<String> = derived.collect();
    for &name in operands.iter().chain(templates) {
        let why = if !is_identifier(name) {
            "is no identifier of WGSL"
        } else if RESERVED.contains(&name) {
            "is a keyword of WGSL"
        } else if BUILTIN_IDENTIFIERS.contains(&name) {
            "is something of WGSL's own"
        } else if name.starts_with(OWN) {
            "begins as the generated names do"
        } else if derived.contains(name) {
            "is the name of another's shape, strides or number of dimensions"
        } else if !taken.insert(name.to_owned()) {
            "is taken: twice among inputs, outputs and templates, or by a built-in"
        } else {
            continue;
        };
        return Err(Error::Kernel(format!("{kernel}: the name {name:?} {why}")));
    }
    Ok(())
}

fn is_identifier(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters.next().is_some_and(|c| c == '_' || c.is_alphabetic());
    first && name != "_" && !name.starts_with("__") && characters.all(|c| c == '_' || c.is_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        check("k", &["a", "b_2", "größe", "out"], &["T", "N"]).unwrap();
        for (operands, templates, why) in [
            (vec!["1a"], vec![], "identifier"),
            (vec![""], vec![], "identifier"),
            (vec!["a b"], vec![], "identifier"),
            (vec!["_"], vec![], "identifier"),
            (vec!["__a"], vec![], "identifier"),
            (vec!["a;"], vec![], "identifier"),
            (vec!["var"], vec![], "keyword"),
            (vec!["a"], vec!["atomic"], "WGSL's own"),
            (vec!["a", "a"], vec![], "twice"),
            (vec!["a"], vec!["a"], "twice"),
            (vec!["grid"], vec![], "built-in"),
            (vec!["a"], vec!["local_id"], "built-in"),
            (vec!["a", "a_shape"], vec![], "shape"),
            (vec!["a"], vec!["a_ndim"], "dimensions"),
            (vec!["tilewise_call"], vec![], "generated"),
        ] {
            let error = check("k", &operands, &templates).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("k:"), "{operands:?} {templates:?}: {error}");
        }
    }
}
