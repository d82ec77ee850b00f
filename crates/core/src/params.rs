//! The numbers of a pass, which its kernel receives in a uniform buffer. One table makes the struct
//! in Rust and the struct in shaders.

use crate::language::Language;
use crate::role::Role;

/// The type of a field on the host.
macro_rules! host {
    (vec4u) => {
        [u32; 4]
    };
    ($ty:ident) => {
        u32
    };
}

/// Each field has a doc comment, a name, and its type in shaders.
macro_rules! params {
    ($($(#[$doc:meta])* $name:ident: $ty:ident,)*) => {
        /// The numbers of a pass, as its kernel receives them in a uniform buffer. An f32 is stored
        /// as its bits, so that `Params` is `Eq` and `Hash`.
        #[repr(C)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        #[derive(bytemuck::Pod, bytemuck::Zeroable)]
        pub struct Params {
            $($(#[$doc])* pub $name: host!($ty),)*
        }

        /// Name and type of every field, as WGSL has them.
        const FIELDS: &[(&str, &str)] = &[$((stringify!($name), stringify!($ty))),*];
    };
}

params! {
    /// Rows of A and C.
    m: u32,
    /// Columns of B and C.
    n: u32,
    /// The summed dimension.
    k: u32,
    /// Batch entries, or groups.
    entries: u32,
    /// Index of the first element of A.
    a_offset: u32,
    /// Elements from one storage line of A to the next.
    a_ld: u32,
    /// Elements from one batch entry of A to the next.
    a_batch: u32,
    /// Index of the first element of B.
    b_offset: u32,
    /// Elements from one storage line of B to the next.
    b_ld: u32,
    /// Elements from one batch entry, or group, of B to the next.
    b_batch: u32,
    /// Index of the first element of C.
    c_offset: u32,
    /// Elements from one row of C to the next.
    c_ld: u32,
    /// Elements from one batch entry of C to the next.
    c_batch: u32,
    /// Index of the first element of the bias.
    bias_offset: u32,
    /// Elements from one element of the bias to the next.
    bias_ld: u32,
    /// Elements from the bias of one batch entry, or group, to the next.
    bias_batch: u32,
    /// Index of the first element of the residual.
    residual_offset: u32,
    /// Elements from one row of the residual to the next.
    residual_ld: u32,
    /// Elements from one batch entry of the residual to the next.
    residual_batch: u32,
    /// Factor of the product.
    alpha: f32,
    /// Factor of the old C.
    beta: f32,
    /// Tiles along M (an upper bound when the schedule is ragged).
    tiles_m: u32,
    /// Tiles along N.
    tiles_n: u32,
    /// Splits of K.
    splits: u32,
    /// Elements of K in each split but the last.
    k_split: u32,
    /// Workgroups along x; the linear workgroup index is y·grid_x + x.
    grid_x: u32,
    /// Shares of a pass, one for each invocation: words of C, counted from that of `c_offset`, or
    /// four elements of it, or blocks of weights.
    shares: u32,
    /// Splits of K that a finishing pass finds in scratch memory.
    scratch_splits: u32,
    /// Rows of a grouped product, of a table or of weights before the first of this pass.
    first_row: u32,
    /// Groups of a grouped product before the first of this pass.
    first_group: u32,
    /// Place of the first index of rows, or of the first end of a group.
    row_offset: u32,
    /// Words from one index of rows to the next.
    row_step: u32,
    /// Place of the first index of columns, or of the rows of A.
    column_offset: u32,
    /// Words from one index of columns to the next.
    column_step: u32,
    /// Rows of a table, or of the matrix that A's rows are gathered from.
    table_rows: u32,
    /// Rows of the table that a pass binds, from `first_row` on.
    bound_rows: u32,
    /// The dimensions of a nested batch, outermost first.
    nest: vec4u,
    /// Elements from one entry of A to the next along each dimension of `nest`.
    a_nest: vec4u,
    /// Like `a_nest`, of B.
    b_nest: vec4u,
    /// Like `a_nest`, of C.
    c_nest: vec4u,
    /// Like `a_nest`, of the bias.
    bias_nest: vec4u,
    /// Like `a_nest`, of the residual.
    residual_nest: vec4u,
}

// Vectors of four start at multiples of 16 bytes in a uniform buffer.
const _: () = assert!(std::mem::offset_of!(Params, nest).is_multiple_of(16));
const _: () = assert!(size_of::<Params>().is_multiple_of(16));

impl Params {
    /// The struct in a shader. MSL does not know `uint` yet: no header stands before the struct.
    pub fn declaration(language: Language) -> String {
        let field = |(name, ty): &(&str, &str)| match (language, *ty) {
            (Language::Wgsl, ty) => format!("    {name}: {ty},\n"),
            (Language::Msl, "f32") => format!("    float {name};\n"),
            (Language::Msl, "vec4u") => format!("    unsigned int {name}[4];\n"),
            (Language::Msl, _) => format!("    unsigned int {name};\n"),
        };
        let fields: String = FIELDS.iter().map(field).collect();
        let end = if language == Language::Msl { "};" } else { "}" };
        format!("struct Params {{\n{fields}{end}\n")
    }

    /// Says where A or B lies instead, with its entries one after the other.
    pub(crate) fn relocate(&mut self, role: Role, [offset, ld, batch]: [u32; 3]) {
        let [_, second, third, last] = self.nest;
        let nest = [second * third * last, third * last, last, 1].map(|entries| entries * batch);
        let (its_offset, its_ld, its_batch, its_nest) = match role {
            Role::A => (&mut self.a_offset, &mut self.a_ld, &mut self.a_batch, &mut self.a_nest),
            _ => (&mut self.b_offset, &mut self.b_ld, &mut self.b_batch, &mut self.b_nest),
        };
        (*its_offset, *its_ld, *its_batch, *its_nest) = (offset, ld, batch, nest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structs_in_shaders() {
        let wgsl = Params::declaration(Language::Wgsl);
        assert!(
            wgsl.starts_with("struct Params {\n    m: u32,\n")
                && wgsl.ends_with("    residual_nest: vec4u,\n}\n"),
            "{wgsl}"
        );
        assert!(wgsl.contains("    alpha: f32,\n    beta: f32,\n"), "{wgsl}");
        let msl = Params::declaration(Language::Msl);
        assert!(
            msl.starts_with("struct Params {\n    unsigned int m;\n")
                && msl.ends_with("    unsigned int residual_nest[4];\n};\n"),
            "{msl}"
        );
        assert!(msl.contains("    float alpha;\n    float beta;\n"), "{msl}");
    }
}
