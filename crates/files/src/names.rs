//! Names of tensors: their order, and the nearest to a wrong one.

use std::cmp::Ordering;
use tilewise_core::quant::nearest;

/// The order of names in which digits count as numbers: `layers.2` before `layers.10`.
pub(crate) fn natural(a: &str, b: &str) -> Ordering {
    let (mut a_rest, mut b_rest) = (a.as_bytes(), b.as_bytes());
    loop {
        let ([a_first, ..], [b_first, ..]) = (a_rest, b_rest) else {
            // Names like `1` and `01` differ in nothing else.
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

/// Says that there is no such name, and lists the nearest.
pub(crate) fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    /// Characters of a name, at most, that is compared: comparing takes time.
    const LONGEST: usize = 256;
    let (mut count, mut others) = (0, Vec::new());
    for other in names {
        count += 1;
        if name.len().max(other.len()) <= LONGEST {
            others.push(other);
        }
    }
    // A name that contains the wrong one is nearer than any other.
    let lower = name.to_ascii_lowercase();
    let contains = |other: &&str| !lower.is_empty() && other.to_ascii_lowercase().contains(&lower);
    let parts: Vec<&str> = others.iter().copied().filter(contains).collect();
    let near = if parts.is_empty() { nearest(name, others) } else { nearest(name, parts) };
    let shown: Vec<_> = near.iter().map(|other| format!("{other:?}")).collect();
    let meant = match shown.len() {
        0 => format!("there are {count}"),
        1 => format!("the nearest of {count} is {}", shown[0]),
        _ => format!("the nearest of {count} are {}", shown.join(", ")),
    };
    format!("no tensor is named {name:?}; {meant}")
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
    fn the_nearest_are_named() {
        let names = ["model.layers.0.q_proj", "model.layers.1.q_proj", "norm"];
        let text = unknown("model.layers.1.q_porj", names.into_iter());
        let expected = "no tensor is named \"model.layers.1.q_porj\"; the nearest of 3 are \
                        \"model.layers.1.q_proj\"";
        assert!(text.starts_with(expected), "{text}");
        let text = unknown("q_proj", names.into_iter());
        assert!(
            text.ends_with("are \"model.layers.0.q_proj\", \"model.layers.1.q_proj\""),
            "{text}"
        );
        assert!(
            unknown("L.Q4_k", ["l.q4_0", "l.q4_K", "l.q4_1"].into_iter())
                .ends_with("is \"l.q4_K\"")
        );
        assert!(unknown("v", ["w"].into_iter()).ends_with("the nearest of 1 is \"w\""));
        assert_eq!(unknown("xyz", [].into_iter()), "no tensor is named \"xyz\"; there are 0");
    }
}
