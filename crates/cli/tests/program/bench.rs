//! Files, the program and its adapters, for the tests of the command line.

use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensors};
use std::collections::BTreeMap;
use std::ops::Deref;
use std::path::Path;
use tilewise_core::DType;
use tilewise_files::Output;
use tilewise_tests::Program;

/// A test's own folder, and the program that runs in it.
pub(crate) struct Bench {
    program: Program,
}

impl Bench {
    /// An empty folder.
    pub(crate) fn new() -> Self {
        Bench { program: Program::new(env!("CARGO_BIN_EXE_tilewise"), env!("CARGO_TARGET_TMPDIR")) }
    }

    /// Writes `values` as f32 in `.npy` form.
    pub(crate) fn npy(&self, name: &str, shape: &[usize], values: &[f32]) {
        assert_eq!(shape.iter().product::<usize>(), values.len());
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.npy_bytes(name, "<f4", shape, &bytes);
    }

    /// Writes a `.npy` file, whose header may be wrong.
    pub(crate) fn npy_bytes(&self, name: &str, descr: &str, shape: &[usize], bytes: &[u8]) {
        let extents: String = shape.iter().map(|extent| format!("{extent}, ")).collect();
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({extents}), }}\n");
        let len = (header.len() as u16).to_le_bytes();
        std::fs::write(
            self.path(name),
            [b"\x93NUMPY\x01\x00", &len[..], header.as_bytes(), bytes].concat(),
        )
        .unwrap();
    }

    /// Reads a `.npy` file of f32 or f16 as the program writes it: its shape and elements.
    pub(crate) fn read_npy(&self, name: &str) -> (Vec<usize>, Vec<f64>) {
        let bytes = std::fs::read(self.path(name)).unwrap();
        assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
        let start = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
        let header = std::str::from_utf8(&bytes[10..start]).unwrap();
        let inside = header.split_once("'shape': (").unwrap().1.split_once(')').unwrap().0;
        let shape = inside
            .split(',')
            .map(str::trim)
            .filter(|e| !e.is_empty())
            .map(|e| e.parse().unwrap())
            .collect();
        let elements = &bytes[start..];
        let values = if header.contains("'<f4'") {
            elements
                .chunks_exact(4)
                .map(|b| f32::from_le_bytes(b.try_into().unwrap()).into())
                .collect()
        } else {
            assert!(header.contains("'<f2'"), "{header}");
            elements
                .chunks_exact(2)
                .map(|b| half::f16::from_le_bytes(b.try_into().unwrap()).into())
                .collect()
        };
        (shape, values)
    }

    /// Writes a `.safetensors` file of f32.
    pub(crate) fn safetensors(&self, name: &str, tensors: &[(&str, &[usize], &[f32])]) {
        let bytes =
            |values: &[f32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
        let held: Vec<_> =
            tensors.iter().map(|(name, shape, values)| (*name, *shape, bytes(values))).collect();
        let outputs =
            held.iter().map(|(name, shape, bytes)| Output::dense(name, DType::F32, shape, bytes));
        let metadata = BTreeMap::from([("format".to_owned(), "pt".to_owned())]);
        tilewise_files::write(self.path(name), outputs.collect(), &metadata, &mut |_, _| {})
            .unwrap();
    }

    /// Copies a file or a folder that is kept beside the tests into this folder.
    pub(crate) fn take(&self, name: &str) {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
        if kept.is_dir() {
            std::fs::create_dir_all(self.path(name)).unwrap();
            names(&kept).iter().for_each(|file| self.take(&format!("{name}/{file}")));
        } else {
            std::fs::copy(kept, self.path(name)).unwrap();
        }
    }

    /// Writes `gguf/all.gguf` under a name, with another type of one of its matrices, whose blocks
    /// must not be longer than the old type's.
    pub(crate) fn gguf_with_type(&self, file: &str, tensor: &str, number: u32) {
        let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/gguf/all.gguf");
        let mut bytes = std::fs::read(kept).unwrap();
        let name =
            bytes.windows(tensor.len()).position(|bytes| bytes == tensor.as_bytes()).unwrap();
        // The name is followed by the number of dimensions and by two dimensions.
        bytes[name + tensor.len() + 4 + 16..][..4].copy_from_slice(&number.to_le_bytes());
        std::fs::write(self.path(file), bytes).unwrap();
    }

    /// How many tensors are listed in a model.
    pub(crate) fn tensors_of(&self, model: &str) -> usize {
        let listed: serde_json::Value =
            serde_json::from_str(&self.succeed(&format!("inspect {model} --json"))).unwrap();
        listed["tensors"].as_array().unwrap().len()
    }

    /// Names of the files in the folder, hidden ones too.
    pub(crate) fn files(&self) -> Vec<String> {
        names(&self.path("."))
    }

    /// The tensors of a `.safetensors` file, widened to f64.
    pub(crate) fn tensors(&self, name: &str) -> BTreeMap<String, Vec<f64>> {
        let bytes = std::fs::read(self.path(name)).unwrap();
        let wide = |view: TensorView<'_>| -> Vec<f64> {
            let data = view.data();
            match view.dtype() {
                Dtype::F64 => data.as_chunks().0.iter().map(|b| f64::from_le_bytes(*b)).collect(),
                Dtype::F32 => {
                    data.as_chunks().0.iter().map(|b| f32::from_le_bytes(*b).into()).collect()
                }
                Dtype::F16 => {
                    data.as_chunks().0.iter().map(|b| half::f16::from_le_bytes(*b).into()).collect()
                }
                Dtype::BF16 => data
                    .as_chunks()
                    .0
                    .iter()
                    .map(|b| half::bf16::from_le_bytes(*b).into())
                    .collect(),
                Dtype::U32 => {
                    data.as_chunks().0.iter().map(|b| u32::from_le_bytes(*b).into()).collect()
                }
                other => panic!("{name}: {other}"),
            }
        };
        SafeTensors::deserialize(&bytes)
            .unwrap()
            .iter()
            .map(|(name, view)| (name.to_owned(), wide(view)))
            .collect()
    }

    /// Runs a line that must fail with status 1, mention all of `parts`, and leave the folder as it
    /// was.
    pub(crate) fn refuses(&self, line: &str, parts: &[&str]) {
        let before = self.files();
        let message = self.fail(1, line);
        for part in parts {
            assert!(message.contains(part), "no {part:?} in {message}");
        }
        assert_eq!(self.files(), before, "{line}");
    }

    /// Runs the program and expects the exit status `status` and, for 1, one line on stderr. Gives
    /// the text on stderr.
    pub(crate) fn fail(&self, status: i32, line: &str) -> String {
        let stderr = self.program.fail(status, line);
        if status == 1 {
            assert_eq!(stderr.lines().count(), 1, "tilewise {line}\n{stderr}");
        }
        stderr
    }
}

impl Deref for Bench {
    type Target = Program;

    fn deref(&self) -> &Program {
        &self.program
    }
}

/// The names of a folder's files.
fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Values of `--adapter`: `cpu`, and `vulkan` if there is a Vulkan adapter.
pub(crate) fn adapters() -> Vec<&'static str> {
    if gpus().is_empty() { vec!["cpu"] } else { vec!["cpu", "vulkan"] }
}

/// Like [`adapters`], with a name for each Vulkan adapter.
pub(crate) fn every_adapter() -> Vec<String> {
    let mut all = gpus();
    all.insert(0, "cpu".to_owned());
    all
}

/// The first word of the name of every Vulkan adapter. If there is none, this is printed; it is a
/// failure if `TILEWISE_REQUIRE` lists `vulkan`, or one of the software adapters.
fn gpus() -> Vec<String> {
    let info: serde_json::Value =
        serde_json::from_str(&Bench::new().succeed("info --json")).expect("JSON");
    let vulkan = info["adapters"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|adapter| adapter["backend"] == "vulkan");
    let word = |adapter: &serde_json::Value| {
        adapter["name"].as_str()?.split_whitespace().next().map(str::to_owned)
    };
    let found: Vec<String> = vulkan.filter_map(word).map(|name| format!("vulkan:{name}")).collect();
    let required = std::env::var("TILEWISE_REQUIRE").unwrap_or_default();
    for (word, part) in [("vulkan", ""), ("lavapipe", "llvmpipe"), ("swiftshader", "SwiftShader")] {
        let is_there = found.iter().any(|name| name.contains(part));
        assert!(
            is_there || !required.split(',').any(|required| required == word),
            "TILEWISE_REQUIRE={required}, and of Vulkan's adapters there are {found:?}"
        );
    }
    if found.is_empty() {
        eprintln!("skipped on vulkan: no Vulkan adapter found");
    }
    found
}

/// Small numbers of both signs, the same for the same seed.
pub(crate) fn numbers(len: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(1);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// `a` \[m,k\] times `b` \[k,n\] in f64.
pub(crate) fn product(a: &[f32], b: &[f32], m: usize, n: usize, k: usize) -> Vec<f64> {
    let dot = |i: usize, j: usize| {
        (0..k).map(|l| f64::from(a[i * k + l]) * f64::from(b[l * n + j])).sum()
    };
    (0..m * n).map(|at| dot(at / n, at % n)).collect()
}

/// The transpose of `values` \[rows,cols\].
pub(crate) fn transposed(values: &[f32], rows: usize, cols: usize) -> Vec<f32> {
    (0..rows * cols).map(|at| values[at % rows * cols + at / rows]).collect()
}

/// Fails unless every element is within `tolerance` of its expected value.
pub(crate) fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
    assert_eq!(found.len(), expected.len());
    for (index, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f - e).abs() <= tolerance,
            "element {index} is {f}, expected {e} within {tolerance}"
        );
    }
}
