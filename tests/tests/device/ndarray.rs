//! Arrays of the crate ndarray become tensors and tensors arrays, whatever their layout.

use half::{bf16, f16};
use ndarray::{Array, Array3, ArrayD, ArrayRef, Dimension, IxDyn, ShapeBuilder, arr0, s};
use tilewise::{Context, DType, Element, Error, Tensor};
use tilewise_tests::contexts;

/// Turns an array into a tensor and back.
fn both_ways<T, D>(context: &Context, array: &ArrayRef<T, D>)
where
    T: Element + PartialEq + std::fmt::Debug,
    D: Dimension,
{
    let tensor = Tensor::from_ndarray(context, array).unwrap();
    assert_eq!((tensor.shape(), tensor.dtype()), (array.shape(), T::DTYPE));
    let elements: Vec<T> = array.iter().copied().collect();
    assert_eq!(tensor.read_blocking::<T>().unwrap(), elements, "{array:?}");
    let back = tensor.to_ndarray_blocking::<T>().unwrap();
    assert_eq!(back, array.to_owned().into_dyn(), "{context:?}");
}

fn in_any_layout<T: Element + PartialEq + std::fmt::Debug>(context: &Context, of: fn(f32) -> T) {
    let array = Array3::from_shape_fn((3, 4, 5), |(i, j, k)| of((20 * i + 5 * j + k) as f32));
    both_ways(context, &array);
    both_ways(context, &array.t());
    both_ways(context, &array.slice(s![.., 1..3, ..;2]));
    both_ways(context, &array.slice(s![..;-1, 3, ..;-2]));
    both_ways(context, &array.slice(s![0, .., 2]).broadcast((2, 4)).unwrap());
    both_ways(context, &Array::from_shape_fn((3, 2).f(), |(i, j)| of((2 * i + j) as f32)));
    both_ways(context, &arr0(of(7.0)));
    both_ways(context, &array.slice(s![.., 2..2, ..]));
    both_ways(context, &ArrayD::from_elem(IxDyn(&[2, 1, 3, 1, 2]), of(-1.0)));
}

#[test]
fn layouts_and_types() {
    for context in &contexts() {
        in_any_layout(context, |number| number);
        in_any_layout(context, f16::from_f32);
        in_any_layout(context, bf16::from_f32);
        in_any_layout(context, |number| number as i32);
        in_any_layout(context, |number| number as u32);
    }
}

/// Views of tensors give their own elements; another type, and a shape that arrays do not have, are
/// errors.
#[test]
fn views_and_bad_input() {
    for context in &contexts() {
        let array = Array3::from_shape_fn((2, 3, 4), |(i, j, k)| (12 * i + 4 * j + k) as f32);
        let tensor = Tensor::from_ndarray(context, &array).unwrap();
        let view = tensor.permute(&[2, 0, 1]).unwrap().narrow(0, 1, 2).unwrap();
        let wanted = array.permuted_axes([2, 0, 1]).slice(s![1..3, .., ..]).to_owned().into_dyn();
        assert_eq!(view.to_ndarray_blocking::<f32>().unwrap(), wanted);
        let error = view.to_ndarray_blocking::<u32>().unwrap_err();
        assert!(matches!(error, Error::Misuse(_)), "{error}");
        let none = Tensor::zeros(context, DType::F32, &[0, usize::MAX, 2]).unwrap();
        let error = none.to_ndarray_blocking::<f32>().unwrap_err();
        assert!(matches!(&error, Error::Shape(text) if text.starts_with("overflow: ")), "{error}");
    }
}
