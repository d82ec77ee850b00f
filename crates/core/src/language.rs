//! What shaders are written in.

/// What a shader is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// WebGPU's shading language: every device.
    Wgsl,
    /// The Metal shading language: Apple's GPUs.
    Msl,
}
