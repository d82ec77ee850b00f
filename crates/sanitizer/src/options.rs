//! Options of a run.

/// Which memory starts as zeros, as WGSL promises. Other memory starts undefined, as on a device
/// that is told not to clear it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ZeroInit {
    /// `var<workgroup>`: wgpu's `zero_initialize_workgroup_memory`.
    pub workgroup: bool,
    /// `var<private>` without an initializer.
    pub private: bool,
    /// `var` in functions without an initializer.
    pub function: bool,
}

impl ZeroInit {
    /// All zeros: what WGSL promises.
    pub const ALL: ZeroInit = ZeroInit { workgroup: true, private: true, function: true };
    /// Nothing is cleared: every read before a write is a finding.
    pub const NONE: ZeroInit = ZeroInit { workgroup: false, private: false, function: false };
}

/// The memory system for which transactions and bank conflicts are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CostModel {
    /// Bytes of one device memory transaction, a power of two. 128 by default; NVIDIA's sectors are
    /// 32.
    pub segment_bytes: u32,
    /// Banks of workgroup memory, each 4 bytes wide. 32 by default.
    pub banks: u32,
}

impl Default for CostModel {
    fn default() -> Self {
        CostModel { segment_bytes: 128, banks: 32 }
    }
}

/// How to run a shader, and which mistakes to look for. Begin with the default or with
/// [`execute`](Self::execute), and set fields.
///
/// ```
/// let mut options = tilewise_sanitizer::Options::default();
/// options.subgroup_size = 64;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// Invocations per subgroup, a power of two from 1 to 128. 32 by default.
    pub subgroup_size: u32,
    /// Which memory is zeroed. None by default: reads of memory that nobody wrote are found then.
    pub zero_init: ZeroInit,
    /// Iterations of one loop after which it counts as endless. 1,000,000 by default.
    pub max_iterations: u64,
    /// Whether `fma` rounds once. WGSL allows both: GPUs fuse it, lavapipe does not. On by default.
    pub fused: bool,
    /// Report finite f16 arithmetic and conversions that end in infinity. Off by default.
    pub f16_overflow: bool,
    /// Model by which transactions and bank conflicts are counted. `None` counts neither and is
    /// faster.
    pub costs: Option<CostModel>,
    /// Keep every access to storage and workgroup memory in
    /// [`Report::trace`](crate::Report::trace), for small grids. Off by default.
    pub trace: bool,
    /// Distinct findings kept; more are counted and dropped. 100 by default.
    pub max_findings: usize,
    /// End the run soon after the first finding, which is that of a whole run. Outputs and counters
    /// are then incomplete. Off by default.
    pub stop_at_first: bool,
    /// Look for findings. If off, the shader is only executed, as WGSL defines it for a robust
    /// implementation: reads out of bounds give 0, writes out of bounds do nothing. Endless loops
    /// are still reported.
    pub checks: bool,
    /// Run workgroups in parallel on rayon's pool. Findings and results are the same either way,
    /// except for shaders that race or that depend on the order of atomics. On by default.
    pub parallel: bool,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            subgroup_size: 32,
            zero_init: ZeroInit::NONE,
            max_iterations: 1_000_000,
            fused: true,
            f16_overflow: false,
            costs: Some(CostModel::default()),
            trace: false,
            max_findings: 100,
            stop_at_first: false,
            checks: true,
            parallel: true,
        }
    }
}

impl Options {
    /// Executes without looking for findings: zeroed memory, no costs, no checks.
    pub fn execute() -> Self {
        Options { zero_init: ZeroInit::ALL, costs: None, checks: false, ..Options::default() }
    }
}
