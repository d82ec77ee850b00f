//! One dispatch: the files of its shader, its buffers, its grid.

use crate::kernel::{Constant, Language, Params, Role};

/// One file of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Part {
    /// Path below the folder of its language's files.
    pub file: &'static str,
    /// The operand it is instantiated for: replaces the prefix `x_` of its identifiers.
    pub operand: Option<&'static str>,
    /// Values for its constants.
    pub constants: Vec<Constant>,
}

impl Part {
    /// Replaces the prefix `x_` (`X_`) of identifiers in `text` by the operand's name, in the same
    /// case. Without an operand the text stays the same.
    pub fn instantiate(&self, text: &str) -> String {
        let Some(name) = self.operand else { return text.to_owned() };
        let upper = format!("{}_", name.to_uppercase());
        renamed(&renamed(text, "x_", &format!("{name}_")), "X_", &upper)
    }
}

/// The text with `from` replaced by `to` wherever a name begins with it: `x_` in `x_load`, not in
/// `max_x_`.
pub fn renamed(text: &str, from: &str, to: &str) -> String {
    let mut out = String::with_capacity(text.len() + 256);
    let mut done = 0;
    for (at, _) in text.match_indices(from) {
        if !text[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            out += &text[done..at];
            out += to;
            done = at + from.len();
        }
    }
    out + &text[done..]
}

/// One buffer of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Binding {
    /// The operand or buffer that is bound. It gives the binding's number.
    pub role: Role,
    /// The role whose storage is bound: its own, or `Packed` for an operand that was packed.
    pub from: Role,
    /// First byte of that storage that is bound; a multiple of `Caps::storage_alignment`. Offsets
    /// in `Pass::params` count from there.
    pub start: u64,
    /// Whether the shader writes it.
    pub writable: bool,
    /// Bytes from there on that the shader may touch; a multiple of 4, at least `element_bytes`.
    pub bytes: u64,
    /// Bytes of one element of the bound array.
    pub element_bytes: u64,
}

/// One dispatch.
#[derive(Clone, Debug, PartialEq)]
pub struct Pass {
    /// Kernel and variant, for labels.
    pub label: String,
    /// The language of its shader.
    pub language: Language,
    /// The files that make its shader.
    pub parts: Vec<Part>,
    /// Whether the shader enables the extension f16.
    pub f16: bool,
    /// Whether the shader enables cooperative matrices; it uses subgroups, too.
    pub coop: bool,
    /// Whether loops marked `//unroll` are repeated: [`Caps::unrolls`](crate::Caps::unrolls).
    pub unroll: bool,
    /// Contents of the uniform buffer.
    pub params: Params,
    /// Workgroups along x and y.
    pub grid: [u32; 2],
    /// Where the memory for packed operands holds the number of workgroups along x, y and z, three
    /// numbers of type u32 that an earlier pass wrote. Absent: the grid has the number. The grid is
    /// an upper bound in any case; workgroups without a tile do nothing.
    pub indirect: Option<u64>,
    /// Whether a workgroup that is done with a tile takes another: the one that is as many tiles
    /// further as the grid has workgroups. Such a grid is one row.
    pub strides: bool,
    /// Invocations of one workgroup.
    pub threads: u32,
    /// Bytes of workgroup memory.
    pub workgroup_bytes: u32,
    /// The buffers, by ascending role. `Role::Params` is not among them: every pass has it.
    pub bindings: Vec<Binding>,
    /// Whether operands that the shader only reads are declared and bound as if it wrote them,
    /// because one may lie in the buffer that it does write. WebGPU takes a buffer in one dispatch
    /// either for reading or for writing.
    pub beside_c: bool,
    /// Estimated seconds of all passes of a piece, in its first; absent in the others. The passes
    /// of a piece may be one submission: they read no scratch memory and no packed operands of the
    /// passes before.
    pub piece_seconds: Option<f64>,
}

impl Pass {
    /// Whether a buffer is bound for reading alone.
    pub fn read_only(&self, binding: &Binding) -> bool {
        // The ends of groups decide which invocations reach barriers, and a compiler accepts that
        // of read-only memory alone. Partial sums, packed operands and tables of groups lie in
        // buffers of the library.
        let is_operand = !matches!(binding.from, Role::Offsets | Role::Scratch | Role::Packed);
        !(binding.writable || self.beside_c && is_operand)
    }
}
