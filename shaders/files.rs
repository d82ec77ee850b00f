//! The WGSL files, by their path below `shaders/`.

macro_rules! files {
    ($($path:literal),* $(,)?) => {
        /// Path and text of every WGSL file.
        pub const FILES: &[(&str, &str)] = &[$(($path, include_str!($path))),*];
    };
}

files![
    "params.wgsl",
    "schedule/tile.wgsl",
    "schedule/batched.wgsl",
    "schedule/ragged.wgsl",
    "operand/absent.wgsl",
    "operand/affine.wgsl",
    "operand/axes.wgsl",
    "operand/block.wgsl",
    "operand/f16.wgsl",
    "operand/f16x8.wgsl",
    "operand/f32.wgsl",
    "operand/f32x4.wgsl",
    "operand/fours.wgsl",
    "operand/half.wgsl",
    "operand/halfx4.wgsl",
    "operand/halfx8.wgsl",
    "operand/lines.wgsl",
    "operand/mxfp4.wgsl",
    "operand/pair.wgsl",
    "operand/q4_0.wgsl",
    "operand/q8_0.wgsl",
    "operand/single.wgsl",
    "operand/widen.wgsl",
    "mainloop/coop.wgsl",
    "mainloop/finish.wgsl",
    "mainloop/finish_words.wgsl",
    "mainloop/gemv.wgsl",
    "mainloop/naive.wgsl",
    "mainloop/pack.wgsl",
    "mainloop/panel.wgsl",
    "mainloop/simt.wgsl",
    "mainloop/strip.wgsl",
    "mainloop/slice.wgsl",
    "unit/f16_16.wgsl",
    "unit/f16_16_f16.wgsl",
    "unit/f16_8.wgsl",
    "unit/f16_8_f16.wgsl",
    "unit/f32_8.wgsl",
    "epilogue/activation.wgsl",
    "epilogue/direct.wgsl",
    "epilogue/linear.wgsl",
    "epilogue/partial.wgsl",
    "epilogue/parts.wgsl",
    "epilogue/store_f16.wgsl",
    "epilogue/store_f16x4.wgsl",
    "epilogue/store_f32.wgsl",
    "epilogue/store_f32x4.wgsl",
    "epilogue/store_half.wgsl",
];
