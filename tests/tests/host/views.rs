//! Compares views of tensors with lists of indices.

use tilewise::{Context, Error, Result, Tensor};
use tilewise_tests::Rng;

/// A shape and, row-major, the index of the stored element that each element is.
#[derive(Clone, Debug, PartialEq)]
struct Model {
    shape: Vec<usize>,
    at: Vec<usize>,
}

/// All indices of a shape, in order.
fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    shape.iter().fold(vec![vec![]], |all, &size| {
        all.iter().flat_map(|index| (0..size).map(move |i| [&index[..], &[i]].concat())).collect()
    })
}

impl Model {
    fn get(&self, index: &[usize]) -> usize {
        self.at[index.iter().zip(&self.shape).fold(0, |at, (i, size)| at * size + i)]
    }

    /// A model of another shape. Its element at an index is this model's element at the index that
    /// `from` gives.
    fn map(&self, shape: &[usize], from: impl Fn(&[usize]) -> Vec<usize>) -> Self {
        let at = indices(shape).iter().map(|index| self.get(&from(index))).collect();
        Model { shape: shape.to_vec(), at }
    }

    /// Whether some strides give these elements.
    fn has_strides(&self) -> bool {
        let first = vec![0; self.shape.len()];
        if self.at.is_empty() {
            return true;
        }
        let strides: Vec<_> = (0..first.len())
            .map(|axis| {
                let mut next = first.clone();
                next[axis] = 1.min(self.shape[axis] - 1);
                self.get(&next) as isize - self.get(&first) as isize
            })
            .collect();
        indices(&self.shape).iter().all(|index| {
            let way: isize =
                index.iter().zip(&strides).map(|(i, stride)| *i as isize * stride).sum();
            self.get(index) as isize == self.get(&first) as isize + way
        })
    }
}

/// Random sizes with this number of elements, or nearly: factors are dealt out at random.
fn split(rng: &mut Rng, mut elements: usize) -> Vec<usize> {
    let mut shape = vec![1; 1 + rng.below(4)];
    for factor in [2, 3, 5, 7] {
        while elements > 1 && elements.is_multiple_of(factor) {
            let axis = rng.below(shape.len());
            shape[axis] *= factor;
            elements /= factor;
        }
    }
    if elements == 0 || rng.below(8) == 0 {
        let axis = rng.below(shape.len());
        shape[axis] = elements;
    }
    shape
}

/// A random view, and the elements that it must have; none if the view must be refused.
fn step(
    rng: &mut Rng,
    view: &Tensor,
    model: &Model,
    len: usize,
) -> (Result<Tensor>, Option<Model>) {
    let shape = &model.shape;
    let rank = shape.len();
    let moved = |axes: &[usize]| {
        let sizes: Vec<_> = axes.iter().map(|&axis| shape[axis]).collect();
        model.map(&sizes, |index| {
            let mut from = vec![0; rank];
            axes.iter().zip(index).for_each(|(&axis, &i)| from[axis] = i);
            from
        })
    };
    match rng.below(8) {
        0 => {
            let axes = rng.permutation(rank);
            (view.permute(&axes), Some(moved(&axes)))
        }
        1 => {
            let [i, j] = [(); 2].map(|()| rng.below(rank + 1));
            let mut axes: Vec<_> = (0..rank).collect();
            let wanted = (i.max(j) < rank).then(|| {
                axes.swap(i, j);
                moved(&axes)
            });
            (view.transpose(i, j), wanted)
        }
        2 => {
            let axis = rng.below(rank + 2);
            let wanted = (axis <= rank).then(|| {
                let mut shape = shape.clone();
                shape.insert(axis, 1);
                Model { shape, ..model.clone() }
            });
            (view.unsqueeze(axis), wanted)
        }
        3 => {
            let axis = rng.below(rank + 1);
            let wanted = (shape.get(axis) == Some(&1)).then(|| {
                let mut shape = shape.clone();
                shape.remove(axis);
                Model { shape, ..model.clone() }
            });
            (view.squeeze(axis), wanted)
        }
        4 => {
            let mut to = shape.clone();
            for size in &mut to {
                if *size == 1 && rng.below(2) == 0 || rng.below(9) == 0 {
                    *size = rng.below(4);
                }
            }
            let new = rng.below(2);
            to.splice(0..0, (0..new).map(|_| rng.below(3)));
            let fits = shape.iter().zip(&to[new..]).all(|(own, to)| own == to || *own == 1);
            let from = |index: &[usize]| {
                let own = index[new..].iter().zip(shape);
                own.map(|(i, size)| if *size == 1 { 0 } else { *i }).collect()
            };
            (view.broadcast_to(&to), fits.then(|| model.map(&to, from)))
        }
        5 => {
            let ranges: Vec<_> = shape
                .iter()
                .map(|&size| {
                    let start = rng.below(size + 1);
                    start..start + rng.below(size - start + 1)
                })
                .collect();
            let sizes: Vec<_> = ranges.iter().map(ExactSizeIterator::len).collect();
            let from = |index: &[usize]| {
                index.iter().zip(&ranges).map(|(i, range)| range.start + i).collect()
            };
            (view.slice(&ranges), Some(model.map(&sizes, from)))
        }
        6 => {
            let to = split(rng, model.at.len());
            let same = to.iter().product::<usize>() == model.at.len();
            let wanted = Model { shape: to.clone(), ..model.clone() };
            (view.reshape(&to), (same && wanted.has_strides()).then_some(wanted))
        }
        _ => {
            let to: Vec<_> = (0..rng.below(4)).map(|_| rng.below(4)).collect();
            let strides: Vec<_> = to.iter().map(|_| rng.below(7)).collect();
            // An empty view may begin anywhere.
            let Some(&first) = model.at.first() else {
                return (Ok(view.clone()), Some(model.clone()));
            };
            let offset = rng.below(6);
            let places = indices(&to).into_iter().map(|index| {
                first + offset + index.iter().zip(&strides).map(|(i, s)| i * s).sum::<usize>()
            });
            let at: Vec<_> = places.collect();
            let inside = at.iter().all(|&at| at < len);
            (view.as_strided(&to, &strides, offset), inside.then_some(Model { shape: to, at }))
        }
    }
}

#[test]
fn views_are_lists_of_indices() {
    let ctx = Context::cpu();
    let mut rng = Rng::new(7);
    let (mut refused, mut empty, mut deep) = (0, 0, 0);
    for _ in 0..3000 {
        let shape =
            rng.pick(&[&[4, 6][..], &[2, 3, 4], &[1, 7], &[5], &[], &[2, 1, 3, 2], &[0, 3]]);
        let len: usize = shape.iter().product();
        let numbers: Vec<f32> = (0..len).map(|i| i as f32).collect();
        let mut view = Tensor::upload(&ctx, &numbers, shape).unwrap();
        let mut model = Model { shape: shape.to_vec(), at: (0..len).collect() };
        for _ in 0..6 {
            let (next, wanted) = step(&mut rng, &view, &model, len);
            match (next, wanted) {
                (Ok(next), Some(wanted)) => {
                    let got = next.read_blocking::<f32>().unwrap();
                    let got = got.iter().map(|number| *number as usize).collect();
                    let got = Model { shape: next.shape().to_vec(), at: got };
                    assert_eq!(got, wanted, "of {model:?}, strides {:?}", view.strides());
                    if wanted.at.len() > 2000 || wanted.shape.len() > 8 {
                        break;
                    }
                    empty += usize::from(wanted.at.is_empty());
                    deep += usize::from(wanted.shape.len() > 5);
                    (view, model) = (next, wanted);
                }
                (Err(_), None) => refused += 1,
                (got, wanted) => {
                    panic!("{got:?}, wanted {wanted:?} of {model:?}, strides {:?}", view.strides())
                }
            }
        }
    }
    assert!(refused > 1000 && empty > 1000 && deep > 100, "{refused} {empty} {deep}");
}

#[test]
fn views_that_are_refused() {
    let ctx = Context::cpu();
    let x = Tensor::upload(&ctx, &[1.0f32; 24], &[4, 6]).unwrap();
    let odd = Tensor::upload(&ctx, &[half::f16::ONE; 3], &[3]).unwrap();
    let huge = usize::MAX / 2;
    fn starts(error: &Error, word: &str) -> bool {
        matches!(error, Error::Shape(text) if text.starts_with(word))
    }
    let shape = |error: &Error| matches!(error, Error::Shape(_));
    let overflow = |error: &Error| starts(error, "overflow: ");
    let small = |error: &Error| starts(error, "buffer too small: ");
    let strides = |error: &Error| starts(error, "strides: ");
    type Row = (Result<Tensor>, fn(&Error) -> bool, &'static [&'static str]);
    let rows: Vec<Row> = vec![
        (x.permute(&[0, 0]), shape, &["permute", "[0, 0]", "[4, 6]"]),
        (x.permute(&[0]), shape, &["[0]"]),
        (x.permute(&[0, 2]), shape, &["[0, 2]"]),
        (x.transpose(0, 2), shape, &["transpose", "[0, 2]"]),
        (x.unsqueeze(3), shape, &["unsqueeze", "[3]"]),
        (x.squeeze(0), shape, &["squeeze", "[0]", "[4, 6]"]),
        (x.squeeze(2), shape, &["[2]"]),
        (x.broadcast_to(&[6]), shape, &["[4, 6]", "[6]"]),
        (x.broadcast_to(&[2, 4, 3]), shape, &["[2, 4, 3]"]),
        (x.broadcast_to(&[huge, 4, 6]), overflow, &["4, 6]"]),
        (x.broadcast_to(&[huge / 24, 4, 6]), overflow, &["4, 6]"]),
        (x.as_strided(&[2], &[1, 1], 0), shape, &["[2]", "[1, 1]"]),
        (x.as_strided(&[2], &[24], 0), small, &["25", "24"]),
        (x.as_strided(&[2], &[1], 23), small, &["25", "24"]),
        (odd.as_strided(&[4], &[1], 0), small, &["4", "3"]),
        (x.as_strided(&[2], &[huge], huge), small, &["24"]),
        (x.as_strided(&[3], &[usize::MAX], 0), overflow, &["[3]"]),
        (x.slice(&[1..4, 0..6]).unwrap().as_strided(&[1], &[1], usize::MAX), overflow, &["6"]),
        (x.as_strided(&[huge, 4], &[0, 1], 0), overflow, &["4]"]),
        (
            x.slice(&[0..4, 1..4]).unwrap().reshape(&[2, 6]),
            strides,
            &["[4, 3]", "[6, 1]", "[2, 6]"],
        ),
    ];
    for (i, (view, kind, words)) in rows.into_iter().enumerate() {
        let error = view.expect_err(&format!("view {i}"));
        let text = error.to_string();
        assert!(kind(&error) && words.iter().all(|word| text.contains(word)), "view {i}: {text}");
    }
    // A dimension of 0 makes a view empty, however large the others are.
    let none = x.as_strided(&[huge, 0, huge], &[huge; 3], huge).unwrap();
    assert_eq!((none.elem_count(), none.read_blocking::<f32>().unwrap()), (0, vec![]));
    assert!(none.reshape(&[0, 7]).unwrap().is_contiguous());
}
