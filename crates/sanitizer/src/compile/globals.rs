//! Global variables: buffers, workgroup memory, immediates, private variables.

use super::pointer::{Place, Root};
use super::{Compiler, Value};
use crate::Error;
use crate::program::{Global, Local, Op, Source, Space};
use naga::valid::{FunctionInfo, GlobalUse};
use naga::{AddressSpace, Expression, GlobalVariable, Handle, StorageAccess};

impl<'a> Compiler<'a> {
    /// Gives a place to every global variable that the entry point uses, and initial values to
    /// private variables.
    pub(super) fn declare_globals(&mut self, info: &'a FunctionInfo) -> Result<(), Error> {
        for (handle, variable) in self.module.global_variables.iter() {
            if info[handle] == GlobalUse::empty() {
                continue;
            }
            let span = self.module.global_variables.get_span(handle);
            self.declare_global(handle, variable).map_err(|error| self.located(error, span))?;
        }
        Ok(())
    }

    fn declare_global(
        &mut self,
        handle: Handle<GlobalVariable>,
        variable: &'a GlobalVariable,
    ) -> Result<(), Error> {
        let name = variable.name.clone().unwrap_or_else(|| "unnamed".to_owned());
        let shape = self.types.shape(variable.ty)?;
        let binding = || {
            variable.binding.map(|b| Source::Binding(b.group, b.binding)).ok_or_else(|| {
                Error::Unsupported {
                    what: format!("the variable `{name}` without a binding"),
                    at: None,
                }
            })
        };
        let (space, source, writable) = match variable.space {
            AddressSpace::WorkGroup => (Space::Workgroup, Source::Workgroup, true),
            AddressSpace::Storage { access } => {
                (Space::Storage, binding()?, access.contains(StorageAccess::STORE))
            }
            AddressSpace::Uniform => (Space::Uniform, binding()?, false),
            AddressSpace::Immediate => (Space::Uniform, Source::Immediates, false),
            AddressSpace::Private => return self.declare_private(handle, variable, name),
            other => {
                return Err(Error::Unsupported {
                    what: format!("the variable `{name}` in the address space {other:?}"),
                    at: None,
                });
            }
        };
        let bytes = self.module.types[variable.ty].inner.size(self.module.to_ctx());
        let granule = self.types.granule(shape)?;
        let id = self.globals.len() as u32;
        self.globals.push(Global {
            name: name.clone(),
            space,
            source,
            ty: variable.ty,
            bytes,
            writable,
            granule,
        });
        let place = Place {
            root: Root::Memory(id),
            offset: 0,
            dynamic: None,
            checks: (0, 0),
            shape,
            text: name,
        };
        self.global_places.insert(handle, place);
        Ok(())
    }

    fn declare_private(
        &mut self,
        handle: Handle<GlobalVariable>,
        variable: &'a GlobalVariable,
        name: String,
    ) -> Result<(), Error> {
        let shape = self.types.shape(variable.ty)?;
        let declared = self.site(self.module.global_variables.get_span(handle), None);
        let local = self.local(Local {
            name: name.clone(),
            plane: self.next_plane,
            planes: self.types.planes(shape)?,
            tracked: variable.init.is_none() && !self.zero_init.private,
            ty: Some(variable.ty),
            declared,
        });
        let place = Place {
            root: Root::Local(local),
            offset: 0,
            dynamic: None,
            checks: (0, 0),
            shape,
            text: name,
        };
        self.emit(Op::Declare { local }, declared);
        if let Some(init) = variable.init {
            let regs = self.global_expression(init)?;
            self.store(&place, &regs, declared)?;
        }
        self.global_places.insert(handle, place);
        Ok(())
    }

    /// A constant expression at module scope.
    pub(super) fn global_expression(
        &mut self,
        handle: Handle<Expression>,
    ) -> Result<Vec<crate::program::Reg>, Error> {
        match self.module.global_expressions[handle] {
            Expression::Literal(literal) => self.literal(literal),
            Expression::Constant(constant) => {
                self.global_expression(self.module.constants[constant].init)
            }
            Expression::ZeroValue(ty) => self.zero(ty),
            Expression::Compose { ref components, .. } => {
                let mut regs = Vec::new();
                for &component in components {
                    regs.extend(self.global_expression(component)?);
                }
                Ok(regs)
            }
            Expression::Splat { size, value } => {
                let regs = self.global_expression(value)?;
                Ok((0..size as u32).flat_map(|_| regs.clone()).collect())
            }
            ref other => Err(self.unsupported(
                format!("the constant expression {other:?}"),
                self.module.global_expressions.get_span(handle),
            )),
        }
    }

    pub(super) fn global(&self, handle: Handle<GlobalVariable>) -> Result<Value, Error> {
        self.global_places.get(&handle).cloned().map(Value::Place).ok_or_else(|| {
            Error::Unsupported {
                what: format!("the variable {:?}", self.module.global_variables[handle].name),
                at: None,
            }
        })
    }
}
