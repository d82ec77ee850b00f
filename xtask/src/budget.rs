//! `cargo xtask budget`: counts the crates that come along with the library, because a framework
//! must not.

use std::collections::BTreeSet;

use crate::process::{Result, capture, cargo};

/// Features of the library, and how many crates they may bring. The count includes the library
/// itself and build dependencies, and six crates of rayon for the CPU executor.
struct Budget {
    what: &'static str,
    features: &'static [&'static str],
    most: usize,
}

const DEFAULT: Budget = Budget { what: "tilewise", features: &[], most: 92 };
const PRODUCTS: Budget = Budget {
    what: "tilewise without custom kernels",
    features: &["--no-default-features", "--features", "vulkan"],
    most: 73,
};

/// The command: prints the counts, and fails if one is over its budget. (`check-targets` compiles
/// the library without custom kernels.)
pub(crate) fn main() -> Result {
    for budget in [DEFAULT, PRODUCTS] {
        budget.keep()?;
    }
    Ok(())
}

impl Budget {
    fn keep(&self) -> Result {
        let Budget { what, features, most } = self;
        let mut tree =
            cargo(["tree", "--package", "tilewise", "--edges", "no-dev", "--prefix", "none"]);
        let count = distinct_crates(&capture(tree.args(*features))?);
        println!("{what} stands on {count} crates, of at most {most}");
        if count <= *most {
            return Ok(());
        }
        let features: String = features.iter().map(|word| format!(" {word}")).collect();
        Err(format!(
            "{count} crates come along with {what}, more than {most}: `cargo tree -p \
             tilewise{features}` shows who brings them; drop a dependency or its features"
        ))
    }
}

/// Counts crates once, although cargo tree repeats a crate wherever it is needed; two versions of
/// one crate count as two.
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
            distinct_crates(
                "a v1.0.0 (/home/a)\nb v2.0.0\nb v2.0.0 (*)\nb v3.0.0\n\nc v0.1.0 (proc-macro)\n"
            ),
            4
        );
    }
}
