//! Row-major copies of views, made by a custom kernel.

use super::call::Call;
use super::definition::Kernel;
use crate::tensor::Tensor;
use tilewise_core::{DType, Error, Result};

/// A kernel that copies views row-major, and its call for this view, which is not empty. The copy
/// comes as words.
pub(super) fn gather(tensor: &Tensor) -> Result<(Kernel, Call)> {
    let per_word = 4 / tensor.dtype().bytes();
    let (source, view) = walked(tensor)?;
    let words = (tensor.elem_count() as u64).div_ceil(per_word);
    let kernel = Kernel::new("contiguous")
        .inputs(["source", "view"])
        .outputs(["out"])
        .ensure_contiguous(false)
        .source(include_str!("contiguous.wgsl"));
    let call = Call::of(&source).input(&view).output(DType::U32, &[words as usize]);
    Ok((kernel, each(call, tensor, words)))
}

/// The reverse: a kernel that brings row-major elements, given as words, back to the view that they
/// were copied from, and its call.
pub(super) fn scatter(words: &Tensor, tensor: &Tensor) -> Result<(Kernel, Call)> {
    let (target, view) = walked(tensor)?;
    let kernel = Kernel::new("scatter")
        .inputs(["source", "view"])
        .outputs(["out"])
        .ensure_contiguous(false)
        .atomic_outputs(true)
        .source(include_str!("scatter.wgsl"));
    let call = Call::of(words).input(&view).inout(&target);
    Ok((kernel, each(call, tensor, tensor.elem_count() as u64)))
}

/// An invocation for each of so many pieces, or for several where there are more than one dispatch
/// can have.
fn each(call: Call, tensor: &Tensor, pieces: u64) -> Call {
    let per_word = 4 / tensor.dtype().bytes() as u32;
    let most = u64::from(tensor.context().caps().max_workgroups) * 64;
    call.constant("PER_WORD", per_word)
        .constant("BITS", 32 / per_word)
        .constant("NDIM", tensor.shape().len() as u32)
        .grid([pieces.min(most) as u32, 1, 1])
}

/// The words around a view, and how the kernels walk through them.
fn walked(tensor: &Tensor) -> Result<(Tensor, Tensor)> {
    let context = tensor.context();
    let (source, first) = tensor.words()?;
    let per_word = 4 / tensor.dtype().bytes();
    let mut view = vec![tensor.elem_count() as u64, first];
    for (&size, &stride) in tensor.shape().iter().zip(tensor.strides()).rev() {
        // A dimension of one element is not walked, whatever its stride.
        view.extend([size as u64, if size == 1 { 0 } else { stride as u64 }]);
    }
    let reach = source.elem_count() as u64 * per_word;
    let view: Option<Vec<u32>> =
        view.into_iter().map(|number| u32::try_from(number).ok()).collect();
    let view = view.filter(|_| u32::try_from(reach).is_ok()).ok_or_else(|| {
        Error::Overflow(format!(
            "copying a view that spans {reach} elements: kernels index at most {}",
            u32::MAX
        ))
    })?;
    let view = Tensor::upload(context, &view, &[view.len()])?;
    Ok((source, view))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use half::bf16;

    /// The copy is row-major, and clean under the sanitizer, for views of elements of both sizes.
    #[test]
    fn every_view_is_copied_cleanly() {
        let context = Context::cpu();
        let floats: Vec<f32> = (0..105).map(|i| i as f32).collect();
        let halves: Vec<bf16> = floats.iter().map(|&x| bf16::from_f32(x)).collect();
        let whole = Tensor::upload(&context, &floats, &[3, 5, 7]).unwrap();
        let half = Tensor::upload(&context, &halves, &[3, 5, 7]).unwrap();
        for tensor in [whole, half] {
            let cut = tensor.slice(&[1..3, 1..4, 3..6]).unwrap();
            for view in
                [tensor.t(), cut.clone(), cut.t(), tensor.slice(&[2..3, 4..5, 6..7]).unwrap()]
            {
                let (kernel, call) = gather(&view).unwrap();
                let check = kernel.check_blocking(&call).unwrap();
                assert!(check.is_clean(), "{view:?}\n{}", check.render(false));
                let copied = check.outputs[0].as_packed(view.dtype(), view.shape());
                let bytes = view.read_bytes_blocking().unwrap();
                assert_eq!(copied.read_bytes_blocking().unwrap(), bytes, "{view:?}");
                let (kernel, call) = scatter(&check.outputs[0], &view).unwrap();
                let check = kernel.check_blocking(&call).unwrap();
                assert!(check.is_clean(), "{view:?}\n{}", check.render(false));
            }
        }
    }
}
