//! clang, and what it compiled before.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::signature::{self, Signature};
use crate::{Argument, Mode, Space};

const CLANG: &str = env!("TILEWISE_MSL_CLANG");
const OUT: &str = env!("TILEWISE_MSL_OUT");
const SHIM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/shim");

/// The shim's files: part of what a compiled kernel depends on.
const SHIM_TEXTS: [&str; 10] = [
    include_str!("../shim/builtin.h"),
    include_str!("../shim/engine.h"),
    include_str!("../shim/traits.h"),
    include_str!("../shim/scalar.h"),
    include_str!("../shim/vector.h"),
    include_str!("../shim/matrix.h"),
    include_str!("../shim/simd/simd.h"),
    include_str!("../shim/metal_stdlib"),
    include_str!("../shim/metal_simdgroup"),
    include_str!("../shim/metal_simdgroup_matrix"),
];

/// C++ for OpenCL, as MSL is neither's subset but nearest to it: no header but the shim's, no type `double`, literals of type `float`.
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
    // Attributes are read by the signature's parser; indices past an array's end are for the sanitizer to find.
    "-Wno-unknown-attributes",
    "-Wno-array-bounds",
    // `constexpr if` and the like.
    "-Werror=c++98-c++11-c++14-compat",
];

/// Code: as it is written, as texts run for a moment and most of the time is clang's, and as a load whose value is not used is one that the sanitizer must
/// see; products and sums stay apart, variables begin as NaN or nonsense.
const CODE: &[&str] = &[
    "-c",
    "-fPIC",
    "-O0",
    "-gline-tables-only",
    "-ffp-contract=off",
    "-ftrivial-auto-var-init=pattern",
    "-fdebug-compilation-dir=.",
];

/// What Metal's compiler knows without an #include.
const BUILTIN: &[&str] = &["-include", "builtin.h"];

/// What comes last where time matters more: no lines, no warning an error, all errors told at once,
/// and nothing inlined that need not be.
pub(crate) const QUICK: &[&str] = &["-g0", "-w", "-ferror-limit=0", "-DINLINE=inline"];

/// What comes last for texts that another compiler wrote.
pub(crate) const FOREIGN: &[&str] = &["-w", "-fno-sanitize=array-bounds"];

fn sanitizer(mode: Mode) -> &'static [&'static str] {
    match mode {
        Mode::Plain => &[],
        Mode::Races => &["-fsanitize=thread"],
        // Of undefined behaviour, what kernels can have and AddressSanitizer does not see.
        Mode::Memory => &[
            "-fsanitize=address,alignment,array-bounds,bool,float-cast-overflow,integer-divide-by-zero,signed-integer-overflow,return",
            "-fno-sanitize-recover=all",
            "-fno-sanitize-address-use-after-scope",
            "-fno-omit-frame-pointer",
        ],
    }
}

/// Why nothing can be run in `mode`, if so.
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

/// A shared library with the kernel, and its signature.
pub(crate) fn compile(text: &str, mode: Mode, more: &[&str]) -> Result<(PathBuf, Signature), String> {
    if let Some(reason) = missing(mode) {
        panic!("MSL kernels cannot be compiled in {mode:?}: {reason}");
    }
    let place = Path::new(OUT).join("kernels").join(name(text, mode, more));
    let read = |directory: &Path| fs::read_to_string(directory.join("signature.metal"));
    if let Ok(preprocessed) = read(&place) {
        return Ok((place.join("kernel.so"), signature::parse(&preprocessed)?));
    }
    // Made apart and renamed: other processes may be making the same.
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let unique = format!("tmp.{}.{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let work = place.with_extension(unique);
    let signature = make(text, mode, more, &work);
    if signature.is_ok() && fs::rename(&work, &place).is_ok() {
        return signature.map(|it| (place.join("kernel.so"), it));
    }
    // Either it does not compile, or another process was first.
    let _ = fs::remove_dir_all(&work);
    let signature = signature?;
    read(&place).unwrap_or_else(|it| panic!("{}: {it}", place.display()));
    Ok((place.join("kernel.so"), signature))
}

fn name(text: &str, mode: Mode, more: &[&str]) -> String {
    let hash = |salt: u32| {
        let mut hasher = DefaultHasher::new();
        (salt, text, mode, CLANG, env!("TILEWISE_MSL_VERSION"), SHIM_TEXTS, LANGUAGE, CODE, more, sanitizer(mode))
            .hash(&mut hasher);
        hasher.finish()
    };
    format!("{:016x}{:016x}", hash(0), hash(1))
}

fn make(text: &str, mode: Mode, more: &[&str], work: &Path) -> Result<Signature, String> {
    let write = |name: &str, text: &str| {
        fs::write(work.join(name), text).unwrap_or_else(|it| panic!("{}/{name}: {it}", work.display()));
    };
    fs::create_dir_all(work).unwrap_or_else(|it| panic!("{}: {it}", work.display()));
    write("kernel.metal", text);
    let preprocessed = clang(work, &[BUILTIN, &["-E", "-P", "-DTILEWISE_SIGNATURE", "kernel.metal"]])?;
    let signature = signature::parse(&preprocessed)?;
    write("entry.metal", &entry(&signature));
    let headers = precompiled(text, mode, more)?;
    let headers = ["-include-pch", &headers.to_string_lossy()];
    clang(work, &[&headers, CODE, sanitizer(mode), more, &["entry.metal", "-o", "kernel.o"]])?;
    link(work)?;
    write("signature.metal", &preprocessed);
    Ok(signature)
}

/// The shim's headers that a text includes, read once for all texts that are compiled as this one is.
fn precompiled(text: &str, mode: Mode, more: &[&str]) -> Result<PathBuf, String> {
    let includes = text.lines().filter(|line| line.starts_with("#include <metal"));
    let prefix: String = includes.flat_map(|line| [line, "\n"]).collect();
    let place = Path::new(OUT).join("headers").join(name(&prefix, mode, more));
    let made = place.join("prefix.pch");
    if made.exists() {
        return Ok(made);
    }
    // Other processes may be making the same: a name of its own, and renamed when it is whole.
    let unique = format!("prefix.{}.{:?}", std::process::id(), std::thread::current().id());
    fs::create_dir_all(&place)
        .and_then(|()| fs::write(place.join("prefix.h"), prefix))
        .map_err(|it| format!("{}: {it}", place.display()))?;
    let output = ["-Xclang", "-emit-pch", "prefix.h", "-o", &unique];
    clang(&place, &[BUILTIN, CODE, sanitizer(mode), more, &output])?;
    fs::rename(place.join(&unique), &made).map_err(|it| format!("{}: {it}", made.display()))?;
    Ok(made)
}

/// A shared library of `kernel.o`. The worker has what it calls. On Linux without clang, which would
/// be started twice more.
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
    output(command.current_dir(work).args(["kernel.o", "-o", "kernel.so"]))
}

/// What clang writes to its standard output.
fn clang(work: &Path, arguments: &[&[&str]]) -> Result<String, String> {
    output(Command::new(CLANG).current_dir(work).args(["-I", SHIM]).args(LANGUAGE).args(arguments.concat()))
}

fn output(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|it| format!("{}: {it}", command.get_program().to_string_lossy()))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into())
}

/// The kernel with a way in: addresses of buffers by slot, and the numbers that `run.cpp` calls builtins.
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
                format!("{}reinterpret_cast<{space} {ty} *>(slots[{slot}])", if *reference { "*" } else { "" })
            }
            // Vectors may be named with or without their namespace.
            signature::Parameter::Builtin { value, ty } if ty.ends_with(['2', '3']) => {
                format!("metal::{ty}({value})")
            }
            signature::Parameter::Builtin { value, ty } => format!("{ty}({value})"),
            // Arrays that kernels declare lie by line and column, of which no line is 0.
            signature::Parameter::Threadgroup { index, ty } => {
                format!("*reinterpret_cast<threadgroup {ty} *>(tilewise_shared({index}, sizeof({ty})))")
            }
        });
    }
    let (name, arguments) = (&signature.name, arguments.join(",\n        "));
    format!(
        "#include \"kernel.metal\"\n\
         extern \"C\" void tilewise_entry(const __private ulong *slots, const __private uint *numbers) {{\n    {name}(\n        {arguments});\n}}\n\
         extern \"C\" uint tilewise_bytes(uint slot) {{\n    switch (slot) {{\n{sizes}    }}\n    return 0;\n}}\n"
    )
}
