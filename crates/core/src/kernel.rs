//! What a kernel is: a mainloop with its variants, and the entries of the other three axes. Data, not code that chooses.
//!
//! A shader is a composition of parts along four axes: mainloop × operand loaders × schedule × epilogue. The tables
//! ([`Library`]) live in the crates `tilewise-shaders` and `tilewise-msl`, next to the files they name.

use crate::caps::{Caps, CoopMatrix};
use crate::problem::{DType, Format, Problem};

pub use crate::params::Params;

/// What a binding holds. The discriminant is its number in group 0, the same in every shader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
pub enum Role {
    /// The uniform [`Params`].
    Params = 0,
    /// Elements of A.
    A = 1,
    /// Elements (or codes) of B.
    B = 2,
    /// The output.
    C = 3,
    /// The bias vector.
    Bias = 4,
    /// The residual matrix.
    Residual = 5,
    /// Cumulative ends of the groups, u32.
    Offsets = 6,
    /// Scales of a quantized B.
    BScales = 7,
    /// Biases of a quantized B.
    BBiases = 8,
    /// f32 partial sums between two passes.
    Scratch = 9,
    /// Operands copied to where wide loads fit them.
    Packed = 10,
}

impl Role {
    /// The binding number in group 0.
    pub const fn binding(self) -> u32 {
        self as u32
    }

    /// Lower-case name for messages.
    pub const fn name(self) -> &'static str {
        match self {
            Role::Params => "params",
            Role::A => "a",
            Role::B => "b",
            Role::C => "c",
            Role::Bias => "bias",
            Role::Residual => "residual",
            Role::Offsets => "offsets",
            Role::BScales => "b scales",
            Role::BBiases => "b biases",
            Role::Scratch => "scratch",
            Role::Packed => "packed",
        }
    }
}

/// A constant of a WGSL file: the right-hand side of the line `const NAME: ... //param`.
pub type Constant = (&'static str, u32);

/// What a mainloop for matrix units multiplies with: one WGSL file that names types and sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Its file.
    pub file: &'static str,
    /// The product that the device must have.
    pub matrix: CoopMatrix,
}

impl Unit {
    /// Why it does not serve a problem, if it does not: the device lacks it, operands are of other types, its sums are f16 without permission, or K is 0.
    pub fn serves(&self, problem: &Problem, caps: &Caps) -> Result<(), Reject> {
        let CoopMatrix { size, operands, sums } = self.matrix;
        if !caps.coop.contains(&self.matrix) || caps.subgroup_size != Some(SUBGROUP) {
            return Err(Reject(format!(
                "no matrix unit for {size}×{size} {operands}→{sums} in subgroups of {SUBGROUP}"
            )));
        }
        let (a, b, wanted) = (problem.a.format, problem.b.format, Format::Dense(operands));
        if a != wanted || b != wanted {
            return Err(Reject(format!("multiplies {wanted} by {wanted}, and these are {a} and {b}")));
        }
        if sums == DType::F16 && !problem.allow_f16_accumulation {
            return Err(Reject("its sums are f16, which only allow_f16_accumulation permits".into()));
        }
        if problem.k == 0 {
            return Err(Reject("K is 0: there are no matrices to multiply".into()));
        }
        Ok(())
    }
}

/// Invocations of a subgroup, for mainloops of matrix units: all devices that have them take this size.
pub const SUBGROUP: u32 = 32;

/// One tile shape (and so on) of a mainloop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variant {
    /// Name within the kernel, such as `64x64x16`.
    pub name: &'static str,
    /// Rows of C that one workgroup computes.
    pub bm: u32,
    /// Columns of C that one workgroup computes.
    pub bn: u32,
    /// Step along K of one round of the workgroup. A part of a split K is a multiple of it.
    pub bk: u32,
    /// Invocations of one workgroup, all along x.
    pub threads: u32,
    /// Bytes of workgroup memory, at most.
    pub workgroup_bytes: u32,
    /// Values for the file's constants.
    pub constants: &'static [Constant],
    /// Elements between the lines of a slice in workgroup memory, the file's constant PAD; none where it has no such lines.
    pub pad: Option<u32>,
    /// Whether it loads eight elements at a time (`x_load8`) instead of blocks.
    pub eights: bool,
    /// The matrix unit that it computes on. Its operands must be of that unit's type; where their storage does not suit loads of 16 bytes, or K is no multiple
    /// of `bk`, they are packed first.
    pub unit: Option<&'static Unit>,
}

impl Variant {
    /// With so many elements between the lines of a slice, if that can be.
    pub(crate) fn padded(self, pad: u32) -> Result<Self, Reject> {
        let (Some(own), Some(unit)) = (self.pad, self.unit) else {
            return Err(Reject(format!("+pad{pad}: it has no lines to pad, as kernels for matrix units have")));
        };
        // Matrices and vectors are aligned to 16 bytes.
        let vector = 16 / unit.matrix.operands.bytes() as u32;
        if !pad.is_multiple_of(vector) {
            return Err(Reject(format!(
                "+pad{pad}: lines stay aligned for multiples of {vector} only ({own} is its own)"
            )));
        }
        Ok(Variant { pad: Some(pad), ..self })
    }
}

/// Why a kernel does not take a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Reject(pub String);

/// A mainloop: one file, its variants, and when and how well it serves.
#[derive(Clone, Copy)]
pub struct KernelDef {
    /// Name, as `--kernel` takes it: `simt`.
    pub name: &'static str,
    /// Its file, by its path below the folder of its language's files.
    pub file: &'static str,
    /// What it is composed with.
    pub kit: &'static Kit,
    /// Files instantiated for A and for B beside the loader and its blocks.
    pub operand_files: &'static [&'static str],
    /// Values for the constants of those files, for an operand that is stored along K or not, transposed or not.
    pub operand_constants: fn(along_k: bool, transposed: bool) -> Vec<Constant>,
    /// Its variants, `NAME/VARIANT`.
    pub variants: &'static [Variant],
    /// Bytes of workgroup memory that a variant takes for a problem.
    pub workgroup_bytes: fn(&Variant, &Problem) -> u32,
    /// Whether K may be split over workgroups (two passes).
    pub splits: bool,
    /// Whether it is of any use for the problem. Every mainloop is right for every problem, so a kernel asked for by name skips this.
    /// Limits of the device, formats and alignment are checked by the planner, not here.
    pub admit: fn(&Problem, &Variant) -> Result<(), Reject>,
    /// Estimated seconds on the GPU for one pass over K in `splits` parts; only the order of the estimates matters.
    pub cost: fn(&Problem, &Caps, &Variant, splits: u64) -> f64,
}

/// How an operand is fetched: one file instantiated for A, B, bias or residual.
#[derive(Clone, Copy)]
pub struct OperandDef {
    /// Its file.
    pub file: &'static str,
    /// Whether it reads this format on this device.
    pub accepts: fn(Format, &Caps) -> bool,
    /// Elements that are fetched together: offset, strides and the extent along the contiguous axis must be multiples.
    pub vector: u64,
    /// Whether it loads elements as f32 (`x_load`, `x_load4`), as most mainloops want them.
    pub elements: bool,
    /// Whether it loads 16 bytes as they are, as mainloops of matrix units want them (`x_words`), or, where its `vector` is 1, their packing
    /// (`x_words_part`).
    pub words: bool,
    /// Whether it loads eight elements at a time as they are stored (`x_load8`, `x_widen8`), as mainloops of few rows want them; of loaders of elements
    /// `Library::pair` makes that.
    pub eights: bool,
    /// Values for the file's constants, given the format.
    pub constants: fn(Format) -> Vec<Constant>,
    /// Bytes of one element of the bound array: the least size of a binding.
    pub element_bytes: u64,
    /// Whether it enables the WGSL extension f16.
    pub f16: bool,
}

/// How an output is written: one file.
#[derive(Clone, Copy)]
pub struct StoreDef {
    /// Its file.
    pub file: &'static str,
    /// Whether it writes this type on this device.
    pub accepts: fn(DType, &Caps) -> bool,
    /// Elements that one invocation must own together: C's offset and strides must be multiples for a mainloop to store through it.
    pub vector: u64,
    /// Whether the number of columns must be a multiple of `vector` too.
    pub whole: bool,
    /// Whether it stores words of two elements one by one, too, for finishing passes that have no alignment to ask for.
    pub words: bool,
    /// Values for the file's constants.
    pub constants: fn(DType) -> Vec<Constant>,
    /// Bytes of one element of the bound array.
    pub element_bytes: u64,
    /// Whether it enables the WGSL extension f16.
    pub f16: bool,
}

/// How workgroups find their tile.
#[derive(Clone, Copy)]
pub struct ScheduleDef {
    /// Its file.
    pub file: &'static str,
    /// Whether it serves this grouping.
    pub accepts: fn(&Problem) -> bool,
    /// Upper bound on the tiles along M for a tile of `bm` rows.
    pub tiles_m: fn(&Problem, bm: u64) -> u64,
    /// Whether every tile starts at a row that is a multiple of `bm`.
    pub aligned_rows: bool,
    /// Whether it reads the group offsets.
    pub offsets: bool,
}

/// All tables: what `plan` walks.
#[derive(Clone, Copy)]
pub struct Library {
    /// Mainloops, of one language or of several.
    pub kernels: &'static [KernelDef],
}

/// What a shader is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Language {
    /// WebGPU's shading language: every device.
    Wgsl,
    /// The Metal shading language: Apple's GPUs.
    Msl,
}

/// What the mainloops of one language are composed with.
#[derive(Clone, Copy)]
pub struct Kit {
    /// The language of all these files.
    pub language: Language,
    /// Operand loaders, the preferred first.
    pub operands: &'static [OperandDef],
    /// Output stores, the preferred first.
    pub stores: &'static [StoreDef],
    /// Schedules.
    pub schedules: &'static [ScheduleDef],
    /// Files that every mainloop is composed with.
    pub common: &'static [&'static str],
    /// The file instantiated beside loaders and stores that take elements one by one, which loads four; none where they do so themselves.
    pub single: Option<&'static str>,
    /// The file instantiated for A and B that says along which axis they are stored.
    pub axes: &'static str,
    /// The file instantiated for A and B that gives the storage line of a row or column.
    pub lines: &'static str,
    /// The file instantiated for A and B that turns a loader into 4×4 blocks, where mainloops take those.
    pub block: Option<&'static str>,
    /// The file instantiated beside loaders of four elements that makes them load eight; none where they do so themselves.
    pub pair: Option<&'static str>,
    /// The loader of an operand that is not there.
    pub absent: &'static str,
    /// The end of a mainloop that stores its result.
    pub direct: &'static str,
    /// Alpha, beta, bias and residual.
    pub linear: &'static str,
    /// Activations.
    pub activation: &'static str,
    /// The end of a mainloop that leaves f32 partial sums to a finishing pass.
    pub partial: &'static str,
    /// What reads those partial sums.
    pub parts: &'static str,
    /// The finishing pass.
    pub finish: &'static str,
    /// Rows and columns of C that one of its workgroups finishes, four columns per invocation: of so few that every device has them.
    pub finish_tile: [u32; 2],
    /// The finishing pass where words are shared between rows of C; none where every store takes elements one by one.
    pub finish_words: Option<&'static str>,
    /// Words that one of its workgroups finishes, one per invocation.
    pub finish_threads: u32,
    /// The pass that packs an operand for matrix units ([`Variant::unit`]); none where no mainloop has those.
    pub pack: Option<&'static str>,
    /// Lines of the copy, and units of 16 bytes in each, that one of its workgroups writes.
    pub pack_tile: [u32; 2],
}
