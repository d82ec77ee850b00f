//! Names that are easily taken for each other.

/// Whole words.
const WORDS: [[&str; 2]; 22] = [
    ["a", "b"],
    ["row", "col"],
    ["rows", "columns"],
    ["m", "n"],
    ["x", "k"],
    ["nx", "nk"],
    ["count", "length"],
    ["x_end", "k_end"],
    ["BM", "BN"],
    ["BM", "BK"],
    ["TM", "TN4"],
    ["k", "kk"],
    ["word", "lane"],
    ["batch", "group"],
    ["split", "batch"],
    ["entries", "splits"],
    ["start", "end"],
    ["row", "row_end"],
    ["many", "few"],
    ["Many", "Few"],
    ["LINES", "FEW"],
    ["lane", "thread_index"],
];

/// Parts of names, between underscores.
const PARTS: [[&str; 2]; 4] = [["a", "b"], ["m", "n"], ["ld", "batch"], ["scales", "biases"]];

/// Members of vectors.
const MEMBERS: [[&str; 2]; 3] = [["x", "y"], ["z", "w"], ["xy", "zw"]];

/// Names that `name` may be mistaken for.
pub(super) fn other_names(name: &str, member: bool) -> Vec<String> {
    let other = |pairs: &[[&'static str; 2]], word: &str| {
        let of = |[one, two]: &[&'static str; 2]| match word {
            _ if word == *one => Some(*two),
            _ if word == *two => Some(*one),
            _ => None,
        };
        pairs.iter().filter_map(of).collect::<Vec<_>>()
    };
    if member && name.chars().all(|c| "xyzw".contains(c)) {
        return other(&MEMBERS, name).into_iter().map(str::to_owned).collect();
    }
    let mut found: Vec<String> = other(&WORDS, name).into_iter().map(str::to_owned).collect();
    let parts: Vec<&str> = name.split('_').collect();
    if parts.len() > 1 {
        for (at, part) in parts.iter().enumerate() {
            let upper = part.chars().all(|c| c.is_ascii_uppercase());
            for other in other(&PARTS, &part.to_lowercase()) {
                let mut parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
                parts[at] = if upper { other.to_uppercase() } else { other.to_owned() };
                found.push(parts.join("_"));
            }
        }
    }
    found
}
