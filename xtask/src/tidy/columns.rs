//! Lines that are too long.

/// The widest line, as in rustfmt.toml.
const COLUMNS: usize = 100;

/// Folders of files that programs write.
const WRITTEN: [&str; 2] = ["benches/record/", "tests/goldens/"];

/// Kinds of files that are measured.
const MEASURED: [&str; 8] = ["rs", "wgsl", "metal", "h", "cpp", "py", "md", "toml"];

/// The lines beyond [`COLUMNS`], from 0, with their columns.
pub(super) fn too_long<'a>(
    path: &'a str,
    text: &'a str,
) -> impl Iterator<Item = (usize, String)> + 'a {
    let kind = path.rsplit('.').next().unwrap_or_default();
    let is_measured =
        MEASURED.contains(&kind) && !WRITTEN.iter().any(|folder| path.starts_with(folder));
    let lines = text.lines().enumerate().map(|(number, line)| (number, line, line.chars().count()));
    let long = lines.filter(move |(_, line, columns)| {
        is_measured && *columns > COLUMNS && !may_stay(kind, line)
    });
    long.map(|(number, _, columns)| {
        (number, format!("{columns} columns; screens show {COLUMNS}: break the line"))
    })
}

/// Whether a long line may stay: rows of tables; keys of manifests, whose values are one line;
/// macros of MSL, because the mutation check takes macros of several lines for declarations; and
/// lines that have no blank to break at.
fn may_stay(kind: &str, line: &str) -> bool {
    let line = line.trim_start();
    match kind {
        "md" if line.starts_with('|') => true,
        "toml" if !line.starts_with('#') => true,
        "metal" if line.starts_with("#define ") && !line.ends_with('\\') => true,
        _ => !line.trim_start_matches(['/', '!', '#', '-', ' ']).trim_end().contains(' '),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_counted() {
        let long = |path: &str, text: &str| too_long(path, text).map(|(line, _)| line).collect();
        for (path, line, is_long) in [
            ("a.rs", format!("let a = {};", "é".repeat(COLUMNS - 9)), false),
            ("a.rs", format!("let a = {};", "é".repeat(COLUMNS - 8)), true),
            ("a.toml", format!("a = \"{}\"", "b ".repeat(COLUMNS)), false),
            ("a.toml", format!("# {}", "b ".repeat(COLUMNS)), true),
            ("benches/record/a.md", "a ".repeat(COLUMNS), false),
            ("tests/goldens/a.md", "a ".repeat(COLUMNS), false),
            ("a.md", "a ".repeat(COLUMNS), true),
            ("a.md", format!("  | {}", "a ".repeat(COLUMNS)), false),
            ("a.rs", format!("| {}", "a ".repeat(COLUMNS)), true),
            ("a.rs", format!("/// <{}>", "a".repeat(COLUMNS)), false),
            ("a.metal", format!("#define A {}", "b ".repeat(COLUMNS)), false),
            ("a.metal", format!("#define A {}\\", "b ".repeat(COLUMNS)), true),
            ("a.metal", format!("uint a = {};", "b ".repeat(COLUMNS)), true),
        ] {
            let found: Vec<usize> = long(path, &format!("\n{line}\n"));
            assert_eq!(found, [1][..usize::from(is_long)], "{path}: {line}");
        }
    }
}
