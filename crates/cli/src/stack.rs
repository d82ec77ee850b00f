//! Stacks: matrices of one shape, one after the other, from one or several arrays or quantized
//! weights.

use crate::array::{Array, Source, shape_text};
use crate::failure::{Failure, Result, dense};
use crate::product;
use std::ops::Range;
use tilewise::{Context, QuantizedTensor, RightOperand, Shards, Tensor};
use tilewise_core::problem::DType;
use tilewise_core::quant::{Quantized, dequantize};
use tilewise_files::{Expected, TensorKind};

/// A stack of matrices.
#[derive(Debug)]
pub(crate) struct Stack {
    held: Held,
    /// How many matrices there are, and the rows and columns that each has in storage.
    shape: [usize; 3],
}

#[derive(Debug)]
enum Held {
    Dense(Array),
    /// Each \[N,K\], which stands for its transpose.
    Quantized(Vec<Quantized>),
}

impl Stack {
    /// Reads a stack, or its parts; each part may be one matrix. If quantized weights may be in
    /// several formats, `k` decides.
    pub(crate) fn read(sources: &[Source], expected: &Expected, k: usize) -> Result<Self> {
        let mut whole: Option<(Stack, &Source)> = None;
        for source in sources {
            let part = Stack::part(source, expected, k)?;
            whole = Some(match whole {
                None => (part, source),
                Some((whole, first)) => (whole.and(part, [first, source])?, first),
            });
        }
        let (whole, _) = whole.ok_or_else(|| Failure::other("no matrices given"))?;
        Ok(whole)
    }

    /// Refuses options about formats when all stacks are dense.
    pub(crate) fn check_said(said: &Expected, stacks: &[(&Stack, &Source)]) -> Result<()> {
        match stacks {
            [(_, source), ..]
                if !said.is_empty() && stacks.iter().all(|(stack, _)| stack.dtype().is_some()) =>
            {
                Err(dense(source, said))
            }
            _ => Ok(()),
        }
    }

    fn part(source: &Source, expected: &Expected, k: usize) -> Result<Self> {
        let sized = |shape: &[usize]| match *shape {
            [matrices, rows, columns] => Ok([matrices, rows, columns]),
            [rows, columns] => Ok([1, rows, columns]),
            _ => Err(Failure::Other(format!(
                "{source}: shape {}; wanted a matrix, or a stack of them, [count, rows, columns]",
                shape_text(shape)
            ))),
        };
        if !source.is_npy() {
            let model = source.model()?;
            let quantized = match source.name() {
                Some(name) => Some(model.get(name)?),
                None => {
                    model.tensors().find(|tensor| !matches!(tensor.kind(), TensorKind::Dense(_)))
                }
            };
            if let Some(tensor) = quantized
                && matches!(tensor.kind(), TensorKind::Quantized(_) | TensorKind::Unclear(_))
            {
                let tensor = source.matrix(&model, expected, Some(k))?;
                // The shape of an unclear tensor is that of one of its parts.
                if let TensorKind::Unclear(error) = tensor.kind() {
                    return Err(error.clone().into());
                }
                let shape = sized(tensor.shape())?;
                if tensor.order()?.is_some() {
                    return Err(Failure::Other(format!(
                        "{source}: the columns are stored in another order (act-order); \
                         `tilewise convert` writes them in order"
                    )));
                }
                let [matrices, rows, _] = shape;
                let matrix = |at: usize| Ok(tensor.rows(at * rows..(at + 1) * rows)?);
                let all = (0..matrices).map(matrix).collect::<Result<_>>()?;
                return Ok(Stack { held: Held::Quantized(all), shape });
            }
        }
        let array = source.read()?;
        let shape = sized(&array.shape)?;
        Ok(Stack { held: Held::Dense(array), shape })
    }

    /// Joins the matrices of both stacks.
    fn and(self, other: Stack, [first, second]: [&Source; 2]) -> Result<Self> {
        let kinds = [self.kind(), other.kind()];
        let differ = || {
            let [one, two] = [&self.shape, &other.shape].map(|shape| shape_text(&shape[1..]));
            let [own, its] = &kinds;
            Failure::Other(format!(
                "{first} has matrices {one} of {own}, and {second} {two} of {its}; they must be \
                 alike"
            ))
        };
        if kinds[0] != kinds[1] || self.shape[1..] != other.shape[1..] {
            return Err(differ());
        }
        let matrices = self.shape[0] + other.shape[0];
        let shape = [matrices, self.shape[1], self.shape[2]];
        let held = match (self.held, other.held) {
            (Held::Dense(mut all), Held::Dense(more)) => {
                all.bytes.extend_from_slice(&more.bytes);
                Held::Dense(Array { shape: shape.to_vec(), ..all })
            }
            (Held::Quantized(mut all), Held::Quantized(more)) => {
                all.extend(more);
                Held::Quantized(all)
            }
            (held, _) => held,
        };
        Ok(Stack { held, shape })
    }

    /// The stack's type or format, in words.
    pub(crate) fn kind(&self) -> String {
        match self.format() {
            Some(tilewise_core::Format::Dense(dtype)) => dtype.to_string(),
            Some(tilewise_core::Format::Quantized(format)) => format.to_string(),
            None => "no format".to_owned(),
        }
    }

    /// The stack's type or format; none for quantized weights without matrices.
    pub(crate) fn format(&self) -> Option<tilewise_core::Format> {
        match &self.held {
            Held::Dense(array) => Some(tilewise_core::Format::Dense(array.dtype)),
            Held::Quantized(all) => {
                all.first().map(|first| tilewise_core::Format::Quantized(first.format()))
            }
        }
    }

    /// The type of its elements, if it is dense.
    pub(crate) fn dtype(&self) -> Option<DType> {
        if let Held::Dense(array) = &self.held { Some(array.dtype) } else { None }
    }

    /// How many matrices there are.
    pub(crate) fn matrices(&self) -> usize {
        self.shape[0]
    }

    /// Whether each matrix holds its transpose: quantized weights do, arrays if `arrays`.
    pub(crate) fn is_transposed(&self, arrays: bool) -> bool {
        arrays || matches!(self.held, Held::Quantized(_))
    }

    /// K and N of each matrix as B.
    pub(crate) fn k_and_n(&self, arrays_transposed: bool) -> [usize; 2] {
        let [_, rows, columns] = self.shape;
        if self.is_transposed(arrays_transposed) { [columns, rows] } else { [rows, columns] }
    }

    /// The right operand of a product. Arrays may hold transposed matrices.
    pub(crate) fn as_b(&self, context: &Context, arrays_transposed: bool) -> Result<RightOperand> {
        let b = self.on(context)?;
        Ok(if arrays_transposed { RightOperand::of_weights(b) } else { b })
    }

    /// Uploads the stack without transposing it, as shards if one buffer does not hold it.
    /// Quantized weights keep their shape, \[E,N,K\].
    pub(crate) fn on(&self, context: &Context) -> Result<RightOperand> {
        self.within(context, context.caps().max_buffer_bytes)
    }

    /// Like [`on`](Self::on), in buffers of at most `most` bytes, if these hold one matrix.
    pub(crate) fn within(&self, context: &Context, most: u64) -> Result<RightOperand> {
        let [matrices, rows, columns] = self.shape;
        let bytes = match &self.held {
            Held::Dense(array) => array.bytes.len() / matrices.max(1),
            Held::Quantized(all) => {
                let planes = all.first().map_or(&[][..], |first| first.planes());
                planes.iter().map(Vec::len).max().unwrap_or(0)
            }
        };
        let each = most.checked_div(bytes as u64).map_or(matrices, |each| each as usize).max(1);
        let shard = |first: usize| {
            let end = matrices.min(first.saturating_add(each));
            Ok(match &self.held {
                Held::Dense(array) => {
                    let part = &array.bytes[first * bytes..end * bytes];
                    let shape = [end - first, rows, columns];
                    Tensor::from_bytes(context, array.dtype, part, &shape)?.into()
                }
                Held::Quantized(all) => {
                    QuantizedTensor::upload_groups(context, &all[first..end])?.into()
                }
            })
        };
        if matrices <= each {
            return shard(0);
        }
        let shards =
            (0..matrices).step_by(each).map(shard).collect::<Result<Vec<RightOperand>>>()?;
        Ok(Shards::new(shards)?.into())
    }

    /// All elements, in the order of storage, and the error that a kernel may make in each.
    pub(crate) fn wide(&self, context: &Context, x: DType) -> Result<(Vec<f64>, Option<Vec<f64>>)> {
        Ok(match &self.held {
            Held::Dense(array) => (product::wide(array)?, None),
            Held::Quantized(all) => {
                let numbers = all.iter().flat_map(dequantize).map(f64::from).collect();
                let error = |one: &Quantized| product::weight_error(context, one, x);
                (numbers, Some(all.iter().flat_map(error).collect()))
            }
        })
    }
}

/// Transposes each of some matrices \[rows, columns\].
pub(crate) fn transposed(numbers: &[f64], [rows, columns]: [usize; 2]) -> Vec<f64> {
    let at: Range<usize> = 0..rows * columns;
    let of = |matrix: &[f64]| {
        at.clone().map(|i| matrix[i % rows * columns + i / rows]).collect::<Vec<_>>()
    };
    numbers.chunks_exact((rows * columns).max(1)).flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::product::Measured;
    use tilewise::{Gemm, GroupEnds};
    use tilewise_core::QuantFormat;
    use tilewise_core::quant::quantize;
    use tilewise_oracle::Inputs;

    /// Checks that a stack which one buffer does not hold comes in shards, with the results of the
    /// whole.
    #[test]
    fn buffers_of_any_size_hold_a_stack() {
        let context = Context::cpu();
        let numbers = |count: usize| (0..count).map(|i| (i * 7 % 11) as f32 - 5.0);
        let bytes = numbers(5 * 32 * 2).flat_map(f32::to_le_bytes).collect();
        let dense = Array { dtype: DType::F32, shape: vec![5, 32, 2], bytes };
        let weights =
            |i| quantize(&numbers(64 + i).collect::<Vec<_>>()[i..], 2, 32, QuantFormat::Q8_0);
        let weights = (0..5).map(|i| weights(i).unwrap()).collect();
        let x: Vec<f32> = numbers(9 * 32).collect();
        let x = Tensor::upload(&context, &x, &[9, 32]).unwrap();
        let entries =
            Tensor::upload(&context, &numbers(5 * 4 * 32).collect::<Vec<_>>(), &[5, 4, 32]);
        let entries = entries.unwrap();
        let ends = [2, 2, 3, 7, 8];
        let offsets = GroupEnds::upload(&context, &ends).unwrap();
        for (held, shape, matrix) in
            [(Held::Dense(dense), [5, 32, 2], 256), (Held::Quantized(weights), [5, 2, 32], 64)]
        {
            let stack = Stack { held, shape };
            let (wide, b_error) = stack.wide(&context, DType::F32).unwrap();
            for (most, shards) in [(5 * matrix, 1), (5 * matrix - 1, 2), (2 * matrix, 3), (1, 5)] {
                let b = stack.within(&context, most).unwrap();
                let gemm = Gemm::grouped(&x, b.clone(), &offsets);
                assert_eq!(gemm.plans().unwrap().len(), shards, "{most}");
                let inputs = Inputs {
                    a: &numbers(9 * 32).map(f64::from).collect::<Vec<_>>(),
                    b: &wide,
                    b_error: b_error.as_deref(),
                    offsets: &ends,
                    ..Inputs::default()
                };
                Measured::run(&context, &gemm).unwrap().check(&inputs).unwrap();

                let counts = Tensor::upload(&context, &[3u32, 0, 2, 4, 1], &[5]).unwrap();
                // One A for all.
                let first = entries.narrow(0, 0, 1).unwrap();
                let gemm = Gemm::masked(&first, b.clone(), &counts);
                let one = Inputs {
                    a: &numbers(4 * 32).map(f64::from).collect::<Vec<_>>(),
                    offsets: &[3, 0, 2, 4, 1],
                    ..inputs
                };
                Measured::run(&context, &gemm).unwrap().check(&one).unwrap();

                let gemm = Gemm::masked(&entries, b, &counts);
                assert_eq!(gemm.plans().unwrap().len(), shards, "{most}");
                let inputs =
                    Inputs { a: &numbers(5 * 4 * 32).map(f64::from).collect::<Vec<_>>(), ..one };
                let mut measured = Measured::run(&context, &gemm).unwrap();
                measured.check(&inputs).unwrap();
                measured.array.bytes[3 * 2 * 4] = 1;
                let found = measured.check(&inputs).unwrap_err().line().unwrap();
                assert!(found.contains("row 3 of C belongs to no group"), "{found}");
            }
        }
    }
}
