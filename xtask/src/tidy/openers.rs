//! Comments that open with a fragment instead of their subject or a verb.

/// Words that open fragments.
const OPENERS: [&str; 7] = ["Of", "As", "The same", "Those", "Such", "So", "What"];

/// Kinds of files whose comments are read.
const READ: [&str; 4] = ["rs", "wgsl", "metal", "h"];

/// The first lines of comments that open with one of [`OPENERS`], from 0.
pub(super) fn fragments<'a>(
    path: &'a str,
    text: &'a str,
) -> impl Iterator<Item = (usize, String)> + 'a {
    let is_read = is_code(path);
    let mut goes_on = false;
    text.lines().enumerate().filter(move |_| is_read).filter_map(move |(number, line)| {
        let words = comment(line).unwrap_or_default();
        // A heading ends, too.
        let ends = words.is_empty() || words.starts_with('#');
        let is_first = !std::mem::replace(&mut goes_on, !ends);
        let opener = OPENERS.into_iter().find(|opener| is_first && opens(words, opener))?;
        let why = format!("a comment opens with \"{opener}\": open it with its subject or a verb");
        Some((number, why))
    })
}

/// Whether the file's comments are read.
pub(super) fn is_code(path: &str) -> bool {
    READ.contains(&path.rsplit('.').next().unwrap_or_default())
}

/// Marks before the words of a comment, longer ones first.
const MARKS: [&str; 8] = ["///", "//!", "//", "/**", "/*!", "/*", "#[doc = \"", "#![doc = \""];

/// The words of a line that is a comment, or begins one.
pub(super) fn comment(line: &str) -> Option<&str> {
    let line = line.trim_start();
    MARKS.into_iter().find_map(|mark| line.strip_prefix(mark)).map(str::trim)
}

/// Whether a word opens a comment, be it in bold or in a list.
fn opens(words: &str, opener: &str) -> bool {
    words
        .trim_start_matches(['-', '*', '_', ' '])
        .strip_prefix(opener)
        .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(path: &str, text: &str) -> Vec<usize> {
        fragments(path, text).map(|(line, _)| line).collect()
    }

    #[test]
    fn fragments_are_found() {
        for opener in OPENERS {
            for (path, mark) in [("a.rs", "///"), ("a.rs", "//!"), ("a.wgsl", "//"), ("a.h", "//")]
            {
                let text = format!("fn f();\n    {mark} {opener} two rows.\n");
                assert_eq!(lines_of(path, &text), [1], "{text}");
            }
        }
        for text in ["/** Such rows */", "/// - Of rows", "//! **Of** rows", "#[doc = \"As rows\"]"]
        {
            assert_eq!(lines_of("a.rs", text), [0], "{text}");
        }
        assert_eq!(lines_of("a.metal", "// Of one row\n// and another.\n"), [0]);
        assert_eq!(lines_of("a.rs", "/// Rows.\n///\n/// As above.\n// So\n"), [2]);
        assert_eq!(lines_of("a.rs", "/// Rows.\n///\n/// # Errors\n/// As above.\n"), [3]);
        let (_, why) = fragments("a.rs", "// The same, once more.").next().unwrap();
        assert!(why.contains("\"The same\""), "{why}");
    }

    #[test]
    fn other_comments_pass() {
        for text in [
            "/// Whether rows are sorted.\n",
            "// Often rows are sorted.\n",
            "// Sofas have rows.\n",
            "// Assigns rows.\n",
            "// The samples.\n",
            "// Rows, some\n// Of which are sorted,\n// As above.\n",
            "// what, of, so\n",
            "let a = \"// Of\";\n",
            "let a = 1; // As above.\n",
        ] {
            assert!(lines_of("a.rs", text).is_empty(), "{text}");
        }
        assert!(lines_of("a.md", "// Of rows\n").is_empty());
    }
}
