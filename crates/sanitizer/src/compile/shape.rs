//! Types as the compiler sees them: how values are spread over registers and laid out in memory.

use crate::Error;
use crate::program::{CoopShape, Ty};
use naga::proc::IndexableLength;
use naga::{Handle, Module, Scalar, ScalarKind, Type, TypeInner, UniqueArena};

/// A type that a value or a variable can have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    Scalar(Ty),
    Atomic(Ty),
    Vector {
        size: u32,
        ty: Ty,
    },
    Matrix {
        columns: u32,
        rows: u32,
        ty: Ty,
    },
    /// `len` is `None` for an array without a size.
    Array {
        base: Handle<Type>,
        len: Option<u32>,
        stride: u32,
    },
    Struct(Handle<Type>),
    Coop(CoopShape),
}

/// Elements of an array, columns of a matrix, components of a vector.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elements {
    pub(super) shape: Shape,
    /// `None` for an array without a size.
    pub(super) len: Option<u32>,
    /// Bytes from one element to the next in memory.
    pub(super) bytes: u32,
    /// Registers of one element.
    pub(super) planes: u32,
}

pub(super) fn scalar(scalar: Scalar) -> Option<Ty> {
    Some(match (scalar.kind, scalar.width) {
        (ScalarKind::Bool, _) => Ty::Bool,
        (ScalarKind::Sint, 2) => Ty::I16,
        (ScalarKind::Uint, 2) => Ty::U16,
        (ScalarKind::Float, 2) => Ty::F16,
        (ScalarKind::Sint, 4) => Ty::I32,
        (ScalarKind::Uint, 4) => Ty::U32,
        (ScalarKind::Float, 4) => Ty::F32,
        (ScalarKind::Sint, 8) => Ty::I64,
        (ScalarKind::Uint, 8) => Ty::U64,
        (ScalarKind::Float, 8) => Ty::F64,
        _ => return None,
    })
}

/// The shape of a type; `None` for types that have no values here: textures, samplers, pointers,
/// acceleration structures.
fn known(inner: &TypeInner, handle: Option<Handle<Type>>, module: &Module) -> Option<Shape> {
    Some(match *inner {
        TypeInner::Scalar(s) => Shape::Scalar(scalar(s)?),
        TypeInner::Atomic(s) => Shape::Atomic(scalar(s)?),
        TypeInner::Vector { size, scalar: s } => {
            Shape::Vector { size: size as u32, ty: scalar(s)? }
        }
        TypeInner::Matrix { columns, rows, scalar: s } => {
            Shape::Matrix { columns: columns as u32, rows: rows as u32, ty: scalar(s)? }
        }
        TypeInner::CooperativeMatrix { columns, rows, scalar: s, .. } => {
            Shape::Coop(CoopShape { rows: rows as u32, columns: columns as u32, ty: scalar(s)? })
        }
        TypeInner::Array { base, size, stride } => {
            let len = match size.resolve(module.to_ctx()).ok()? {
                IndexableLength::Known(len) => Some(len),
                IndexableLength::Dynamic => None,
            };
            Shape::Array { base, len, stride }
        }
        TypeInner::Struct { .. } => Shape::Struct(handle?),
        _ => return None,
    })
}

/// Name of a type that has no values here.
fn refused(inner: &TypeInner) -> String {
    match inner {
        TypeInner::Image { .. } => "a texture".to_owned(),
        TypeInner::Sampler { .. } => "a sampler".to_owned(),
        TypeInner::AccelerationStructure { .. } | TypeInner::RayQuery { .. } => {
            "ray tracing".to_owned()
        }
        TypeInner::BindingArray { .. } => "a binding array".to_owned(),
        other => format!("a value of the type {other:?}"),
    }
}

/// The types of a module, and their shapes.
#[derive(Clone, Copy)]
pub(super) struct Types<'a> {
    pub(super) module: &'a Module,
    pub(super) arena: &'a UniqueArena<Type>,
    pub(super) subgroup_size: u32,
}

impl Types<'_> {
    pub(super) fn shape(&self, handle: Handle<Type>) -> Result<Shape, Error> {
        self.of(&self.arena[handle].inner, Some(handle))
    }

    pub(super) fn of(
        &self,
        inner: &TypeInner,
        handle: Option<Handle<Type>>,
    ) -> Result<Shape, Error> {
        // A struct's value may be known by its inner type alone; the arena holds each type once.
        let handle = handle.or_else(|| {
            self.arena.iter().find(|(_, ty)| ty.inner == *inner).map(|(handle, _)| handle)
        });
        known(inner, handle, self.module)
            .ok_or_else(|| Error::Unsupported { what: refused(inner), at: None })
    }

    /// Registers of a value.
    pub(super) fn planes(&self, shape: Shape) -> Result<u32, Error> {
        let planes = match shape {
            Shape::Scalar(ty) | Shape::Atomic(ty) => u64::from(ty.planes()),
            Shape::Vector { size, ty } => u64::from(size * ty.planes()),
            Shape::Matrix { columns, rows, ty } => u64::from(columns * rows * ty.planes()),
            Shape::Array { base, len, .. } => {
                u64::from(len.unwrap_or(0)) * u64::from(self.planes(self.shape(base)?)?)
            }
            Shape::Struct(handle) => {
                let mut sum = 0;
                for member in self.members(handle) {
                    sum += u64::from(self.planes(self.shape(member.ty)?)?);
                }
                sum
            }
            Shape::Coop(coop) => u64::from(
                (coop.rows * coop.columns).div_ceil(self.subgroup_size) * coop.ty.planes(),
            ),
        };
        u32::try_from(planes).ok().filter(|&planes| planes <= 1 << 20).ok_or_else(|| {
            Error::Limit(format!(
                "a variable or value of {planes} scalars per invocation; the limit is {}",
                1 << 20
            ))
        })
    }

    pub(super) fn members(&self, handle: Handle<Type>) -> &[naga::StructMember] {
        match &self.arena[handle].inner {
            TypeInner::Struct { members, .. } => members,
            _ => &[],
        }
    }

    /// The elements that an index into the type chooses from.
    pub(super) fn elements(&self, shape: Shape) -> Result<Elements, Error> {
        Ok(match shape {
            Shape::Vector { size, ty } => Elements {
                shape: Shape::Scalar(ty),
                len: Some(size),
                bytes: ty.bytes(),
                planes: ty.planes(),
            },
            Shape::Matrix { columns, rows, ty } => Elements {
                shape: Shape::Vector { size: rows, ty },
                len: Some(columns),
                bytes: column_bytes(rows, ty),
                planes: rows * ty.planes(),
            },
            Shape::Array { base, len, stride } => {
                let base = self.shape(base)?;
                Elements { shape: base, len, bytes: stride, planes: self.planes(base)? }
            }
            _ => {
                return Err(Error::Unsupported {
                    what: format!("an index into {shape:?}"),
                    at: None,
                });
            }
        })
    }

    /// Calls `visit(byte offset, scalar type, number)` for every scalar or vector of a type as it
    /// lies in memory, in the order of its registers.
    pub(super) fn leaves(
        &self,
        shape: Shape,
        offset: u32,
        visit: &mut impl FnMut(u32, Ty, u32),
    ) -> Result<(), Error> {
        match shape {
            Shape::Scalar(ty) | Shape::Atomic(ty) => visit(offset, ty, 1),
            Shape::Vector { size, ty } => visit(offset, ty, size),
            Shape::Matrix { columns, rows, ty } => {
                (0..columns)
                    .for_each(|column| visit(offset + column * column_bytes(rows, ty), ty, rows));
            }
            Shape::Array { base, len, stride } => {
                let base = self.shape(base)?;
                for index in 0..len.unwrap_or(0) {
                    self.leaves(base, offset + index * stride, visit)?;
                }
            }
            Shape::Struct(handle) => {
                for member in self.members(handle) {
                    self.leaves(self.shape(member.ty)?, offset + member.offset, visit)?;
                }
            }
            Shape::Coop(_) => {
                return Err(Error::Unsupported {
                    what: "a cooperative matrix in memory".to_owned(),
                    at: None,
                });
            }
        }
        Ok(())
    }

    /// log2 of the bytes of the smallest memory location of a type.
    pub(super) fn granule(&self, shape: Shape) -> Result<u32, Error> {
        Ok(match shape {
            Shape::Scalar(ty)
            | Shape::Atomic(ty)
            | Shape::Vector { ty, .. }
            | Shape::Matrix { ty, .. } => ty.bytes().min(4).ilog2(),
            Shape::Array { base, .. } => self.granule(self.shape(base)?)?,
            Shape::Struct(handle) => {
                let mut least = 2;
                for member in self.members(handle) {
                    least = least.min(self.granule(self.shape(member.ty)?)?);
                }
                least
            }
            Shape::Coop(_) => 2,
        })
    }
}

/// Bytes from one column of a matrix to the next: a column of three rows is aligned like one of
/// four.
fn column_bytes(rows: u32, ty: Ty) -> u32 {
    ty.bytes() * if rows == 3 { 4 } else { rows }
}
