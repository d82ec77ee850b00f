//! `cargo xtask budget`: counts the crates that come along with the library, because a framework must not.

use std::collections::BTreeSet;

use crate::process::{Result, capture, cargo};

/// With default features, the library itself and build dependencies included.
const MOST_CRATES: usize = 90;

/// The command: prints the count, and fails over the budget.
pub(crate) fn main() -> Result {
    let tree = capture(&mut cargo(["tree", "--package", "tilewise", "--edges", "no-dev", "--prefix", "none"]))?;
    let count = distinct_crates(&tree);
    println!("tilewise stands on {count} crates, of at most {MOST_CRATES}");
    if count <= MOST_CRATES {
        Ok(())
    } else {
        Err(format!(
            "{count} crates come along with tilewise, more than {MOST_CRATES}: \
             `cargo tree -p tilewise` shows who brings them; drop a dependency or its features"
        ))
    }
}

/// cargo tree repeats a crate wherever it is needed; two versions of one crate are two.
fn distinct_crates(tree: &str) -> usize {
    tree.lines().filter_map(crate_and_version).collect::<BTreeSet<_>>().len()
}

fn crate_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split_whitespace();
    Some((words.next()?, words.next()?))
}

#[cfg(test)]
mod tests {
    use super::distinct_crates;

    #[test]
    fn repetitions_are_counted_once() {
        assert_eq!(
            distinct_crates("a v1.0.0 (/home/a)\nb v2.0.0\nb v2.0.0 (*)\nb v3.0.0\n\nc v0.1.0 (proc-macro)\n"),
            4
        );
    }
}
