//! The least that an API promises of a device.

use tilewise::wgpu;
use tilewise_core::Caps;

/// The limits that Vulkan requires of every device, and OpenGL ES 3.1 of its compute shaders.
pub fn vulkan() -> Caps {
    Caps {
        name: "the minimum of Vulkan and of OpenGL ES 3.1".into(),
        max_invocations: 128,
        max_workgroup_size_x: 128,
        max_storage_buffers: 4,
        ..Caps::webgpu_default()
    }
}

/// WebGPU's compatibility mode.
pub fn compatibility() -> Caps {
    let name = "WebGPU's compatibility mode".into();
    Caps { name, max_storage_buffers: 8, ..vulkan() }
}

/// wgpu's `Limits::downlevel_defaults`.
pub fn downlevel() -> Caps {
    let limits = wgpu::Limits::downlevel_defaults();
    Caps {
        name: "wgpu's downlevel defaults".into(),
        max_workgroup_bytes: limits.max_compute_workgroup_storage_size,
        max_invocations: limits.max_compute_invocations_per_workgroup,
        max_workgroup_size_x: limits.max_compute_workgroup_size_x,
        max_workgroups: limits.max_compute_workgroups_per_dimension,
        max_storage_buffers: limits.max_storage_buffers_per_shader_stage,
        max_binding_bytes: limits.max_storage_buffer_binding_size,
        max_buffer_bytes: limits.max_buffer_size,
        storage_alignment: limits.min_storage_buffer_offset_alignment,
        ..Caps::webgpu_default()
    }
}

/// A limit's name, and the function that takes it over.
type Limit = (&'static str, fn(&mut Caps, &Caps));

/// Each limit that a plan knows.
const LIMITS: [Limit; 8] = [
    ("invocations", |caps, least| caps.max_invocations = least.max_invocations),
    ("size of a workgroup", |caps, least| caps.max_workgroup_size_x = least.max_workgroup_size_x),
    ("workgroup memory", |caps, least| caps.max_workgroup_bytes = least.max_workgroup_bytes),
    ("storage buffers", |caps, least| caps.max_storage_buffers = least.max_storage_buffers),
    ("workgroups", |caps, least| caps.max_workgroups = least.max_workgroups),
    ("bytes of a binding", |caps, least| caps.max_binding_bytes = least.max_binding_bytes),
    ("bytes of a buffer", |caps, least| caps.max_buffer_bytes = least.max_buffer_bytes),
    ("alignment", |caps, least| caps.storage_alignment = least.storage_alignment),
];

/// The device with each of its limits by itself lowered to that of `least`, and then with all of
/// them lowered.
pub fn lowered(device: &Caps, least: &Caps) -> Vec<Caps> {
    let mut all =
        Caps { name: format!("{}, all limits at their minimum", device.name), ..device.clone() };
    let mut lowered = Vec::new();
    for (limit, lower) in LIMITS {
        let mut one =
            Caps { name: format!("{}, {limit} at the minimum", device.name), ..device.clone() };
        lower(&mut one, least);
        lower(&mut all, least);
        lowered.push(one);
    }
    lowered.push(all);
    lowered
}

/// Lowers a device's limits to the limits of `caps`.
pub fn lower(limits: &mut wgpu::Limits, caps: &Caps) {
    limits.max_compute_invocations_per_workgroup = caps.max_invocations;
    limits.max_compute_workgroup_size_x = caps.max_workgroup_size_x;
    limits.max_compute_workgroup_storage_size = caps.max_workgroup_bytes;
    limits.max_storage_buffers_per_shader_stage = caps.max_storage_buffers;
    limits.max_compute_workgroups_per_dimension = caps.max_workgroups;
    limits.max_storage_buffer_binding_size = caps.max_binding_bytes;
    limits.max_buffer_size = caps.max_buffer_bytes;
    limits.min_storage_buffer_offset_alignment = caps.storage_alignment;
}
