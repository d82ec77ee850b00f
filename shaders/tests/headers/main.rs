//! Every WGSL file lists at its top the names it needs from other files and the names it provides.
//! The lists are exact.

mod lists;

use lists::{Names, complaints, is_word};
use tilewise_shaders::FILES;
use tilewise_shaders::tokens::tokens;

/// Words with a meaning only in their place: the address space of a pointer, and the role of a
/// cooperative matrix.
const CONTEXTUAL: [&str; 4] = ["function", "A", "B", "C"];

#[test]
fn lists_are_true() {
    let complaints = complaints(FILES, names, |_| true);
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// The names of a file. A name that a block declares is known from the end of its statement to the
/// end of the block.
fn names(text: &str) -> Names<'_> {
    let tokens = tokens(text);
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let mut names = Names::default();
    // Names known in the open blocks, how many were known where each block began, and names that
    // the current statement declares.
    let (mut known, mut blocks, mut declared) = (Vec::new(), Vec::new(), Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match text(at) {
            "{" => blocks.push(known.len()),
            "}" => {
                let outside = blocks.pop().filter(|_| !blocks.is_empty());
                known.truncate(outside.unwrap_or(0));
            }
            ";" => known.append(&mut declared),
            "@" if text(at + 1) == "builtin" => at += 4,
            "@" => at += 1,
            "fn" | "struct" | "alias" | "const" | "let" | "var" => {
                at += 1;
                if text(at) == "<" {
                    at += tokens[at..]
                        .iter()
                        .position(|token| token.text == ">")
                        .map_or(0, |close| close + 1);
                }
                if blocks.is_empty() {
                    names.declared.insert(text(at));
                } else {
                    declared.push(text(at));
                }
            }
            // A parameter, or a member of a struct.
            word if is_word(word) && text(at + 1) == ":" => known.push(word),
            word if is_word(word) && !known.contains(&word) && !CONTEXTUAL.contains(&word) => {
                let member = at > 0 && text(at - 1) == ".";
                if !member {
                    names.free.insert(word);
                }
            }
            _ => {}
        }
        at += 1;
    }
    names
}

#[test]
fn names_of_a_text() {
    let text = "const M: u32 = N; //param\n\
                @group(0) @binding(M) var<storage, read> v: array<Cell, 4>;\n\
                // comment\n\
                struct Pair { first: Cell, }\n\
                fn f(i: u32) -> u32 { let g = g(i).member; { let h = 1u; } for (var j = 0u; j < g; \
                j += 1u) { v[j] = h; } return i; }\n\
                fn k(@builtin(position) p: u32) { j(p); }\n";
    let Names { declared, free } = names(text);
    assert_eq!(Vec::from_iter(declared), ["M", "Pair", "f", "k", "v"]);
    let language = ["array", "return", "for", "u32"];
    assert_eq!(
        Vec::from_iter(free.into_iter().filter(|name| !language.contains(name))),
        ["Cell", "M", "N", "g", "h", "j", "v"]
    );
}
