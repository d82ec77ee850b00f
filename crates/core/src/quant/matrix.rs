//! A matrix in a quantized format, on the host.

use super::{Encoder, Plane, QuantFormat};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// A quantized matrix `[n, k]`. [`quantize`] and [`Quantized::from_planes`] make it, and see to it
/// that the lengths agree.
#[derive(Clone, Debug, PartialEq)]
pub struct Quantized {
    format: QuantFormat,
    n: usize,
    k: usize,
    planes: Vec<Vec<u8>>,
    factor: f32,
}

impl Quantized {
    /// Puts together planes that were read from elsewhere, little-endian, in the order of
    /// [`QuantFormat::planes`].
    ///
    /// # Errors
    /// The errors of [`QuantFormat::sizes`]; [`Shape`](crate::Error) for another number of planes,
    /// or one of another length.
    pub fn from_planes(
        format: QuantFormat,
        n: usize,
        k: usize,
        planes: Vec<Vec<u8>>,
    ) -> Result<Self> {
        let sizes = format.sizes(n, k)?;
        if planes.len() != sizes.len() {
            return Err(Error::Shape(format!(
                "{format} has {} planes, there are {}",
                sizes.len(),
                planes.len()
            )));
        }
        for ((plane, held), needed) in format.planes().iter().zip(&planes).zip(sizes) {
            if held.len() != needed {
                let Plane { name, .. } = plane;
                return Err(Error::Shape(format!(
                    "{format} weights of {n} by {k} take {needed} bytes of {name}, there are {}",
                    held.len()
                )));
            }
        }
        Ok(Quantized { format, n, k, planes, factor: 1.0 })
    }

    /// These weights times `factor`: the scale of the whole matrix that nvfp4 may have. MLX's
    /// `global_scale` is 2688 times it.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error) for a format that has none, `Misuse` for a factor that is not
    /// finite.
    pub fn with_factor(self, factor: f32) -> Result<Self> {
        self.format.admit_factor(factor)?;
        Ok(Quantized { factor, ..self })
    }

    /// The weights `[n, k]`, row-major, computed in f32: as [`dequantize`].
    pub fn dequantize(&self) -> Vec<f32> {
        dequantize(self)
    }

    /// The factor of the whole matrix; 1 for formats that have none.
    pub fn factor(&self) -> f32 {
        self.factor
    }

    /// Weights `[n, k]` from the blocks of a GGUF file, row after row.
    ///
    /// # Errors
    /// The errors of [`QuantFormat::sizes`]; [`Shape`](crate::Error) for another number of bytes;
    /// `Unsupported` for a format that GGUF does not have.
    pub fn from_blocks(format: QuantFormat, n: usize, k: usize, blocks: &[u8]) -> Result<Self> {
        let needed = format.sizes(n, k)?.into_iter().try_fold(0usize, usize::checked_add);
        let needed = needed
            .ok_or_else(|| Error::Shape(format!("overflow: {format} weights of {n} by {k}")))?;
        if blocks.len() != needed {
            let held = blocks.len();
            return Err(Error::Shape(format!(
                "{format} weights of {n} by {k} take {needed} bytes, there are {held}"
            )));
        }
        let mut planes = vec![Vec::new(); format.planes().len()];
        format.split_blocks(blocks, &mut planes)?;
        Ok(Quantized { format, n, k, planes, factor: 1.0 })
    }

    /// The blocks of a GGUF file, row after row: [`from_blocks`](Self::from_blocks) takes them.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error) for a format that GGUF does not have.
    pub fn to_blocks(&self) -> Result<Vec<u8>> {
        self.format.in_gguf()?;
        let mut blocks = Vec::with_capacity(self.planes.iter().map(Vec::len).sum());
        let none: &mut [()] = &mut vec![(); self.n * self.k];
        self.format.each_block(&self.slices(), none, |block, _| blocks.extend(block.concat()));
        Ok(blocks)
    }

    /// Random codes `[n, k]`, with scales that keep the weights about as large as 1. `random` gives
    /// 32 bits at a time.
    ///
    /// # Errors
    /// The errors of [`QuantFormat::sizes`].
    #[doc(hidden)]
    pub fn sample(
        format: QuantFormat,
        n: usize,
        k: usize,
        mut random: impl FnMut() -> u32,
    ) -> Result<Self> {
        format.sizes(n, k)?;
        let planes = format.encode_blocks(n * k / format.block() as usize, |_, block| {
            format.def().codec.sample(&mut random, block);
            Ok(())
        })?;
        Ok(Quantized { format, n, k, planes, factor: 1.0 })
    }

    /// Its format.
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

    /// The bytes of its planes.
    pub fn planes(&self) -> &[Vec<u8>] {
        &self.planes
    }

    /// How far a kernel's dequantized weight may lie from [`dequantize`]'s, element by element.
    /// Infinite if a number on the way is beyond f32 in one order of the arithmetic and not in
    /// another.
    #[doc(hidden)]
    pub fn weight_error(&self) -> Vec<f64> {
        let mut errors = vec![0.0; self.n * self.k];
        self.format.each_block(&self.slices(), &mut errors, |block, out| {
            self.format.def().codec.error(block, out)
        });
        if self.factor != 1.0 {
            // The factor adds two roundings, here and in a kernel's alpha.
            let u = 4.0 * DType::F32.unit_roundoff();
            let weights = dequantize(self);
            errors.iter_mut().zip(weights).for_each(|(error, w)| {
                *error = *error * f64::from(self.factor.abs())
                    + u * f64::from(w.abs())
                    + f64::from(f32::MIN_POSITIVE);
            });
        }
        errors
    }

    /// How far [`quantize`] leaves a weight from its element, at most: a number per block. 0 for
    /// formats that it does not make.
    #[doc(hidden)]
    pub fn steps(&self) -> Vec<f64> {
        let mut errors = vec![0.0; self.n * self.k];
        let step =
            |block: &[&[u8]]| self.format.def().encoder.map_or(0.0, |encoder| encoder.step(block));
        self.format.each_block(&self.slices(), &mut errors, |block, out| out[0] = step(block));
        let factor = f64::from(self.factor.abs());
        errors.into_iter().step_by(self.format.block() as usize).map(|step| step * factor).collect()
    }

    fn slices(&self) -> Vec<&[u8]> {
        self.planes.iter().map(Vec::as_slice).collect()
    }
}

impl QuantFormat {
    /// Fills `out`, a whole number of blocks, from the planes that begin with them.
    ///
    /// # Panics
    /// When a plane is shorter than `out`.
    #[doc(hidden)]
    pub fn decode(self, planes: &[&[u8]], out: &mut [f32]) {
        self.def().codec.decode_all(self.def(), planes, out);
    }

    /// Takes `blocks`, whole blocks of a GGUF file, apart and appends them to `planes`.
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error) for a format that GGUF does not have; `Shape` if the last
    /// block is not whole.
    #[doc(hidden)]
    pub fn split_blocks(self, blocks: &[u8], planes: &mut [Vec<u8>]) -> Result<()> {
        self.in_gguf()?;
        let size = self.block_bytes() as usize;
        if !blocks.len().is_multiple_of(size) {
            let bytes = blocks.len();
            return Err(Error::Shape(format!(
                "{bytes} bytes are not whole blocks of {self}, {size} bytes each"
            )));
        }
        for mut block in blocks.chunks_exact(size) {
            for (plane, bytes) in self.planes().iter().zip(planes.iter_mut()) {
                bytes.extend(
                    block
                        .split_off(..plane.bytes as usize)
                        .expect("a block is as long as its parts"),
                );
            }
        }
        Ok(())
    }

    /// Whether a matrix may have this factor ([`Quantized::with_factor`]).
    ///
    /// # Errors
    /// [`Unsupported`](crate::Error) for a format that has none, `Misuse` for a factor that is not
    /// finite.
    pub fn admit_factor(self, factor: f32) -> Result<()> {
        if self.def().factor_of.is_none() {
            return Err(Error::Unsupported(format!("{self} has no factor for a whole matrix")));
        }
        if !factor.is_finite() {
            return Err(Error::Misuse(format!(
                "the factor of a matrix must be finite, it is {factor}"
            )));
        }
        Ok(())
    }

    fn in_gguf(self) -> Result<()> {
        self.gguf()
            .map(drop)
            .ok_or_else(|| Error::Unsupported(format!("{self} is no format of GGUF")))
    }

    /// Calls `f` with the bytes of every block and its share of `out`.
    fn each_block<T>(self, planes: &[&[u8]], out: &mut [T], mut f: impl FnMut(&[&[u8]], &mut [T])) {
        let mut block: Vec<&[u8]> = Vec::with_capacity(planes.len());
        for (i, out) in out.chunks_exact_mut(self.block() as usize).enumerate() {
            block.clear();
            block.extend(self.planes().iter().zip(planes).map(|(plane, bytes)| {
                let size = plane.bytes as usize;
                &bytes[i * size..(i + 1) * size]
            }));
            f(&block, out);
        }
    }

    /// The planes of `blocks` blocks, each written by `f`, which is given its number.
    ///
    /// # Errors
    /// The first of `f`'s.
    #[doc(hidden)]
    pub fn encode_blocks(
        self,
        blocks: usize,
        mut f: impl FnMut(usize, &mut [&mut [u8]]) -> Result<()>,
    ) -> Result<Vec<Vec<u8>>> {
        let mut planes: Vec<_> =
            self.planes().iter().map(|plane| vec![0; blocks * plane.bytes as usize]).collect();
        for i in 0..blocks {
            let mut block: Vec<&mut [u8]> = Vec::with_capacity(planes.len());
            for (plane, bytes) in self.planes().iter().zip(&mut planes) {
                block.push(&mut bytes[i * plane.bytes as usize..][..plane.bytes as usize]);
            }
            f(i, &mut block)?;
        }
        Ok(planes)
    }
}

/// Quantizes `weights`, a row-major matrix `[n, k]`. Weights of a 16-bit type are given widened.
///
/// # Errors
/// The errors of [`QuantFormat::sizes`]; [`Unsupported`](crate::Error) for a format that is only
/// read ([`QuantFormat::quantizes`]); `Shape` when there are not n·k weights; `Misuse` for a weight
/// that is NaN or infinite, and for a block whose range the format does not hold.
pub fn quantize(weights: &[f32], n: usize, k: usize, format: QuantFormat) -> Result<Quantized> {
    encoded(weights, n, k, format, |encoder, own, block| encoder.encode(own, block))
}

/// Like [`quantize`], under a factor of the whole matrix. With it, `largest`, the magnitude of the
/// largest weight, becomes the largest number that the format holds. MLX's `quantize` with a
/// `global_scale` does the same.
///
/// # Errors
/// The errors of [`quantize`]; [`Unsupported`](crate::Error) for a format without such a factor,
/// `Misuse` for a `largest` that is not positive and finite.
pub fn quantize_to(
    weights: &[f32],
    n: usize,
    k: usize,
    format: QuantFormat,
    largest: f32,
) -> Result<Quantized> {
    let Some(most) = format.def().factor_of else {
        return Err(Error::Unsupported(format!("{format} has no factor for a whole matrix")));
    };
    if !(largest > 0.0 && largest.is_finite()) {
        return Err(Error::Misuse(format!(
            "the largest weight is given as {largest}, not above 0 and finite"
        )));
    }
    let inverse = most / largest;
    if !inverse.is_finite() {
        return Err(Error::Misuse(format!(
            "the largest weight is {largest:e}, too small for a factor"
        )));
    }
    encoded(weights, n, k, format, |encoder, own, block| encoder.encode_by(inverse, own, block))?
        .with_factor(largest / most)
}

fn encoded(
    weights: &[f32],
    n: usize,
    k: usize,
    format: QuantFormat,
    encode: impl Fn(&dyn Encoder, &[f32], &mut [&mut [u8]]) -> std::result::Result<(), String>,
) -> Result<Quantized> {
    format.sizes(n, k)?;
    let encoder = format.def().encoder.ok_or_else(|| {
        Error::Unsupported(format!(
            "weights are not quantized to {format}; it is only read and multiplied with"
        ))
    })?;
    if weights.len() != n * k {
        return Err(Error::Shape(format!(
            "weights of {n} by {k} are {} elements, there are {}",
            n * k,
            weights.len()
        )));
    }
    if let Some(i) = weights.iter().position(|w| !w.is_finite()) {
        return Err(Error::Misuse(format!(
            "the weight in row {}, column {} is {}",
            i / k,
            i % k,
            weights[i]
        )));
    }
    let size = format.block() as usize;
    let planes = format.encode_blocks(weights.len() / size, |i, block| {
        encode(encoder, &weights[i * size..(i + 1) * size], block).map_err(|why| {
            let (row, column) = (i * size / k, i * size % k);
            Error::Misuse(format!("the block at row {row}, column {column}: {why}"))
        })
    })?;
    Ok(Quantized { format, n, k, planes, factor: 1.0 })
}

/// The weights `[n, k]`, row-major, computed in f32.
pub fn dequantize(quantized: &Quantized) -> Vec<f32> {
    let mut out = vec![0.0; quantized.n * quantized.k];
    let Quantized { format, factor, .. } = *quantized;
    if factor == 1.0 {
        format.decode(&quantized.slices(), &mut out);
    } else {
        format.each_block(&quantized.slices(), &mut out, |block, out| {
            format.def().codec.decode_by(factor, block, out)
        });
    }
    out
}
