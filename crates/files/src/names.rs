//! Names of tensors: their order, and the nearest to a wrong one.

use std::cmp::Ordering;

/// The order of names in which numbers count as such: `layers.2` before `layers.10`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a_rest, mut b_rest) = (a.as_bytes(), b.as_bytes());
    loop {
        let ([a_first, ..], [b_first, ..]) = (a_rest, b_rest) else {
            // Such as `1` and `01` differ in nothing else.
            return a_rest.len().cmp(&b_rest.len()).then_with(|| a.cmp(b));
        };
        let order = if a_first.is_ascii_digit() && b_first.is_ascii_digit() {
            let (a_number, b_number) = (take_number(&mut a_rest), take_number(&mut b_rest));
            a_number.len().cmp(&b_number.len()).then_with(|| a_number.cmp(b_number))
        } else {
            (a_rest, b_rest) = (&a_rest[1..], &b_rest[1..]);
            a_first.cmp(b_first)
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// Cuts the number off the front, and the zeros off that.
fn take_number<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (number, rest) = text.split_at(digits);
    *text = rest;
    let zeros = number.iter().take_while(|&&byte| byte == b'0').count();
    &number[zeros..]
}

/// The sentence on a name that there is not, with those nearest to it.
pub(crate) fn unknown<'a>(what: &str, name: &str, names: impl Iterator<Item = &'a str>) -> String {
    /// Comparing takes time: longer ones are not compared.
    const LONGEST: usize = 256;
    const SHOWN: usize = 3;
    let mut count = 0;
    let mut nearest: Vec<(usize, &str)> = Vec::new();
    for other in names {
        count += 1;
        if name.len().max(other.len()) <= LONGEST {
            // Part of it counts as near: `q_proj` of `layers.0.self_attn.q_proj`.
            let part = !name.is_empty() && (other.contains(name) || name.contains(other));
            nearest.push((if part { 1 } else { distance(name, other) }, other));
        }
    }
    nearest.sort();
    nearest.retain(|(distance, other)| *distance <= 1 + other.len() / 3);
    let shown: Vec<_> = nearest.iter().take(SHOWN).map(|(_, other)| format!("{other:?}")).collect();
    let meant = if shown.is_empty() { String::new() } else { format!("; near it: {}", shown.join(", ")) };
    format!("no {what} {name:?} among {count}{meant}")
}

/// Letters to insert, delete or replace between the two.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.bytes().enumerate() {
            let replaced = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_count() {
        let mut names = ["l.10.w", "l.2.w", "l", "l.02.w", "m", "l.2", "k.3"];
        names.sort_by(|a, b| natural(a, b));
        assert_eq!(names, ["k.3", "l", "l.2", "l.02.w", "l.2.w", "l.10.w", "m"]);
    }

    #[test]
    fn distances() {
        for (a, b, expected) in [("", "", 0), ("a", "", 1), ("kitten", "sitting", 3), ("ab", "ba", 2)] {
            assert_eq!((distance(a, b), distance(b, a)), (expected, expected), "{a} {b}");
        }
    }

    #[test]
    fn the_nearest_are_named() {
        let names = ["model.layers.0.q_proj", "model.layers.1.q_proj", "norm"];
        let text = unknown("tensor", "model.layers.0.q_porj", names.into_iter());
        assert_eq!(
            text,
            "no tensor \"model.layers.0.q_porj\" among 3; near it: \"model.layers.0.q_proj\", \"model.layers.1.q_proj\""
        );
        assert!(unknown("tensor", "nor", names.into_iter()).ends_with("near it: \"norm\""));
        assert_eq!(unknown("tensor", "xyz", names.into_iter()), "no tensor \"xyz\" among 3");
    }
}
