//! The memory that products need beside their operands.

use crate::context::{Backend, Context};

impl Context {
    /// Frees the memory that products need for a time: for partial sums and for packed operands.
    /// All products share this memory, it grows with the largest, and the next product that needs
    /// some allocates it again. Work that is recorded or runs keeps what it uses. Also lets go of
    /// the last given buffers ([`Tensor::from_buffer`](crate::Tensor::from_buffer)). Does nothing
    /// on the CPU executor.
    ///
    /// [`ContextOptions::max_scratch_bytes`](crate::ContextOptions::max_scratch_bytes) bounds the
    /// memory instead.
    pub fn release_scratch(&self) {
        if let Backend::Gpu(gpu) = &self.0.backend {
            gpu.release();
        }
    }
}
