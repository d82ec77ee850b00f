//! A matrix in a quantized format, on the host.

use super::{Plane, QuantFormat};
use crate::dtype::DType;
use crate::error::{Error, Result};

/// A quantized matrix `[n, k]`. Made by [`quantize`] or [`Quantized::from_planes`], which see to it
/// that the lengths agree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quantized {
    format: QuantFormat,
    n: usize,
    k: usize,
    planes: Vec<Vec<u8>>,
}

impl Quantized {
    /// Puts together planes that were read from elsewhere, little-endian, in the order of
    /// [`QuantFormat::planes`].
    ///
    /// # Errors
    /// As [`QuantFormat::sizes`]; `Shape` for another number of planes, or one of another length.
    pub fn from_planes(format: QuantFormat, n: usize, k: usize, planes: Vec<Vec<u8>>) -> Result<Self> {
        let sizes = format.sizes(n, k)?;
        if planes.len() != sizes.len() {
            return Err(Error::Shape(format!("{format} has {} planes, there are {}", sizes.len(), planes.len())));
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
        Ok(Quantized { format, n, k, planes })
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
    pub fn weight_error(&self) -> Vec<f64> {
        let mut errors = vec![0.0; self.n * self.k];
        self.format.each_block(&self.slices(), &mut errors, |block, out| self.format.def().codec.error(block, out));
        errors
    }

    /// The same for a kernel that rounds weights to the type of the activations, as kernels on Apple's
    /// simdgroup matrices do ([`staged`](crate::cost::staged)). A weight beyond that type's range
    /// becomes an infinity, which no error covers.
    pub fn rounded_error(&self, to: DType) -> Vec<f64> {
        let smallest = if to == DType::F16 { 2.0f64.powi(-25) } else { f64::from(f32::MIN_POSITIVE) };
        let rounding = |w: f32, error: f64| error + to.unit_roundoff() * (f64::from(w.abs()) + error) + smallest;
        dequantize(self).into_iter().zip(self.weight_error()).map(|(w, error)| rounding(w, error)).collect()
    }

    /// How far [`quantize`] leaves a weight from its element, at most: a number per block.
    pub fn steps(&self) -> Vec<f64> {
        let mut errors = vec![0.0; self.n * self.k];
        self.format.each_block(&self.slices(), &mut errors, |block, out| out[0] = self.format.def().codec.step(block));
        errors.into_iter().step_by(self.format.block() as usize).collect()
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
    pub fn decode(self, planes: &[&[u8]], out: &mut [f32]) {
        self.each_block(planes, out, |block, out| self.def().codec.decode(block, out));
    }

    /// Calls `f` with the bytes of every block and its part of `out`.
    fn each_block<T>(self, planes: &[&[u8]], out: &mut [T], f: impl Fn(&[&[u8]], &mut [T])) {
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
    pub fn encode_blocks(
        self,
        blocks: usize,
        mut f: impl FnMut(usize, &mut [&mut [u8]]) -> Result<()>,
    ) -> Result<Vec<Vec<u8>>> {
        let mut planes: Vec<_> = self.planes().iter().map(|plane| vec![0; blocks * plane.bytes as usize]).collect();
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
/// As [`QuantFormat::sizes`]; `Shape` when there are not n·k weights; `Value` for a weight that is NaN
/// or infinite, and for a block whose range the format does not hold.
pub fn quantize(weights: &[f32], n: usize, k: usize, format: QuantFormat) -> Result<Quantized> {
    format.sizes(n, k)?;
    if weights.len() != n * k {
        return Err(Error::Shape(format!("weights of {n} by {k} are {} elements, there are {}", n * k, weights.len())));
    }
    if let Some(i) = weights.iter().position(|w| !w.is_finite()) {
        return Err(Error::Value(format!("weight {i} (row {}, column {}) is {}", i / k, i % k, weights[i])));
    }
    let size = format.block() as usize;
    let planes = format.encode_blocks(weights.len() / size, |i, block| {
        let own = &weights[i * size..(i + 1) * size];
        format.def().codec.encode(own, block).map_err(|why| {
            let (row, column) = (i * size / k, i * size % k);
            Error::Value(format!("the block at row {row}, column {column}: {why}"))
        })
    })?;
    Ok(Quantized { format, n, k, planes })
}

/// The weights `[n, k]`, row-major, computed in f32.
pub fn dequantize(quantized: &Quantized) -> Vec<f32> {
    let mut out = vec![0.0; quantized.n * quantized.k];
    quantized.format.decode(&quantized.slices(), &mut out);
    out
}
