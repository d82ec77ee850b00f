//! Rule 6 of the assembly: the type that an alias names takes the alias's place.
//!
//! naga's HLSL writer names its helpers by the structure of a type. To naga, a type with an alias
//! and the same type without one are two. So it wrote two helpers of one name, and the compilers of
//! DX12 refused the text.

use std::collections::HashMap;
use std::ops::Range;

/// The text without its aliases; its lines stay. An alias stays if a variable or a member has its
/// name, too.
pub fn without_aliases(text: &str) -> String {
    let words = words(text);
    let word = |at: usize| words.get(at).map_or("", |range| &text[range.clone()]);
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
        let is_member = text[words[at].end..].trim_start().starts_with(':');
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
    for (at, range) in words.iter().enumerate() {
        if range.start < done {
            continue;
        }
        out += &text[done..range.start];
        done = range.end;
        if let Some(declaration) = declarations.next_if(|own| own.start == range.start)
            && aliases.contains_key(word(at + 1))
        {
            done = declaration.end;
        } else if text[..range.start].ends_with('.') {
            out += word(at);
        } else {
            out += &named(word(at), &aliases);
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
    for range in words(ty) {
        out += &ty[done..range.start];
        out += &named(&ty[range.clone()], &others);
        done = range.end;
    }
    out + &ty[done..]
}

/// Names, keywords and numbers, without those of comments.
fn words(text: &str) -> Vec<Range<usize>> {
    let in_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(first) = text[at..].chars().next() {
        let rest = &text[at..];
        let len = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            comment(rest)
        } else if in_word(first) {
            let len = rest.find(|c| !in_word(c)).unwrap_or(rest.len());
            found.push(at..at + len);
            len
        } else {
            first.len_utf8()
        };
        at += len;
    }
    found
}

/// Bytes of the block comment that a text begins with. Block comments may hold others.
fn comment(text: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < text.len() {
        let pair = text.as_bytes().get(at..at + 2);
        match pair {
            Some(b"/*") => depth += 1,
            Some(b"*/") => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            return at;
        }
    }
    text.len()
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
