//! The Rust types of elements.

use tilewise_core::DType;

/// A Rust type that a tensor can hold.
pub trait Element: bytemuck::Pod + sealed::Sealed {
    /// The dtype of a tensor of this type.
    const DTYPE: DType;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for half::f16 {}
    impl Sealed for half::bf16 {}
    impl Sealed for i32 {}
    impl Sealed for u32 {}
}

impl Element for f32 {
    const DTYPE: DType = DType::F32;
}

impl Element for half::f16 {
    const DTYPE: DType = DType::F16;
}

impl Element for half::bf16 {
    const DTYPE: DType = DType::BF16;
}

impl Element for i32 {
    const DTYPE: DType = DType::I32;
}

impl Element for u32 {
    const DTYPE: DType = DType::U32;
}
