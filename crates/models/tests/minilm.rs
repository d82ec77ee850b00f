//! The vectors of all-MiniLM-L6-v2 itself, where it has been fetched, against those of
//! transformers.

use tilewise::DType;
use tilewise_models::Encoder;
use tilewise_tests::{contexts, fetched};

/// `data/make_minilm.py` computes the digests and says what they are.
const SENTENCES: &str = include_str!("data/sentences.txt");
const DIGESTS: &[u8] = include_bytes!("data/minilm.bin");
const MASKS: [usize; 8] = [1, 6, 24, 107, 130, 277, 340, 511];

/// Limits of 1 − the cosine: in f32 to transformers, in other types to f32.
const MOST: f64 = 1e-10;
const OTHERS: [(DType, f64); 2] = [(DType::F16, 1e-4), (DType::BF16, 1e-4)];

/// Half of the mean square by which a vector's digest is off. A digest adds all elements with
/// signs, so this estimates half of the square of the vectors' distance: 1 − their cosine.
fn beside(vector: &[f32], digest: &[f32]) -> f64 {
    let sign =
        |i: usize, mask: usize| if (i & mask).count_ones().is_multiple_of(2) { 1.0 } else { -1.0 };
    let sum = |mask: usize| -> f64 {
        vector.iter().enumerate().map(|(i, &x)| sign(i, mask) * f64::from(x)).sum()
    };
    let squares =
        MASKS.iter().zip(digest).map(|(&mask, &wanted)| (sum(mask) - f64::from(wanted)).powi(2));
    squares.sum::<f64>() / (2 * MASKS.len()) as f64
}

/// 1 − the cosine of two vectors of length 1: half of the square of their distance.
fn between(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(a, b)| f64::from(a - b).powi(2)).sum::<f64>() / 2.0
}

#[test]
fn vectors_are_those_of_transformers() {
    let Some(folder) = fetched("minilm") else { return };
    let digests: Vec<f32> = DIGESTS.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    let sentences: Vec<&str> = SENTENCES.lines().collect();
    assert_eq!((sentences.len(), digests.len()), (200, 200 * MASKS.len()));
    for context in contexts() {
        let encoder = Encoder::open_as(&context, &folder, DType::F32).unwrap();
        let embed = |encoder: &Encoder| -> Vec<Vec<f32>> {
            sentences.chunks(8).flat_map(|batch| encoder.embed(batch).unwrap()).collect()
        };
        let exact = embed(&encoder);
        let mut worst = 0.0;
        for ((text, vector), digest) in
            sentences.iter().zip(&exact).zip(digests.chunks(MASKS.len()))
        {
            let off = beside(vector, digest);
            assert!(off <= MOST, "{text:?} on {context:?}: 1 - cosine is {off:e}");
            worst = f64::max(worst, off);
        }
        eprintln!("{context:?}: in f32, 1 - cosine is at most about {worst:.1e}");
        for (dtype, most) in OTHERS {
            let vectors = embed(&Encoder::open_as(&context, &folder, dtype).unwrap());
            let mut worst = 0.0;
            for ((text, vector), exact) in sentences.iter().zip(&vectors).zip(&exact) {
                let off = between(vector, exact);
                assert!(off <= most, "{text:?}, {dtype} on {context:?}: 1 - cosine is {off:e}");
                worst = f64::max(worst, off);
            }
            eprintln!("{context:?}: in {dtype}, 1 - cosine is at most {worst:.1e}");
        }
    }
}
