//! Operators and conversions, and functions over each scalar.

use super::shape;
use super::{Compiler, Frame};
use crate::Error;
use crate::program::{Binary, Op, Reg, SiteId, Ty, Unary};
use naga::{BinaryOperator, Expression, Handle};

impl<'a> Compiler<'a> {
    pub(super) fn binary(
        &mut self,
        frame: &mut Frame<'a>,
        op: BinaryOperator,
        left: Handle<Expression>,
        right: Handle<Expression>,
        site: SiteId,
    ) -> Result<Vec<Reg>, Error> {
        let (left_shape, right_shape) = (self.shape(frame, left)?, self.shape(frame, right)?);
        let (_, ty) = self.scalars(frame, left)?;
        let (_, right_ty) = self.scalars(frame, right)?;
        let (a, b) = (self.regs(frame, left)?, self.regs(frame, right)?);
        if op == BinaryOperator::Multiply
            && let Some(product) = self.matrix_product(left_shape, right_shape, &a, &b, site)
        {
            return Ok(product);
        }
        let f = match op {
            BinaryOperator::Add => Binary::Add,
            BinaryOperator::Subtract => Binary::Subtract,
            BinaryOperator::Multiply => Binary::Multiply,
            BinaryOperator::Divide => Binary::Divide,
            BinaryOperator::Modulo => Binary::Modulo,
            BinaryOperator::Equal => Binary::Equal,
            BinaryOperator::NotEqual => Binary::NotEqual,
            BinaryOperator::Less => Binary::Less,
            BinaryOperator::LessEqual => Binary::LessEqual,
            BinaryOperator::Greater => Binary::Greater,
            BinaryOperator::GreaterEqual => Binary::GreaterEqual,
            BinaryOperator::And | BinaryOperator::LogicalAnd => Binary::And,
            BinaryOperator::ExclusiveOr => Binary::Xor,
            BinaryOperator::InclusiveOr | BinaryOperator::LogicalOr => Binary::Or,
            BinaryOperator::ShiftLeft => Binary::ShiftLeft,
            BinaryOperator::ShiftRight => Binary::ShiftRight,
        };
        Ok(self.map2(f, ty, right_ty, &a, &b, site))
    }

    /// Applies a function of one scalar to each scalar. `to` is the type of the result.
    pub(super) fn map1(&mut self, f: Unary, ty: Ty, to: Ty, a: &[Reg], site: SiteId) -> Vec<Reg> {
        let (from_planes, to_planes) = (ty.planes(), to.planes());
        let count = a.len() as u32 / from_planes;
        let first = self.registers(count * to_planes);
        for i in 0..count {
            let op = Op::Unary { f, ty, dst: first + i * to_planes, a: self.pair(a, i, ty) };
            self.emit(op, site);
        }
        (first..first + count * to_planes).collect()
    }

    /// Applies a function of two scalars to each pair. A single scalar is paired with all scalars
    /// of the other side.
    pub(super) fn map2(
        &mut self,
        f: Binary,
        ty: Ty,
        right_ty: Ty,
        a: &[Reg],
        b: &[Reg],
        site: SiteId,
    ) -> Vec<Reg> {
        let to = if f.compares() { Ty::Bool } else { ty };
        let (left, right) = (a.len() as u32 / ty.planes(), b.len() as u32 / right_ty.planes());
        let count = left.max(right);
        let first = self.registers(count * to.planes());
        for i in 0..count {
            let a = self.pair(a, if left == 1 { 0 } else { i }, ty);
            let b = self.pair(b, if right == 1 { 0 } else { i }, right_ty);
            self.emit(Op::Binary { f, ty, dst: first + i * to.planes(), a, b }, site);
        }
        (first..first + count * to.planes()).collect()
    }

    /// The first register of the `index`-th scalar. Both halves of a wide scalar must be
    /// neighbours; if they are not, they are copied.
    pub(super) fn pair(&mut self, regs: &[Reg], index: u32, ty: Ty) -> Reg {
        let at = (index * ty.planes()) as usize;
        if ty.is_wide()
            && (regs[at] & crate::program::CONSTANT != 0 || regs[at] + 1 != regs[at + 1])
        {
            let dst = self.registers(2);
            self.emit(Op::Copy { dst, src: regs[at] }, 0);
            self.emit(Op::Copy { dst: dst + 1, src: regs[at + 1] }, 0);
            return dst;
        }
        regs[at]
    }

    pub(super) fn cast(
        &mut self,
        frame: &mut Frame<'a>,
        expr: Handle<Expression>,
        kind: naga::ScalarKind,
        convert: Option<u8>,
        site: SiteId,
    ) -> Result<Vec<Reg>, Error> {
        let (count, from) = self.scalars(frame, expr)?;
        let regs = self.regs(frame, expr)?;
        let width = convert.unwrap_or(from.bytes() as u8);
        let to = shape::scalar(naga::Scalar { kind, width }).ok_or_else(|| Error::Unsupported {
            what: format!("a conversion to {kind:?} of {width} bytes"),
            at: None,
        })?;
        if from == to {
            return Ok(regs);
        }
        if convert.is_none() {
            if to != Ty::I16 && from != Ty::I16 {
                return Ok(regs);
            }
            // 16-bit integers are kept extended: shifts in 32 bits make the extension anew.
            let sixteen = self.constant(16);
            let up = self.map2(Binary::ShiftLeft, Ty::U32, Ty::U32, &regs, &[sixteen], site);
            let down = if to == Ty::I16 { Ty::I32 } else { Ty::U32 };
            return Ok(self.map2(Binary::ShiftRight, down, Ty::U32, &up, &[sixteen], site));
        }
        let first = self.registers(count * to.planes());
        for i in 0..count {
            let a = self.pair(&regs, i, from);
            self.emit(Op::Convert { from, to, dst: first + i * to.planes(), a }, site);
        }
        Ok((first..first + count * to.planes()).collect())
    }
}
