//! Shapes and strides as kernels walk through them: broadcast, and with as few axes as possible.

use crate::tensor::Tensor;
use smallvec::{SmallVec, smallvec};
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// One number per axis.
pub(super) type Sizes = SmallVec<[usize; 8]>;

/// The most axes that an operation takes.
const MAX_RANK: usize = 8;

/// `Shape` for a tensor of too many dimensions, `Unsupported` if its elements are not floats.
pub(super) fn float(operation: &str, name: &str, tensor: &Tensor) -> Result<()> {
    of_type(&format!("{operation}: {name} is"), tensor.dtype(), &DType::FLOATS)?;
    rank(operation, name, tensor)
}

/// `Unsupported` if a type is none of `wanted`. `is` names the tensor, with the verb, for the
/// message.
pub(crate) fn of_type(is: &str, dtype: DType, wanted: &[DType]) -> Result<()> {
    if wanted.contains(&dtype) {
        return Ok(());
    }
    let names: Vec<_> = wanted.iter().map(|wanted| wanted.name()).collect();
    Err(Error::Unsupported(format!("{is} {dtype}, wanted one of {}", names.join(", "))))
}

/// `Shape` for a tensor of too many dimensions.
pub(super) fn rank(operation: &str, name: &str, tensor: &Tensor) -> Result<()> {
    match tensor.shape().len() {
        ..=MAX_RANK => Ok(()),
        rank => Err(Error::Shape(format!(
            "{operation}: {name} has {rank} dimensions, at most {MAX_RANK} are possible"
        ))),
    }
}

/// `Unsupported` for a tensor that is not u32.
pub(super) fn words(operation: &str, name: &str, tensor: &Tensor) -> Result<()> {
    tensor.must_be_u32(format_args!("{operation}: {name}"))
}

/// `Unsupported` for a tensor that is not u32, `Shape` if it is no vector or has another length
/// than wanted.
pub(super) fn vector(
    operation: &str,
    name: &str,
    tensor: &Tensor,
    length: Option<usize>,
) -> Result<()> {
    let shape = tensor.shape();
    words(operation, name, tensor)?;
    match (shape, length) {
        (&[_], None) => Ok(()),
        (&[own], Some(length)) if own == length => Ok(()),
        (_, None) => {
            Err(Error::Shape(format!("{operation}: {name} has shape {shape:?}, wanted a vector")))
        }
        (_, Some(length)) => {
            Err(Error::Shape(format!("{operation}: {name} has shape {shape:?}, wanted [{length}]")))
        }
    }
}

/// Strides of a tensor that is broadcast to a shape, after numpy's rules: a size of 1, or a missing
/// axis, is repeated. `None` if sizes differ.
pub(super) fn broadcast(tensor: &Tensor, shape: &[usize]) -> Option<Sizes> {
    let missing = shape.len().checked_sub(tensor.shape().len())?;
    let mut strides: Sizes = smallvec![0; missing];
    let axes = tensor.shape().iter().zip(tensor.strides()).zip(&shape[missing..]);
    for ((&own, &stride), &size) in axes {
        match own {
            1 => strides.push(0),
            _ if own == size => strides.push(stride),
            _ => return None,
        }
    }
    Some(strides)
}

/// The part of a tensor for a range along an axis of the shape, of `rank` axes, to which the tensor
/// is broadcast.
pub(super) fn part_of(
    tensor: &Tensor,
    rank: usize,
    axis: usize,
    range: &Range<usize>,
) -> Result<Tensor> {
    match (axis + tensor.shape().len()).checked_sub(rank) {
        Some(own) if tensor.shape()[own] > 1 => tensor.narrow(own, range.start, range.len()),
        _ => Ok(tensor.clone()),
    }
}

/// A shape, and the strides of several tensors in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Axes<const N: usize> {
    pub(super) shape: Sizes,
    pub(super) strides: [Sizes; N],
}

impl<const N: usize> Axes<N> {
    /// The fewest axes that give the elements in the same order: axes of one element are left out,
    /// and neighbouring axes are joined if every tensor's strides allow it.
    pub(super) fn collapsed(&self) -> Self {
        let mut few = Axes { shape: Sizes::new(), strides: std::array::from_fn(|_| Sizes::new()) };
        for (axis, &size) in self.shape.iter().enumerate() {
            if size == 1 {
                continue;
            }
            let stride = |of: usize| self.strides[of][axis];
            let walked = |of: usize| {
                few.strides[of]
                    .last()
                    .is_some_and(|&outer| outer == stride(of).saturating_mul(size))
            };
            if (0..N).all(walked) {
                if let Some(last) = few.shape.last_mut() {
                    *last *= size;
                }
                for (of, strides) in few.strides.iter_mut().enumerate() {
                    if let Some(last) = strides.last_mut() {
                        *last = self.strides[of][axis];
                    }
                }
            } else {
                few.shape.push(size);
                for (of, strides) in few.strides.iter_mut().enumerate() {
                    strides.push(self.strides[of][axis]);
                }
            }
        }
        few
    }

    /// These axes of an entry, collapsed, with at least one axis.
    pub(super) fn of_entries(&self) -> Self {
        let mut few = self.collapsed();
        if few.shape.is_empty() {
            few.push(1, [1; N]);
        }
        few
    }

    /// A tensor as entries along its first axis, each of these axes; `of` is its place among the
    /// strides.
    pub(super) fn entries(&self, tensor: &Tensor, of: usize) -> Tensor {
        let mut shape: Sizes = smallvec![tensor.shape()[0]];
        shape.extend_from_slice(&self.shape);
        let mut strides: Sizes = smallvec![tensor.strides()[0]];
        strides.extend_from_slice(&self.strides[of]);
        tensor.laid_out(&shape, &strides)
    }

    /// The length of a row along the last axis, and how many rows there are.
    pub(super) fn row(&self) -> (usize, usize) {
        self.shape
            .split_last()
            .map_or((1, 1), |(&length, outer)| (length, outer.iter().product::<usize>()))
    }

    /// Takes an axis out, and gives its size and strides.
    pub(super) fn remove(&mut self, axis: usize) -> (usize, [usize; N]) {
        let size = self.shape.remove(axis);
        (size, self.strides.each_mut().map(|strides| strides.remove(axis)))
    }

    /// Adds an axis as the last.
    pub(super) fn push(&mut self, size: usize, strides: [usize; N]) {
        self.shape.push(size);
        for (all, stride) in self.strides.iter_mut().zip(strides) {
            all.push(stride);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn collapsed(shape: &[usize], strides: [&[usize]; 2]) -> (Vec<usize>, [Vec<usize>; 2]) {
        let axes = Axes { shape: shape.into(), strides: strides.map(Sizes::from) }.collapsed();
        (axes.shape.to_vec(), axes.strides.map(|strides| strides.to_vec()))
    }

    #[test]
    fn neighbours_become_one_where_all_walk_them_so() {
        let packed: &[usize] = &[12, 4, 1];
        assert_eq!(collapsed(&[2, 3, 4], [packed, packed]), (vec![24], [vec![1], vec![1]]));
        assert_eq!(
            collapsed(&[2, 3, 4], [packed, &[0, 4, 1]]),
            (vec![2, 12], [vec![12, 1], vec![0, 1]])
        );
        assert_eq!(collapsed(&[2, 1, 4], [&[4, 77, 1], &[8, 0, 2]]), (vec![8], [vec![1], vec![2]]));
        assert_eq!(collapsed(&[3, 4], [&[1, 3], &[4, 1]]).0, [3, 4]);
        assert_eq!(collapsed(&[1, 1], [&[5, 1], &[1, 1]]), (vec![], [vec![], vec![]]));
    }

    #[test]
    fn numpy_broadcasts_so() {
        let context = crate::Context::cpu();
        let x = Tensor::zeros(&context, DType::F32, &[3, 1, 4]).unwrap();
        assert_eq!(broadcast(&x, &[2, 3, 5, 4]).unwrap()[..], [0, 4, 0, 1]);
        assert_eq!(broadcast(&x, &[3, 1, 4]).unwrap()[..], [4, 0, 1]);
        assert_eq!(broadcast(&x, &[3, 5, 5]), None);
        assert_eq!(broadcast(&x, &[1, 4]), None);
    }
}
