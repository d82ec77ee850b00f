//! Entry points' signatures, read from preprocessed text.

use tilewise_shaders::tokens::tokens;

/// An address space of arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// `device`.
    Device,
    /// `constant`.
    Constant,
}

/// An entry point.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Signature {
    /// Its name.
    pub name: String,
    /// The buffers, as declared.
    pub arguments: Vec<Argument>,
    /// n of `[[max_total_threads_per_threadgroup(n)]]`.
    pub limit: Option<u32>,
    /// Attributes of the other parameters: `thread_index_in_simdgroup`, ...
    pub builtins: Vec<String>,
    pub(crate) parameters: Vec<Parameter>,
}

/// A buffer that an entry point takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// n of `[[buffer(n)]]`.
    pub slot: u32,
    /// Where it lies.
    pub space: Space,
    /// Whether it is declared without `const`.
    pub writable: bool,
    /// The type that it points or refers to.
    pub ty: String,
    /// The parameter's name.
    pub name: String,
}

/// A parameter, with what the call needs of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parameter {
    Buffer {
        argument: Argument,
        reference: bool,
    },
    Builtin {
        value: &'static str,
        ty: String,
    },
    /// `threadgroup T &name`, the index-th of these parameters. The host sets memory aside for it.
    Threadgroup {
        index: usize,
        ty: String,
    },
}

/// Attributes, and their values of one, two and three components, from the engine's numbers.
const BUILTINS: &[(&str, [&str; 3])] = &[
    (
        "threadgroup_position_in_grid",
        ["numbers[0]", "numbers[0], numbers[1]", "numbers[0], numbers[1], numbers[2]"],
    ),
    ("thread_index_in_threadgroup", ["numbers[3]", "", ""]),
    ("simdgroup_index_in_threadgroup", ["numbers[4]", "", ""]),
    ("thread_index_in_simdgroup", ["numbers[5]", "", ""]),
    ("thread_position_in_threadgroup", ["numbers[3]", "numbers[3], 0u", "numbers[3], 0u, 0u"]),
    ("threads_per_threadgroup", ["numbers[6]", "numbers[6], 1u", "numbers[6], 1u, 1u"]),
    ("simdgroups_per_threadgroup", ["numbers[7]", "", ""]),
    ("threads_per_simdgroup", ["32u", "", ""]),
    (
        "threadgroups_per_grid",
        ["numbers[8]", "numbers[8], numbers[9]", "numbers[8], numbers[9], numbers[10]"],
    ),
    (
        "thread_position_in_grid",
        [
            "numbers[0] * numbers[6] + numbers[3]",
            "numbers[0] * numbers[6] + numbers[3], numbers[1]",
            "numbers[0] * numbers[6] + numbers[3], numbers[1], numbers[2]",
        ],
    ),
];

/// Words that stand around the name of a parameter's type.
const NO_TYPE: [&str; 9] =
    ["device", "constant", "const", "*", "&", "__restrict", "restrict", "metal", "::"];

/// Reads the one entry point of `text`, which has no comments, directives or macros any more.
pub(crate) fn parse(text: &str) -> Result<Signature, String> {
    let all: Vec<_> = tokens(text).iter().map(|token| token.text).collect();
    let mut entries = all.iter().enumerate().filter(|it| *it.1 == "kernel").map(|it| it.0);
    let start = entries.next().ok_or("no entry point: no `kernel`")?;
    if entries.next().is_some() {
        return Err("several entry points".into());
    }
    let [_, "void", name, "(", rest @ ..] = &all[start..] else {
        return Err(format!(
            "not `kernel void name(`: {}",
            all[start..].iter().take(5).copied().collect::<Vec<_>>().join(" ")
        ));
    };
    let limit = match &all[..start] {
        [.., "[", "[", "max_total_threads_per_threadgroup", "(", limit, ")", "]", "]"] => {
            limit.parse().ok()
        }
        _ => None,
    };
    let mut signature = Signature { name: name.to_string(), limit, ..Signature::default() };
    let mut depth = 0;
    let mut parameter = Vec::new();
    for &token in rest {
        match token {
            "(" | "[" | "<" | "{" => depth += 1,
            ")" if depth == 0 => {
                if !parameter.is_empty() {
                    take(&mut signature, &parameter)?;
                }
                return Ok(signature);
            }
            ")" | "]" | ">" | "}" => depth -= 1,
            "," if depth == 0 => {
                take(&mut signature, &parameter)?;
                parameter.clear();
                continue;
            }
            _ => {}
        }
        parameter.push(token);
    }
    Err(format!("the parameters of {name} have no end"))
}

fn take(signature: &mut Signature, parameter: &[&str]) -> Result<(), String> {
    let fail =
        |why: &str| Err(format!("{}: parameter `{}`: {why}", signature.name, parameter.join(" ")));
    if let ["threadgroup", ty, "&", _] = parameter {
        let index = signature.parameters.len();
        signature.parameters.push(Parameter::Threadgroup { index, ty: (*ty).into() });
        return Ok(());
    }
    let Some(at) = parameter.windows(2).position(|it| it == ["[", "["]) else {
        return fail("no attribute");
    };
    let Some((&name, declared)) = parameter[..at].split_last() else { return fail("no name") };
    let has = |word: &str| declared.contains(&word);
    let ty: Vec<&str> = declared.iter().copied().filter(|it| !NO_TYPE.contains(it)).collect();
    let ty = ty.join(" ");
    match &parameter[at + 2..] {
        ["buffer", "(", slot, ")", "]", "]"] => {
            let Some(slot) = slot.parse().ok().filter(|it| *it < 31) else {
                return fail("a slot is a number below 31");
            };
            if signature.arguments.iter().any(|it| it.slot == slot) {
                return fail("its slot is taken");
            }
            let space = match (has("device"), has("constant")) {
                (true, false) => Space::Device,
                (false, true) => Space::Constant,
                _ => return fail("a buffer is in `device` or in `constant`"),
            };
            if has("*") == has("&") {
                return fail("a buffer is a pointer or a reference");
            }
            let writable = space == Space::Device && !has("const");
            let argument = Argument { slot, space, writable, ty, name: name.into() };
            signature.arguments.push(argument.clone());
            signature.parameters.push(Parameter::Buffer { argument, reference: has("&") });
        }
        [attribute, "]", "]"] => {
            let Some((_, values)) = BUILTINS.iter().find(|it| it.0 == *attribute) else {
                return fail("an attribute that is not known");
            };
            let value = match ty.as_str() {
                "uint" | "ushort" => values[0],
                "uint2" | "ushort2" => values[1],
                "uint3" | "ushort3" => values[2],
                _ => "",
            };
            if value.is_empty() {
                return fail("a type that its attribute does not have");
            }
            signature.builtins.push(attribute.to_string());
            signature.parameters.push(Parameter::Builtin { value, ty });
        }
        _ => return fail("an attribute that is not known"),
    }
    Ok(())
}
