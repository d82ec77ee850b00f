//! Pointers. Compiling resolves them to a variable, a static offset and at most one register with
//! the dynamic part.

use super::shape::{Elements, Shape};
use super::{Compiler, Frame, Value};
use crate::Error;
use crate::program::{GlobalId, Len, Op, Pointer, Reg, SiteId, Slot, Ty};
use naga::{Expression, Handle};

/// The place to which a pointer points.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub(super) root: Root,
    /// The static offset: bytes in memory, registers in a local.
    pub(super) offset: u32,
    pub(super) dynamic: Option<Reg>,
    pub(super) checks: (u32, u32),
    pub(super) shape: Shape,
    /// The static part of its name in the source.
    pub(super) text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    Memory(GlobalId),
    Local(u32),
}

impl Place {
    fn pointer(&self, global: GlobalId, offset: u32) -> Pointer {
        Pointer { global, offset: self.offset + offset, dynamic: self.dynamic, checks: self.checks }
    }

    /// This place as an operand of memory operations.
    pub(super) fn memory(&self) -> Option<Pointer> {
        match self.root {
            Root::Memory(global) => Some(self.pointer(global, 0)),
            Root::Local(_) => None,
        }
    }
}

impl<'a> Compiler<'a> {
    pub(super) fn place(
        &mut self,
        frame: &mut Frame<'a>,
        pointer: Handle<Expression>,
    ) -> Result<Place, Error> {
        match self.value(frame, pointer)? {
            Value::Place(place) => Ok(place),
            Value::Regs(_) => {
                Err(self.unsupported("this pointer", frame.function.expressions.get_span(pointer)))
            }
        }
    }

    /// The place of a member, element, column or component with a constant index.
    pub(super) fn step(&self, place: &Place, index: u32) -> Result<Place, Error> {
        let (offset, shape, text) = match place.shape {
            Shape::Struct(handle) => {
                let members = self.types.members(handle);
                let member = &members[index as usize];
                let offset = match place.root {
                    Root::Memory(_) => member.offset,
                    Root::Local(_) => {
                        let mut planes = 0;
                        for before in &members[..index as usize] {
                            planes += self.types.planes(self.types.shape(before.ty)?)?;
                        }
                        planes
                    }
                };
                let name = member.name.clone().unwrap_or_else(|| index.to_string());
                (offset, self.types.shape(member.ty)?, format!("{}.{name}", place.text))
            }
            shape => {
                let elements = self.types.elements(shape)?;
                let stride = if matches!(place.root, Root::Memory(_)) {
                    elements.bytes
                } else {
                    elements.planes
                };
                (index * stride, elements.shape, component(&place.text, shape, index))
            }
        };
        Ok(Place { offset: place.offset + offset, shape, text, ..place.clone() })
    }

    /// The place of an element whose index is in a register.
    pub(super) fn step_dynamic(
        &mut self,
        place: &Place,
        index: Reg,
        index_ty: Ty,
        site: SiteId,
    ) -> Result<Place, Error> {
        let Elements { shape, len, bytes, planes } = self.types.elements(place.shape)?;
        if let (Some(value), Some(len)) = (self.constant_of(index), len)
            && value < len
        {
            return self.step(place, value);
        }
        // The length of a runtime-sized array is known only when it is bound, so even a constant
        // index is checked in the run.
        let (stride, len) = match (place.root, len) {
            (Root::Memory(_), Some(len)) => (bytes, Len::Fixed(len)),
            (Root::Memory(global), None) => {
                (bytes, Len::Runtime { global, offset: place.offset, stride: bytes })
            }
            (Root::Local(_), len) => (planes, Len::Fixed(len.unwrap_or(0))),
        };
        let dst = self.registers(1);
        let signed = index_ty.is_signed();
        self.emit(Op::Index { dst, base: place.dynamic, index, signed, len, stride }, site);
        let checks = self.check(place.checks, index, signed, len, &place.text);
        let text = format!("{}[..]", place.text);
        Ok(Place { dynamic: Some(dst), checks, shape, text, ..place.clone() })
    }

    /// Adds a check to those of a pointer. Ranges are contiguous, so the checks before are
    /// repeated.
    pub(super) fn check(
        &mut self,
        before: (u32, u32),
        index: Reg,
        signed: bool,
        len: Len,
        what: &str,
    ) -> (u32, u32) {
        let start = self.checks.len() as u32;
        for at in before.0..before.1 {
            self.checks.push(self.checks[at as usize].clone());
        }
        self.checks.push(crate::program::Check { index, signed, len, what: what.to_owned() });
        (start, self.checks.len() as u32)
    }

    /// Loads the value at a place into new registers.
    pub(super) fn load(&mut self, place: &Place, site: SiteId) -> Result<Vec<Reg>, Error> {
        let planes = self.types.planes(place.shape)?;
        let first = self.registers(planes);
        match place.root {
            Root::Local(local) => {
                let slot = self.slot(place, local);
                self.emit(Op::LoadLocal { dst: first, slot, planes }, site);
            }
            Root::Memory(global) => {
                if let Shape::Atomic(ty) = place.shape {
                    self.emit(
                        Op::AtomicLoad { dst: first, pointer: place.pointer(global, 0), ty },
                        site,
                    );
                } else {
                    let mut leaves = Vec::new();
                    self.types.leaves(place.shape, 0, &mut |offset, ty, count| {
                        leaves.push((offset, ty, count))
                    })?;
                    let mut dst = first;
                    for (offset, ty, count) in leaves {
                        self.emit(
                            Op::Load { dst, pointer: place.pointer(global, offset), ty, count },
                            site,
                        );
                        dst += count * ty.planes();
                    }
                }
            }
        }
        Ok((first..first + planes).collect())
    }

    /// Loads some components or members of a local variable. The others are not read, and need not
    /// have been written.
    pub(super) fn load_parts(
        &mut self,
        place: &Place,
        parts: &[u32],
        site: SiteId,
    ) -> Result<Vec<Reg>, Error> {
        let undefined = self.constant(u32::MAX);
        let mut regs = vec![undefined; self.types.planes(place.shape)? as usize];
        for &part in parts {
            let part = self.step(place, part)?;
            let start = (part.offset - place.offset) as usize;
            let loaded = self.load(&part, site)?;
            regs[start..start + loaded.len()].copy_from_slice(&loaded);
        }
        Ok(regs)
    }

    pub(super) fn store(&mut self, place: &Place, regs: &[Reg], site: SiteId) -> Result<(), Error> {
        match place.root {
            Root::Local(local) => {
                let slot = self.slot(place, local);
                self.emit(Op::StoreLocal { src: regs.into(), slot }, site);
            }
            Root::Memory(global) => {
                if let Shape::Atomic(ty) = place.shape {
                    let pointer = place.pointer(global, 0);
                    self.emit(Op::AtomicStore { src: regs[0], pointer, ty }, site);
                    return Ok(());
                }
                let mut leaves = Vec::new();
                self.types.leaves(place.shape, 0, &mut |offset, ty, count| {
                    leaves.push((offset, ty, count))
                })?;
                let mut at = 0;
                for (offset, ty, count) in leaves {
                    let len = (count * ty.planes()) as usize;
                    let src = regs[at..at + len].into();
                    self.emit(Op::Store { src, pointer: place.pointer(global, offset), ty }, site);
                    at += len;
                }
            }
        }
        Ok(())
    }

    fn slot(&self, place: &Place, local: u32) -> Slot {
        let plane = self.locals[local as usize].plane + place.offset;
        Slot { plane, dynamic: place.dynamic, checks: place.checks, local }
    }
}

fn component(text: &str, shape: Shape, index: u32) -> String {
    match (shape, index) {
        (Shape::Vector { .. }, 0..4) => format!("{text}.{}", ["x", "y", "z", "w"][index as usize]),
        _ => format!("{text}[{index}]"),
    }
}
