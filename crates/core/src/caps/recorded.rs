//! Caps of known adapters, for planning without a device: `tilewise plan --caps NAME` and the
//! golden plans.

use super::{Caps, CoopMatrix, DeviceClass, PATIENCE, PackedProducts};
use crate::dtype::DType;

/// Name and caps of a recorded adapter.
pub type Recorded = (&'static str, fn() -> Caps);

/// Every recorded adapter.
pub const RECORDED: &[Recorded] = &[
    ("apple-m1", apple_m1),
    ("apple-m4-max", apple_m4_max),
    ("nvidia-h200", nvidia_h200),
    ("lavapipe", lavapipe),
    ("swiftshader", swiftshader),
    ("browser", Caps::webgpu_default),
];

/// Caps from documentation (Apple's "Metal Feature Set Tables", family Apple7, and wgpu's Metal
/// backend), not from a device.
fn apple_m1() -> Caps {
    Caps {
        name: "Apple M1 (from documentation)".into(),
        class: DeviceClass::Integrated,
        f16: true,
        subgroup_size: Some(32),
        msl_version: None,
        packed_products: PackedProducts::WrittenOut,
        fxc: false,
        // Only kernels in MSL use its matrix units, and they do not read this list.
        coop: Vec::new(),
        coop_off: None,
        max_workgroup_bytes: 32 << 10,
        max_invocations: 1024,
        max_workgroup_size_x: 1024,
        max_workgroups: 65_535,
        max_storage_buffers: 31,
        max_binding_bytes: 4 << 30,
        max_buffer_bytes: 4 << 30,
        storage_alignment: 32,
        max_scratch_bytes: u64::MAX,
        max_submission_seconds: PATIENCE,
    }
}

/// Caps from documentation (Apple's "Metal Feature Set Tables", family Apple9, and wgpu's Metal
/// backend), not from a device.
fn apple_m4_max() -> Caps {
    Caps {
        name: "Apple M4 Max (from documentation)".into(),
        max_buffer_bytes: 8 << 30,
        ..apple_m1()
    }
}

/// Caps that wgpu 30 reports through Vulkan, driver 580.159.
fn nvidia_h200() -> Caps {
    Caps {
        name: "NVIDIA H200".into(),
        class: DeviceClass::Discrete,
        f16: true,
        subgroup_size: Some(32),
        msl_version: None,
        packed_products: PackedProducts::Instruction,
        fxc: false,
        coop: [DType::F16, DType::F32]
            .map(|sums| CoopMatrix { size: 16, operands: DType::F16, sums })
            .to_vec(),
        coop_off: None,
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size_x: 1024,
        max_workgroups: 65_535,
        max_storage_buffers: 1 << 19,
        max_binding_bytes: (2 << 30) - 4,
        max_buffer_bytes: 4 << 30,
        storage_alignment: 32,
        max_scratch_bytes: u64::MAX,
        max_submission_seconds: PATIENCE,
    }
}

/// Caps that wgpu 30 reports through Vulkan, Mesa 25.0.7.
fn lavapipe() -> Caps {
    Caps {
        name: "llvmpipe".into(),
        class: DeviceClass::Cpu,
        f16: true,
        subgroup_size: Some(4),
        msl_version: None,
        packed_products: PackedProducts::Instruction,
        fxc: false,
        coop: Vec::new(),
        coop_off: None,
        max_workgroup_bytes: 32 << 10,
        max_invocations: 1024,
        max_workgroup_size_x: 1024,
        max_workgroups: 65_535,
        max_storage_buffers: 48,
        max_binding_bytes: 128 << 20,
        max_buffer_bytes: (2 << 30) - 1,
        storage_alignment: 32,
        max_scratch_bytes: u64::MAX,
        max_submission_seconds: f64::INFINITY,
    }
}

/// Caps that wgpu 30 reports of the SwiftShader of Debian's Chromium.
fn swiftshader() -> Caps {
    Caps {
        name: "SwiftShader".into(),
        class: DeviceClass::Cpu,
        f16: false,
        subgroup_size: Some(4),
        msl_version: None,
        packed_products: PackedProducts::Instruction,
        fxc: false,
        coop: Vec::new(),
        coop_off: None,
        max_workgroup_bytes: 32 << 10,
        max_invocations: 256,
        max_workgroup_size_x: 256,
        max_workgroups: 65_535,
        max_storage_buffers: 10,
        max_binding_bytes: 1 << 30,
        max_buffer_bytes: 1 << 30,
        storage_alignment: 256,
        max_scratch_bytes: u64::MAX,
        max_submission_seconds: f64::INFINITY,
    }
}
