//! The MSL files, by their path below `crates/msl/kernels/`.

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        /// Path and text of every MSL file.
        pub const FILES: &[(&str, &str)] =
            &[$(($path, include_str!(concat!("../kernels/", $path)))),*];
    };
}

files![
    "header.metal",
    "schedule/tile.metal",
    "schedule/batched.metal",
    "schedule/indexed.metal",
    "schedule/ragged.metal",
    "schedule/ragged_k.metal",
    "operand/absent.metal",
    "operand/affine.metal",
    "operand/axes.metal",
    "operand/bf16.metal",
    "operand/coded.metal",
    "operand/codes.metal",
    "operand/dense.metal",
    "operand/f16.metal",
    "operand/f32.metal",
    "operand/gguf.metal",
    "operand/k45.metal",
    "operand/lines.metal",
    "operand/mx.metal",
    "operand/q2_k.metal",
    "operand/q3_k.metal",
    "operand/q6_k.metal",
    "mainloop/direct.metal",
    "mainloop/finish.metal",
    "mainloop/gemm.metal",
    "mainloop/gemv.metal",
    "mainloop/gevm.metal",
    "epilogue/activation.metal",
    "epilogue/added.metal",
    "epilogue/direct.metal",
    "epilogue/gated.metal",
    "epilogue/linear.metal",
    "epilogue/partial.metal",
    "epilogue/k_splits.metal",
    "epilogue/store_bf16.metal",
    "epilogue/store_f16.metal",
    "epilogue/store_f32.metal",
];
