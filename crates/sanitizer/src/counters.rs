//! Costs of a run.

use serde::Serialize;

/// One cost: the sum over all invocations, and the most that one invocation had.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Measure {
    /// The sum over all invocations.
    pub total: u64,
    /// The most of one invocation.
    pub max: u64,
}

/// Costs of a run. An access is one load or store of a scalar or of a whole vector, such as a
/// `vec4`. An atomic operation that both reads and writes counts as one read and one write.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counters {
    /// Invocations run.
    pub invocations: u64,
    /// Reads of storage memory. Reads of uniform buffers and immediates are
    /// [`uniform_reads`](Self::uniform_reads).
    pub global_reads: Measure,
    /// Writes of storage memory.
    pub global_writes: Measure,
    /// Bytes of [`global_reads`](Self::global_reads).
    pub global_read_bytes: Measure,
    /// Bytes of [`global_writes`](Self::global_writes).
    pub global_write_bytes: Measure,
    /// Reads of uniform buffers and immediates.
    pub uniform_reads: Measure,
    /// Reads of workgroup memory.
    pub shared_reads: Measure,
    /// Writes of workgroup memory.
    pub shared_writes: Measure,
    /// Bytes of [`shared_reads`](Self::shared_reads).
    pub shared_read_bytes: Measure,
    /// Bytes of [`shared_writes`](Self::shared_writes).
    pub shared_write_bytes: Measure,
    /// Atomic operations on storage and workgroup memory, `atomicLoad` and `atomicStore` included.
    pub atomics: Measure,
    /// Scalar arithmetic: a product of two `vec4` counts four, an `fma` one.
    pub arithmetic: Measure,
    /// Barriers passed.
    pub barriers: Measure,
    /// Executed scalar operations of the compiled form, of all kinds.
    pub operations: u64,
    /// Segments of storage memory that loads touched, per subgroup and instruction. 0 without a
    /// cost model.
    pub read_transactions: u64,
    /// Segments that stores touched.
    pub write_transactions: u64,
    /// Additional passes over workgroup memory, because lanes of a subgroup wanted different words
    /// of one bank in one instruction. Without conflicts, one pass serves as many lanes as there
    /// are banks for scalars, and a quarter of them for `vec4`. An atomic operation counts once,
    /// although it reads and writes. 0 without a cost model.
    pub bank_conflicts: u64,
}
