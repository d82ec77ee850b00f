//! Rule 6 of the assembly: the type that an alias names takes the alias's place.
//!
//! naga's HLSL writer names its helpers by the structure of a type. To naga, a type with an alias
//! and the same type without one are two. So it wrote two helpers of one name, and the compilers of
//! DX12 refused the text.

use crate::tokens::{Kind, Token, tokens};
use std::collections::HashMap;

/// The text without its aliases; its lines stay. An alias stays if a variable or a member has its
/// name, too.
pub fn without_aliases(text: &str) -> String {
    let words: Vec<_> = words(text).collect();
    let word = |at: usize| words.get(at).map_or("", |word| word.text);
    let mut aliases = HashMap::new();
    let mut declarations = Vec::new();
    for at in (0..words.len()).filter(|&at| word(at) == "alias") {
        let start = words[at].start;
        let Some(len) = text[start..].find(';') else { continue };
        let Some((_, ty)) = text[start..start + len].split_once('=') else { continue };
        aliases.insert(word(at + 1), ty.trim());
        declarations.push(start..start + len + 1);
    }
    for at in 1..words.len() {
        let is_member = text[words[at].end()..].trim_start().starts_with(':');
        if is_member || matches!(word(at - 1), "let" | "var" | "const") {
            aliases.remove(word(at));
        }
    }
    if aliases.is_empty() {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    let mut declarations = declarations.into_iter().peekable();
    for (at, own) in words.iter().enumerate() {
        if own.start < done {
            continue;
        }
        out += &text[done..own.start];
        done = own.end();
        if let Some(declaration) = declarations.next_if(|range| range.start == own.start)
            && aliases.contains_key(word(at + 1))
        {
            done = declaration.end;
        } else if text[..own.start].ends_with('.') {
            out += own.text;
        } else {
            out += &named(own.text, &aliases);
        }
    }
    out + &text[done..]
}

/// The type behind a word, in which other aliases may occur; the word itself if it is no alias.
fn named(word: &str, aliases: &HashMap<&str, &str>) -> String {
    let Some(ty) = aliases.get(word) else { return word.to_owned() };
    // Aliases that lead back to themselves are no WGSL, and must not keep this from ending.
    let mut others = aliases.clone();
    others.remove(word);
    let mut out = String::new();
    let mut done = 0;
    for own in words(ty) {
        out += &ty[done..own.start];
        out += &named(own.text, &others);
        done = own.end();
    }
    out + &ty[done..]
}

fn words(text: &str) -> impl Iterator<Item = Token<'_>> {
    tokens(text).into_iter().filter(|token| token.kind == Kind::Word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_take_the_place_of_aliases() {
        let text = "alias Raw = vec4<f32>;\n\
                    alias Block = array<Raw, N>; // Raw stays here\n\
                    var<private> block: Block;\n\
                    fn f(a: Raw) -> RawOther { return g(a.Raw, Block(), x_Raw); }\n";
        let expected = "\n\
                        \x20// Raw stays here\n\
                        var<private> block: array<vec4<f32>, N>;\n\
                        fn f(a: vec4<f32>) -> RawOther { return g(a.Raw, array<vec4<f32>, N>(), \
                        x_Raw); }\n";
        assert_eq!(without_aliases(text), expected);
    }

    #[test]
    fn comments_within_comments_are_left_alone() {
        let text = "/* /* */ T alias T = u32; */ alias T = f32;\nfn f() -> T {}\n";
        let expected = "/* /* */ T alias T = u32; */ \nfn f() -> f32 {}\n";
        assert_eq!(without_aliases(text), expected);
    }

    #[test]
    fn aliases_that_lead_in_a_circle_come_to_an_end() {
        without_aliases("alias A = B;\nalias B = A;\nvar<private> a: A;\n");
    }

    #[test]
    fn an_alias_that_a_variable_hides_stays() {
        for rest in ["fn f() { let T = 1; g(T); }\n", "struct S { T: f32 }\n"] {
            let text = format!("alias T = f32;\n{rest}");
            assert_eq!(without_aliases(&text), text);
        }
    }
}
