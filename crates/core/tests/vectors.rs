//! Every format held against the bytes and numbers of the program that it comes from, MLX or the Python
//! package gguf; `vectors/make_vectors.py` made the files and describes their layout.

use std::path::Path;
use tilewise_core::QuantFormat;
use tilewise_core::quant::{Quantized, dequantize, quantize};

/// One file: a matrix in a format.
struct Case {
    n: usize,
    k: usize,
    planes: Vec<Vec<u8>>,
    /// Whether quantizing `weights` gives these planes.
    encodes: bool,
    weights: Vec<f32>,
    dequantized: Vec<f32>,
}

fn read(name: &str) -> Option<Case> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors").join(format!("{name}.bin"));
    let bytes = std::fs::read(path).ok()?;
    let mut rest = &bytes[..];
    let mut take = |bytes: usize| rest.split_off(..bytes).expect("the file ends inside a matrix");
    let words = |bytes: &[u8]| bytes.as_chunks().0.iter().map(|&b| u32::from_le_bytes(b)).collect::<Vec<_>>();
    let floats = |bytes: &[u8]| words(bytes).into_iter().map(f32::from_bits).collect::<Vec<_>>();
    let [n, k, count] = words(take(12))[..] else { unreachable!("three words") };
    let sizes = words(take(4 * count as usize));
    let encodes = words(take(4))[0] & 1 == 1;
    let (n, k) = (n as usize, k as usize);
    let weights = floats(take(4 * n * k));
    let planes = sizes.into_iter().map(|size| take(size as usize).to_vec()).collect();
    let dequantized = floats(take(4 * n * k));
    assert!(rest.is_empty(), "{name}: {} bytes after the matrix", rest.len());
    Some(Case { n, k, planes, encodes, weights, dequantized })
}

fn bits(values: &[f32]) -> Vec<u32> {
    values.iter().map(|v| v.to_bits()).collect()
}

/// A format that lost its row leaves its files behind.
#[test]
fn every_file_is_of_a_format() {
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("vectors")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let of = |format: QuantFormat| [format.name(), &format!("{}-raw", format.name())].contains(&&*name);
        let is_vector = path.extension().is_some_and(|extension| extension == "bin");
        assert!(!is_vector || QuantFormat::all().any(of), "no format has {}", path.display());
    }
}

#[test]
fn every_format_has_the_bits_of_its_origin() {
    for format in QuantFormat::all() {
        let name = format.name();
        let own = read(name).unwrap_or_else(|| panic!("vectors/{name}.bin is missing"));
        assert!(own.encodes, "{name} is quantized here, and its file does not show how");
        // A second file has codes that no quantizer makes.
        for case in std::iter::once(own).chain(read(&format!("{name}-raw"))) {
            let Case { n, k, planes, encodes, weights, dequantized } = case;
            if encodes {
                let ours = quantize(&weights, n, k, format).unwrap();
                for ((plane, ours), theirs) in format.planes().iter().zip(ours.planes()).zip(&planes) {
                    let row = ours.len() / n;
                    let differs = (0..n).find(|i| ours[i * row..(i + 1) * row] != theirs[i * row..(i + 1) * row]);
                    assert_eq!(differs, None, "the first row that differs in {} of {name}", plane.name);
                }
            }
            let matrix = Quantized::from_planes(format, n, k, planes).unwrap();
            assert_eq!(bits(&dequantize(&matrix)), bits(&dequantized), "{name}");
        }
    }
}
