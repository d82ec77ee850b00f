//! Statements.

use super::pointer::{Place, Root};
use super::{Compiler, Frame, Value};
use crate::Error;
use crate::program::{
    AtomicFunction, Binary, Case, Collective, Lane, Local, Node, Op, Reg, SiteId, Ty,
};
use naga::{
    Block, CollectiveOperation, Expression, Function, GatherMode, Handle, Span, Statement,
    SubgroupOperation, SwitchCase, SwitchValue,
};
use std::collections::HashMap;

impl<'a> Compiler<'a> {
    /// Compiles a function's variables, then its statements.
    pub(super) fn function_body(&mut self, frame: &mut Frame<'a>) -> Result<Vec<Node>, Error> {
        self.nodes.push(Vec::new());
        for (handle, variable) in frame.function.local_variables.iter() {
            let span = frame.function.local_variables.get_span(handle);
            let declared = self.site(span, frame.caller);
            let shape = self.types.shape(variable.ty).map_err(|error| self.located(error, span))?;
            let name = variable.name.clone().unwrap_or_else(|| "unnamed".to_owned());
            // In loops, naga writes zeros at the declaration of variables without an initializer:
            // see `undefined`.
            let tracked = variable.init.is_none() && !self.zero_init.function;
            let planes = self.types.planes(shape)?;
            let local = self.local(Local {
                name: name.clone(),
                plane: self.next_plane,
                planes,
                tracked,
                ty: Some(variable.ty),
                declared,
            });
            frame.locals.insert(handle, local);
            self.emit(Op::Declare { local }, declared);
            if let Some(init) = variable.init {
                let regs = self.regs(frame, init)?;
                let place = Place {
                    root: Root::Local(local),
                    offset: 0,
                    dynamic: None,
                    checks: (0, 0),
                    shape,
                    text: name,
                };
                self.store(&place, &regs, declared)?;
            }
        }
        self.statements(frame, &frame.function.body)?;
        Ok(self.nodes.pop().unwrap_or_default())
    }

    /// Compiles a block of its own; registers made in it are free again after it.
    fn block(&mut self, frame: &mut Frame<'a>, block: &'a Block) -> Result<Vec<Node>, Error> {
        let mark = self.next;
        self.nodes.push(Vec::new());
        self.statements(frame, block)?;
        self.next = mark;
        Ok(self.nodes.pop().unwrap_or_default())
    }

    /// Compiles a block as a part of the block under construction.
    fn inline(&mut self, frame: &mut Frame<'a>, block: &'a Block) -> Result<(), Error> {
        let mut nodes = self.block(frame, block)?;
        if let Some(current) = self.nodes.last_mut() {
            current.append(&mut nodes);
        }
        Ok(())
    }

    fn statements(&mut self, frame: &mut Frame<'a>, block: &'a Block) -> Result<(), Error> {
        for (statement, &span) in block.span_iter() {
            self.statement(frame, statement, span).map_err(|error| self.located(error, span))?;
        }
        Ok(())
    }

    fn statement(
        &mut self,
        frame: &mut Frame<'a>,
        statement: &'a Statement,
        span: Span,
    ) -> Result<(), Error> {
        let site = self.site(span, frame.caller);
        match *statement {
            Statement::Emit(ref range) => {
                for handle in range.clone() {
                    let value = self.expression(frame, handle)?;
                    frame.values.insert(handle, value);
                }
            }
            Statement::Block(ref block) => {
                self.inline(frame, block)?;
            }
            Statement::If { condition, ref accept, ref reject } => {
                let site = self.site(frame.function.expressions.get_span(condition), frame.caller);
                let condition = self.reg(frame, condition)?;
                if let Some(holds) = self.constant_of(condition) {
                    return self.inline(frame, if holds != 0 { accept } else { reject });
                }
                let accept = self.block(frame, accept)?;
                let reject = self.block(frame, reject)?;
                self.push(Node::If { condition, accept, reject, site });
            }
            Statement::Switch { selector, ref cases } => {
                let site = self.site(frame.function.expressions.get_span(selector), frame.caller);
                let selector = self.reg(frame, selector)?;
                let mut compiled = Vec::new();
                let reached =
                    self.constant_of(selector).map_or(&cases[..], |value| reached(cases, value));
                for case in reached {
                    let (values, default) = match case.value {
                        SwitchValue::I32(value) => (vec![value as u32], false),
                        SwitchValue::U32(value) => (vec![value], false),
                        SwitchValue::Default => (Vec::new(), true),
                    };
                    let body = self.block(frame, &case.body)?;
                    compiled.push(Case { values, default, body, fall_through: case.fall_through });
                }
                self.push(Node::Switch { selector, cases: compiled, site });
            }
            Statement::Loop { ref body, ref continuing, break_if } => {
                // The continuing block sees what the body made.
                let mark = self.next;
                self.nodes.push(Vec::new());
                self.statements(frame, body)?;
                let body = self.nodes.pop().unwrap_or_default();
                self.nodes.push(Vec::new());
                self.statements(frame, continuing)?;
                let break_if = break_if.map(|condition| self.reg(frame, condition)).transpose()?;
                let continuing = self.nodes.pop().unwrap_or_default();
                self.next = mark;
                self.push(Node::Loop { body, continuing, break_if, site });
            }
            Statement::Break => self.push(Node::Break),
            Statement::Continue => self.push(Node::Continue),
            Statement::Return { value } => {
                if let (Some(value), Some(local)) = (value, frame.result) {
                    let regs = self.regs(frame, value)?;
                    let place = self.whole(local)?;
                    self.store(&place, &regs, site)?;
                }
                self.push(Node::Return { site });
            }
            Statement::Store { pointer, value } => {
                let place = self.place(frame, pointer)?;
                if self.undefined(frame, &place, value, span) {
                    if let Root::Local(local) = place.root {
                        self.emit(Op::Declare { local }, site);
                    }
                } else {
                    let regs = self.regs(frame, value)?;
                    self.store(&place, &regs, site)?;
                }
            }
            Statement::ControlBarrier(flags) => {
                self.emit(Op::Barrier { flags, uniform_load: false }, site)
            }
            Statement::MemoryBarrier(_) => {
                return Err(self.unsupported("a memory barrier without control", span));
            }
            Statement::WorkGroupUniformLoad { pointer, result } => {
                let place = self.place(frame, pointer)?;
                let flags = naga::Barrier::WORK_GROUP;
                self.emit(Op::Barrier { flags, uniform_load: true }, site);
                if let Some(reg) = place.dynamic {
                    self.emit(Op::Uniform { reg }, site);
                }
                let regs = self.load(&place, site)?;
                self.emit(Op::Barrier { flags, uniform_load: true }, site);
                frame.values.insert(result, Value::Regs(regs));
            }
            Statement::Atomic { pointer, ref fun, value, result } => {
                self.atomic(frame, pointer, fun, value, result, site)?;
            }
            Statement::Call { function, ref arguments, result } => {
                let arguments = arguments
                    .iter()
                    .map(|&argument| self.value(frame, argument))
                    .collect::<Result<Vec<_>, _>>()?;
                self.call(frame, function, arguments, result, site)?;
            }
            Statement::SubgroupBallot { result, predicate } => {
                let predicate =
                    predicate.map(|predicate| self.reg(frame, predicate)).transpose()?;
                let first = self.registers(4);
                self.emit(
                    Op::Ballot { dst: [first, first + 1, first + 2, first + 3], predicate },
                    site,
                );
                frame.values.insert(result, Value::Regs((first..first + 4).collect()));
            }
            Statement::SubgroupGather { mode, argument, result } => {
                let lane = self.lane(frame, mode)?;
                let src = self.regs(frame, argument)?;
                let first = self.registers(src.len() as u32);
                let dst: Vec<Reg> = (first..first + src.len() as u32).collect();
                self.emit(Op::Shuffle { lane, dst: dst.clone().into(), src: src.into() }, site);
                frame.values.insert(result, Value::Regs(dst));
            }
            Statement::SubgroupCollectiveOperation { op, collective_op, argument, result } => {
                let regs = self.collective(frame, op, collective_op, argument, site)?;
                frame.values.insert(result, Value::Regs(regs));
            }
            Statement::CooperativeStore { target, ref data } => {
                let super::shape::Shape::Coop(shape) = self.shape(frame, target)? else {
                    return Err(self.unsupported("this cooperative store", span));
                };
                let (pointer, stride, step) = self.coop_data(frame, data)?;
                let src = self.regs(frame, target)?.into();
                self.emit(
                    Op::CoopStore { src, shape, pointer, stride, row_major: data.row_major, step },
                    site,
                );
            }
            Statement::Kill => return Err(self.unsupported("discard", span)),
            Statement::ImageStore { .. } | Statement::ImageAtomic { .. } => {
                return Err(self.unsupported("a texture", span));
            }
            Statement::RayQuery { .. } | Statement::RayPipelineFunction(_) => {
                return Err(self.unsupported("ray tracing", span));
            }
        }
        Ok(())
    }

    /// Whether a store only stands for a declaration without an initializer: inside loops naga
    /// writes zeros for it, at the declaration's own span.
    fn undefined(
        &self,
        frame: &Frame<'a>,
        place: &Place,
        value: Handle<Expression>,
        span: Span,
    ) -> bool {
        let Root::Local(local) = place.root else { return false };
        self.locals[local as usize].tracked
            && matches!(frame.function.expressions[value], Expression::ZeroValue(_))
            && frame.function.expressions.get_span(value) == span
    }

    /// The place of a whole local that holds a result.
    fn whole(&self, local: u32) -> Result<Place, Error> {
        let result = &self.locals[local as usize];
        let shape = match result.ty {
            Some(ty) => self.types.shape(ty)?,
            None => super::shape::Shape::Scalar(Ty::U32),
        };
        Ok(Place {
            root: Root::Local(local),
            offset: 0,
            dynamic: None,
            checks: (0, 0),
            shape,
            text: result.name.clone(),
        })
    }

    fn call(
        &mut self,
        frame: &mut Frame<'a>,
        handle: Handle<Function>,
        arguments: Vec<Value>,
        result: Option<Handle<Expression>>,
        site: SiteId,
    ) -> Result<(), Error> {
        let function = &self.module.functions[handle];
        let (register_mark, plane_mark) = (self.next, self.next_plane);
        let local = match &function.result {
            Some(returned) => {
                let planes = self.types.planes(self.types.shape(returned.ty)?)?;
                Some(self.local(Local {
                    name: "the result".to_owned(),
                    plane: self.next_plane,
                    planes,
                    tracked: false,
                    ty: Some(returned.ty),
                    declared: site,
                }))
            }
            None => None,
        };
        let mut inner = Frame {
            function,
            info: &self.info[handle],
            arguments,
            values: HashMap::new(),
            locals: HashMap::new(),
            result: local,
            caller: Some(site),
            spans: super::spans::borrowed(function),
            parts: super::parts::used(function, &self.info[handle]),
        };
        let body = self.function_body(&mut inner)?;
        self.next = register_mark;
        self.push(Node::Call { body });
        if let (Some(local), Some(result)) = (local, result) {
            let place = self.whole(local)?;
            let regs = self.load(&place, site)?;
            frame.values.insert(result, Value::Regs(regs));
        }
        self.next_plane = plane_mark;
        Ok(())
    }

    fn atomic(
        &mut self,
        frame: &mut Frame<'a>,
        pointer: Handle<Expression>,
        fun: &naga::AtomicFunction,
        value: Handle<Expression>,
        result: Option<Handle<Expression>>,
        site: SiteId,
    ) -> Result<(), Error> {
        let place = self.place(frame, pointer)?;
        let super::shape::Shape::Atomic(ty) = place.shape else {
            return Err(Error::Unsupported {
                what: "an atomic operation on this".to_owned(),
                at: None,
            });
        };
        let pointer = place.memory().ok_or_else(|| Error::Unsupported {
            what: "an atomic of the invocation's own".to_owned(),
            at: None,
        })?;
        let value_regs = self.regs(frame, value)?;
        let value = self.pair(&value_regs, 0, ty);
        let (f, compare) = match *fun {
            naga::AtomicFunction::Add => (AtomicFunction::Combine(Binary::Add), None),
            naga::AtomicFunction::Subtract => (AtomicFunction::Combine(Binary::Subtract), None),
            naga::AtomicFunction::And => (AtomicFunction::Combine(Binary::And), None),
            naga::AtomicFunction::ExclusiveOr => (AtomicFunction::Combine(Binary::Xor), None),
            naga::AtomicFunction::InclusiveOr => (AtomicFunction::Combine(Binary::Or), None),
            naga::AtomicFunction::Min => (AtomicFunction::Combine(Binary::Min), None),
            naga::AtomicFunction::Max => (AtomicFunction::Combine(Binary::Max), None),
            naga::AtomicFunction::Exchange { compare: None } => (AtomicFunction::Exchange, None),
            naga::AtomicFunction::Exchange { compare: Some(compare) } => {
                let regs = self.regs(frame, compare)?;
                (AtomicFunction::CompareExchange, Some(self.pair(&regs, 0, ty)))
            }
        };
        let planes = ty.planes();
        let dst = result.map(|_| self.registers(planes + 1));
        let exchanged = dst.filter(|_| compare.is_some()).map(|dst| dst + planes);
        self.emit(Op::Atomic { f, ty, dst, pointer, value, compare, exchanged }, site);
        if let (Some(dst), Some(result)) = (dst, result) {
            let last = dst + planes + u32::from(exchanged.is_some());
            frame.values.insert(result, Value::Regs((dst..last).collect()));
        }
        Ok(())
    }

    fn lane(&mut self, frame: &mut Frame<'a>, mode: GatherMode) -> Result<Lane, Error> {
        Ok(match mode {
            GatherMode::BroadcastFirst => Lane::First,
            GatherMode::Broadcast(index) | GatherMode::Shuffle(index) => {
                Lane::At(self.reg(frame, index)?)
            }
            GatherMode::ShuffleDown(delta) => Lane::Down(self.reg(frame, delta)?),
            GatherMode::ShuffleUp(delta) => Lane::Up(self.reg(frame, delta)?),
            GatherMode::ShuffleXor(mask) => Lane::Xor(self.reg(frame, mask)?),
            GatherMode::QuadBroadcast(index) => Lane::Quad(self.reg(frame, index)?),
            GatherMode::QuadSwap(direction) => Lane::QuadSwap(direction as u32 + 1),
        })
    }

    fn collective(
        &mut self,
        frame: &mut Frame<'a>,
        op: SubgroupOperation,
        collective_op: CollectiveOperation,
        argument: Handle<Expression>,
        site: SiteId,
    ) -> Result<Vec<Reg>, Error> {
        let (count, ty) = self.scalars(frame, argument)?;
        let regs = self.regs(frame, argument)?;
        if let SubgroupOperation::All | SubgroupOperation::Any = op {
            let dst = self.registers(1);
            self.emit(Op::Vote { all: op == SubgroupOperation::All, dst, src: regs[0] }, site);
            return Ok(vec![dst]);
        }
        let f = match op {
            SubgroupOperation::Mul => Binary::Multiply,
            SubgroupOperation::Min => Binary::Min,
            SubgroupOperation::Max => Binary::Max,
            SubgroupOperation::And => Binary::And,
            SubgroupOperation::Or => Binary::Or,
            SubgroupOperation::Xor => Binary::Xor,
            _ => Binary::Add,
        };
        let kind = match collective_op {
            CollectiveOperation::Reduce => Collective::Reduce,
            CollectiveOperation::InclusiveScan => Collective::InclusiveScan,
            CollectiveOperation::ExclusiveScan => Collective::ExclusiveScan,
        };
        let first = self.registers(count * ty.planes());
        for i in 0..count {
            let src = self.pair(&regs, i, ty);
            self.emit(Op::Collective { f, ty, kind, dst: first + i * ty.planes(), src }, site);
        }
        Ok((first..first + count * ty.planes()).collect())
    }
}

/// The cases that run if the selector has this value.
fn reached(cases: &[SwitchCase], value: u32) -> &[SwitchCase] {
    let is = |case: &SwitchCase| match case.value {
        SwitchValue::I32(own) => own as u32 == value,
        SwitchValue::U32(own) => own == value,
        SwitchValue::Default => false,
    };
    let default = |case: &SwitchCase| case.value == SwitchValue::Default;
    let start =
        cases.iter().position(is).or_else(|| cases.iter().position(default)).unwrap_or(cases.len());
    let last = cases[start..].iter().position(|case| !case.fall_through);
    &cases[start..last.map_or(cases.len(), |last| start + last + 1)]
}
