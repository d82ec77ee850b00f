//! The kernel: a mainloop with its variants, and the entries of the other three axes. All of it is
//! data; the planner chooses.
//!
//! A shader is a composition of part files along four axes: mainloop × operand loaders × schedule ×
//! epilogue. The tables ([`Library`]) live in the crates `tilewise-shaders` and `tilewise-msl`,
//! next to the files they name.

mod conversions;
mod groups;
mod schedule;
mod unit;
mod variant;

use crate::caps::Caps;
use crate::dtype::DType;
use crate::problem::{Format, Grouping, Operand, Problem};
pub use crate::role::Role;

pub use crate::language::Language;
pub use crate::params::Params;
pub use conversions::{Conversions, EncoderDef};
pub use schedule::{Lanes, ScheduleDef};
pub use unit::Unit;
pub use variant::Variant;

/// A constant of a WGSL file: the right-hand side of the line `const NAME: ... //param`.
pub type Constant = (&'static str, u32);

/// Invocations of a subgroup, for mainloops of matrix units: all devices that have them take this
/// size.
pub const SUBGROUP: u32 = 32;

/// Steps along K from one segment to the next of an operand that is split in two terms.
pub(crate) const fn segment(k: u64) -> u64 {
    k.next_multiple_of(8)
}

/// How a mainloop reads A and B.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Access {
    /// Elements as f32, in WGSL as blocks of 4×4.
    Elements,
    /// Eight elements at a time, as mainloops for few rows or columns do.
    Eights {
        /// The operand that it is written for; none if it takes either in any direction.
        streamed: Option<Streamed>,
    },
    /// A by eights along K, and B as codes, 32 at a time.
    Codes {
        /// Invocations along K that share columns.
        stripes: u32,
        /// Groups of 32 codes that a load may take if they share bytes.
        groups: u32,
        /// Whether it multiplies bytes. Then only formats whose codes are bytes suit it.
        as_bytes: bool,
    },
    /// 16 bytes of the unit's type at a time. Operands of that type are loaded unconverted.
    /// Quantized weights are decoded on their way. If their storage does not suit such loads, or K
    /// is no multiple of `bk`, operands are packed first.
    Words(Words),
}

/// How a mainloop on a matrix unit reads A and B, and adds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Words {
    /// The matrix unit.
    pub unit: &'static Unit,
    /// Steps along K of one slice in workgroup memory. `bk` is a multiple of it.
    pub depth: u32,
    /// Elements between the lines of a slice.
    pub pad: u32,
    /// Steps along K after which its sums are added to others in f32, so that no chain of additions
    /// is longer on the unit; 0 if one chain has all steps.
    pub chain: u32,
    /// Places in workgroup memory for matrices of sums, in each subtile: one for each subgroup that
    /// shares its depth, or fewer, which the subgroups use in turn.
    pub places: u32,
    /// The weights that it is of use for.
    pub weights: Weights,
}

/// Weights that a tile for matrix units is of use for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// All.
    Any,
    /// Weights without codes, if three workgroups fit a core.
    Dense,
    /// Quantized ones.
    Codes,
}

/// The operand of many lines, which a mainloop for few rows or columns reads once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Streamed {
    /// A, against few columns, or B, against few rows.
    pub role: Role,
    /// Whether its storage runs along K.
    pub along_k: bool,
}

impl Streamed {
    /// Sorts \[rows, columns\] into the few and the many. The function is its own inverse.
    pub const fn few_and_many(self, [rows, cols]: [u32; 2]) -> [u32; 2] {
        if matches!(self.role, Role::A) { [cols, rows] } else { [rows, cols] }
    }
}

/// The functions of a loader. Other files make elements and eights of fours, eights of elements,
/// and words of eights and of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Load {
    /// Elements as f32: `x_load`, `x_load4`.
    Elements,
    /// Four stored elements (`x_fetch4`), later decoded to numbers (`x_decode4`).
    Fours,
    /// Eight stored elements (`x_load8`), later decoded to numbers (`x_widen8`).
    Eights,
    /// A group of 32 codes (`x_raw`), later as numbers in f32 (`x_four`), with a scale and a bias
    /// for the group, or for each half (`x_numbers`).
    Codes,
    /// One such group, or several in a load, as signed bytes (`x_bytes`). Another file makes
    /// numbers of these.
    Bytes,
    /// 16 stored bytes, unconverted: `x_words`.
    Words,
    /// 16 bytes gathered from any element on, for the pass that packs an operand: `x_words_masked`.
    Packing,
}

/// Why a kernel does not take a problem.
#[derive(Clone, Debug, PartialEq)]
pub struct Reject(pub String);

/// A mainloop: one file, its variants, and when it serves.
#[derive(Clone, Copy)]
pub struct KernelDef {
    /// Name, as `--kernel` takes it: `simt`.
    pub name: &'static str,
    /// Its file, by its path below the folder of its language's files.
    pub file: &'static str,
    /// The files beside it.
    pub kit: &'static Kit,
    /// The file that its own one takes for A and for B, if that has constants.
    pub operand: Option<OperandFile>,
    /// Its variants, `NAME/VARIANT`.
    pub variants: &'static [Variant],
    /// Values for the constants of its file.
    pub constants: fn(&Variant, &Problem, &Caps) -> Vec<Constant>,
    /// Bytes of workgroup memory that a variant takes for a problem on a device.
    pub workgroup_bytes: fn(&Variant, &Problem, &Caps) -> u32,
    /// Whether K may be split over workgroups (two passes).
    pub splits: bool,
    /// Seconds in which a software device's driver compiles its text: those of any text, and those
    /// for each sum of an invocation.
    pub compiling: [f64; 2],
    /// Whether it is of any use for the problem. Every mainloop is right for every problem, so a
    /// kernel asked for by name skips this. Limits of the device, formats and alignment are checked
    /// by the planner, not here.
    pub admit: fn(&Problem, &Variant, &Caps) -> Result<(), Reject>,
}

/// A mainloop's file that is instantiated for A and for B.
#[derive(Clone, Copy)]
pub struct OperandFile {
    /// The file.
    pub file: &'static str,
    /// Values for its constants, for an operand that is stored along K or not, transposed or not.
    pub constants: fn(along_k: bool, transposed: bool) -> Vec<Constant>,
}

impl Variant {
    /// Whether it takes the products of a grouping. Ranges of K begin, and products of a list end,
    /// anywhere, not at whole steps alone. Mainloops that read single elements take them, and so do
    /// those of matrix units, which leave out what a step has of other ranges.
    pub fn takes(&self, grouping: Grouping) -> bool {
        match self.access {
            Access::Elements | Access::Words { .. } => true,
            Access::Eights { .. } | Access::Codes { .. } => grouping.traits().whole_k,
        }
    }
}

impl KernelDef {
    /// Whether it takes the grouping of a problem, and its loaders can read the operands. A
    /// mainloop that reads weights as codes needs both operands stored along K, and a loader of
    /// codes, or of bytes, for the format, which takes whole groups.
    pub fn takes(&self, variant: &Variant, problem: &Problem, caps: &Caps) -> bool {
        let Access::Codes { .. } = variant.access else {
            return variant.takes(problem.grouping);
        };
        let Operand { format, offset, ld, batch_stride, .. } = problem.b;
        let loads = |o: &OperandDef| {
            let places = [problem.k, offset, ld, batch_stride];
            let whole = places.iter().all(|place| place.is_multiple_of(o.vector));
            o.provides(variant.access) && (o.accepts)(format, caps) && whole
        };
        problem.k > 0
            && variant.takes(problem.grouping)
            && !problem.a.transposed
            && problem.b.transposed
            && self.kit.operands.iter().any(loads)
    }
}

/// How an operand is fetched: one file instantiated for A, B, bias or residual.
#[derive(Clone, Copy)]
pub struct OperandDef {
    /// Its file.
    pub file: &'static str,
    /// Whether it reads this format on this device.
    pub accepts: fn(Format, &Caps) -> bool,
    /// Elements that are fetched together: offset, strides and the extent along the contiguous axis
    /// must be multiples.
    pub vector: u64,
    /// The functions that it provides.
    pub loads: &'static [Load],
    /// Whether it reads only what is stored along K.
    pub along_k: bool,
    /// Values for the file's constants, given the format.
    pub constants: fn(Format) -> Vec<Constant>,
    /// Bytes of one element of the bound array, or of its codes if it is quantized: the least size
    /// of a binding.
    pub element_bytes: u64,
    /// Operations in f32 that take as long as decoding a weight. 0 for elements, and in MSL, where
    /// the costs of variants include it.
    pub decode: f64,
    /// Like [`decode`](Self::decode), for weights on the way into a panel of a matrix unit: weights
    /// with f16 scales are decoded in f16 there.
    pub decode_to_panel: f64,
    /// Whether it enables the WGSL extension f16.
    pub f16: bool,
    /// Bytes of workgroup memory that it takes for itself.
    pub workgroup_bytes: u32,
}

impl OperandDef {
    /// Defaults of the last fields of a table row: no constants, no extension.
    pub const DEFAULT: OperandDef = OperandDef {
        file: "",
        accepts: |_, _| false,
        vector: 1,
        loads: &[],
        along_k: false,
        element_bytes: 0,
        decode: 0.0,
        decode_to_panel: 0.0,
        constants: |_| Vec::new(),
        f16: false,
        workgroup_bytes: 0,
    };

    /// Whether a mainloop with this access can use it.
    pub fn provides(&self, access: Access) -> bool {
        let has = |load| self.loads.contains(&load);
        let elements = has(Load::Elements) || has(Load::Fours);
        match access {
            Access::Elements => elements,
            Access::Eights { .. } => has(Load::Eights) || elements,
            Access::Codes { as_bytes, .. } => has(if as_bytes { Load::Bytes } else { Load::Codes }),
            Access::Words(_) => has(Load::Words),
        }
    }

    /// Whether a mainloop with this access can use it for a format. A matrix unit takes elements of
    /// another type than its own by eights, and so does a mainloop that takes the other operand as
    /// codes.
    pub fn serves(&self, format: Format, access: Access) -> bool {
        match access {
            Access::Words(Words { unit, .. }) if format.element() != Some(unit.matrix.operands) => {
                self.provides(Access::Eights { streamed: None })
            }
            Access::Codes { .. } if format.element().is_some() => {
                self.provides(Access::Eights { streamed: None })
            }
            _ => self.provides(access),
        }
    }
}

/// How an output is written: one file.
#[derive(Clone, Copy)]
pub struct StoreDef {
    /// Its file.
    pub file: &'static str,
    /// Whether it writes this type on this device.
    pub accepts: fn(DType, &Caps) -> bool,
    /// Elements that one invocation must own together: C's offset and strides must be multiples for
    /// a mainloop to store through it.
    pub vector: u64,
    /// Whether the number of columns must be a multiple of `vector` too.
    pub whole: bool,
    /// Whether it also stores single words of two elements, for finishing passes, which ask for no
    /// alignment.
    pub words: bool,
    /// Values for the file's constants.
    pub constants: fn(DType) -> Vec<Constant>,
    /// Bytes of one element of the bound array.
    pub element_bytes: u64,
    /// Whether it enables the WGSL extension f16.
    pub f16: bool,
}

impl StoreDef {
    /// Defaults of the last fields of a table row: single elements, no constants, no extension.
    pub const DEFAULT: StoreDef = StoreDef {
        file: "",
        accepts: |_, _| false,
        vector: 1,
        whole: false,
        words: false,
        element_bytes: 0,
        constants: |_| Vec::new(),
        f16: false,
    };
}

/// All tables: what `plan` walks.
#[derive(Clone, Copy)]
pub struct Library {
    /// Mainloops, of one language or of several.
    pub kernels: &'static [KernelDef],
}

/// The files of one language from which the planner chooses. Each serves a purpose that others
/// serve too, or has constants. A file of neither kind joins a text when another file there needs a
/// name that it offers.
#[derive(Clone, Copy)]
pub struct Kit {
    /// The language of all these files.
    pub language: Language,
    /// How lanes tell each other numbers, for schedules that ask them; none if no schedule does.
    pub lanes: Option<Lanes>,
    /// Operand loaders, the preferred first.
    pub operands: &'static [OperandDef],
    /// Output stores, the preferred first.
    pub stores: &'static [StoreDef],
    /// Schedules.
    pub schedules: &'static [ScheduleDef],
    /// The file of the pass that makes a table of groups.
    pub table: Option<&'static str>,
    /// The file instantiated for A and B that says along which axis they are stored.
    pub axes: &'static str,
    /// The file that gives the storage line of a row of A which an index names; none in a language
    /// that cannot.
    pub gathered: Option<&'static str>,
    /// The loader of an operand that is not there.
    pub absent: &'static str,
    /// Alpha, beta and bias.
    pub linear: &'static str,
    /// Activation and residual, after [`linear`](Self::linear).
    pub added: &'static str,
    /// Like [`added`](Self::added), for a residual that is a gate.
    pub gated: &'static str,
    /// Like [`added`](Self::added), for columns in pairs of which one is the gate; none in a
    /// language that cannot.
    pub paired: Option<&'static str>,
    /// Activations.
    pub activation: &'static str,
    /// The end of a mainloop that leaves f32 partial sums to a finishing pass.
    pub partial: &'static str,
    /// Adds those partial sums, one from each K split.
    pub k_splits: &'static str,
    /// The finishing pass.
    pub finish: &'static str,
    /// Rows and columns of C that one of its workgroups finishes, four columns per invocation;
    /// fewer if a device has fewer invocations.
    pub finish_tile: [u32; 2],
    /// The finishing pass if words are shared between rows of C; none if every store takes elements
    /// one by one.
    pub by_words: Option<ByWords>,
    /// How the residual is left to a second finishing pass; none in a language whose devices bind
    /// enough for one pass.
    pub residual_pass: Option<ResidualPass>,
    /// How operands are packed; none in a language whose mainloops take all operands as they lie.
    pub pack: Option<Pack>,
}

/// The finishing pass that gives each invocation one word of C.
#[derive(Clone, Copy)]
pub struct ByWords {
    /// Its file.
    pub finish: &'static str,
    /// Words that one of its workgroups finishes, one per invocation; fewer if a device has fewer
    /// invocations.
    pub threads: u32,
}

/// The files of two finishing passes, of which the second adds the residual.
#[derive(Clone, Copy)]
pub struct ResidualPass {
    /// The partial sums and the end of the first pass.
    pub keep: &'static str,
    /// The file in place of [`Kit::linear`] in the second pass.
    pub kept: &'static str,
}

/// The files that pack operands, and those by which mainloops of matrix units ([`Access::Words`])
/// read what is packed.
#[derive(Clone, Copy)]
pub struct Pack {
    /// The pass that packs.
    pub file: &'static str,
    /// Lines of the copy, and vectors of 16 bytes in each, that one of its workgroups writes, one
    /// vector per invocation; fewer if a device has fewer invocations.
    pub tile: [u32; 2],
    /// The file instantiated beside loaders of fours for a pass that decodes weights to f32.
    pub floats: &'static str,
    /// The file that says where an operand of a matrix unit, or its packed copy, has its elements.
    pub slabs: &'static str,
    /// The pass that packs an operand whose lines must be divided by powers of two.
    pub scale: &'static str,
    /// The pass that packs an operand which is split in two terms.
    pub split: &'static str,
    /// The file that finds the powers of two, for [`scale`](Self::scale) and
    /// [`split`](Self::split).
    pub powers: &'static str,
    /// Rows or columns, side by side in storage, that a workgroup of [`scale`](Self::scale) or
    /// [`split`](Self::split) takes; at most so many if storage runs along K.
    pub strip: u32,
    /// Invocations of such a workgroup, if storage runs along K and if it does not: powers of two.
    /// A device that has fewer, or too little workgroup memory, gets half of them, or half of that,
    /// down to a subgroup.
    pub threads: [u32; 2],
    /// The file instantiated for an operand that [`scale`](Self::scale) or [`split`](Self::split)
    /// packed, which reads the powers of two.
    pub divisors: &'static str,
    /// The file that multiplies sums by the powers that lines of an operand were divided by.
    pub divided: &'static str,
}
