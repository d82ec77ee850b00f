//! Words that are read twice: *where* for a condition, and *the same* for something that stands
//! further up.

use super::openers::{comment, is_code};

/// Wordings in which *where* is a condition, in lower case, and plain ones.
const WHERE: [(&str, &str); 9] = [
    ("where there is", "if there is"),
    ("where there are", "if there are"),
    ("none where", "none if"),
    ("only where", "only if"),
    ("except where", "unless"),
    ("fails where", "fails if"),
    ("an error where", "an error if"),
    ("where no kernel", "if no kernel"),
    ("where nothing is", "if nothing is"),
];

/// Words behind "is" or "are" in a condition.
const STATES: [&str; 6] = ["0", "none", "empty", "absent", "true", "false"];

/// Wordings in which *the same* is a whole thing. On the first line of a comment it stands above
/// the code over the comment.
const SAME: [&str; 6] = [
    "do the same",
    "does the same",
    "promises the same",
    "behave the same",
    "behaves the same",
    "the same for B",
];

/// The lines of comments and documents with such wordings, from 0.
pub(super) fn doubtful<'a>(
    path: &'a str,
    text: &'a str,
) -> impl Iterator<Item = (usize, String)> + 'a {
    let is_document = path.ends_with(".md");
    let is_read = is_document || is_code(path);
    // The end of the line before, if it belongs to the same text.
    let mut before = None;
    text.lines().enumerate().filter(move |_| is_read).filter_map(move |(number, line)| {
        let words = if is_document { line.trim() } else { comment(line).unwrap_or_default() };
        let before = std::mem::replace(&mut before, words.chars().next_back());
        let why = complaint(words, before).filter(|_| !is_document || !line.starts_with('#'))?;
        Some((number, why))
    })
}

fn complaint(words: &str, before: Option<char>) -> Option<String> {
    let lower = words.to_lowercase();
    let sentence = [". Where ", "; where ", "(Where "].iter().any(|start| words.contains(start))
        || before == Some('.') && words.starts_with("Where ");
    if sentence {
        return Some("a sentence opens with \"Where\": if it is a condition, say \"if\"".into());
    }
    if let Some((wording, plain)) = WHERE.iter().find(|(wording, _)| lower.contains(wording)) {
        return Some(format!("\"{wording}\": say \"{plain}\""));
    }
    let after_where = lower.split_once("where ").map(|(_, after)| after.split_whitespace());
    if let Some([_, "is" | "are", state, ..]) = after_where.map(Vec::from_iter).as_deref()
        && STATES.contains(&state.trim_end_matches(|c: char| !c.is_alphanumeric()))
    {
        return Some("\"where\" opens a condition: say \"if\"".into());
    }
    let same = SAME.iter().find(|wording| {
        let found = [words, &lower].into_iter().find_map(|text| text.split_once(**wording));
        let goes_on =
            |after: &str| after.starts_with(" as ") || after.starts_with(char::is_alphabetic);
        before.is_none() && found.is_some_and(|(_, after)| !goes_on(after))
    })?;
    Some(format!("\"{same}\" refers to a place above this comment: name it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(path: &str, text: &str) -> Vec<usize> {
        doubtful(path, text).map(|(line, _)| line).collect()
    }

    #[test]
    fn doubtful_wordings_are_found() {
        for (wording, _) in WHERE {
            assert_eq!(lines_of("a.rs", &format!("fn f();\n    /// It is {wording} one.\n")), [1]);
            assert_eq!(lines_of("a.md", &format!("Rows,\n{wording} one.\n")), [1]);
        }
        for text in [
            "/// Rows. Where one is cut,\n",
            "// Rows (Where one is cut).\n",
            "/// Rows; where one\n",
        ] {
            assert_eq!(lines_of("a.wgsl", text), [0], "{text}");
        }
        for text in ["// Nothing is read where beta is 0.\n", "x\n// It is the same for B.\n"] {
            assert_eq!(lines_of("a.rs", text).len(), 1, "{text}");
        }
        assert_eq!(
            lines_of("a.rs", "// Rows are sorted.\n// Where one is cut, it is none.\n"),
            [1]
        );
        assert_eq!(lines_of("a.rs", "x();\n// Kernels do the same. Rows are sorted.\n"), [1]);
    }

    #[test]
    fn other_wordings_pass() {
        for text in [
            "/// Where the rows of a group end.\n",
            "// Says where it is.\n",
            "// Rows are sorted,\n// Where it counts.\n",
            "// A group sorts its rows.\n// Others do the same.\n",
            "// They do the same as kernels.\n",
            "let a = \"none where\";\n",
            "// Sorts the same rows.\n",
            "// Says where K is longest.\n",
            "// It is the same for Bytes.\n",
        ] {
            assert!(lines_of("a.rs", text).is_empty(), "{text}");
        }
        assert!(lines_of("a.md", "# Rows. Where they are\n").is_empty());
        assert!(lines_of("a.toml", "# none where\n").is_empty());
    }
}
