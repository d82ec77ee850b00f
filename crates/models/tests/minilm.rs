//! The vectors of all-MiniLM-L6-v2 itself, where it has been fetched, against those of
//! transformers.

use tilewise::DType;
use tilewise_models::Encoder;
use tilewise_tests::{contexts, fetched};

/// `data/make_minilm.py` computes the digests and says what they are.
const SENTENCES: &str = include_str!("data/sentences.txt");
const DIGESTS: &[u8] = include_bytes!("data/minilm.bin");
const MASKS: [usize; 8] = [1, 6, 24, 107, 130, 277, 340, 511];

/// Limits of 1 − the cosine in each type.
const MOST: [(DType, f64); 3] = [(DType::F32, 1e-10), (DType::F16, 1e-4), (DType::BF16, 1e-4)];

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

#[test]
fn vectors_are_those_of_transformers() {
    let Some(folder) = fetched("minilm") else { return };
    let digests: Vec<f32> = DIGESTS.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect();
    let sentences: Vec<&str> = SENTENCES.lines().collect();
    assert_eq!((sentences.len(), digests.len()), (200, 200 * MASKS.len()));
    for (context, (dtype, most)) in
        contexts().iter().flat_map(|context| MOST.map(|most| (context, most)))
    {
        let encoder = Encoder::open_as(context, &folder, dtype).unwrap();
        let mut worst = 0.0;
        for (batch, digests) in sentences.chunks(8).zip(digests.chunks(8 * MASKS.len())) {
            let vectors = encoder.embed(batch).unwrap();
            let wanted = digests.chunks(MASKS.len());
            for ((text, vector), digest) in batch.iter().zip(&vectors).zip(wanted) {
                let off = beside(vector, digest);
                assert!(off <= most, "{text:?}, {dtype} on {context:?}: 1 - cosine is {off:e}");
                worst = f64::max(worst, off);
            }
        }
        eprintln!("{context:?}: in {dtype}, 1 - cosine is at most about {worst:.1e}");
    }
}
