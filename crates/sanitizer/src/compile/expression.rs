//! Expressions.

use super::pointer::{Place, Root};
use super::shape::{Elements, Shape};
use super::{Compiler, Frame, Value};
use crate::Error;
use crate::program::{Len, Op, Reg, SiteId, Ternary, Ty, Unary};
use naga::{Expression, Handle, Literal, Type, UnaryOperator};

impl<'a> Compiler<'a> {
    /// The value of an expression: the kept value if it was emitted, or a new one if it needs no
    /// emitting.
    pub(super) fn value(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Value, Error> {
        if let Some(value) = frame.values.get(&handle) {
            return Ok(value.clone());
        }
        let value = self.expression(frame, handle)?;
        frame.values.insert(handle, value.clone());
        Ok(value)
    }

    /// The registers of a value that is no pointer.
    pub(super) fn regs(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Vec<Reg>, Error> {
        match self.value(frame, handle)? {
            Value::Regs(regs) => Ok(regs),
            Value::Place(_) => Err(self
                .unsupported("a pointer as a value", frame.function.expressions.get_span(handle))),
        }
    }

    /// The register of a narrow scalar.
    pub(super) fn reg(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Reg, Error> {
        Ok(self.regs(frame, handle)?[0])
    }

    pub(super) fn shape(
        &self,
        frame: &Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Shape, Error> {
        let resolution = &frame.info[handle].ty;
        self.types
            .of(resolution.inner_with(self.types.arena), resolution.handle())
            .map_err(|error| self.located(error, frame.function.expressions.get_span(handle)))
    }

    /// Number of scalars, and their type.
    pub(super) fn scalars(
        &self,
        frame: &Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<(u32, Ty), Error> {
        let shape = self.shape(frame, handle)?;
        let planes = self.types.planes(shape)?;
        match shape {
            Shape::Scalar(ty)
            | Shape::Atomic(ty)
            | Shape::Vector { ty, .. }
            | Shape::Matrix { ty, .. } => Ok((planes / ty.planes(), ty)),
            Shape::Coop(coop) => Ok((planes / coop.ty.planes(), coop.ty)),
            Shape::Array { .. } | Shape::Struct(_) => Err(self.unsupported(
                "arithmetic on an array or a struct",
                frame.function.expressions.get_span(handle),
            )),
        }
    }

    pub(super) fn expression(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Value, Error> {
        let span = frame.function.expressions.get_span(handle);
        self.expression_at(frame, handle).map_err(|error| self.located(error, span))
    }

    fn expression_at(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Expression>,
    ) -> Result<Value, Error> {
        let function = frame.function;
        let span = function.expressions.get_span(handle);
        let span = if span.is_defined() {
            span
        } else {
            frame.spans.get(&handle).copied().unwrap_or(span)
        };
        let site = self.site(span, frame.caller);
        let regs = match function.expressions[handle] {
            Expression::Literal(literal) => self.literal(literal)?,
            Expression::Constant(constant) => {
                self.global_expression(self.module.constants[constant].init)?
            }
            Expression::ZeroValue(ty) => self.zero(ty)?,
            Expression::Compose { ref components, .. } => {
                let mut regs = Vec::new();
                for &component in components {
                    regs.extend(self.regs(frame, component)?);
                }
                regs
            }
            Expression::Splat { size, value } => {
                let regs = self.regs(frame, value)?;
                (0..size as u32).flat_map(|_| regs.clone()).collect()
            }
            Expression::Swizzle { size, vector, pattern } => {
                let (_, ty) = self.scalars(frame, vector)?;
                let regs = self.regs(frame, vector)?;
                let planes = ty.planes() as usize;
                let chosen = pattern[..size as usize].iter();
                chosen.flat_map(|&c| regs[c as usize * planes..][..planes].to_vec()).collect()
            }
            Expression::Access { base, index } => return self.access(frame, base, index, site),
            Expression::AccessIndex { base, index } => {
                return self.access_index(frame, base, index, site);
            }
            Expression::FunctionArgument(index) => {
                return Ok(frame.arguments[index as usize].clone());
            }
            Expression::GlobalVariable(variable) => return self.global(variable),
            Expression::LocalVariable(variable) => {
                let local = frame.locals[&variable];
                let declared = &function.local_variables[variable];
                let shape = self.types.shape(declared.ty)?;
                let text = self.locals[local as usize].name.clone();
                let root = Root::Local(local);
                return Ok(Value::Place(Place {
                    root,
                    offset: 0,
                    dynamic: None,
                    checks: (0, 0),
                    shape,
                    text,
                }));
            }
            Expression::Load { pointer } => {
                let place = self.place(frame, pointer)?;
                match (place.root, frame.parts.get(&handle)) {
                    (Root::Local(_), Some(parts)) => self.load_parts(&place, parts, site)?,
                    _ => self.load(&place, site)?,
                }
            }
            Expression::Unary { op, expr } => {
                let (_, ty) = self.scalars(frame, expr)?;
                let f = match op {
                    UnaryOperator::Negate => Unary::Negate,
                    UnaryOperator::LogicalNot => Unary::LogicalNot,
                    UnaryOperator::BitwiseNot => Unary::BitwiseNot,
                };
                let a = self.regs(frame, expr)?;
                self.map1(f, ty, ty, &a, site)
            }
            Expression::Binary { op, left, right } => self.binary(frame, op, left, right, site)?,
            Expression::Select { condition, accept, reject } => {
                let shape = self.shape(frame, accept)?;
                let planes = self.types.planes(shape)?;
                let condition = self.regs(frame, condition)?;
                let (accept, reject) = (self.regs(frame, accept)?, self.regs(frame, reject)?);
                let first = self.registers(planes);
                let per_scalar = planes as usize / condition.len().max(1);
                for plane in 0..planes as usize {
                    // Registers are chosen one by one, so their type does not matter.
                    let c =
                        condition[if condition.len() == 1 { 0 } else { plane / per_scalar.max(1) }];
                    let dst = first + plane as u32;
                    let (a, b) = (reject[plane], accept[plane]);
                    self.emit(Op::Ternary { f: Ternary::Select, ty: Ty::U32, dst, a, b, c }, site);
                }
                (first..first + planes).collect()
            }
            Expression::Relational { fun, argument } => {
                self.relational(frame, fun, argument, site)?
            }
            Expression::Math { fun, arg, arg1, arg2, arg3 } => {
                self.math(frame, fun, [Some(arg), arg1, arg2, arg3], site)?
            }
            Expression::As { expr, kind, convert } => {
                self.cast(frame, expr, kind, convert, site)?
            }
            Expression::ArrayLength(pointer) => {
                let place = self.place(frame, pointer)?;
                let Root::Memory(global) = place.root else {
                    return Err(self.unsupported("arrayLength of this", span));
                };
                let stride = self.types.elements(place.shape)?.bytes;
                let dst = self.registers(1);
                let len = Len::Runtime { global, offset: place.offset, stride };
                self.emit(Op::ArrayLength { dst, len }, site);
                vec![dst]
            }
            Expression::CooperativeLoad { ref data, .. } => {
                let Shape::Coop(coop) = self.shape(frame, handle)? else {
                    return Err(self.unsupported("this cooperative load", span));
                };
                let (pointer, stride, step) = self.coop_data(frame, data)?;
                let planes = self.types.planes(Shape::Coop(coop))?;
                let dst = self.registers(planes);
                self.emit(
                    Op::CoopLoad {
                        dst,
                        shape: coop,
                        pointer,
                        stride,
                        row_major: data.row_major,
                        step,
                    },
                    site,
                );
                (dst..dst + planes).collect()
            }
            Expression::CooperativeMultiplyAdd { a, b, c } => {
                let shapes = [self.shape(frame, a)?, self.shape(frame, b)?, self.shape(frame, c)?];
                let [Shape::Coop(a_shape), Shape::Coop(b_shape), Shape::Coop(c_shape)] = shapes
                else {
                    return Err(self.unsupported("this cooperative product", span));
                };
                let planes = self.types.planes(shapes[2])?;
                let (a, b, c) = (self.regs(frame, a)?, self.regs(frame, b)?, self.regs(frame, c)?);
                let dst = self.registers(planes);
                let (a, b, c) = (a.into(), b.into(), c.into());
                self.emit(Op::CoopMultiplyAdd { dst, a, b, c, a_shape, b_shape, c_shape }, site);
                (dst..dst + planes).collect()
            }
            ref other => {
                let debug = format!("{other:?}");
                let name = debug.split([' ', '(', '{']).next().unwrap_or_default();
                return Err(self.unsupported(format!("the expression {name}"), span));
            }
        };
        Ok(Value::Regs(regs))
    }

    pub(super) fn coop_data(
        &mut self,
        frame: &mut Frame<'a>,
        data: &naga::CooperativeData,
    ) -> Result<(crate::program::Pointer, Reg, u32), Error> {
        let span = frame.function.expressions.get_span(data.pointer);
        let place = self.place(frame, data.pointer)?;
        let step = match place.shape {
            Shape::Scalar(ty) => ty.bytes(),
            // The stride counts whole vectors.
            Shape::Vector { size, ty } => size * ty.bytes(),
            _ => return Err(self.unsupported("a cooperative matrix at this pointer", span)),
        };
        let pointer = place.memory().ok_or_else(|| {
            self.unsupported("a cooperative matrix in the invocation's own memory", span)
        })?;
        Ok((pointer, self.reg(frame, data.stride)?, step))
    }

    pub(super) fn literal(&mut self, literal: Literal) -> Result<Vec<Reg>, Error> {
        let narrow = |bits: u32| [Some(bits), None];
        let wide = |bits: u64| [Some(bits as u32), Some((bits >> 32) as u32)];
        let bits = match literal {
            Literal::F64(value) => wide(value.to_bits()),
            Literal::I64(value) => wide(value as u64),
            Literal::U64(value) => wide(value),
            Literal::F32(value) => narrow(value.to_bits()),
            Literal::F16(value) => narrow(u32::from(value.to_bits())),
            Literal::U16(value) => narrow(u32::from(value)),
            Literal::I16(value) => narrow(i32::from(value) as u32),
            Literal::U32(value) => narrow(value),
            Literal::I32(value) => narrow(value as u32),
            Literal::Bool(value) => narrow(u32::from(value)),
            Literal::AbstractInt(_) | Literal::AbstractFloat(_) => {
                return Err(Error::Unsupported { what: "an abstract number".to_owned(), at: None });
            }
        };
        Ok(bits.into_iter().flatten().map(|bits| self.constant(bits)).collect())
    }

    pub(super) fn zero(&mut self, ty: Handle<Type>) -> Result<Vec<Reg>, Error> {
        let planes = self.types.planes(self.types.shape(ty)?)?;
        let zero = self.constant(0);
        Ok(vec![zero; planes as usize])
    }

    fn access_index(
        &mut self,
        frame: &mut Frame<'a>,
        base: Handle<Expression>,
        index: u32,
        site: SiteId,
    ) -> Result<Value, Error> {
        match self.value(frame, base)? {
            Value::Place(place) if matches!(place.shape, Shape::Array { .. }) => {
                let index = self.constant(index);
                Ok(Value::Place(self.step_dynamic(&place, index, Ty::U32, site)?))
            }
            Value::Place(place) => Ok(Value::Place(self.step(&place, index)?)),
            Value::Regs(regs) => {
                let (start, len) = self.part(self.shape(frame, base)?, index)?;
                Ok(Value::Regs(regs[start as usize..(start + len) as usize].to_vec()))
            }
        }
    }

    /// The registers of a member, element, column or component of a value.
    fn part(&self, shape: Shape, index: u32) -> Result<(u32, u32), Error> {
        if let Shape::Struct(handle) = shape {
            let members = self.types.members(handle);
            let mut start = 0;
            for member in &members[..index as usize] {
                start += self.types.planes(self.types.shape(member.ty)?)?;
            }
            return Ok((start, self.types.planes(self.types.shape(members[index as usize].ty)?)?));
        }
        let planes = self.types.elements(shape)?.planes;
        Ok((index * planes, planes))
    }

    fn access(
        &mut self,
        frame: &mut Frame<'a>,
        base: Handle<Expression>,
        index: Handle<Expression>,
        site: SiteId,
    ) -> Result<Value, Error> {
        let (_, index_ty) = self.scalars(frame, index)?;
        let index = self.reg(frame, index)?;
        let base_value = self.value(frame, base)?;
        match base_value {
            Value::Place(place) => {
                Ok(Value::Place(self.step_dynamic(&place, index, index_ty, site)?))
            }
            Value::Regs(regs) => {
                let Elements { len, planes, .. } = self.types.elements(self.shape(frame, base)?)?;
                let len = len.unwrap_or(0);
                if let Some(value) = self.constant_of(index)
                    && value < len
                {
                    return Ok(Value::Regs(
                        regs[(value * planes) as usize..][..planes as usize].to_vec(),
                    ));
                }
                let at = self.registers(1);
                let (signed, fixed) = (index_ty.is_signed(), Len::Fixed(len));
                self.emit(
                    Op::Index { dst: at, base: None, index, signed, len: fixed, stride: 1 },
                    site,
                );
                let name = frame.function.named_expressions.get(&base).cloned();
                let checks = self.check(
                    (0, 0),
                    index,
                    signed,
                    fixed,
                    &name.unwrap_or_else(|| "this value".to_owned()),
                );
                let first = self.registers(planes);
                for plane in 0..planes {
                    let sources = (0..len).map(|i| regs[(i * planes + plane) as usize]).collect();
                    self.emit(Op::Gather { dst: first + plane, sources, at, checks }, site);
                }
                Ok(Value::Regs((first..first + planes).collect()))
            }
        }
    }
}
