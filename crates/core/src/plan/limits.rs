//! The largest binding, and the largest scratch memory, with the limit that says so.

use crate::caps::Caps;

/// Bytes that a binding holds, and by which of the device's limits.
pub(super) fn binding_limit(caps: &Caps) -> (u64, &'static str) {
    let binding = (caps.max_binding_bytes, "max_storage_buffer_binding_size");
    binding.min((caps.max_buffer_bytes, "max_buffer_size"))
}

/// Bytes that a binding of scratch memory may have, and by which limit.
pub(super) fn scratch_limit(caps: &Caps) -> (u64, &'static str) {
    binding_limit(caps).min((caps.max_scratch_bytes, "max_scratch_bytes"))
}
