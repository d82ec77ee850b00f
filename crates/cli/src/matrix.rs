//! A matrix W \[N,K\] of a model.

use crate::array::{Array, Source, shape_text};
use crate::failure::Failure;
use crate::target::Target;
use std::ops::Range;
use tilewise_core::convert::decode;
use tilewise_core::quant::dequantize;
use tilewise_core::{Error, Result};
use tilewise_files::{Chunk, Expected, Model, Sink, TensorKind, TensorView};

/// Weights that are dequantized at a time.
const CHUNK: usize = 4 << 20;

/// A matrix, or a stack of matrices as one matrix with all their rows.
pub(crate) struct Matrix<'m> {
    weights: Weights<'m>,
    /// Name of the weights in errors.
    shown: String,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Stored column i is column `order[i]` of W.
    order: Option<Vec<u32>>,
}

enum Weights<'m> {
    /// A tensor of a file that is mapped into memory.
    Tensor(TensorView<'m>),
    Array(Array),
}

impl<'m> Matrix<'m> {
    /// An array [N,K] or [E,N,K] that was read from `source`.
    pub(crate) fn of_array(array: Array, source: &Source) -> std::result::Result<Self, Failure> {
        let (n, k) = match *array.shape {
            [n, k] => (n, k),
            // No overflow: the array is in memory, or has no elements.
            [matrices, n, k] => (matrices.saturating_mul(n), k),
            _ => {
                let shape = shape_text(&array.shape);
                return Err(Failure::Other(format!(
                    "{source}: shape {shape}; weights are a matrix [N,K] or a stack [E,N,K]"
                )));
            }
        };
        Ok(Matrix { weights: Weights::Array(array), shown: source.to_string(), n, k, order: None })
    }

    /// Describes a tensor of numbers, quantized or not.
    pub(crate) fn of(tensor: &TensorView<'m>) -> Result<Self> {
        if !matches!(tensor.kind(), TensorKind::Quantized(_)) {
            tensor.dense()?;
        }
        let (n, k) = tensor.matrix()?;
        let shown = format!("{}: {}", tensor.file(), tensor.name());
        Ok(Matrix { weights: Weights::Tensor(tensor.clone()), shown, n, k, order: tensor.order()? })
    }

    /// The rows in strips, each of a size that memory holds easily.
    pub(crate) fn strips(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        // Without columns there may be any number of rows, and nothing in them.
        let n = if self.k == 0 { 0 } else { self.n };
        let rows = (CHUNK / self.k.max(1)).max(1);
        (0..n).step_by(rows).map(move |first| first..(first + rows).min(n))
    }

    /// Some rows in f32, with the columns in W's order.
    pub(crate) fn rows(&self, rows: Range<usize>) -> Result<Vec<f32>> {
        let (dtype, bytes) = match &self.weights {
            Weights::Tensor(tensor) if matches!(tensor.kind(), TensorKind::Quantized(_)) => {
                return Ok(self.sorted(dequantize(&tensor.rows(rows)?)));
            }
            Weights::Tensor(tensor) => tensor.dense()?,
            Weights::Array(array) => (array.dtype, &*array.bytes),
        };
        let row = self.k * dtype.bytes() as usize;
        Ok(self.sorted(decode(dtype, &bytes[rows.start * row..rows.end * row])?))
    }

    /// Some rows with the columns in W's order.
    fn sorted(&self, stored: Vec<f32>) -> Vec<f32> {
        let Some(order) = &self.order else { return stored };
        let mut sorted = vec![0.0; stored.len()];
        for (stored, sorted) in stored.chunks_exact(self.k).zip(sorted.chunks_exact_mut(self.k)) {
            stored
                .iter()
                .zip(order)
                .for_each(|(weight, &column)| sorted[column as usize] = *weight);
        }
        sorted
    }

    /// Gives `sink` the planes of the matrix in another format, some rows at a time. `each` gets
    /// the rows before and after.
    pub(crate) fn transcode(
        &self,
        target: Target,
        sink: &mut Sink<'_>,
        each: &mut dyn FnMut(Stored<'_>) -> Result<()>,
    ) -> Result<()> {
        let mut done = vec![0; target.planes()];
        for rows in self.strips() {
            let (first, count) = (rows.start, rows.len());
            let values = self.rows(rows)?;
            let stored = target.store(&values, count, self.k);
            let (planes, restored) =
                stored.map_err(|error| self.located(target, &values, first, error))?;
            each(Stored { first, values: &values, planes: &planes, restored: &restored })?;
            for (plane, bytes) in planes.iter().enumerate() {
                sink(Chunk { plane, offset: done[plane], bytes })?;
                done[plane] += bytes.len() as u64;
            }
        }
        Ok(())
    }

    /// The error of some rows from `first` on, with the number of the row in its matrix. To find
    /// the row, each is stored alone; its error then says row 0, which is replaced.
    fn located(&self, target: Target, values: &[f32], first: usize, error: Error) -> Error {
        let refused = |(i, row)| Some((first + i, target.store(row, 1, self.k).err()?));
        match values.chunks_exact(self.k).enumerate().find_map(refused) {
            Some((row, Error::Misuse(why))) => {
                let shape = match &self.weights {
                    Weights::Tensor(tensor) => tensor.shape(),
                    Weights::Array(array) => &array.shape,
                };
                let (matrix, row) = match *shape {
                    [_, each, _] => (format!("matrix {}: ", row / each), row % each),
                    _ => (String::new(), row),
                };
                let why = why.replacen("row 0", &format!("row {row}"), 1);
                Error::Misuse(format!("{}: {matrix}{why}", self.shown))
            }
            _ => error,
        }
    }
}

/// Some rows in a new format.
pub(crate) struct Stored<'a> {
    /// The number of the first.
    pub(crate) first: usize,
    /// The weights before.
    pub(crate) values: &'a [f32],
    pub(crate) planes: &'a [Vec<u8>],
    /// The weights that the planes give.
    pub(crate) restored: &'a [f32],
}

/// Passes on what the arguments say of formats. It is an error if no tensor has such a format and
/// no tensor leaves its format open: the arguments were meant for another file.
pub(crate) fn meant(
    model: &Model,
    expected: Expected,
    source: &Source,
) -> std::result::Result<Expected, Failure> {
    let may_be = |tensor: TensorView<'_>| match tensor.kind() {
        TensorKind::Unclear(_) => true,
        TensorKind::Quantized(_) => model.get_as(tensor.name(), &expected).is_ok(),
        _ => false,
    };
    if expected.is_empty() || model.tensors().any(may_be) {
        return Ok(expected);
    }
    let text = "no tensor has that format, and none leaves its format open";
    Err(Failure::Other(format!(
        "{}: the arguments say {expected}; {text}",
        source.path().display()
    )))
}

/// X with its columns in the order in which W's columns are stored.
pub(crate) fn activations(order: Option<Vec<u32>>, x: Array) -> Array {
    // The product refuses an X with another number of columns.
    let Some(order) = order.filter(|order| x.shape.last() == Some(&order.len())) else { return x };
    let size = x.dtype.bytes() as usize;
    let mut bytes = Vec::with_capacity(x.bytes.len());
    for row in x.bytes.chunks_exact((order.len() * size).max(1)) {
        order
            .iter()
            .for_each(|&column| bytes.extend_from_slice(&row[column as usize * size..][..size]));
    }
    Array { bytes, ..x }
}

/// The name of the layer whose weights have this name.
pub(crate) fn prefix(name: &str) -> &str {
    name.strip_suffix(".weight").unwrap_or(name)
}

/// The name under which a tensor's weights are stored as numbers.
pub(crate) fn weight_name(name: &str) -> String {
    match prefix(name) {
        "" => "weight".to_owned(),
        prefix => format!("{prefix}.weight"),
    }
}

/// How far weights lie from their codes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Deviation {
    differences: f64,
    norm: f64,
    /// The largest difference; infinite if a finite weight became infinite or NaN.
    pub(crate) largest: f64,
    /// All weights.
    pub(crate) weights: u64,
    /// Weights that were infinite or NaN before. No difference counts them.
    pub(crate) undefined: u64,
    /// Finite weights that became infinite or NaN.
    pub(crate) beyond: u64,
}

impl Deviation {
    /// This deviation with more weights.
    #[must_use]
    pub(crate) fn and(mut self, values: &[f32], restored: &[f32]) -> Self {
        for (&value, &restored) in values.iter().zip(restored) {
            self.weights += 1;
            if !value.is_finite() {
                self.undefined += 1;
                continue;
            }
            // A weight that became NaN is infinitely far off, too.
            let difference = match restored.is_finite() {
                true => (f64::from(restored) - f64::from(value)).abs(),
                false => f64::INFINITY,
            };
            self.beyond += u64::from(!restored.is_finite());
            self.differences += difference * difference;
            self.norm += f64::from(value) * f64::from(value);
            self.largest = self.largest.max(difference);
        }
        self
    }

    /// ‖restored − values‖ / ‖values‖, in the Frobenius norm; 0 for no difference.
    pub(crate) fn relative(&self) -> f64 {
        if self.differences == 0.0 { 0.0 } else { (self.differences / self.norm).sqrt() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewise_core::problem::DType;

    #[test]
    fn deviations_are_relative_and_infinities_no_surprise() {
        let none = Deviation::default()
            .and(&[1.0, f32::INFINITY, f32::NAN], &[1.0, f32::INFINITY, f32::NAN]);
        assert_eq!((none.relative(), none.largest, none.undefined, none.beyond), (0.0, 0.0, 2, 0));
        let some = Deviation::default().and(&[3.0], &[3.0]).and(&[-4.0], &[-3.5]);
        assert_eq!((some.relative(), some.largest), (0.1, 0.5));
        for restored in [f32::INFINITY, f32::NAN] {
            let beyond = Deviation::default().and(&[1e5, f32::INFINITY], &[restored; 2]);
            assert_eq!((beyond.relative(), beyond.largest), (f64::INFINITY, f64::INFINITY));
            assert_eq!((beyond.weights, beyond.undefined, beyond.beyond), (2, 1, 1));
        }
    }

    #[test]
    fn activations_follow_the_columns() {
        let order = || Some(vec![2, 0, 1]);
        let x = |bytes: &[u8], columns| Array {
            dtype: DType::F16,
            shape: vec![1, columns],
            bytes: bytes.to_vec(),
        };
        assert_eq!(activations(order(), x(&[0, 1, 2, 3, 4, 5], 3)), x(&[4, 5, 0, 1, 2, 3], 3));
        assert_eq!(activations(order(), x(&[0, 1], 1)), x(&[0, 1], 1));
    }
}
