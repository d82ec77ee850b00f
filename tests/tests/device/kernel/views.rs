//! Views among the inputs.

use super::*;

/// Views of every kind are given to kernels as row-major arrays: transposed ones, and slices where
/// a binding cannot start, in elements of 4 and of 2 bytes.
#[test]
fn views() {
    for context in contexts() {
        let [rows, columns] = [7, 9];
        let whole = ramp(rows * columns);
        let floats = Tensor::upload(&context, &whole, &[rows, columns]).unwrap();
        let halves: Vec<bf16> = whole.iter().map(|&x| bf16::from_f32(x)).collect();
        let halves = Tensor::upload(&context, &halves, &[rows, columns]).unwrap();
        let copy = from_a("out[global_id.x] = a[global_id.x];");
        let cut = |tensor: &Tensor| {
            let slice = tensor.slice(&[1..6, 3..8]).unwrap();
            let row = tensor.slice(&[2..3, 1..8]).unwrap();
            [
                tensor.clone(),
                tensor.t(),
                slice.clone(),
                slice.t(),
                row,
                tensor.slice(&[5..7, 0..columns]).unwrap(),
            ]
        };
        for (view, half) in cut(&floats).into_iter().zip(cut(&halves)) {
            let n = view.elem_count();
            let call =
                Call::new(&context).input(&view).output(DType::F32, &[n]).grid([n as u32, 1, 1]);
            let want = view.read_blocking::<f32>().unwrap();
            assert_eq!(run::<f32>(&copy, &call), want, "{view:?}");
            let call = Call::new(&context).input(&half).output(DType::BF16, &[n]).grid([
                n.div_ceil(2) as u32,
                1,
                1,
            ]);
            assert_eq!(
                run::<bf16>(&copy, &call),
                half.read_blocking::<bf16>().unwrap(),
                "{half:?}"
            );

            // Strides reach these elements too, even if the start of the binding was moved.
            let by_strides = from_a(
                "let i = global_id.x / a_shape[1]; let j = global_id.x % a_shape[1]; \
                 out[global_id.x] = a[i * a_strides[0] + j * a_strides[1]];",
            );
            let call =
                Call::new(&context).input(&view).output(DType::F32, &[n]).grid([n as u32, 1, 1]);
            assert_eq!(run::<f32>(&by_strides.ensure_contiguous(false), &call), want, "{view:?}");
        }
        if has_f16(&context) {
            let halves: Vec<f16> = whole.iter().map(|&x| f16::from_f32(x)).collect();
            for view in cut(&Tensor::upload(&context, &halves, &[rows, columns]).unwrap()) {
                let n = view.elem_count();
                let call = Call::new(&context)
                    .input(&view)
                    .output(DType::F16, &[n])
                    .grid([n as u32, 1, 1]);
                assert_eq!(
                    run::<f16>(&copy, &call),
                    view.read_blocking::<f16>().unwrap(),
                    "{view:?}"
                );
            }
        }
    }
}

/// The view has more words than one dispatch has invocations, so each invocation copies several.
#[test]
fn large_views() {
    for adapter in adapters() {
        let context = adapter.with_limits(|limits| limits.max_compute_workgroups_per_dimension = 3);
        let [rows, columns] = [50, 30];
        let a = Tensor::upload(&context, &ramp(rows * columns), &[rows, columns]).unwrap().t();
        let kernel =
            from_a("for (var i = global_id.x; i < out_shape[0]; i += grid.x) { out[i] = a[i]; }");
        let call =
            Call::new(&context).input(&a).output(DType::F32, &[rows * columns]).grid([192, 1, 1]);
        assert_eq!(
            run::<f32>(&kernel, &call),
            a.read_blocking::<f32>().unwrap(),
            "{}",
            adapter.name()
        );
    }
}
