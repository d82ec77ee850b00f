//! Finds code that clang takes and MSL does not.

use std::collections::HashMap;
use std::ops::Range;
use tilewise_shaders::tokens::{Kind, Token, tokens};

/// Words that MSL's C++ lacks.
const FOREIGN: &[&str] = &[
    "double",
    "virtual",
    "new",
    "delete",
    "goto",
    "try",
    "catch",
    "throw",
    "typeid",
    "dynamic_cast",
    "std",
    "thread_local",
    "asm",
];

/// Words that MSL reserves, and that no kernel of ours needs.
const RESERVED: &[&str] =
    &["vertex", "fragment", "threadgroup_imageblock", "ray_data", "object_data"];

/// Scalar types in MSL's namespace: they need `using namespace metal` before them.
const SPACED: &[&str] = &["uchar", "ushort", "uint", "ulong"];

const SPACES: &[&str] = &["device", "constant", "threadgroup", "thread"];

/// Words that may stand around a type's name in a declaration.
const SPECIFIERS: &[&str] =
    &["const", "volatile", "static", "inline", "constexpr", "typename", "unsigned", "signed"];

const SCALARS: &[&str] = &[
    "void", "bool", "char", "uchar", "short", "ushort", "int", "uint", "long", "ulong", "size_t",
    "float", "half", "bfloat", "auto",
];

/// Complaints about `text`, each with its line: about pointers and references without an address
/// space, and about C++ that MSL lacks.
pub fn lint(text: &str) -> Vec<String> {
    let tokens = code(text);
    let linter = Linter { text, types: types(&tokens), tokens };
    let mut found: Vec<(usize, String)> = Vec::new();
    found.extend(linter.pointers());
    found.extend(linter.words());
    found.extend(linter.globals());
    found.extend(linter.structure());
    found.extend(linter.limits());
    found.sort_by_key(|it| it.0);
    found.into_iter().map(|(line, what)| format!("line {line}: {what}")).collect()
}

/// A definition of a function: its name, the number of its parameters, and the tokens of its body.
struct Function<'a> {
    name: &'a str,
    parameters: usize,
    body: Range<usize>,
}

struct Linter<'a> {
    text: &'a str,
    tokens: Vec<Token<'a>>,
    /// Names of types, beside those of MSL.
    types: Vec<&'a str>,
}

/// The tokens of a text without its directives. The text of a macro stays, and counts as a
/// statement.
fn code(text: &str) -> Vec<Token<'_>> {
    let all = tokens(text);
    let mut code: Vec<Token<'_>> = Vec::new();
    let mut at = 0;
    while let Some(&token) = all.get(at) {
        let first = at == 0 || all[at - 1].line < token.line;
        if !(first && token.text == "#") {
            code.push(token);
            at += 1;
            continue;
        }
        // A line that ends in `\` goes on in the next.
        let ends = |pair: &[Token<'_>]| pair[0].line < pair[1].line && pair[0].text != "\\";
        let end = all[at..].windows(2).position(ends).map_or(all.len(), |last| at + last + 1);
        let directive = &all[at + 1..end];
        if let [define, .., last] = directive
            && define.text == "define"
        {
            code.extend(directive.iter().filter(|token| !matches!(token.text, "#" | "\\")));
            code.push(Token { text: ";", ..*last });
        }
        at = end;
    }
    code
}

/// Names that the text gives to types.
fn types<'a>(tokens: &[Token<'a>]) -> Vec<&'a str> {
    let named = tokens.windows(2).filter(|it| {
        ["struct", "class", "union", "enum", "typename", "using"].contains(&it[0].text)
    });
    named.map(|it| it[1].text).filter(|it| !["namespace", "class", "metal"].contains(it)).collect()
}

impl<'a> Linter<'a> {
    fn word(&self, i: usize) -> &'a str {
        self.tokens.get(i).map_or("", |it| it.text)
    }

    fn is_type(&self, word: &str) -> bool {
        let base = word.trim_end_matches(['2', '3', '4']);
        SCALARS.contains(&base)
            || self.types.contains(&word)
            || word == "vec"
            || word.starts_with("simdgroup_") && (word.ends_with("8x8") || word.ends_with("matrix"))
    }

    /// Where the declaration begins whose type ends before token `i`, and whether it names an
    /// address space. None if no type ends there.
    fn declaration(&self, i: usize) -> Option<(usize, bool)> {
        let mut at = i;
        let (mut spaced, mut typed) = (false, false);
        while at > 0 {
            let word = self.word(at - 1);
            if word == ">" && !typed {
                let mut depth = 0;
                while at > 0 {
                    at -= 1;
                    depth += match self.word(at) {
                        ">" => 1,
                        "<" => -1,
                        _ => 0,
                    };
                    if depth == 0 {
                        break;
                    }
                }
                if at == 0 || !self.is_type(self.word(at - 1)) {
                    return None;
                }
                continue;
            }
            if SPACES.contains(&word) {
                spaced = true;
            } else if self.is_type(word) {
                typed = true;
            } else if !(SPECIFIERS.contains(&word)
                || word == "::" && typed
                || word == "metal" && self.word(at) == "::")
            {
                break;
            }
            at -= 1;
        }
        typed.then_some((at, spaced))
    }

    fn pointers(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        for i in 1..self.tokens.len() {
            if !["*", "&", "&&"].contains(&self.word(i)) {
                continue;
            }
            // Takes `float (&x)[4]`, but not `float(*x)`, which is a value.
            let wrapped = self.word(i - 1) == "(";
            let name = self.tokens.get(i + 1).is_some_and(|it| it.kind == Kind::Word);
            let name = usize::from(name);
            if wrapped && (self.word(i + name + 1) != ")" || self.word(i + name + 2) != "[") {
                continue;
            }
            let Some((start, spaced)) = self.declaration(i - usize::from(wrapped)) else {
                continue;
            };
            if !spaced {
                let last = self.tokens[i + name + usize::from(wrapped)];
                let source = &self.text[self.tokens[start].start..last.end()];
                found.push((last.line, format!("`{source}`: no address space")));
            }
        }
        found
    }

    /// Finds variables outside functions that do not name `constant` memory, in which they live.
    fn globals(&self) -> Vec<(usize, String)> {
        let (mut found, mut depth, mut first) = (Vec::new(), 0usize, 0);
        for (i, token) in self.tokens.iter().enumerate() {
            match token.text {
                "{" if i > 1 && self.word(i - 2) == "namespace" => first = i + 1,
                "{" | "(" => depth += 1,
                "}" | ")" => depth = depth.saturating_sub(1),
                _ => {}
            }
            let ends = depth == 0 && matches!(token.text, ";" | "}");
            if !ends {
                continue;
            }
            let words = self.tokens[first..i].iter().map(|token| token.text);
            let before: Vec<&str> =
                words.take_while(|word| !matches!(*word, "=" | "{" | "(")).collect();
            let value =
                self.tokens[first..i].get(before.len()).is_some_and(|token| token.text == "=");
            let begins = before
                .first()
                .is_some_and(|word| SPECIFIERS.contains(word) || SCALARS.contains(word));
            if value && begins && before[0] != "auto" && !before.contains(&"constant") {
                found.push((
                    self.tokens[first].line,
                    format!("{} is a variable without `constant`", before.join(" ")),
                ));
            }
            first = i + 1;
        }
        found
    }

    fn words(&self) -> Vec<(usize, String)> {
        let foreign = |i: usize| match self.word(i) {
            "std" => self.word(i + 1) == "::",
            "delete" => self.word(i.wrapping_sub(1)) != "=",
            word => FOREIGN.contains(&word),
        };
        let long_long = |i: usize| self.word(i) == "long" && self.word(i + 1) == "long";
        let literal = |i: usize| {
            let word = self.word(i).to_ascii_lowercase();
            word.starts_with(|it: char| it.is_ascii_digit())
                && word.trim_end_matches('u').ends_with("ll")
        };
        let named = self
            .tokens
            .windows(3)
            .position(|it| it.iter().map(|it| it.text).eq(["using", "namespace", "metal"]));
        let early = |i: usize| {
            SPACED.contains(&self.word(i).trim_end_matches(['2', '3', '4']))
                && i < named.unwrap_or(usize::MAX)
                && (i == 0 || self.word(i - 1) != "::")
        };
        let mut found = Vec::new();
        for (i, token) in self.tokens.iter().enumerate() {
            let word = token.text;
            if foreign(i)
                || long_long(i)
                || literal(i)
                || word.starts_with("__") && !word.starts_with("__METAL") && word != "__attribute__"
            {
                found.push((token.line, format!("`{word}`: not in MSL")));
            } else if RESERVED.contains(&word) {
                found.push((token.line, format!("`{word}` is a word of MSL's own")));
            } else if early(i) {
                found.push((
                    token.line,
                    format!("`{word}` is metal::{word}: no `using namespace metal` stands before"),
                ));
            }
        }
        found
    }

    /// Finds lambdas, inheritance, static locals, recursion, and an entry point named `main`.
    fn structure(&self) -> Vec<(usize, String)> {
        let mut found = Vec::new();
        let mut complain = |i: usize, what: String| found.push((self.tokens[i].line, what));
        // For each open brace, whether statements are in it.
        let mut scopes: Vec<bool> = Vec::new();
        let (mut statement, mut structs, mut in_kernel) = (0, 0, false);
        let mut of_struct: Vec<bool> = Vec::new();
        let mut functions: Vec<Function<'a>> = Vec::new();
        let mut open: Vec<Option<usize>> = Vec::new();
        for i in 0..self.tokens.len() {
            let previous = if i > 0 { self.word(i - 1) } else { "" };
            match self.word(i) {
                "[" if self.word(i + 1) != "[" && previous != "[" => {
                    let subscript = [")", "]", ">"].contains(&previous)
                        || previous.starts_with(|it: char| it.is_alphanumeric() || it == '_');
                    if !subscript || previous == "return" {
                        complain(i, "a lambda: not in MSL".into());
                    }
                }
                "struct" | "class" if previous != "enum" => {
                    let after = i + 2 + usize::from(self.word(i + 2) == "final");
                    if self.word(after) == ":" {
                        complain(i, "inheritance: not in MSL".into());
                    }
                }
                "static" if scopes.last() == Some(&true) => {
                    complain(i, "`static` local: not in MSL".into())
                }
                "kernel" if self.word(i + 2) == "main" => {
                    complain(i, "an entry point named `main`: not in MSL".into())
                }
                "{" => {
                    let head = &self.tokens[statement..i];
                    let is = |word: &str| head.iter().any(|it| it.text == word);
                    let inside = scopes.last() == Some(&true);
                    let parameters = head
                        .iter()
                        .position(|it| it.text == "(")
                        .map(|it| it + statement)
                        .filter(|&it| it > 0);
                    let kind = (is("struct")
                        || is("class")
                        || is("union")
                        || is("enum")
                        || is("namespace"))
                        && !is("(");
                    let function = parameters.filter(|_| !inside && !kind);
                    // Clang takes a method for any address space. MSL up to 4.0 takes it for
                    // `thread` only, later ones for all.
                    let method = function.is_some() && scopes.last() == Some(&false) && structs > 0;
                    if method && !is("static") && !is("friend") && previous != "thread" {
                        complain(i, "a method that does not say `thread`".into());
                    }
                    if function.is_some() {
                        in_kernel = is("kernel") || is("KERNEL");
                    }
                    structs += usize::from(is("struct") && kind);
                    of_struct.push(is("struct") && kind);
                    open.push(function.map(|at| {
                        functions.push(Function {
                            name: self.word(at - 1),
                            parameters: self.arguments(at),
                            body: i..i,
                        });
                        functions.len() - 1
                    }));
                    scopes.push(!kind && (inside || function.is_some()));
                    statement = i + 1;
                }
                "SHARED" if scopes.last() == Some(&true) && !in_kernel => {
                    complain(i, "threadgroup memory outside a kernel: not in MSL".into());
                }
                "threadgroup"
                    if scopes.last() == Some(&true) && !in_kernel && self.word(i + 3) == "[" =>
                {
                    complain(i, "threadgroup memory outside a kernel: not in MSL".into());
                }
                "}" => {
                    structs -= usize::from(of_struct.pop() == Some(true));
                    scopes.pop();
                    if let Some(Some(function)) = open.pop() {
                        functions[function].body.end = i;
                    }
                    statement = i + 1;
                }
                ";" => statement = i + 1,
                _ => {}
            }
        }
        found.extend(self.recursion(functions));
        found
    }

    /// Finds functions that call themselves, directly or through others. Only names that are given
    /// once are looked at: otherwise a name does not tell which function is called.
    fn recursion(&self, functions: Vec<Function<'a>>) -> Vec<(usize, String)> {
        let mut definitions: HashMap<&str, usize> = HashMap::new();
        for function in &functions {
            *definitions.entry(function.name).or_default() += 1;
        }
        let unique: Vec<_> = functions.into_iter().filter(|it| definitions[it.name] == 1).collect();
        // For each function, the functions that it calls, and where.
        let calls: Vec<Vec<(usize, usize)>> = unique
            .iter()
            .map(|caller| {
                let called = |i: usize| {
                    let is = |it: &Function<'_>| {
                        it.name == self.word(i) && it.parameters == self.arguments(i + 1)
                    };
                    if self.word(i + 1) == "(" {
                        Some((unique.iter().position(is)?, i))
                    } else {
                        None
                    }
                };
                caller.body.clone().filter_map(called).collect()
            })
            .collect();
        let mut found = Vec::new();
        for (function, own) in calls.iter().enumerate() {
            for &(callee, at) in own {
                let mut reached = vec![callee];
                let mut next = 0;
                while let Some(&one) = reached.get(next) {
                    let further = calls[one].iter().map(|it| it.0);
                    let new: Vec<_> = further.filter(|it| !reached.contains(it)).collect();
                    reached.extend(new);
                    next += 1;
                }
                if reached.contains(&function) {
                    found.push((
                        self.tokens[at].line,
                        format!("`{}` calls itself: not in MSL", unique[function].name),
                    ));
                }
            }
        }
        found
    }

    /// Finds entry points without a limit of threads: registers are then shared out as for 1,024.
    /// Finds limits of one simdgroup: Apple's compiler was seen to miscompile for these.
    fn limits(&self) -> Vec<(usize, String)> {
        const LIMIT: &str = "max_total_threads_per_threadgroup";
        let at = |word| (0..self.tokens.len()).filter(move |&i| self.word(i) == word);
        let one_simdgroup = at(LIMIT).filter(|&i| self.word(i + 2) == "32");
        let mut found: Vec<_> = one_simdgroup
            .map(|i| (self.tokens[i].line, format!("`{LIMIT}(32)`: ask for 64")))
            .collect();
        if at(LIMIT).next().is_none() {
            found.extend(
                at("kernel").map(|i| (self.tokens[i].line, format!("a kernel without `{LIMIT}`"))),
            );
        }
        found
    }

    /// The number of arguments between the parentheses that open at token `i`.
    fn arguments(&self, i: usize) -> usize {
        let (mut depth, mut commas) = (0, 0);
        for at in i..self.tokens.len() {
            match self.word(at) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                "," if depth == 1 => commas += 1,
                _ => {}
            }
            if depth == 0 {
                return if at == i + 1 { 0 } else { commas + 1 };
            }
        }
        commas
    }
}
