//! The languages of shaders.

/// The language of a shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// WebGPU's shading language: every device.
    Wgsl,
    /// The Metal shading language: Apple's GPUs.
    Msl,
}
