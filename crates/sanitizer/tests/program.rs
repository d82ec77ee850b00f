//! Runs the program `tilewise-sanitizer` on files.
#![cfg(feature = "program")]

use serde_json::Value;
use std::fs;
use std::io::Read;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Doubles 64 numbers and adds an override.
const DOUBLE: &str = "\
override EXTRA: f32 = 0.0;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read_write> b: array<f32>;
@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3u) {
    b[id.x] = 2.0 * a[id.x] + EXTRA;
}
";

/// Reverses through workgroup memory, without a barrier.
const RACY: &str = "\
@group(0) @binding(0) var<storage, read_write> data: array<u32>;
var<workgroup> tile: array<u32, 64>;
@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) i: u32) {
    tile[i] = data[i];
    data[i] = tile[63u - i];
}
";

/// A test's own folder.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Self {
        let folder =
            PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("sanitizer-program").join(test);
        fs::create_dir_all(&folder).unwrap();
        Folder(folder)
    }

    fn file(&self, name: &str, contents: impl AsRef<[u8]>) -> &Self {
        fs::write(self.0.join(name), contents).unwrap();
        self
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewise-sanitizer"));
        command.current_dir(&self.0).args(arguments.split_whitespace());
        command
    }

    fn run(&self, arguments: &str) -> Ran {
        self.command(arguments).output().unwrap().into()
    }

    /// Checks that the arguments are refused, with a message that contains all of `expected`, and
    /// with nothing on standard output.
    fn refuses(&self, arguments: &str, expected: &[&str]) {
        let ran = self.run(arguments);
        assert_eq!(ran.status, 2, "{arguments}: {ran:?}");
        assert_eq!(ran.stdout, "", "{arguments}");
        for piece in expected {
            assert!(ran.stderr.contains(piece), "{arguments}: {} lacks {piece}", ran.stderr);
        }
    }
}

#[derive(Debug)]
struct Ran {
    status: i32,
    stdout: String,
    stderr: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        Ran {
            status: output.status.code().expect("ended by a signal"),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// An .npy file of version 1.
fn npy(descr: &str, fortran: bool, shape: &str, data: &[u8]) -> Vec<u8> {
    let fortran = if fortran { "True" } else { "False" };
    let header =
        format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..], header.as_bytes(), data]
        .concat()
}

fn numbers() -> Vec<f32> {
    (0..64u8).map(|value| f32::from(value) - 31.5).collect()
}

#[test]
fn usage() {
    let folder = Folder::new("usage");
    folder.file("double.wgsl", DOUBLE);
    for (arguments, expected) in [
        ("", &["FILE.wgsl"][..]),
        ("double.wgsl --grid 1,1,1,1", &["--grid", "three dimensions"]),
        ("double.wgsl --grid 4,0", &["--grid", "a grid of [4, 0, 1] workgroups runs nothing"]),
        ("double.wgsl --grid 0", &["--grid", "a grid of [0, 1, 1] workgroups runs nothing"]),
        ("double.wgsl --grid four", &["--grid", "\"four\""]),
        ("double.wgsl --bind a=zero:f32:4", &["--bind", "\"a\""]),
        ("double.wgsl --bind 0", &["--bind", "equals sign"]),
        ("double.wgsl --bind 0=zero:f31:4", &["--bind", "\"f31\"", "f32"]),
        ("double.wgsl --bind 0=out:f32", &["--bind", "out:DTYPE:COUNT"]),
        ("double.wgsl --bind 0=u8:256", &["--bind", "\"256\" is no u8"]),
        ("double.wgsl --bind 0=out:f32:99999999999", &["--bind", "more than"]),
        ("double.wgsl --bind 0=zero:f32:4 --bind 0=zero:f32:4", &["--bind 0", "twice"]),
        (
            "double.wgsl --bind 0=zero:f32:4 --range 0=2..5",
            &["--range 0=2..5", "4 elements of f32"],
        ),
        (
            "double.wgsl --bind 0=zero:f32:4 --range 1.0=0..1",
            &["--range 1.0=0..1", "nothing is bound to 1.0"],
        ),
        ("double.wgsl --save 3=x.npy", &["--save 3", "nothing is bound to 3"]),
        ("double.wgsl --save 3=x.txt", &["--save", ".npy or .bin"]),
        ("double.wgsl --override EXTRA", &["--override", "equals sign"]),
        ("double.wgsl --override EXTRA=much", &["--override", "\"much\"", "EXTRA"]),
        ("double.wgsl --override EXTRA=0xg", &["--override", "\"0xg\"", "hexadecimal"]),
        ("double.wgsl --immediates 123", &["--immediates", "hexadecimal"]),
        ("double.wgsl --zero-init everything", &["--zero-init", "workgroup"]),
        ("double.wgsl --segment-bytes 100", &["--segment-bytes", "power of two"]),
        ("double.wgsl --max-findings 0", &["--max-findings"]),
        ("double.wgsl --report xml", &["--report", "json"]),
    ] {
        folder.refuses(arguments, expected);
    }
}

#[test]
fn help_and_version() {
    let folder = Folder::new("help");
    let help = folder.run("--help");
    assert_eq!((help.status, help.stderr.as_str()), (0, ""));
    for piece in ["out:DTYPE:COUNT", "--subgroup-size", "Exit status"] {
        assert!(help.stdout.contains(piece), "{piece}");
    }
    assert_eq!(
        folder.run("--version").stdout.trim(),
        concat!("tilewise-sanitizer ", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn files_that_cannot_be_used() {
    let folder = Folder::new("files");
    folder
        .file("double.wgsl", DOUBLE)
        .file("broken.wgsl", "@compute @workgroup_size(1)\nfn main() {\n\tlet x = y;\n}\n")
        .file(
            "invalid.wgsl",
            "@compute @workgroup_size(1)\nfn main() {\n\tvar f = 1f;\n\tf = f << 1u;\n}\n",
        )
        .file("latin.wgsl", b"// line one\n// caf\xe9\n")
        .file("text.npy", "1 2 3")
        .file("short.npy", npy("<f4", false, "(4,)", &[0; 12]))
        .file("complex.npy", npy("<c8", false, "(1,)", &[0; 8]))
        .file("bool.npy", npy("|b1", false, "(4,)", &[0; 4]))
        .file("huge.npy", npy("<f4", false, "(4294967296, 4294967296)", &[]));
    for (arguments, expected) in [
        ("missing.wgsl", &["missing.wgsl"][..]),
        (".", &["tilewise-sanitizer: .: "]),
        ("latin.wgsl", &["latin.wgsl", "line 2", "UTF-8"]),
        ("broken.wgsl", &["error: ", "--> broken.wgsl:3:10", "y"]),
        ("invalid.wgsl", &["error: ", "--> invalid.wgsl:4:"]),
        ("double.wgsl --bind 0=missing.npy", &["--bind 0", "missing.npy"]),
        ("double.wgsl --bind 2.7=missing.bin", &["--bind 2.7", "missing.bin"]),
        ("double.wgsl --bind 0=text.npy", &["--bind 0", "text.npy", "NUMPY"]),
        ("double.wgsl --bind 0=short.npy", &["--bind 0", "short.npy", "[4] of f32", "12 bytes"]),
        ("double.wgsl --bind 0=complex.npy", &["--bind 0", "complex.npy", "<c8"]),
        ("double.wgsl --bind 0=bool.npy", &["--bind 0", "bool.npy", "|b1", "integers and floats"]),
        ("double.wgsl --bind 0=huge.npy", &["--bind 0", "huge.npy", "more elements"]),
    ] {
        folder.refuses(arguments, expected);
    }
}

#[test]
fn what_does_not_fit_the_shader() {
    let folder = Folder::new("unfit");
    folder.file("double.wgsl", DOUBLE);
    let bound = "double.wgsl --bind 0=zero:f32:64 --bind 1=out:f32:64";
    folder.refuses(&format!("{bound} --bind 7=zero:f32:64"), &["binding 0.7"]);
    folder.refuses(&format!("{bound} --override MORE=1"), &["override", "MORE"]);
    folder.refuses(&format!("{bound} --entry start"), &["start", "main"]);
    folder.refuses(&format!("{bound} --grid 4294967295"), &["4294967295"]);
    folder.refuses(&format!("{bound} --subgroup-size 33"), &["33"]);
    folder.refuses("double.wgsl --bind 0=zero:f32:64", &["binding 0.1", "`b`"]);
}

#[test]
fn overrides_fit_their_types() {
    let folder = Folder::new("overrides");
    folder.file(
        "shifted.wgsl",
        "override N: u32 = 1u;\n\
         @id(7) override BY: i32 = 0;\n\
         override on: bool = true;\n\
         override scale: f32;\n\
         @group(0) @binding(0) var<storage, read_write> a: array<f32>;\n\
         @compute @workgroup_size(N) fn main(@builtin(local_invocation_index) i: u32) {\n\tif on { \
         a[i32(i) + BY] = scale; }\n\
         }\n",
    );
    let bound = "shifted.wgsl --bind 0=zero:f32:64";
    for good in [
        "--override N=0x10 --override 7=-0x0",
        "--override N=16 --override 7=2 --override on=false",
    ] {
        let ran = folder.run(&format!("{bound} {good} --override scale=0.5"));
        assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{good}: {ran:?}");
        assert!(ran.stdout.starts_with("clean: 1 workgroup of 16 invocations"), "{good}: {ran:?}");
    }
    for (bad, expected) in [
        ("N=1.5", &["--override N=1.5", "u32", "whole numbers"][..]),
        ("N=-1", &["--override N=-1", "u32", "from 0 to 4294967295"]),
        ("N=-0x1", &["--override N=-1", "u32", "from 0 to 4294967295"]),
        ("7=2147483648", &["--override 7=2147483648", "i32", "-2147483648 to 2147483647"]),
        ("on=3", &["--override on=3", "bool"]),
        ("scale=1e39", &["--override scale=", "f32", "no such finite number"]),
        ("BY=1", &["--override BY=1", "no such override", "`N`, 7 (`BY`), `on`, `scale`"]),
        ("N=4 --override N=8", &["--override N=8", "`N` is given twice"]),
        ("7=4 --override 07=4", &["--override 07=4", "7 (`BY`) is given twice"]),
        // Errors that only the run finds come with the given overrides.
        ("N=0 --override scale=1", &["override: workgroup_size", "N=0, scale=1"]),
        ("N=4", &["override: ", "'scale'", "N=4"]),
    ] {
        folder.refuses(&format!("{bound} --override {bad}"), expected);
    }
}

#[test]
fn immediates_fit_what_is_declared() {
    let folder = Folder::new("immediates");
    folder.file("double.wgsl", DOUBLE).file(
        "add.wgsl",
        "var<immediate> by: vec2u;\n@group(0) @binding(0) var<storage, read_write> a: array<u32>;\n\
         @compute @workgroup_size(1) fn main() { a[0] += by.x * by.y; }\n",
    );
    let bound = "add.wgsl --bind 0=u32:1";
    assert_eq!(folder.run(&format!("{bound} --immediates u32:2,3")).status, 0);
    folder.refuses(
        &format!("{bound} --immediates u32:2,3,4"),
        &["--immediates", "12 bytes", "declares 8"],
    );
    folder.refuses(&format!("{bound} --immediates u32:2"), &["`by` needs 8 bytes", "4"]);
    folder.refuses(
        "double.wgsl --immediates 00000000",
        &["--immediates", "4 bytes", "no var<immediate>"],
    );
}

#[test]
fn elements_fit_the_scalars_of_the_binding() {
    let folder = Folder::new("elements");
    folder
        .file("f64.npy", npy("<f8", false, "(4,)", &[0; 32]))
        .file("i64.npy", npy("<i8", false, "(4,)", &[0; 32]))
        .file("u8.npy", npy("|u1", false, "(4,)", &[0; 4]))
        .file(
            "sum.wgsl",
            "struct Pair { i: i32, f: vec2f }\n\
             @group(0) @binding(0) var<storage, read> a: array<Pair>;\n\
             @group(0) @binding(1) var<storage, read> packed: array<u32>;\n\
             @group(0) @binding(2) var<storage, read_write> out: array<u32>;\n\
             @group(0) @binding(3) var<storage, read_write> count: atomic<u32>;\n\
             @compute @workgroup_size(1) fn main() { out[0] = u32(a[0].i) + u32(a[0].f.x) + \
             packed[0]; }\n",
        );
    let ran = folder.run("sum.wgsl --bind 0=zero:f32:4 --bind 1=u8.npy --bind 2=out:u32:1");
    assert_eq!(ran.status, 0, "{ran:?}");
    for (file, dtype) in [("f64.npy", "f64"), ("i64.npy", "i64")] {
        let arguments = format!("sum.wgsl --bind 0={file} --bind 1=u8.npy --bind 2=out:u32:1");
        folder.refuses(&arguments, &["--bind 0", dtype, "`a`", "32"]);
    }
    folder.refuses("sum.wgsl --bind 1=i64.npy", &["--bind 1", "i64", "`packed`", "u32"]);
    folder.refuses("sum.wgsl --bind 3=zero:u64:1", &["--bind 3", "u64", "`count`", "u32"]);
    folder.refuses(
        "sum.wgsl --bind 1=out:u32:4",
        &["--bind 1", "`packed`", "as read", "cannot write"],
    );
}

#[test]
fn zeros_everywhere_on_request() {
    let folder = Folder::new("zeros");
    folder.file(
        "sum.wgsl",
        "@group(0) @binding(0) var<storage, read_write> a: array<f32>;\n\
         var<workgroup> w: f32;\n\
         var<private> p: f32;\n\
         @compute @workgroup_size(1) fn main() { var f: array<f32, 2>; a[0] += w + p + \
         f[u32(a[1])]; }\n",
    );
    let count = |zeroed: &str| {
        let ran = folder.run(&format!("sum.wgsl --bind 0=zero:f32:2 --report json {zeroed}"));
        serde_json::from_str::<Value>(&ran.stdout).unwrap()["findings"].as_array().unwrap().len()
    };
    let partly = count("--zero-init private,workgroup");
    assert!(count("") > partly && partly > 0);
    assert_eq!((count("--zero-init all"), count("--zero-init workgroup,private,function")), (0, 0));
}

#[test]
fn a_byte_order_mark_is_no_part_of_the_shader() {
    let folder = Folder::new("mark");
    folder.file("racy.wgsl", RACY).file("marked.wgsl", format!("\u{feff}{RACY}"));
    let [plain, marked] =
        ["racy", "marked"].map(|name| folder.run(&format!("{name}.wgsl --bind 0=random:u32:64")));
    assert_eq!((plain.status, marked.status), (1, 1), "{marked:?}");
    assert_eq!(plain.stdout, marked.stdout.replace("marked.wgsl", "racy.wgsl"));
}

#[test]
fn a_shader_without_an_entry_point() {
    let folder = Folder::new("entries");
    folder.file("none.wgsl", "fn helper() {}\n");
    folder.refuses("none.wgsl", &["entry point: the shader has no compute entry point"]);
    folder.refuses("none.wgsl --entry main", &["entry point \"main\": "]);
}

#[test]
fn a_clean_run() {
    let folder = Folder::new("clean");
    let data: Vec<u8> = numbers().iter().flat_map(|value| value.to_be_bytes()).collect();
    folder.file("double.wgsl", DOUBLE).file("a.npy", npy(">f4", false, "(8, 8)", &data));
    let arguments = "double.wgsl --entry main --grid 4,1,1 --bind 0=a.npy --bind 1=out:f32:64 \
                     --override EXTRA=1 --save 1=b.npy --save 0=a.bin --counters";
    let ran = folder.run(arguments);
    assert_eq!((ran.status, ran.stderr.as_str()), (0, ""), "{ran:?}");
    let mut lines = ran.stdout.lines();
    let first = lines.next().unwrap();
    assert!(
        first.starts_with("clean: 4 workgroups of 16 invocations, ")
            && first.ends_with(" operations"),
        "{first}"
    );
    assert!(
        lines.any(|line| line.split_whitespace().eq(["global", "writes", "64", "1"])),
        "{}",
        ran.stdout
    );

    let saved = fs::read(folder.0.join("b.npy")).unwrap();
    let expected: Vec<u8> =
        numbers().iter().flat_map(|value| (2.0 * value + 1.0).to_le_bytes()).collect();
    assert!(saved.starts_with(b"\x93NUMPY") && saved.ends_with(&expected));
    assert!(String::from_utf8_lossy(&saved).contains("(64,"));
    let raw: Vec<u8> = numbers().iter().flat_map(|value| value.to_le_bytes()).collect();
    assert_eq!(fs::read(folder.0.join("a.bin")).unwrap(), raw);
}

#[test]
fn columns_first_is_put_in_order() {
    let folder = Folder::new("order");
    let data: Vec<u8> =
        [0f32, 3.0, 1.0, 4.0, 2.0, 5.0].iter().flat_map(|value| value.to_le_bytes()).collect();
    folder.file("a.npy", npy("<f4", true, "(2, 3)", &data)).file(
        "copy.wgsl",
        "@group(2) @binding(5) var<storage, read_write> a: array<f32>;\n@compute \
         @workgroup_size(6) fn main(@builtin(local_invocation_index) i: u32) { a[i] += 1.0; }\n",
    );
    let ran = folder.run("copy.wgsl --bind 2.5=a.npy --save 2.5=b.bin");
    assert_eq!(ran.status, 0, "{ran:?}");
    let expected: Vec<u8> = (1..7u8).flat_map(|value| f32::from(value).to_le_bytes()).collect();
    assert_eq!(fs::read(folder.0.join("b.bin")).unwrap(), expected);
}

#[test]
fn findings() {
    let folder = Folder::new("findings");
    folder.file("racy.wgsl", RACY);
    let ran = folder.run("racy.wgsl --bind 0=random:u32:64 --color always");
    assert_eq!((ran.status, ran.stderr.as_str()), (1, ""), "{ran:?}");
    assert!(ran.stdout.contains("\u{1b}["), "{ran:?}");

    let ran = folder.run("racy.wgsl --bind 0=random:u32:64");
    assert_eq!((ran.status, ran.stderr.as_str()), (1, ""), "{ran:?}");
    for piece in ["error[race]: ", "racy.wgsl:", "tile[63u - i]", "invocation (", "= note: "] {
        assert!(ran.stdout.contains(piece), "{} lacks {piece}", ran.stdout);
    }
    assert!(ran.stdout.trim_end().lines().last().unwrap().ends_with(" race"), "{}", ran.stdout);

    let ran = folder.run("racy.wgsl --bind 0=random:u32:64 --report json --color always");
    assert_eq!((ran.status, ran.stderr.as_str()), (1, ""), "{ran:?}");
    let report: Value = serde_json::from_str(&ran.stdout).unwrap();
    let finding = &report["findings"][0];
    assert_eq!(
        (&finding["kind"], &finding["variable"]),
        (&Value::from("race"), &Value::from("tile"))
    );
    let lines: Vec<u64> =
        [0, 1].map(|side| finding["labels"][side]["line"].as_u64().unwrap()).into();
    assert!(lines.contains(&5) && lines.contains(&6), "{report}");
    assert_eq!(report["counters"]["invocations"], 64);
}

#[test]
fn the_kinds_of_values() {
    let folder = Folder::new("values");
    folder.file("double.wgsl", DOUBLE);
    let kinds = |values: &str, status| {
        let ran = folder.run(&format!("double.wgsl --report json {values}"));
        assert_eq!(ran.status, status, "{values}: {ran:?}");
        let report: Value = serde_json::from_str(&ran.stdout).unwrap();
        let mut kinds: Vec<String> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["kind"].as_str().unwrap().to_owned())
            .collect();
        kinds.dedup();
        kinds
    };
    let nothing: [&str; 0] = [];
    assert_eq!(kinds("--bind 0=zero:f32:16 --bind 1=out:f32:16", 0), nothing);
    assert_eq!(kinds("--bind 0=random:f32:16 --bind 1=poison:f32:32", 0), nothing);
    assert_eq!(kinds("--bind 0=random:f32:16 --bind 1=out:f32:32", 1), ["never-written"]);
    assert_eq!(kinds("--bind 0=poison:f32:16 --bind 1=out:f32:16", 1), ["uninitialised"]);
    assert_eq!(kinds("--bind 0=f32:1,2,3 --bind 1=out:f32:16", 1), ["out-of-bounds"]);
    assert_eq!(
        kinds("--bind 0=zero:f32:16 --bind 1=zero:f32:16 --range 1=0..8", 1),
        ["out-of-bounds"]
    );
    assert_eq!(
        kinds("--bind 0=zero:f32:16 --bind 1=zero:f32:16 --range 1=0..8 --range 1=8..16", 0),
        nothing
    );
}

#[test]
fn a_reader_that_stops_is_no_failure() {
    let folder = Folder::new("closed");
    folder.file("racy.wgsl", RACY);
    for (arguments, status) in [("racy.wgsl --bind 0=random:u32:64", 1), ("--help", 0)] {
        let mut child = folder
            .command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut stderr = String::new();
        child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
        assert_eq!(
            (child.wait().unwrap().code(), stderr.as_str()),
            (Some(status), ""),
            "{arguments}"
        );
    }
}

#[test]
fn the_readme_shows_what_happens() {
    let readme = include_str!("../README.md");
    let block = |language: &str| {
        let (_, block) = readme.split_once(&format!("```{language}\n")).unwrap();
        block.split_once("```").unwrap().0
    };
    let folder = Folder::new("readme");
    folder.file("sum.wgsl", block("wgsl"));
    let (command, shown) = block("console").split_once('\n').unwrap();
    let ran = folder.run(command.strip_prefix("$ tilewise-sanitizer ").unwrap());
    assert_eq!((ran.status, ran.stderr.as_str(), ran.stdout.as_str()), (1, "", shown));
}
