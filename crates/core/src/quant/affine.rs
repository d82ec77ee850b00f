//! Affine quantization, the convention of MLX: w ≈ scale · code + bias, with one scale and one bias per group along K.
//!
//! The arithmetic is that of MLX's CPU implementation (`mlx/backend/cpu/quantized.cpp`, version 0.32), bit for bit: all in f32,
//! whatever the type of the weights, rounded once more when a scale or a bias is stored. `vectors/` holds its answers.
//!
//! A matrix `[n, k]` is stored as `n · k / 8` words of codes, the code of the lowest column in the lowest bits, and `n · k / 64`
//! scales and biases, all row after row.

use super::QuantFormat;
use crate::convert;
use crate::dtype::DType;
use crate::error::{Error, Result};

/// Smallest magnitude of a scale, so that a constant group divides by something.
const SMALLEST_SCALE: f32 = 1e-7;

/// A quantized matrix `[n, k]`. Made by [`quantize`] or [`Quantized::from_parts`], which see to it that the lengths agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantized {
    format: QuantFormat,
    n: usize,
    k: usize,
    scale_dtype: DType,
    codes: Vec<u32>,
    scales: Vec<u8>,
    biases: Vec<u8>,
}

impl Quantized {
    /// Puts together parts that were read from elsewhere.
    ///
    /// Errors: those of [`QuantFormat::code_words`]; `Shape` when a part has another length than `[n, k]` asks for; `Unsupported` for scales that
    /// are integers.
    pub fn from_parts(
        format: QuantFormat,
        n: usize,
        k: usize,
        scale_dtype: DType,
        codes: Vec<u32>,
        scales: Vec<u8>,
        biases: Vec<u8>,
    ) -> Result<Self> {
        float_scales(scale_dtype)?;
        let words = format.code_words(n as u64, k as u64)?;
        let bytes = format.groups(n as u64, k as u64)? * scale_dtype.bytes();
        for (part, unit, held, needed) in [
            ("codes", "u32 words", codes.len(), words),
            ("scales", "bytes", scales.len(), bytes),
            ("biases", "bytes", biases.len(), bytes),
        ] {
            if held as u64 != needed {
                return Err(Error::Shape(format!(
                    "{format}({scale_dtype}) weights of {n} by {k} take {needed} {unit} of {part}, there are {held}"
                )));
            }
        }
        Ok(Quantized { format, n, k, scale_dtype, codes, scales, biases })
    }

    /// Format of the codes.
    pub fn format(&self) -> QuantFormat {
        self.format
    }

    /// Rows: outputs of the layer.
    pub fn n(&self) -> usize {
        self.n
    }

    /// Columns: the summed dimension.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Type of the scales and of the biases.
    pub fn scale_dtype(&self) -> DType {
        self.scale_dtype
    }

    /// Packed codes, [`QuantFormat::code_words`] of them.
    pub fn codes(&self) -> &[u32] {
        &self.codes
    }

    /// Scales as little-endian elements of `scale_dtype`, [`QuantFormat::groups`] of them.
    pub fn scales(&self) -> &[u8] {
        &self.scales
    }

    /// Biases, stored as the scales are.
    pub fn biases(&self) -> &[u8] {
        &self.biases
    }

    /// The scales as numbers, group after group, row after row.
    pub fn scales_f32(&self) -> Vec<f32> {
        convert::decode_exact(self.scale_dtype, &self.scales)
    }

    /// The biases as numbers, in the order of the scales.
    pub fn biases_f32(&self) -> Vec<f32> {
        convert::decode_exact(self.scale_dtype, &self.biases)
    }

    /// How far a kernel's dequantized weight may lie from [`dequantize`]'s, element by element: it may or may not fuse the
    /// multiplication with the addition, and may flush subnormal scales, biases and products to zero.
    pub fn weight_error(&self) -> Vec<f64> {
        let u = DType::F32.unit_roundoff();
        let smallest_normal = f64::from(f32::MIN_POSITIVE);
        let flushed = |x: f32| convert::flushed(self.scale_dtype, f64::from(x));
        self.map_codes(|code, scale, bias| {
            let product = (f64::from(scale) * f64::from(code)).abs();
            // One rounding of the product and two of the sum, one on either side; the sum is at most product + |bias|.
            u * (3.0 * product + 2.0 * f64::from(bias).abs())
                + f64::from(code) * flushed(scale)
                + flushed(bias)
                + 2.0 * smallest_normal
        })
    }

    /// Calls `f(code, scale, bias)` for every element.
    fn map_codes<T>(&self, f: impl Fn(u8, f32, f32) -> T) -> Vec<T> {
        let words_per_group = (self.format.group_size() * self.format.bits() / u64::from(u32::BITS)) as usize;
        let groups = self.codes.chunks_exact(words_per_group);
        let mut out = Vec::with_capacity(groups.len() * self.format.group_size() as usize);
        for (words, (scale, bias)) in groups.zip(self.scales_f32().into_iter().zip(self.biases_f32())) {
            for &word in words {
                out.extend((0..8).map(|i| f((word >> (4 * i) & 15) as u8, scale, bias)));
            }
        }
        out
    }
}

/// Quantizes `weights`, a row-major matrix `[n, k]`. Weights of a 16-bit type are given widened, with that type as `scale_dtype`.
///
/// Errors: those of [`QuantFormat::code_words`]; `Shape` when there are not n·k weights; `Value` for a weight that is NaN or
/// infinite, and for a group whose range exceeds f32 or whose scale or bias exceeds `scale_dtype`.
pub fn quantize(weights: &[f32], n: usize, k: usize, format: QuantFormat, scale_dtype: DType) -> Result<Quantized> {
    float_scales(scale_dtype)?;
    let words = format.code_words(n as u64, k as u64)?;
    if weights.len() as u64 != n as u64 * k as u64 {
        return Err(Error::Shape(format!("weights of {n} by {k} are {} elements, there are {}", n * k, weights.len())));
    }
    if let Some(i) = weights.iter().position(|w| !w.is_finite()) {
        return Err(Error::Value(format!("weight {i} (row {}, column {}) is {}", i / k, i % k, weights[i])));
    }
    let group_size = format.group_size() as usize;
    let mut codes = Vec::with_capacity(words as usize);
    let mut scales = Vec::with_capacity(weights.len() / group_size);
    let mut biases = Vec::with_capacity(weights.len() / group_size);
    for (g, group) in weights.chunks_exact(group_size).enumerate() {
        let (scale, bias) = scale_and_bias(group);
        if ![scale, bias].iter().all(|&x| convert::round(scale_dtype, x).is_finite()) {
            let (row, column) = (g * group_size / k, g * group_size % k);
            return Err(Error::Value(format!(
                "the group at row {row}, column {column} has scale {scale:e} and bias {bias:e}, beyond the range of {scale_dtype}"
            )));
        }
        for word in group.as_chunks::<8>().0 {
            // The codes are fitted to the scale and bias before these are rounded to their stored type.
            let code = |&w: &f32| ((w - bias) / scale).round_ties_even().clamp(0.0, 15.0) as u32;
            codes.push(word.iter().rev().map(code).fold(0, |word, code| word << 4 | code));
        }
        scales.push(scale);
        biases.push(bias);
    }
    let (scales, biases) = (convert::encode(scale_dtype, &scales), convert::encode(scale_dtype, &biases));
    Ok(Quantized { format, n, k, scale_dtype, codes, scales, biases })
}

fn float_scales(dtype: DType) -> Result<()> {
    if dtype.is_float() {
        Ok(())
    } else {
        Err(Error::Unsupported(format!("scales in {dtype}; they are f32, f16 or bf16")))
    }
}

/// Scale and bias of one group. The end of its range that lies farther from zero is represented exactly, and so is zero when it
/// lies inside the range; the scale is negative when that end is the positive one.
fn scale_and_bias(group: &[f32]) -> (f32, f32) {
    let min = group.iter().copied().fold(f32::INFINITY, f32::min);
    let max = group.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let magnitude = ((max - min) / 15.0).max(SMALLEST_SCALE);
    let (step, edge) = if min.abs() > max.abs() { (magnitude, min) } else { (-magnitude, max) };
    let steps = (edge / step).round_ties_even();
    if steps == 0.0 { (step, 0.0) } else { (edge / steps, edge) }
}

/// The weights `[n, k]`, row-major: scale · code + bias in f32, the product rounded before the sum.
pub fn dequantize(quantized: &Quantized) -> Vec<f32> {
    quantized.map_codes(|code, scale, bias| scale * f32::from(code) + bias)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: QuantFormat = QuantFormat::AFFINE4_G64;

    fn ramp() -> Vec<f32> {
        (0..64).map(|i| (i % 16) as f32).collect()
    }

    #[test]
    fn a_ramp_is_exact_with_a_negative_scale() {
        let q = quantize(&ramp(), 1, 64, FORMAT, DType::F32).unwrap();
        assert_eq!((q.scales_f32(), q.biases_f32()), (vec![-1.0], vec![15.0]));
        assert_eq!(q.codes[0], 0x89ab_cdef);
        assert_eq!(dequantize(&q), ramp());
    }

    #[test]
    fn rounding_error_stays_within_a_step() {
        let weights: Vec<f32> = (0..3 * 128).map(|i| (i as f32 * 0.7).sin()).collect();
        let q = quantize(&weights, 3, 128, FORMAT, DType::F32).unwrap();
        let scales = q.scales_f32();
        for (i, (w, d)) in weights.iter().zip(dequantize(&q)).enumerate() {
            // Moving an end of the range onto the grid costs up to half a step more at the other end.
            assert!((w - d).abs() <= 1.001 * scales[i / 64].abs(), "element {i}: {w} became {d}");
        }
    }

    #[test]
    fn weight_error_covers_fused_and_exact_arithmetic() {
        let weights: Vec<f32> = (0..256).map(|i| (i as f32 * 0.7).sin() + 0.3).collect();
        let q = quantize(&weights, 2, 128, FORMAT, DType::F32).unwrap();
        let unfused = dequantize(&q);
        let fused = q.map_codes(|code, scale, bias| scale.mul_add(f32::from(code), bias));
        assert_ne!(fused, unfused);
        for ((f, u), error) in fused.iter().zip(&unfused).zip(q.weight_error()) {
            assert!(f64::from(f - u).abs() <= error && error < 1e-6, "{f} and {u} within {error}");
        }
        // Scales that f16 holds as subnormals may be read as zero.
        let tiny: Vec<f32> = ramp().iter().map(|w| w * 2f32.powi(-20)).collect();
        let q = quantize(&tiny, 1, 64, FORMAT, DType::F16).unwrap();
        assert!(dequantize(&q).iter().zip(q.weight_error()).all(|(w, error)| f64::from(w.abs()) <= error));
    }

    #[test]
    fn bad_input_is_refused_with_its_numbers() {
        let refuse = |weights: &[f32], n, k, dtype| quantize(weights, n, k, FORMAT, dtype).unwrap_err();
        assert_eq!(
            refuse(&[0.0; 100], 1, 100, DType::F32).to_string(),
            "shape mismatch: K = 100 is not a multiple of the group size 64 of affine-4bit-g64"
        );
        assert!(matches!(refuse(&[0.0; 64], 2, 64, DType::F32), Error::Shape(text) if text.contains("128")));
        assert!(matches!(refuse(&[], usize::MAX, 64, DType::F32), Error::Overflow(_)));
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut weights = [0.0; 192];
            weights[70] = bad;
            assert!(
                matches!(refuse(&weights, 3, 64, DType::F32), Error::Value(text) if text.contains("70 (row 1, column 6)"))
            );
        }
        let mut wide = [f32::MAX; 64];
        wide[1] = f32::MIN;
        assert!(matches!(refuse(&wide, 1, 64, DType::F32), Error::Value(_)));
        assert!(matches!(refuse(&[0.0; 64], 1, 64, DType::I32), Error::Unsupported(text) if text.contains("i32")));
        assert!(matches!(refuse(&[1e6; 64], 1, 64, DType::F16), Error::Value(text) if text.contains("range of f16")));
    }

    #[test]
    fn parts_of_the_wrong_length_are_refused() {
        let parts = |words, scales, biases| {
            let (scales, biases) = (vec![0; scales], vec![0; biases]);
            Quantized::from_parts(FORMAT, 2, 128, DType::F16, vec![0; words], scales, biases)
        };
        let good = parts(32, 8, 8).unwrap();
        assert_eq!(dequantize(&good), [0.0; 256]);
        for (words, scales, biases, name) in [(31, 8, 8, "codes"), (32, 7, 8, "scales"), (32, 8, 16, "biases")] {
            assert!(matches!(parts(words, scales, biases), Err(Error::Shape(text)) if text.contains(name)));
        }
    }

    #[test]
    fn empty_matrices_are_legal() {
        for (n, k) in [(0, 64), (0, 0), (3, 0)] {
            let q = quantize(&[], n, k, FORMAT, DType::BF16).unwrap();
            assert!(q.codes.is_empty() && q.scales.is_empty() && dequantize(&q).is_empty());
        }
    }
}
