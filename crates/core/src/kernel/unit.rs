//! A matrix unit, as kernels use it.

use super::{Reject, SUBGROUP};
use crate::caps::{Caps, CoopMatrix};
use crate::dtype::DType;
use crate::problem::{Format, Problem};

/// A matrix unit that a mainloop multiplies with: one WGSL file that names types and sizes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Its file.
    pub file: &'static str,
    /// The product that the device must have.
    pub matrix: CoopMatrix,
}

impl Unit {
    /// Refuses a problem that it does not serve, with the reason: the device lacks the unit,
    /// operands are of other types, the operands of a list would have to be copied, its sums are
    /// f16 without permission, or K is 0. A unit of f16 takes quantized weights, rounded to f16 on
    /// their way to it. It takes bf16, whose lines are brought into f16's range by powers of two.
    /// By permission it takes f32 by f32, each in two terms.
    pub fn serves(&self, problem: &Problem, caps: &Caps) -> Result<(), Reject> {
        let CoopMatrix { size, operands, sums } = self.matrix;
        if !caps.coop.contains(&self.matrix) || caps.subgroup_size != Some(SUBGROUP) {
            return Err(Reject(match caps.coop_off {
                Some(why) => format!("matrix units are off: {why}"),
                None => format!(
                    "no matrix unit for {size}×{size} {operands}→{sums} in subgroups of {SUBGROUP}"
                ),
            }));
        }
        let (a, b) = (problem.a.format, problem.b.format);
        let both = |takes: &dyn Fn(Format) -> bool| takes(a) && takes(b);
        let in_terms = both(&|format| self.splits(format));
        if !(both(&|format| self.takes(format)) || in_terms && problem.may_split()) {
            let permitted = if in_terms && problem.grouping.traits().whole_k {
                ", which split-f32 permits"
            } else {
                ""
            };
            return Err(Reject(format!(
                "multiplies {operands} by {operands}, and these are {a} and {b}{permitted}"
            )));
        }
        if problem.grouping.traits().listed
            && let Some(format) = [a, b].into_iter().find(|format| self.scales(*format))
        {
            return Err(Reject(format!(
                "{format} is copied and divided by powers of two, and operands of a list are not \
                 copied"
            )));
        }
        if sums == DType::F16 && problem.accumulation() != DType::F16 {
            return Err(Reject(
                "its sums are f16, which only the precision f16-sums permits".into(),
            ));
        }
        if problem.k == 0 {
            return Err(Reject("K is 0: there are no matrices to multiply".into()));
        }
        Ok(())
    }

    /// Whether it takes operands in this format: its own type, or one that kernels convert to it.
    /// Sums in f16 have no room for lines that fill f16's range.
    pub fn takes(&self, format: Format) -> bool {
        let CoopMatrix { operands, sums, .. } = self.matrix;
        match format {
            Format::Dense(own) if own == operands => true,
            Format::Dense(own) => {
                own == DType::BF16 && operands == DType::F16 && sums == DType::F32
            }
            Format::Quantized(_) => operands == DType::F16,
        }
    }

    /// Whether it takes operands in this format in two terms, if that is permitted
    /// ([`Problem::may_split`]).
    pub(crate) fn splits(&self, format: Format) -> bool {
        let CoopMatrix { operands, sums, .. } = self.matrix;
        format == Format::Dense(DType::F32) && operands == DType::F16 && sums == DType::F32
    }

    /// Whether the lines of an operand must be divided by powers of two before it multiplies them.
    pub(crate) fn scales(&self, format: Format) -> bool {
        self.splits(format)
            || format == Format::Dense(DType::BF16) && self.matrix.operands != DType::BF16
    }
}
