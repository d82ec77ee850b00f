//! Custom kernels, with everything that is generated around a body, in every type.

use tilewise::{Call, Context, DType, Kernel, Tensor};

/// A body that mentions everything that is generated for tensors of any type.
const MENTIONS: &str = "
    let i = global_id.x + local_id.y + workgroup_id.z + num_workgroups.x + local_index + grid.y;
    let row = a_row(i) + a_shape[1] + a_strides[0] + a_ndim + out_shape[0] + out_strides[1] + V;";

/// Ways to reach elements, besides these.
const BODIES: [(&str, &str); 4] = [
    ("by-index", "out[i] = a[row] + T(N);"),
    ("one", "out_store(i, a_load(row) + T(N));"),
    ("two", "out_store2(2u * i, a_load2(row) + vec2<T>(T(N)));"),
    ("four", "out_store4(4u * i, a_load4(row) + vec4<T>(T(N)));"),
];

/// Names, kernels and calls.
pub(super) fn calls(context: &Context) -> Vec<(String, Kernel, Call)> {
    let mut calls = Vec::new();
    for dtype in [DType::F32, DType::F16, DType::BF16, DType::U32, DType::I32] {
        let a = Tensor::zeros(context, dtype, &[2, 6, 8]).unwrap();
        let whole = a.reshape(&[12, 8]).unwrap();
        for (name, body) in BODIES {
            let by_index = name == "by-index";
            if by_index && matches!(dtype, DType::F16) && !context.caps().f16
                || !by_index && !dtype.is_float()
            {
                continue;
            }
            let kernel = Kernel::new(name).inputs(["a"]).outputs(["out"]);
            let number = match (by_index, dtype) {
                (true, DType::BF16) => DType::U32,
                (true, own) => own,
                (false, _) => DType::F32,
            };
            for view in [&a, &whole] {
                let call = Call::of(view).output(dtype, &[2, 48]).grid([12, 1, 1]);
                let call = call.dtype("T", number).constant("N", 3u32).value("V", 1u32);
                let kernel = kernel.clone().source(format!("{MENTIONS}\n{body}"));
                calls.push((format!("custom/{name}"), kernel, call));
            }
        }
        for view in [a.t(), whole.t()] {
            let [copy, back] = Kernel::copies(&view).unwrap();
            calls.push(("custom/copy".into(), copy.0, copy.1));
            calls.push(("custom/copy-back".into(), back.0, back.1));
        }
    }
    let counts = Tensor::zeros(context, DType::U32, &[8]).unwrap();
    let kernel = Kernel::new("atomics").inputs(["a"]).outputs(["out"]).atomic_outputs(true);
    calls.push((
        "custom/atomics".into(),
        kernel.source("atomicAdd(&out[a[global_id.x]], 1u);"),
        Call::of(&counts).output(DType::U32, &[8]).grid([8, 1, 1]),
    ));
    calls
}
