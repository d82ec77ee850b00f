//! Runs the corpus: `corpus/KIND/NAME.wgsl` has one planted bug, and `NAME.clean.wgsl` is its twin
//! with the smallest fix. In the shader the bug and nothing else must be found, in the twin
//! nothing.
//!
//! Lines that begin with `//@ ` say how to run a shader. They hold for the twin, too, which may
//! override them by its own lines:
//!
//! ```text
//! //@ grid: 2,1,1                   workgroups; one by default
//! //@ bind 0: f32 random 64         64 numbers from -1 to 1, or from 0 to 999 for integers
//! //@ bind 1: u32 counting 64       0 to 63; also `zero 64`, `fill 2.5 64`, `values 3,0,5`
//! //@ bind 2: f32 out 64            poisoned, must be written; also `poison 64`, which need not be
//! //@ range 2: 0..60                the logical elements of binding 2
//! //@ rows 2: 4 x 5 stride 8        the same for the rows of a matrix
//! //@ override N: 4
//! //@ immediates: u32 values 4
//! //@ subgroup: 8
//! //@ max-iterations: 1000
//! //@ zero-init: workgroup          or private, function, all
//! //@ option: f16-overflow
//! ```
//!
//! Lines at fault end in `//~ KIND`, and the first label of every finding must lie on one; other
//! lines that a label must point to end in `//~ also`.

use half::f16;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use tilewise_sanitizer::{
    Buffer, Finding, Kind, Label, Launch, Options, Region, Report, Shader, ZeroInit,
};

/// The least number of shapes of bugs of each kind.
const SHAPES_OF_A_KIND: usize = 4;
/// The least number of shapes of bugs in all.
const SHAPES: usize = 60;

#[test]
fn race() {
    check(Kind::Race);
}

#[test]
fn out_of_bounds() {
    check(Kind::OutOfBounds);
}

#[test]
fn uninitialised() {
    check(Kind::Uninitialised);
}

#[test]
fn divergent_barrier() {
    check(Kind::DivergentBarrier);
}

#[test]
fn endless_loop() {
    check(Kind::EndlessLoop);
}

#[test]
fn division_by_zero() {
    check(Kind::DivisionByZero);
}

#[test]
fn shift_too_large() {
    check(Kind::ShiftTooLarge);
}

#[test]
fn f16_overflow() {
    check(Kind::F16Overflow);
}

#[test]
fn never_written() {
    check(Kind::NeverWritten);
}

/// Checks that every kind is covered, that every shader has its twin, and that all are valid WGSL
/// with known directives.
#[test]
fn complete() {
    let mut folders: Vec<String> = files(&corpus()).iter().map(|path| file_name(path)).collect();
    let mut kinds: Vec<String> = Kind::ALL.map(|kind| kind.name().to_owned()).to_vec();
    folders.sort();
    kinds.sort();
    assert_eq!(folders, kinds, "one folder for each kind");

    let mut shapes = 0;
    let mut faults = String::new();
    for kind in Kind::ALL {
        let cases = cases(kind);
        let paths = files(&corpus().join(kind.name()));
        shapes += cases.len();
        assert!(cases.len() >= SHAPES_OF_A_KIND, "{kind}: {} shapes", cases.len());
        assert_eq!(
            2 * cases.len(),
            paths.len(),
            "{kind}: a twin is missing, or a file is neither shader nor twin"
        );
        for case in cases {
            let outcome = Setup::default()
                .read(&case.buggy)
                .and_then(|setup| setup.read(&case.clean))
                .map(drop);
            for result in [outcome, markers(kind, &case.buggy).map(drop), parse(&case).map(drop)] {
                if let Err(text) = result {
                    writeln!(faults, "{kind}/{}: {text}", case.name)
                        .expect("a string takes all text");
                }
            }
            if case.clean.contains("//~") {
                writeln!(faults, "{kind}/{}: the twin has a marker", case.name)
                    .expect("a string takes all text");
            }
        }
    }
    assert!(faults.is_empty(), "\n{faults}");
    assert!(shapes >= SHAPES, "{shapes} shapes");
}

/// Checks with reports made by hand that the faults which the other tests look for are noticed.
#[test]
fn faults_are_noticed() {
    let source = "first //~ race\nsecond //~ also\nthird\n";
    let markers = markers(Kind::Race, source).expect("markers of one kind");
    let starts = [0, source.find("second").expect("a line"), source.find("third").expect("a line")];
    let finding = |kind, lines: &[usize]| {
        let label = |&line: &usize| {
            let mut label = Label::new("");
            label.span = Some(starts[line - 1]..starts[line - 1] + 5);
            label
        };
        Finding::new(kind, "by hand", lines.iter().map(label).collect())
    };
    let count = |findings| {
        let report = Report::of(findings);
        faults(Kind::Race, source, &markers, &report).len()
    };
    assert_eq!(count(vec![finding(Kind::Race, &[1, 2])]), 0);
    assert_eq!(count(vec![]), 1, "nothing found");
    assert_eq!(count(vec![finding(Kind::Race, &[1])]), 1, "line 2 without a label");
    assert_eq!(count(vec![finding(Kind::Race, &[2, 1])]), 1, "the other side first");
    assert_eq!(
        count(vec![finding(Kind::Race, &[1, 2]), finding(Kind::Race, &[3])]),
        1,
        "a line that is not marked"
    );
    assert_eq!(
        count(vec![finding(Kind::Race, &[1, 2]), finding(Kind::Uninitialised, &[1])]),
        1,
        "another kind"
    );
}

/// A shader with a bug, and its twin.
struct Case {
    name: String,
    buggy: String,
    clean: String,
}

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let entries =
        fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> =
        entries.map(|entry| entry.expect("an entry of a folder").path()).collect();
    paths.sort();
    paths
}

fn file_name(path: &Path) -> String {
    path.file_name().expect("a path of a folder's entry").to_string_lossy().into_owned()
}

fn cases(kind: Kind) -> Vec<Case> {
    let read = |path: &Path| {
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    };
    let buggy = |path: &PathBuf| !file_name(path).ends_with(".clean.wgsl");
    let case = |path: PathBuf| Case {
        name: file_name(&path.with_extension("")),
        buggy: read(&path),
        clean: read(&path.with_extension("clean.wgsl")),
    };
    files(&corpus().join(kind.name())).into_iter().filter(buggy).map(case).collect()
}

fn parse(case: &Case) -> Result<(Shader, Shader), String> {
    let parse = |suffix: &str, source: &str| {
        Shader::parse(&format!("{}{suffix}", case.name), source).map_err(|error| error.to_string())
    };
    Ok((parse(".wgsl", &case.buggy)?, parse(".clean.wgsl", &case.clean)?))
}

/// Runs all cases of a kind, and fails with the reports of those that went wrong.
fn check(kind: Kind) {
    let cases = cases(kind);
    let failures: Vec<String> = cases
        .iter()
        .filter_map(|case| {
            try_case(kind, case).err().map(|text| format!("=== {kind}/{}\n{text}", case.name))
        })
        .collect();
    assert!(!cases.is_empty(), "no cases of {kind}");
    assert!(
        failures.is_empty(),
        "{} of {} failed\n{}",
        failures.len(),
        cases.len(),
        failures.join("\n")
    );
}

fn try_case(kind: Kind, case: &Case) -> Result<(), String> {
    let (buggy, clean) = parse(case)?;
    let markers = markers(kind, &case.buggy)?;
    let setup = Setup::default().read(&case.buggy)?;
    let mended = setup.clone().read(&case.clean)?;
    for parallel in [false, true] {
        let report = setup.launch(&buggy, parallel)?;
        let faults = faults(kind, &case.buggy, &markers, &report);
        if !faults.is_empty() {
            return Err(format!("{}\n{}", faults.join("\n"), report.render(&buggy, false)));
        }
        let report = mended.launch(&clean, parallel)?;
        if !report.is_clean() {
            return Err(format!("the twin is not clean\n{}", report.render(&clean, false)));
        }
    }
    Ok(())
}

/// The marked lines, counted from 1, and whether each is at fault; otherwise a label must only
/// point to it.
fn markers(kind: Kind, source: &str) -> Result<BTreeMap<usize, bool>, String> {
    let mut marked = BTreeMap::new();
    for (line, text) in (1..).zip(source.lines()) {
        match text.split_once("//~ ").map(|(_, marker)| marker) {
            None => {}
            Some("also") => _ = marked.insert(line, false),
            Some(marker) if marker == kind.name() => _ = marked.insert(line, true),
            Some(marker) => {
                return Err(format!("line {line}: marker {marker:?} among shaders of kind {kind}"));
            }
        }
    }
    if marked.values().any(|&fault| fault) {
        Ok(marked)
    } else {
        Err(format!("no line is marked {kind}"))
    }
}

/// Faults in the report of a shader whose bug lies at the marked lines.
fn faults(
    kind: Kind,
    source: &str,
    markers: &BTreeMap<usize, bool>,
    report: &Report,
) -> Vec<String> {
    let line = |span: &std::ops::Range<usize>| source[..span.start].matches('\n').count() + 1;
    let mut faults = Vec::new();
    if report.is_clean() {
        faults.push("nothing was found".to_owned());
    }
    let mut pointed_at = Vec::new();
    for finding in &report.findings {
        if finding.kind != kind {
            faults.push(format!(
                "a finding that is not planted: {}: {}",
                finding.kind, finding.message
            ));
        }
        let lines: Vec<Option<usize>> =
            finding.labels.iter().map(|label| label.span.as_ref().map(line)).collect();
        match lines.first() {
            Some(Some(line)) if markers.get(line) == Some(&true) => {}
            first => faults.push(format!(
                "the first label is at {first:?}, not a line marked {kind}: {}",
                finding.message
            )),
        }
        pointed_at.extend(lines.into_iter().flatten());
    }
    for line in markers.keys().filter(|line| !report.is_clean() && !pointed_at.contains(line)) {
        faults.push(format!("no label points to line {line}"));
    }
    if report.dropped > 0 {
        faults.push(format!("{} findings too many", report.dropped));
    }
    faults
}

/// How a shader is run.
#[derive(Clone, Default)]
struct Setup {
    grid: Option<[u32; 3]>,
    bindings: BTreeMap<u32, (Scalar, Buffer)>,
    constants: BTreeMap<String, f64>,
    immediates: Vec<u8>,
    options: Options,
}

impl Setup {
    fn launch(&self, shader: &Shader, parallel: bool) -> Result<Report, String> {
        let mut options = self.options.clone();
        options.parallel = parallel;
        let mut launch = Launch::new(shader)
            .grid(self.grid.unwrap_or([1, 1, 1]))
            .immediates(self.immediates.clone())
            .options(options);
        for (&binding, (_, buffer)) in &self.bindings {
            launch = launch.bind(0, binding, buffer.clone());
        }
        for (name, &value) in &self.constants {
            launch = launch.constant(name, value);
        }
        launch.run().map_err(|error| error.to_string())
    }

    /// Applies the directives of a file.
    fn read(mut self, source: &str) -> Result<Self, String> {
        for (line, text) in (1..).zip(source.lines()) {
            if let Some(directive) = text.strip_prefix("//@ ") {
                self.apply(directive).map_err(|why| format!("line {line}: {directive}: {why}"))?;
            }
        }
        Ok(self)
    }

    fn apply(&mut self, directive: &str) -> Result<(), String> {
        let (key, value) = directive.split_once(": ").ok_or("no `: `")?;
        match (key.split_once(' ').unwrap_or((key, "")), value) {
            (("grid", ""), _) => {
                let grid: Vec<u32> = list(value)?;
                self.grid = Some(grid.try_into().map_err(|_| "not three numbers")?);
            }
            (("bind", binding), _) => {
                let binding = number(binding)?;
                let (scalar, fill, bytes) = contents(value, binding)?;
                let buffer = match fill {
                    "out" => Buffer::output(bytes.len()),
                    "poison" => Buffer::new(bytes).poisoned(),
                    _ => Buffer::new(bytes),
                };
                self.bindings.insert(binding, (scalar, buffer));
            }
            (("immediates", ""), _) => self.immediates = contents(value, 0)?.2,
            (("range", binding), _) => {
                let (start, end) = value.split_once("..").ok_or("no `..`")?;
                let (start, end): (u64, u64) = (number(start)?, number(end)?);
                self.declare(binding, |bytes| Region {
                    offset: start * bytes,
                    counts: vec![end - start],
                    strides: vec![bytes],
                    element_bytes: bytes,
                })?;
            }
            (("rows", binding), _) => {
                let (rows, rest) = value.split_once(" x ").ok_or("no ` x `")?;
                let (columns, stride) = rest.split_once(" stride ").ok_or("no ` stride `")?;
                let (rows, columns, stride): (u64, u64, u64) =
                    (number(rows)?, number(columns)?, number(stride)?);
                self.declare(binding, |bytes| Region {
                    offset: 0,
                    counts: vec![rows, columns],
                    strides: vec![stride * bytes, bytes],
                    element_bytes: bytes,
                })?;
            }
            (("override", name), _) => _ = self.constants.insert(name.to_owned(), number(value)?),
            (("subgroup", ""), _) => self.options.subgroup_size = number(value)?,
            (("max-iterations", ""), _) => self.options.max_iterations = number(value)?,
            (("zero-init", ""), "workgroup") => self.options.zero_init.workgroup = true,
            (("zero-init", ""), "private") => self.options.zero_init.private = true,
            (("zero-init", ""), "function") => self.options.zero_init.function = true,
            (("zero-init", ""), "all") => self.options.zero_init = ZeroInit::ALL,
            (("option", ""), "f16-overflow") => self.options.f16_overflow = true,
            _ => return Err("not a directive".to_owned()),
        }
        Ok(())
    }

    fn declare(&mut self, binding: &str, region: impl Fn(u64) -> Region) -> Result<(), String> {
        let (scalar, buffer) =
            self.bindings.get_mut(&number(binding)?).ok_or("a range before its binding")?;
        *buffer = buffer.clone().region(region(scalar.encode(0.0).len() as u64));
        Ok(())
    }
}

fn number<T: FromStr>(text: &str) -> Result<T, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is not such a number"))
}

fn list<T: FromStr>(text: &str) -> Result<Vec<T>, String> {
    text.split(',').map(number).collect()
}

#[derive(Clone, Copy, PartialEq)]
enum Scalar {
    F16,
    F32,
    I32,
    U32,
    I64,
    U64,
}

impl FromStr for Scalar {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Ok(match text {
            "f16" => Scalar::F16,
            "f32" => Scalar::F32,
            "i32" => Scalar::I32,
            "u32" => Scalar::U32,
            "i64" => Scalar::I64,
            "u64" => Scalar::U64,
            _ => return Err(format!("{text:?} is no type")),
        })
    }
}

impl Scalar {
    fn encode(self, x: f64) -> Vec<u8> {
        match self {
            Scalar::F16 => f16::from_f32(tilewise_sanitizer::to_odd(x)).to_le_bytes().to_vec(),
            Scalar::F32 => (x as f32).to_le_bytes().to_vec(),
            Scalar::I32 => (x as i32).to_le_bytes().to_vec(),
            Scalar::U32 => (x as u32).to_le_bytes().to_vec(),
            Scalar::I64 => (x as i64).to_le_bytes().to_vec(),
            Scalar::U64 => (x as u64).to_le_bytes().to_vec(),
        }
    }
}

/// The type of the elements, the word for their contents, and their bytes.
fn contents(text: &str, seed: u32) -> Result<(Scalar, &str, Vec<u8>), String> {
    let (scalar, contents) = text.split_once(' ').ok_or("no contents")?;
    let scalar: Scalar = scalar.parse()?;
    let (fill, rest) = contents.split_once(' ').ok_or("no length")?;
    let values: Vec<f64> = match fill {
        "values" => list(rest)?,
        "fill" => {
            let (value, length) = rest.split_once(' ').ok_or("no length")?;
            vec![number(value)?; number(length)?]
        }
        "zero" | "out" | "poison" => vec![0.0; number(rest)?],
        "counting" => (0..number(rest)?).map(|i: u32| f64::from(i)).collect(),
        "random" => (0..number(rest)?).map(|i| random(scalar, seed, i)).collect(),
        _ => return Err(format!("{fill:?} is not a way to fill a buffer")),
    };
    Ok((scalar, fill, values.into_iter().flat_map(|x| scalar.encode(x)).collect()))
}

/// The `i`th of a sequence of numbers that look random (splitmix64 by Steele, Lea and Flood).
fn random(scalar: Scalar, seed: u32, i: u32) -> f64 {
    let mut x =
        (u64::from(seed) << 32 | u64::from(i)).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    x = (x ^ x >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    let unit = (x >> 11) as f64 / (1u64 << 53) as f64;
    match scalar {
        Scalar::F16 | Scalar::F32 => 2.0 * unit - 1.0,
        _ => (1000.0 * unit).floor(),
    }
}
