//! Runs clang, and keeps what it compiled.

use std::collections::HashMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use super::signature::{self, Signature};
use super::{Argument, Mode, Space};

const CLANG: &str = env!("TILEWISE_MSL_CLANG");
const OUT: &str = env!("TILEWISE_MSL_OUT");
const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/src/harness/shim");

/// The shim's files: part of what a compiled kernel depends on.
const SHIM_TEXTS: [&str; 10] = [
    include_str!("shim/builtin.h"),
    include_str!("shim/engine.h"),
    include_str!("shim/traits.h"),
    include_str!("shim/scalar.h"),
    include_str!("shim/vector.h"),
    include_str!("shim/matrix.h"),
    include_str!("shim/simd/simd.h"),
    include_str!("shim/metal_stdlib"),
    include_str!("shim/metal_simdgroup"),
    include_str!("shim/metal_simdgroup_matrix"),
];

/// Options for the language: C++ for OpenCL. MSL is not a part of it, but no language is nearer.
/// There are no headers but the shim's, no type `double`, and literals have type `float`.
const LANGUAGE: &[&str] = &[
    "-x",
    "clcpp",
    "-cl-std=clc++1.0",
    "-cl-no-stdinc",
    "-nostdinc",
    "-cl-single-precision-constant",
    "-Xclang",
    "-cl-ext=-cl_khr_fp64",
    "-D__METAL_VERSION__=310",
    "-Wall",
    "-Werror",
    // The signature's parser reads attributes. The sanitizer finds indices past an array's end.
    "-Wno-unknown-attributes",
    "-Wno-array-bounds",
    // Refuses `constexpr if` and other newer C++.
    "-Werror=c++98-c++11-c++14-compat",
];

/// Options for the code. It is not optimised, for two reasons: texts run for a moment, and most of
/// the time is clang's; and the sanitizer must see a load whose value is not used. Products and
/// sums are not fused. Variables begin as NaN or nonsense.
const CODE: &[&str] = &[
    "-c",
    "-fPIC",
    "-O0",
    "-ffp-contract=off",
    "-ftrivial-auto-var-init=pattern",
    "-fdebug-compilation-dir=.",
];

/// Options that include what Metal's compiler knows without an #include.
const BUILTIN: &[&str] = &["-include", "builtin.h"];

/// Last options if time matters more: no lines, warnings are no errors, all errors at once, and
/// nothing is inlined that need not be.
pub(crate) const QUICK: &[&str] = &["-g0", "-w", "-ferror-limit=0", "-DINLINE=inline"];

/// Last options for texts that another compiler wrote.
pub(crate) const FOREIGN: &[&str] = &["-w", "-fno-sanitize=array-bounds"];

/// Option for lines in reports. A plain run makes no reports.
const LINES: &str = "-gline-tables-only";

fn sanitizer(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::Plain => &[],
        Mode::Races => &["-fsanitize=thread", LINES],
        // AddressSanitizer, and checks for undefined behaviour of kernels that it does not see.
        Mode::Memory => &[
            concat!(
                "-fsanitize=address,alignment,array-bounds,bool,float-cast-overflow,",
                "integer-divide-by-zero,signed-integer-overflow,return"
            ),
            "-fno-sanitize-recover=all",
            "-fno-sanitize-address-use-after-scope",
            "-fno-omit-frame-pointer",
            LINES,
        ],
    }
}

/// Why nothing can be run in `mode`; none if kernels can be run.
pub(crate) fn missing(mode: Mode) -> Option<&'static str> {
    let reason = match mode {
        Mode::Plain => env!("TILEWISE_MSL_PLAIN"),
        Mode::Races => env!("TILEWISE_MSL_RACES"),
        Mode::Memory => env!("TILEWISE_MSL_MEMORY"),
    };
    (!reason.is_empty()).then_some(reason)
}

/// The program that runs kernels compiled in `mode`.
pub(crate) fn worker(mode: Mode) -> PathBuf {
    let flavour = match mode {
        Mode::Plain => "plain",
        Mode::Races => "races",
        Mode::Memory => "memory",
    };
    [OUT, flavour, "worker"].iter().collect()
}

/// A shared library, and the signature of the kernel in it.
type Compiled = Result<(PathBuf, Signature), String>;

/// Compiles kernels of different texts. One process compiles as many unknown texts as it can: a
/// process takes as long to start as to compile one text.
pub(crate) fn compile(texts: &[&str], mode: Mode, more: &[&str]) -> Vec<Compiled> {
    if let Some(reason) = missing(mode) {
        panic!("MSL kernels cannot be compiled in {mode:?}: {reason}");
    }
    let place = |text: &str| Path::new(OUT).join("kernels").join(name(text, mode, more));
    let mut unknown: Vec<&str> =
        texts.iter().copied().filter(|text| !place(text).exists()).collect();
    unknown.sort_by_cached_key(|text| prefix(text));
    let together = unknown.chunk_by(|a, b| prefix(a) == prefix(b));
    let refused: HashMap<&str, String> =
        together.flat_map(|texts| make(texts, mode, more)).collect();
    let compiled = |text: &&str| {
        if let Some(complaints) = refused.get(text) {
            return Err(complaints.clone());
        }
        let place = place(text);
        let signature = fs::read_to_string(place.join("signature.metal"))
            .unwrap_or_else(|it| panic!("{}/signature.metal: {it}", place.display()));
        Ok((place.join("kernel.so"), signature::parse(&signature)?))
    };
    texts.iter().map(compiled).collect()
}

fn name(text: &str, mode: Mode, more: &[&str]) -> String {
    let hash = |salt: u32| {
        let mut hasher = DefaultHasher::new();
        (
            salt,
            text,
            mode,
            CLANG,
            env!("TILEWISE_MSL_VERSION"),
            SHIM_TEXTS,
            LANGUAGE,
            CODE,
            more,
            sanitizer(mode),
        )
            .hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", hash(0), hash(1))
}

/// Compiles texts that include the same headers. Returns each text that fails, with the complaints.
fn make<'a>(texts: &[&'a str], mode: Mode, more: &[&str]) -> Vec<(&'a str, String)> {
    // Files are made in a folder of their own and then renamed: other processes may be making the
    // same.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let unique = format!("tmp.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let work = Path::new(OUT).join("kernels").join(unique);
    let made = make_in(&work, texts, mode, more);
    if made.is_ok() {
        for (index, text) in texts.iter().enumerate() {
            // If the renaming fails, another process was first.
            let _ = fs::rename(
                work.join(index.to_string()),
                work.with_file_name(name(text, mode, more)),
            );
        }
    }
    let _ = fs::remove_dir_all(&work);
    match (made, texts) {
        (Ok(()), _) => Vec::new(),
        (Err(complaints), [text]) => vec![(text, complaints)],
        // The first error ends the work on all texts, so each is compiled alone.
        (Err(_), texts) => texts.chunks(1).flat_map(|text| make(text, mode, more)).collect(),
    }
}

/// The lines before each text. They give places in the text the same name, wherever its file lies.
const BEFORE: &str = "#ifdef TILEWISE_SIGNATURE\nTILEWISE_NEXT\n#endif\n#line 1 \"kernel.metal\"\n";

/// Compiles texts in numbered folders of `work`.
fn make_in(work: &Path, texts: &[&str], mode: Mode, more: &[&str]) -> Result<(), String> {
    let write = |index: usize, name: &str, text: &str| {
        let path = work.join(index.to_string()).join(name);
        fs::write(&path, text).unwrap_or_else(|it| panic!("{}: {it}", path.display()));
    };
    for (index, text) in texts.iter().enumerate() {
        let folder = work.join(index.to_string());
        fs::create_dir_all(&folder).unwrap_or_else(|it| panic!("{}: {it}", folder.display()));
        write(index, "kernel.metal", &[BEFORE, text].concat());
    }
    let files =
        |name: &str| (0..texts.len()).map(|index| format!("{index}/{name}")).collect::<Vec<_>>();
    let Frontend { preprocess, compile } = Frontend::of(texts[0], mode, more)?;
    let preprocessed = run(work, &preprocess, &files("kernel.metal"))?;
    for (index, preprocessed) in preprocessed.split("TILEWISE_NEXT").skip(1).enumerate() {
        write(index, "entry.metal", &entry(&signature::parse(preprocessed)?));
        write(index, "signature.metal", preprocessed);
    }
    run(work, &compile, &files("entry.metal"))?;
    (0..texts.len()).try_for_each(|index| link(&work.join(index.to_string())).map(drop))
}

/// The lines of a text that include the shim's headers.
fn prefix(text: &str) -> String {
    let includes = text.lines().filter(|line| line.starts_with("#include <metal"));
    includes.flat_map(|line| [line, "\n"]).collect()
}

/// The calls of the compiler that clang makes for one text. When called directly, each takes many
/// texts.
struct Frontend {
    preprocess: Vec<String>,
    compile: Vec<String>,
}

impl Frontend {
    /// The calls for all texts that include the headers of `text`. The headers are read once, and
    /// kept beside the calls.
    fn of(text: &str, mode: Mode, more: &[&str]) -> Result<Frontend, String> {
        let prefix = prefix(text);
        let place = Path::new(OUT).join("headers").join(name(&prefix, mode, more));
        let read = || fs::read_to_string(place.join("calls")).ok();
        if read().is_none() {
            // Several processes may do this at once, so each uses its own folder. clang rejects a
            // precompiled header when the header's file has been written again.
            let unique = format!("tmp.{}.{:?}", std::process::id(), std::thread::current().id());
            let own = place.join(unique);
            let headers = own.join("prefix.pch");
            fs::create_dir_all(&own)
                .and_then(|()| fs::write(own.join("prefix.h"), prefix))
                .map_err(|it| format!("{}: {it}", own.display()))?;
            let (headers, code) =
                (headers.to_string_lossy(), [CODE, sanitizer(mode), more].concat());
            let output = ["-Xclang", "-emit-pch", "prefix.h", "-o", &headers];
            output_of(clang(&own).args(BUILTIN).args(&code).args(output))?;
            let preprocess =
                called(clang(&own).args(BUILTIN).args(["-E", "-P", "-DTILEWISE_SIGNATURE", "-"]))?;
            let compile =
                called(clang(&own).args(["-include-pch", &headers]).args(&code).arg("-"))?;
            fs::write(
                own.join("calls"),
                [preprocess, compile].map(|call| call.join("\n")).join("\n\n"),
            )
            .and_then(|()| fs::rename(own.join("calls"), place.join("calls")))
            .map_err(|it| format!("{}/calls: {it}", place.display()))?;
        }
        let calls = read().ok_or_else(|| format!("no {}/calls", place.display()))?;
        let (preprocess, compile) = calls.split_once("\n\n").ok_or("two calls")?;
        let [preprocess, compile] =
            [preprocess, compile].map(|call| call.lines().map(str::to_owned).collect());
        Ok(Frontend { preprocess, compile })
    }
}

/// The call that clang makes for its standard input, without the names of input and output.
fn called(command: &mut Command) -> Result<Vec<String>, String> {
    let output = command.arg("-###").output().map_err(|it| format!("{CLANG}: {it}"))?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let call = said.lines().rfind(|line| line.contains("\"-cc1\"")).ok_or_else(|| said.clone())?;
    let mut words = call.trim().trim_matches('"').split("\" \"").map(|word| word.replace("\\", ""));
    let mut kept = Vec::new();
    while let Some(word) = words.next() {
        match word.as_str() {
            "-o" | "-main-file-name" => drop(words.next()),
            // A process of many texts must free the memory of each, so this flag is left out.
            "-" | "-disable-free" => {}
            _ => kept.push(word),
        }
    }
    Ok(kept)
}

/// Makes a shared library of `entry.o`. The worker has the functions that it calls. On Linux the
/// linker is called directly, because clang would start two more processes.
fn link(work: &Path) -> Result<String, String> {
    let mut command = if cfg!(target_os = "macos") {
        let mut command = Command::new(CLANG);
        command.args(["-shared", "-nostdlib", "-undefined", "dynamic_lookup", "-lSystem"]);
        command
    } else {
        let mut command = Command::new("ld");
        command.args(["-shared", "--eh-frame-hdr"]);
        command
    };
    output_of(command.current_dir(work).args(["entry.o", "-o", "kernel.so"]))
}

fn clang(work: &Path) -> Command {
    let mut command = Command::new(CLANG);
    command.current_dir(work).args(["-I", SHIM]).args(LANGUAGE);
    command
}

fn run(work: &Path, call: &[String], files: &[String]) -> Result<String, String> {
    output_of(Command::new(&call[0]).current_dir(work).args(&call[1..]).args(files))
}

/// Runs a program and returns its standard output.
fn output_of(command: &mut Command) -> Result<String, String> {
    let output = command
        .output()
        .map_err(|it| format!("{}: {it}", command.get_program().to_string_lossy()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into())
}

/// An entry point for the kernel. It gets the addresses of buffers by slot, and the numbers that
/// `run.cpp` calls builtins.
fn entry(signature: &Signature) -> String {
    let mut arguments = Vec::new();
    let mut sizes = String::new();
    for parameter in &signature.parameters {
        arguments.push(match parameter {
            signature::Parameter::Buffer { argument, reference } => {
                let Argument { slot, space, writable, ty, .. } = argument;
                sizes += &format!("    case {slot}: return sizeof({ty});\n");
                let space = match space {
                    Space::Device if *writable => "device",
                    Space::Device => "device const",
                    Space::Constant => "constant",
                };
                format!(
                    "{}reinterpret_cast<{space} {ty} *>(slots[{slot}])",
                    if *reference { "*" } else { "" }
                )
            }
            // Kernels may name vectors with or without their namespace.
            signature::Parameter::Builtin { value, ty } if ty.ends_with(['2', '3']) => {
                format!("metal::{ty}({value})")
            }
            signature::Parameter::Builtin { value, ty } => format!("{ty}({value})"),
            // Threadgroup arrays get their index as a place. Arrays that kernels declare have line
            // and column as a place, and no line is 0.
            signature::Parameter::Threadgroup { index, ty } => {
                format!(
                    "*reinterpret_cast<threadgroup {ty} *>(tilewise_shared({index}, sizeof({ty})))"
                )
            }
        });
    }
    let (name, arguments) = (&signature.name, arguments.join(",\n        "));
    format!(
        "#include \"kernel.metal\"\n\
         extern \"C\" void tilewise_entry(const __private ulong *slots, const __private uint \
         *numbers) {{\n    {name}(\n        {arguments});\n\
         }}\n\
         extern \"C\" uint tilewise_bytes(uint slot) {{\n    switch (slot) {{\n\
         {sizes}    }}\n    return 0;\n\
         }}\n"
    )
}
