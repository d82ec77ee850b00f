//! Finds the line of a file that a line of an assembled text comes from.

/// Lines before and after a line that are compared as well, to tell it from others like it.
const AROUND: usize = 2;

/// Path and number of the line in `files` that is most like line `number` of `text`, both counted
/// from 1. Assembly replaces constants, names and types, and repeats loops. So few lines are equal,
/// and some are found more than once.
pub(super) fn of_line(files: &[(String, String)], text: &str, number: usize) -> Option<String> {
    let around = |lines: &[&str], at: usize| -> Vec<String> {
        let line = |by: usize| (at + by).checked_sub(AROUND).and_then(|at| lines.get(at));
        (0..=2 * AROUND).map(|by| line(by).map_or("", |line| line.trim()).to_owned()).collect()
    };
    let own = around(&text.lines().collect::<Vec<_>>(), number.checked_sub(1)?);
    let mut best = (0, None);
    for (path, text) in files {
        let lines: Vec<_> = text.lines().collect();
        for at in 0..lines.len() {
            let pairs = own.iter().zip(around(&lines, at));
            // The line itself counts more than all others.
            let weighed = pairs.enumerate().map(|(by, (own, other))| {
                alike(own, &other) * if by == AROUND { 8 * AROUND } else { 1 }
            });
            let likeness: usize = weighed.sum();
            if likeness > best.0 {
                best = (likeness, Some(format!("{path}:{}", at + 1)));
            }
        }
    }
    best.1
}

/// How much of two lines is the same at their beginnings and ends, in percent.
fn alike(a: &str, b: &str) -> usize {
    let longest = a.len().max(b.len());
    let shortest = a.len().min(b.len());
    let same = |a: &mut dyn Iterator<Item = u8>, b: &mut dyn Iterator<Item = u8>| {
        a.zip(b).take_while(|(a, b)| a == b).count()
    };
    let begin = same(&mut a.bytes(), &mut b.bytes());
    let end = same(&mut a.bytes().rev(), &mut b.bytes().rev()).min(shortest - begin);
    (100 * (begin + end)).checked_div(longest).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_though_names_change() {
        let files = [
            ("a.wgsl".to_owned(), "fn x_f() {\n    g(x_N);\n}\n".to_owned()),
            ("b.wgsl".to_owned(), "fn main() {\n    f(1);\n    g(1);\n    g(2);\n}\n".to_owned()),
        ];
        let text = "enable f16;\nfn b_f() {\n    g(b_N);\n}\n\nfn main() {\n    f(1);\n    {\n    \
                    g(1);\n    }\n    g(2);\n}\n";
        let places =
            [(2, "a.wgsl:1"), (3, "a.wgsl:2"), (7, "b.wgsl:2"), (9, "b.wgsl:3"), (11, "b.wgsl:4")];
        for (line, place) in places {
            assert_eq!(of_line(&files, text, line).as_deref(), Some(place), "{line}");
        }
    }
}
