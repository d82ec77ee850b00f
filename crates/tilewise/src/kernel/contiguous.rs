//! Row-major copies of views, made by a custom kernel.

use super::call::Call;
use super::definition::Kernel;
use crate::tensor::Tensor;
use std::sync::LazyLock;
use tilewise_core::{DType, Error, Result};

/// The two kernels for each number of dimensions, kept because they remember their modules.
static KERNELS: LazyLock<Vec<[Kernel; 2]>> = LazyLock::new(|| (0..=8).map(kernels).collect());

/// The kernels for views of `ndim` dimensions: one that copies them row-major, and its reverse.
fn kernels(ndim: usize) -> [Kernel; 2] {
    let numbers: Vec<_> = (0..2 + 2 * ndim).map(|i| format!("view_{i}")).collect();
    let view = format!("let view = array<u32, {}>({});\n", numbers.len(), numbers.join(", "));
    let kernel = |name, body| {
        let kernel = Kernel::new(name).inputs(["source"]).outputs(["out"]);
        let kernel = kernel.header(include_str!("view.wgsl"));
        kernel.ensure_contiguous(false).source(format!("{view}{body}"))
    };
    [
        kernel("contiguous", include_str!("contiguous.wgsl")),
        kernel("scatter", include_str!("scatter.wgsl")).atomic_outputs(true),
    ]
}

fn kept(ndim: usize) -> [Kernel; 2] {
    KERNELS.get(ndim).cloned().unwrap_or_else(|| kernels(ndim))
}

/// The kernel that copies views row-major, and its call for this view, which must not be empty. The
/// copy comes as words.
pub(super) fn gather(tensor: &Tensor) -> Result<(Kernel, Call)> {
    let [kernel, _] = kept(tensor.shape().len());
    let (source, first) = tensor.words()?;
    let words = (tensor.elem_count() as u64).div_ceil(4 / tensor.dtype().bytes());
    let call = Call::of(&source).output(DType::U32, &[words as usize]);
    Ok((kernel, walk(call, tensor, first, source.elem_count(), words)?))
}

/// The reverse of [`gather`]: the kernel that brings row-major elements, given as words, back to
/// the view that they were copied from, and its call.
pub(super) fn scatter(words: &Tensor, tensor: &Tensor) -> Result<(Kernel, Call)> {
    let [_, kernel] = kept(tensor.shape().len());
    let (target, first) = tensor.words()?;
    let call = Call::of(words).inout(&target);
    Ok((kernel, walk(call, tensor, first, target.elem_count(), tensor.elem_count() as u64)?))
}

/// Adds the numbers by which the kernels walk through a view: `words` words lie around it, and its
/// first element is element `first` of these. Each of the pieces has an invocation; several share
/// one if a dispatch cannot have so many.
fn walk(call: Call, tensor: &Tensor, first: u64, words: usize, pieces: u64) -> Result<Call> {
    let per_word = 4 / tensor.dtype().bytes();
    let reach = words as u64 * per_word;
    // A dimension of one element is not walked, whatever its stride.
    let stride = |size: usize, stride: usize| if size == 1 { 0 } else { stride as u64 };
    let axes = tensor.shape().iter().zip(tensor.strides()).rev();
    let axes = axes.flat_map(|(&size, &by)| [size as u64, stride(size, by)]);
    let caps = &tensor.context().0.caps;
    let size = caps.max_threads().min(64);
    let most = u64::from(caps.max_workgroups) * u64::from(size);
    let mut call = call
        .workgroup([size, 1, 1])
        .constant("PER_WORD", per_word as u32)
        .constant("BITS", 32 / per_word as u32)
        .constant("NDIM", tensor.shape().len() as u32)
        .grid([pieces.min(most) as u32, 1, 1]);
    for (i, number) in [tensor.elem_count() as u64, first].into_iter().chain(axes).enumerate() {
        let number = u32::try_from(number).ok().filter(|_| u32::try_from(reach).is_ok());
        let number = number.ok_or_else(|| {
            Error::Shape(format!(
                "overflow: copying a view that spans {reach} elements: kernels index at most {}",
                u32::MAX
            ))
        })?;
        call = call.value(&format!("view_{i}"), number);
    }
    Ok(call)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::context::Context;
    use half::bf16;

    /// Checks that copies are row-major, and clean under the sanitizer, for views of elements of
    /// both sizes.
    #[test]
    fn every_view_is_copied_cleanly() {
        let context = Context::cpu();
        let floats: Vec<f32> = (0..105).map(|i| i as f32).collect();
        let halves: Vec<bf16> = floats.iter().map(|&x| bf16::from_f32(x)).collect();
        let whole = Tensor::upload(&context, &floats, &[3, 5, 7]).unwrap();
        let half = Tensor::upload(&context, &halves, &[3, 5, 7]).unwrap();
        let views = |tensor: &Tensor| {
            let cut = tensor.slice(&[1..3, 1..4, 3..6]).unwrap();
            [tensor.t(), cut.clone(), cut.t(), tensor.slice(&[2..3, 4..5, 6..7]).unwrap()]
        };
        for tensor in [whole, half] {
            for (i, view) in views(&tensor).into_iter().enumerate() {
                let (kernel, call) = gather(&view).unwrap();
                let check = kernel.check_blocking(&call, Default::default()).unwrap();
                assert!(check.is_clean(), "{view:?}\n{}", check.render(false));
                let copied = check.outputs[0].as_packed(view.dtype(), view.shape());
                let bytes = view.read_bytes_blocking().unwrap();
                assert_eq!(copied.read_bytes_blocking().unwrap(), bytes, "{view:?}");
                let blank = Tensor::zeros(&context, tensor.dtype(), tensor.shape()).unwrap();
                let target = &views(&blank)[i];
                let (kernel, call) = scatter(&check.outputs[0], target).unwrap();
                let check = kernel.check_blocking(&call, Default::default()).unwrap();
                assert!(check.is_clean(), "{view:?}\n{}", check.render(false));
                kernel.run(&call).unwrap();
                assert_eq!(target.read_bytes_blocking().unwrap(), bytes, "{view:?}");
                // Nothing outside the view is written.
                let count = |tensor: &Tensor| {
                    let elements = tensor.read_f32_blocking().unwrap();
                    elements.into_iter().filter(|x| *x != 0.0).count()
                };
                assert_eq!(count(&blank), count(&view), "{view:?}");
            }
        }
    }
}
