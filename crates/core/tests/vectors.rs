//! Every format held against the bytes and numbers of the program that it comes from, MLX or the Python
//! package gguf; `vectors/make_vectors.py` made the files and describes their layout.

use std::path::{Path, PathBuf};
use std::process::Command;
use tilewise_core::QuantFormat;
use tilewise_core::quant::{Quantized, dequantize, quantize};

/// One file: a matrix in a format, of which the first rows are quantized weights.
struct Case {
    n: usize,
    k: usize,
    weights: Vec<f32>,
    factor: f32,
    parts: Vec<Vec<u8>>,
    hashes: Vec<u64>,
}

/// A file of numbers, read from its beginning.
struct File {
    bytes: Vec<u8>,
    at: usize,
}

impl File {
    fn open(name: &str) -> Option<File> {
        Some(File { bytes: std::fs::read(folder().join(format!("{name}.bin"))).ok()?, at: 0 })
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
    let mut file = File::open(&format!("weights-{name}")).unwrap_or_else(|| panic!("weights-{name}.bin is missing"));
    let (n, k) = (file.size(), file.size());
    assert_eq!(k, of, "columns of weights-{name}");
    file.floats(n * k)
}

fn read(name: &str) -> Case {
    let mut file = File::open(name).unwrap_or_else(|| panic!("vectors/{name}.bin is missing"));
    let (n, k, text) = (file.size(), file.size(), file.size());
    let names = String::from_utf8(file.take(text).to_vec()).unwrap();
    let weights = names.split_whitespace().flat_map(|name| weights(name, k)).collect();
    let factor = file.floats(1)[0];
    let parts = file.size();
    let sizes: Vec<usize> = (0..parts).map(|_| file.size()).collect();
    let parts = sizes.into_iter().map(|size| file.take(size).to_vec()).collect();
    let hashes = file.take(8 * n).as_chunks().0.iter().map(|&bytes| u64::from_le_bytes(bytes)).collect();
    assert_eq!(file.at, file.bytes.len(), "{name}: bytes after the hashes");
    Case { n, k, weights, factor, parts, hashes }
}

impl Case {
    fn matrix(&self, format: QuantFormat) -> Quantized {
        match format.gguf() {
            Some(_) => Quantized::from_blocks(format, self.n, self.k, &self.parts[0]).unwrap(),
            None => Quantized::from_planes(format, self.n, self.k, self.parts.clone()).unwrap(),
        }
    }

    /// Checks weights `[n, k]` against the hash of each row.
    fn check(&self, name: &str, dequantized: &[f32]) {
        for (i, (row, &theirs)) in dequantized.chunks_exact(self.k).zip(&self.hashes).enumerate() {
            assert_eq!(hash(row), theirs, "row {i} of {name} differs after dequantizing");
        }
    }
}

/// FNV-1a, 64 bits.
fn hash(row: &[f32]) -> u64 {
    let bits = row.iter().map(|w| if w.is_nan() { 0x7fc0_0000 } else { w.to_bits() });
    let step = |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
    bits.flat_map(u32::to_le_bytes).fold(0xcbf2_9ce4_8422_2325, step)
}

/// The first row in which `ours`, of `n` rows, differs from the beginning of `theirs`.
fn differing_row(ours: &[u8], theirs: &[u8], n: usize) -> Option<usize> {
    let row = ours.len() / n;
    ours.chunks_exact(row).zip(theirs.chunks_exact(row)).position(|(ours, theirs)| ours != theirs)
}

#[test]
fn every_format_quantizes_to_the_bits_of_its_origin() {
    for format in QuantFormat::all() {
        let name = format.name();
        let Case { k, weights, parts, .. } = read(name);
        assert_eq!(weights.is_empty(), !format.quantizes(), "{name}: weights are there where it is quantized to");
        if weights.is_empty() {
            continue;
        }
        let n = weights.len() / k;
        let ours = quantize(&weights, n, k, format).unwrap();
        let ours = if format.gguf().is_some() { vec![ours.to_blocks().unwrap()] } else { ours.planes().to_vec() };
        assert_eq!(ours.len(), parts.len(), "parts of {name}");
        for (i, (ours, theirs)) in ours.iter().zip(&parts).enumerate() {
            assert_eq!(differing_row(ours, theirs, n), None, "the first row that differs in part {i} of {name}");
        }
    }
}

#[test]
fn every_format_dequantizes_to_the_bits_of_its_origin() {
    for format in QuantFormat::all() {
        let case = read(format.name());
        let matrix = case.matrix(format);
        case.check(format.name(), &dequantize(&matrix));
        if format.gguf().is_some() {
            assert!(matrix.to_blocks().unwrap() == case.parts[0], "the blocks of {format}, cut and joined");
        }
    }
}

/// A scale for the whole matrix, here a factor of its blocks' scales. The values of codes and of scales
/// come from matrices in which the others are 1.
#[test]
fn nvfp4_with_a_factor_dequantizes_to_the_bits_of_mlx() {
    let format: QuantFormat = "nvfp4".parse().unwrap();
    let case = read("nvfp4-factor");
    let [codes, scales] = &case.parts[..] else { panic!("nvfp4 has two planes") };
    let dequantized = |codes, scales| {
        dequantize(&Quantized::from_planes(format, case.n, case.k, vec![codes, scales]).unwrap())
    };
    let values = dequantized(codes.clone(), vec![0x38; scales.len()]);
    let scales = dequantized(vec![0x22; codes.len()], scales.clone());
    let product = |(value, scale)| value * (scale * case.factor);
    case.check("nvfp4-factor", &values.into_iter().zip(scales).map(product).collect::<Vec<_>>());
}

/// A format that lost its row leaves its file behind.
#[test]
fn every_file_is_of_a_format() {
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let is_case = path.extension().is_some_and(|extension| extension == "bin") && !name.starts_with("weights-");
        let format = name.trim_end_matches("-factor");
        assert!(!is_case || QuantFormat::all().any(|f| f.name() == format), "no format has {}", path.display());
    }
}

/// The files are what the packages make now. Python is `TILEWISE_PYTHON`, which must then have the
/// packages, or python3.
#[test]
fn the_packages_make_these_files() {
    const MISSING: i32 = 77;
    let named = std::env::var("TILEWISE_PYTHON").ok();
    let python = named.as_deref().unwrap_or("python3");
    let script = folder().join("make_vectors.py");
    let output = match Command::new(python).arg("-B").arg(script).arg("--check").output() {
        Ok(output) => output,
        Err(error) if named.is_none() => return eprintln!("skipped: no mlx/gguf, {python} does not start: {error}"),
        Err(error) => panic!("{python}: {error}"),
    };
    let said = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if output.status.code() == Some(MISSING) && named.is_none() {
        return eprintln!("skipped: no mlx/gguf: {said}");
    }
    assert!(output.status.success(), "{said}");
}
