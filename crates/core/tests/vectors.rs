//! Every format held against the bytes and numbers of the program that it comes from: MLX, gguf,
//! ml_dtypes or bitsandbytes. `vectors/make_vectors.py` made the files and describes their layout.

use std::path::{Path, PathBuf};
use std::process::Command;
use tilewise_core::QuantFormat;
use tilewise_core::quant::{Quantized, dequantize, quantize, quantize_to};

/// One file: a matrix in a format. Its first rows are quantized weights.
struct Case {
    n: usize,
    k: usize,
    weights: Vec<f32>,
    /// The scale of the whole matrix, in nvfp4-factor.
    g: f32,
    planes: Vec<Vec<u8>>,
    hashes: Vec<u64>,
}

/// A file of numbers, read from its beginning.
struct File {
    bytes: Vec<u8>,
    at: usize,
}

impl File {
    fn open(name: &str) -> File {
        let path = folder().join(format!("{name}.bin"));
        let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        File { bytes, at: 0 }
    }

    fn take(&mut self, bytes: usize) -> &[u8] {
        self.at += bytes;
        &self.bytes[self.at - bytes..self.at]
    }

    fn size(&mut self) -> usize {
        u32::from_le_bytes(self.take(4).try_into().unwrap()) as usize
    }

    fn floats(&mut self, count: usize) -> Vec<f32> {
        self.take(4 * count).as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect()
    }
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")
}

fn weights(name: &str, of: usize) -> Vec<f32> {
    let mut file = File::open(&format!("weights-{name}"));
    let (n, k) = (file.size(), file.size());
    assert_eq!(k, of, "columns of weights-{name}");
    file.floats(n * k)
}

fn read(name: &str) -> Case {
    let mut file = File::open(name);
    let (n, k, text) = (file.size(), file.size(), file.size());
    let names = String::from_utf8(file.take(text).to_vec()).unwrap();
    let weights = names.split_whitespace().flat_map(|name| weights(name, k)).collect();
    let g = file.floats(1)[0];
    let planes = file.size();
    let sizes: Vec<usize> = (0..planes).map(|_| file.size()).collect();
    let planes = sizes.into_iter().map(|size| file.take(size).to_vec()).collect();
    let hashes = file.take(8 * n).as_chunks().0;
    let hashes = hashes.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect();
    assert_eq!(file.at, file.bytes.len(), "{name}: bytes after the hashes");
    Case { n, k, weights, g, planes, hashes }
}

impl Case {
    fn matrix(&self, format: QuantFormat) -> Quantized {
        match format.gguf() {
            Some(_) => Quantized::from_blocks(format, self.n, self.k, &self.planes[0]).unwrap(),
            None => Quantized::from_planes(format, self.n, self.k, self.planes.clone()).unwrap(),
        }
    }

    /// Compares the planes of the first `n` rows.
    fn check_quantized(&self, name: &str, ours: &[Vec<u8>], n: usize) {
        assert_eq!(ours.len(), self.planes.len(), "planes of {name}");
        for (i, (ours, theirs)) in ours.iter().zip(&self.planes).enumerate() {
            let row = ours.len() / n;
            let mut rows = ours.chunks_exact(row).zip(theirs.chunks_exact(row));
            let differs = rows.position(|(ours, theirs)| ours != theirs);
            assert_eq!(differs, None, "the first row that differs in plane {i} of {name}");
        }
    }

    /// Compares weights `[n, k]` with the hash of each row.
    fn check_dequantized(&self, name: &str, ours: &[f32]) {
        assert_eq!(ours.len(), self.n * self.k);
        for (i, (row, &theirs)) in ours.chunks_exact(self.k).zip(&self.hashes).enumerate() {
            assert_eq!(hash(row), theirs, "row {i} of {name} differs after dequantizing");
        }
    }
}

/// FNV-1a, 64 bits.
fn hash(row: &[f32]) -> u64 {
    let bits = row.iter().map(|w| if w.is_nan() { 0x7fc0_0000 } else { w.to_bits() });
    let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bits.flat_map(u32::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, step)
}

#[test]
fn every_format_has_the_bits_of_its_origin() {
    for format in QuantFormat::all() {
        let name = format.name();
        let case = read(name);
        assert_eq!(case.weights.is_empty(), !format.quantizes(), "whether {name} is quantized to");
        let n = case.weights.len() / case.k;
        let matrix = case.matrix(format);
        let in_blocks = format.gguf().is_some();
        if in_blocks {
            let joined = matrix.to_blocks().unwrap();
            assert!(joined == case.planes[0], "blocks of {name}, cut and joined");
        }
        if format.quantizes() {
            let ours = quantize(&case.weights, n, case.k, format).unwrap();
            let blocks = if in_blocks { vec![ours.to_blocks().unwrap()] } else { Vec::new() };
            case.check_quantized(name, if in_blocks { &blocks } else { ours.planes() }, n);
        }
        case.check_dequantized(name, &dequantize(&matrix));
    }
}

/// MLX's scale for the whole matrix.
#[test]
fn nvfp4_with_a_factor_has_the_bits_of_mlx() {
    let case = read("nvfp4-factor");
    let n = case.weights.len() / case.k;
    let ours = quantize_to(&case.weights, n, case.k, QuantFormat::NVFP4, case.g).unwrap();
    case.check_quantized("nvfp4-factor", ours.planes(), n);
    let matrix = case.matrix(QuantFormat::NVFP4).with_factor(ours.factor()).unwrap();
    case.check_dequantized("nvfp4-factor", &dequantize(&matrix));
}

/// Fails if a file is left behind by a format that lost its row.
#[test]
fn every_file_is_of_a_format() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_vector = path.extension().is_some_and(|extension| extension == "bin");
        let is_case = is_vector && !name.starts_with("weights-");
        let named = |format: QuantFormat| format.name() == name.trim_end_matches("-factor");
        assert!(!is_case || QuantFormat::all().any(named), "no format has {}", path.display());
    }
}

/// The packages still make the same files. Python is `TILEWISE_PYTHON`, which must then have the
/// packages, or python3.
#[test]
fn the_packages_make_these_files() {
    const MISSING: i32 = 77;
    let named = std::env::var("TILEWISE_PYTHON").ok();
    let python = named.as_deref().unwrap_or("python3");
    let script = folder().join("make_vectors.py");
    let (code, said) = match Command::new(python).arg("-B").arg(script).arg("--check").output() {
        Ok(output) => {
            let said = [output.stdout, output.stderr].concat();
            (output.status.code(), String::from_utf8_lossy(&said).into_owned())
        }
        Err(error) => (Some(MISSING), format!("{python} does not start: {error}")),
    };
    if code == Some(MISSING) && named.is_none() {
        return eprintln!("skipped: no packages: {said}");
    }
    assert_eq!(code, Some(0), "{said}");
}
