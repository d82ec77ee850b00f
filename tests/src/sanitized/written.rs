//! The memory between the passes of a product.

use std::collections::HashMap;
use tilewise_core::kernel::Role;
use tilewise_core::plan::Binding;

/// The memory that passes leave to later ones.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    pub(crate) c: Vec<u8>,
    pub(crate) scratch: Vec<u8>,
    /// Packed operands by the place where they lie: packed for this product only, or made before.
    pub(super) packed: HashMap<Role, Vec<u8>>,
}

impl Written {
    /// Stores what a pass has written to a binding.
    pub(crate) fn take(&mut self, binding: &Binding, bytes: &[u8]) {
        let memory = match binding.from {
            Role::Scratch => return bytes.clone_into(&mut self.scratch),
            from if is_packed(from) => self.packed.entry(from).or_default(),
            _ => &mut self.c,
        };
        memory[binding.start as usize..][..bytes.len()].copy_from_slice(bytes);
    }
}

/// Whether packed operands lie in this memory.
pub(super) fn is_packed(from: Role) -> bool {
    matches!(from, Role::Packed | Role::ACopy | Role::BCopy)
}
