//! One tile shape of a mainloop.

use crate::dtype::DType;
use crate::model::Model;
use crate::problem::{Format, Operand, Problem};

use super::{Access, Reject, Unit, Words, segment};

/// One tile shape (and so on) of a mainloop.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variant {
    /// Name within the kernel, such as `64x64x16`.
    pub name: &'static str,
    /// Rows of C that one workgroup computes.
    pub bm: u32,
    /// Columns of C that one workgroup computes.
    pub bn: u32,
    /// Step along K of one round of the workgroup. A split of K is a multiple of it.
    pub bk: u32,
    /// Invocations of one workgroup, all along x.
    pub threads: u32,
    /// Bytes of workgroup memory, at most.
    pub workgroup_bytes: u32,
    /// Rows and columns of C whose sums one invocation holds, or one subgroup on matrix units.
    pub sums: [u32; 2],
    /// How it reads A and B.
    pub access: Access,
    /// How long it is expected to take.
    pub model: Model,
}

impl Variant {
    /// The matrix unit that it computes on.
    pub fn unit(&self) -> Option<&'static Unit> {
        if let Access::Words(words) = self.access { Some(words.unit) } else { None }
    }

    /// Whether it multiplies four bytes by four, which a device may lack.
    pub fn multiplies_bytes(&self) -> bool {
        matches!(self.model, Model::Bytes { work, .. } if work.products > 0.0)
    }

    /// Whether FXC takes too long to compile it: some five seconds for 128 sums of an invocation.
    pub fn is_beyond_fxc(&self) -> bool {
        matches!(self.access, Access::Eights { .. }) && self.sums[0] * self.sums[1] > 64
    }

    /// Steps along K of a chain of additions on the matrix unit; 0 if one chain has all steps.
    pub fn chain(&self) -> u32 {
        if let Access::Words(words) = self.access { words.chain } else { 0 }
    }

    /// The problem that it multiplies: the given one, or, if it splits the operands in two terms,
    /// one whose K has three segments of [`segment`] steps.
    pub(crate) fn multiplied(&self, problem: &Problem) -> Problem {
        if !(problem.may_split() && self.unit().is_some_and(|unit| unit.splits(problem.a.format))) {
            return *problem;
        }
        let halves = |operand: Operand| Operand { format: Format::Dense(DType::F16), ..operand };
        Problem {
            k: 3 * segment(problem.k),
            a: halves(problem.a),
            b: halves(problem.b),
            ..*problem
        }
    }

    /// This variant with `pad` elements between the lines of a slice, or why that cannot be.
    pub(crate) fn padded(self, pad: u32) -> Result<Self, Reject> {
        let Access::Words(words) = self.access else {
            return Err(Reject(format!(
                "+pad{pad}: only kernels for matrix units have lines to pad"
            )));
        };
        // Matrices and vectors are aligned to 16 bytes.
        let vector = 16 / words.unit.matrix.operands.bytes() as u32;
        if !pad.is_multiple_of(vector) {
            return Err(Reject(format!(
                "+pad{pad}: only multiples of {vector} keep the lines aligned ({} is its own)",
                words.pad
            )));
        }
        Ok(Variant { access: Access::Words(Words { pad, ..words }), ..self })
    }
}
