//! The memory that products and attention need beside their operands.

use crate::context::{Backend, Context};

impl Context {
    /// Frees the memory that products and attention need for a time: for partial sums and packed
    /// operands. All calls share this memory. It grows with the largest call, and the next call
    /// that needs some allocates it again. Work that is recorded or runs keeps what it uses.
    ///
    /// It also lets go of the last given buffers
    /// ([`Tensor::from_buffer`](crate::Tensor::from_buffer)). It does nothing on the CPU executor.
    ///
    /// [`ContextOptions::max_scratch_bytes`](crate::ContextOptions::max_scratch_bytes) bounds the
    /// memory instead.
    pub fn release_scratch(&self) {
        if let Backend::Gpu(gpu) = &self.0.backend {
            gpu.release();
        }
    }
}
