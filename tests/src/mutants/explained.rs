//! Survivors that make no difference, each with the reason, in a file that people write.
//!
//! A block names a file of shaders, then the changes as pairs of `- line` and `+ line`, as in a
//! patch, then the reason:
//!
//! ```text
//! operand/block.wgsl
//! - if x + 4u <= x_end && k + 4u <= k_end {
//! + if x + 4u < x_end && k + 4u <= k_end {
//! The last whole block goes the way of those that are not whole, which reads the same elements.
//! ```
//!
//! Empty lines separate blocks, and lines that begin with `#` are comments. A change applies to
//! every line of the file with that text.

use super::Mutant;
use std::collections::HashSet;

/// A change that is known to make no difference.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Change {
    /// Path below `shaders/`.
    pub file: String,
    /// The line without the change.
    pub before: String,
    /// The line with it.
    pub after: String,
}

impl Change {
    /// The change that a mutant makes.
    pub fn of(mutant: &Mutant) -> Self {
        Change {
            file: mutant.file.to_owned(),
            before: mutant.before.clone(),
            after: mutant.after.clone(),
        }
    }
}

/// Reads the blocks of `text`.
///
/// # Errors
/// A block has no changes or no reason, or is not of the form above. The error has the number of
/// the block's first line.
pub fn parse(text: &str) -> Result<HashSet<Change>, String> {
    let mut changes = HashSet::new();
    let mut lines = text.lines().enumerate().filter(|(_, line)| !line.starts_with('#')).peekable();
    while let Some((number, file)) = lines.next() {
        let file = file.trim();
        if file.is_empty() {
            continue;
        }
        let wrong = |what: &str| format!("line {}: {file}: {what}", number + 1);
        let (mut found, mut reason, mut before) = (0, false, None);
        while let Some((_, line)) = lines.next_if(|(_, line)| !line.trim().is_empty()) {
            if let Some(text) = line.strip_prefix("- ") {
                before = Some(text.trim().to_owned());
            } else if let Some(text) = line.strip_prefix("+ ").or(line.strip_prefix('+')) {
                let before =
                    before.clone().ok_or_else(|| wrong("a `+` without a `-` before it"))?;
                changes.insert(Change {
                    file: file.to_owned(),
                    before,
                    after: text.trim().to_owned(),
                });
                found += 1;
            } else {
                reason = true;
            }
        }
        if found == 0 || !reason {
            return Err(wrong("a block is a file, changes, and a reason"));
        }
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks() {
        let text = "# comment\n\n\
                    a.wgsl\n\
                    - x < y\n\
                    + x <= y\n\
                    + x > y\n\
                    - p\n\
                    + q\n\
                    Because\n\
                    of this.\n\n\
                    b.wgsl\n\
                    - barrier\n\
                    +\n\
                    Why not.\n";
        let changes = parse(text).unwrap();
        assert_eq!(changes.len(), 4);
        let change = |file: &str, before: &str, after: &str| Change {
            file: file.into(),
            before: before.into(),
            after: after.into(),
        };
        assert!(changes.contains(&change("a.wgsl", "x < y", "x > y")));
        assert!(changes.contains(&change("b.wgsl", "barrier", "")));
    }

    #[test]
    fn no_reason_no_explanation() {
        assert!(parse("a.wgsl\n- x\n+ y\n").unwrap_err().contains("line 1"));
        assert!(parse("a.wgsl\n+ y\nWhy.\n").is_err());
        assert!(parse("\na.wgsl\nWhy.\n").unwrap_err().contains("line 2"));
    }
}
