//! Every MSL file lists at its top the names it needs from other files, the names it provides, and
//! the constants it needs from the planner. The lists are exact.

#[path = "../../../shaders/tests/headers/lists.rs"]
mod lists;

use lists::{Names, complaints, is_capital, is_word};
use tilewise_msl::FILES;
use tilewise_shaders::tokens::{Token, tokens};

#[test]
fn lists_are_true() {
    // A mainloop is the last part of its text: no other can use its names.
    let complaints = complaints(FILES, names, |path| !path.starts_with("mainloop/"));
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
}

/// A call costs registers on Apple's GPUs, and perhaps spills: every function asks to be inlined.
#[test]
fn functions_are_inlined() {
    for (path, text) in FILES {
        let code: Vec<_> =
            logical_lines(text).into_iter().filter(|line| !line.starts_with('#')).collect();
        let code = code.concat();
        let code = tokens(&code);
        let mut start = 0;
        for (at, token) in code.iter().enumerate() {
            if token.text == "{" {
                let head: Vec<_> = code[start..at].iter().map(|token| token.text).collect();
                let is_function = head.contains(&"(")
                    && (head.ends_with(&[")"]) || head.ends_with(&["const", "thread"]));
                let is_other =
                    |word: &&str| ["for", "if", "while", "switch", "KERNEL"].contains(word);
                let told = head.join(" ");
                assert!(
                    !is_function || head.iter().any(is_other) || head.contains(&"INLINE"),
                    "{path}: {told}"
                );
            }
            if matches!(token.text, "{" | "}" | ";") {
                start = at + 1;
            }
        }
    }
}

/// The names of a file: those of its directives, and those of its declarations.
fn names(text: &str) -> Names<'_> {
    let (mut names, mut code) = (Names::default(), Vec::new());
    for line in logical_lines(text) {
        match line.strip_prefix('#') {
            Some(directive) => in_directive(&tokens(directive), &mut names),
            None => code.extend(tokens(line)),
        }
    }
    // The header opens a namespace, which the mainloop's kernel closes.
    let namespace =
        |at: usize| at + 2 < code.len() && code[at].text == "namespace" && code[at + 2].text == "{";
    let opened = (0..code.len()).find(|&at| namespace(at));
    if let Some(at) = opened {
        code.drain(at..at + 3);
    }
    let (mut depth, mut start) = (0, 0);
    for (at, token) in code.iter().enumerate() {
        match token.text {
            "{" | "(" => depth += 1,
            "}" | ")" => depth -= 1,
            _ => {}
        }
        if depth == 0 && matches!(token.text, ";" | "}") {
            in_declaration(&code[start..at], &mut names);
            start = at + 1;
        }
    }
    names
}

/// Lines. A line that ends in `\` and the line after it are one.
fn logical_lines(text: &str) -> Vec<&str> {
    let (mut lines, mut start, mut end) = (Vec::new(), 0, 0);
    for line in text.split_inclusive('\n') {
        end += line.len();
        if !line.trim_end().ends_with('\\') {
            lines.push(&text[start..end]);
            start = end;
        }
    }
    lines
}

/// A directive declares the name of its macro. It also declares each name before an attribute: a
/// parameter of the kernel, which the macro gives to others.
fn in_directive<'a>(tokens: &[Token<'a>], names: &mut Names<'a>) {
    let (known, body) = match tokens {
        [define, name, rest @ ..] if define.text == "define" => {
            names.declared.insert(name.text);
            let parameters = rest.first().is_some_and(|first| first.text == "(" && !first.blank);
            let close = rest.iter().position(|token| parameters && token.text == ")").unwrap_or(0);
            (rest[..close].iter().map(|token| token.text).collect(), &rest[close..])
        }
        [first, rest @ ..] if first.text.starts_with("if") => (Vec::new(), rest),
        _ => return,
    };
    names.declared.extend(
        body.windows(3).filter(|of| of[1..].iter().all(|t| t.text == "[")).map(|of| of[0].text),
    );
    names.free.extend(used(body).filter(|word| !known.contains(word)));
}

/// A declaration at module scope, without its last token. A name declared inside is known in all of
/// it.
fn in_declaration<'a>(tokens: &[Token<'a>], names: &mut Names<'a>) {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let template = text(0) == "template";
    let head = if template {
        tokens.iter().position(|token| token.text == ">").map_or(0, |close| close + 1)
    } else {
        0
    };
    match text(head) {
        "struct" => names.declared.extend([text(head + 1)]),
        "using" if text(head + 1) != "namespace" => names.declared.extend([text(head + 1)]),
        // A macro in front, or an assertion, declares nothing here.
        _ if text(head + 1) == "(" => {}
        _ => {
            let name = tokens.iter().skip(head).position(|token| matches!(token.text, "=" | "("));
            names.declared.extend(name.map(|after| text(head + after - 1)));
        }
    }
    let known: Vec<_> = (0..tokens.len()).filter(|&at| is_declared(tokens, at)).map(text).collect();
    names.free.extend(used(tokens).filter(|word| !known.contains(word)));
}

/// Words, except members, names in another scope, and attributes.
fn used<'a>(tokens: &[Token<'a>]) -> impl Iterator<Item = &'a str> {
    let member = |at: usize| match &tokens[..at] {
        [.., first, second] if second.text == "[" => first.text == "[",
        [.., before] => matches!(before.text, "." | "->" | "::"),
        [] => false,
    };
    (0..tokens.len())
        .filter(move |&at| is_word(tokens[at].text) && !member(at))
        .map(|at| tokens[at].text)
}

/// Whether a word is declared in this place: a type stands before it, and after it comes what
/// follows a name.
fn is_declared(tokens: &[Token<'_>], at: usize) -> bool {
    let text = |at: usize| tokens.get(at).map_or("", |token| token.text);
    let before = |back: usize| if at >= back { text(at - back) } else { "" };
    let is_type = |word: &str| is_word(word) && !matches!(word, "return" | "else" | "case");
    let follows = match text(at + 1) {
        "=" | ">" | "," => true,
        // `T (&name)[N]` passes an array by reference, and `T` is its type. Macros stand side by
        // side in lists of parameters.
        "(" => text(at + 2) != "&" && !is_capital(text(at)),
        ";" | ")" | "[" | "{" => !is_capital(text(at)),
        _ => false,
    };
    let typed = match before(1) {
        "*" | "&" => {
            !tokens[at].blank && (is_type(before(2)) || before(2) == ">" || before(2) == "(")
        }
        ">" => !tokens[at - 1].blank && tokens[at].blank,
        "," => before(4) == "SHARED",
        word => is_type(word),
    };
    is_word(text(at)) && follows && typed
}

#[test]
fn names_of_a_text() {
    let text = "#define X_ARGUMENTS , device const T *x_data [[buffer(X_SLOT)]]\n\
                #define F(a) (a) * G\n\
                template <typename S, uint N>\n\
                struct P {\n    static constexpr constant uint W = N;\n    S s[W];\n\
                uint f(uint i) const { return s[i] * H; }\n\
                };\n\
                inline float g(thread const P<A, 2> &p, thread float (&q)[M]) {\n    SHARED(float, \
                r, M);\n    return p.f(q[0]) + r[k];\n\
                }\n\
                KERNEL(X_ARGUMENTS Y_ARGUMENTS) {\n    const uint l = lane > g(e) ? Q::m : 0;\n\
                }\n";
    let Names { declared, free } = names(text);
    assert_eq!(Vec::from_iter(declared), ["F", "P", "X_ARGUMENTS", "g", "x_data"]);
    let others =
        free.into_iter().filter(|name| name.len() < 3 || name.contains('_') || *name == "lane");
    let wanted = [
        "A",
        "G",
        "H",
        "M",
        "P",
        "Q",
        "T",
        "X_ARGUMENTS",
        "X_SLOT",
        "Y_ARGUMENTS",
        "e",
        "g",
        "k",
        "lane",
        "x_data",
    ];
    assert_eq!(Vec::from_iter(others), wanted);
}
