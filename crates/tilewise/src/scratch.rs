//! The memory that products need beside their operands.

use crate::context::{Backend, Context};

impl Context {
    /// Frees the memory that products need for a time: for partial sums and for packed operands. It
    /// grows with the largest product, is shared by all, and is there again with the next that
    /// needs it. Work that is recorded or runs keeps what it uses. Lets go, too, of the caller's
    /// last buffers ([`Tensor::from_buffer`](crate::Tensor::from_buffer)).
    ///
    /// [`ContextOptions::max_scratch_bytes`](crate::ContextOptions::max_scratch_bytes) bounds it
    /// instead. Does nothing on the CPU executor.
    pub fn release_scratch(&self) {
        if let Backend::Gpu(gpu) = &self.0.backend {
            gpu.release();
        }
    }
}
