//! Built-in values: registers that the machine fills in.

use super::{Compiler, Value};
use crate::Error;
use crate::program::{BuiltIn, Reg};
use naga::{Binding, Function, TypeInner};

impl<'a> Compiler<'a> {
    /// The arguments of an entry point: built-ins, or structs of them.
    pub(super) fn built_in_arguments(
        &mut self,
        function: &'a Function,
    ) -> Result<Vec<Value>, Error> {
        let mut arguments = Vec::new();
        for argument in &function.arguments {
            let regs = match (&argument.binding, &self.module.types[argument.ty].inner) {
                (Some(binding), _) => self.built_in(binding)?,
                (None, TypeInner::Struct { members, .. }) => {
                    let mut regs = Vec::new();
                    for member in members {
                        if let Some(binding) = &member.binding {
                            regs.extend(self.built_in(binding)?);
                        }
                    }
                    regs
                }
                (None, _) => Vec::new(),
            };
            arguments.push(Value::Regs(regs));
        }
        Ok(arguments)
    }

    fn built_in(&mut self, binding: &Binding) -> Result<Vec<Reg>, Error> {
        use naga::BuiltIn as B;
        let parts = |make: fn(u32) -> BuiltIn| vec![make(0), make(1), make(2)];
        let wanted = match binding {
            Binding::BuiltIn(B::GlobalInvocationId) => parts(BuiltIn::GlobalInvocationId),
            Binding::BuiltIn(B::LocalInvocationId) => parts(BuiltIn::LocalInvocationId),
            Binding::BuiltIn(B::WorkGroupId) => parts(BuiltIn::WorkgroupId),
            Binding::BuiltIn(B::NumWorkGroups) => parts(BuiltIn::NumWorkgroups),
            Binding::BuiltIn(B::LocalInvocationIndex) => vec![BuiltIn::LocalInvocationIndex],
            Binding::BuiltIn(B::NumSubgroups) => vec![BuiltIn::NumSubgroups],
            Binding::BuiltIn(B::SubgroupId) => vec![BuiltIn::SubgroupId],
            Binding::BuiltIn(B::SubgroupSize) => vec![BuiltIn::SubgroupSize],
            Binding::BuiltIn(B::SubgroupInvocationId) => vec![BuiltIn::SubgroupInvocationId],
            other => {
                return Err(Error::Unsupported {
                    what: format!("{other:?} in a compute shader"),
                    at: None,
                });
            }
        };
        let first = self.registers(wanted.len() as u32);
        Ok(wanted
            .into_iter()
            .zip(first..)
            .map(|(built_in, reg)| {
                self.built_ins.push((reg, built_in));
                reg
            })
            .collect())
    }
}
