//! Devices that bind few storage buffers, and a library that only the sanitizer plans with.

use super::{Table, devices};
use crate::kernels::{Kernel, smallest};
use crate::{Case, Place, minima, themes};
use tilewise::{Activation, Axis, DType};
use tilewise_core::kernel::Library;
use tilewise_core::{Access, Caps, KernelDef};
use tilewise_shaders::LIBRARY;

/// The library's kernels for software devices in the sanitizer. There no driver compiles them, so
/// edges are peeled off as if their texts cost nothing.
pub static UNCOMPILED: Library = Library {
    kernels: &{
        let mut kernels = [LIBRARY.kernels[0]; LIBRARY.kernels.len()];
        let mut at = 0;
        while at < kernels.len() {
            kernels[at] = KernelDef { compiling: [0.0; 2], ..LIBRARY.kernels[at] };
            at += 1;
        }
        kernels
    },
};

/// A device with Vulkan's least, four storage buffers, and products that would bind more. They run
/// on one kernel of each kind of loader.
pub fn few_buffers(table: Table) -> (Caps, Vec<Case>) {
    let mut kernels = table.kernels();
    // Weights across K want tiles whose width is whole eights.
    kernels.retain(|Kernel { variant, .. }| {
        matches!(variant.access, Access::Elements | Access::Eights { .. }) && variant.bn % 8 == 0
    });
    let caps = Caps { f16: true, ..minima::vulkan() };
    (caps, themes::on(&smallest(kernels), &themes::few_buffers()))
}

/// A device that binds three storage buffers, and a batch whose residual needs a pass of its own.
pub fn three_buffers(table: Table) -> (Caps, Vec<Case>) {
    let [bias, residual] = [Place::odd(DType::F32), Place::odd(DType::BF16)];
    let case = |out| Case {
        alpha: 1.25,
        beta: -0.5,
        bias: Some((Axis::M, bias)),
        activation: Activation::Relu,
        residual: Some(residual),
        ..Case::new([5, 24, 12], [DType::F32, DType::F32, out]).batch(2).odd().kernel(table.floor())
    };
    (Caps { max_storage_buffers: 3, ..devices()[1].clone() }, DType::FLOATS.map(case).to_vec())
}
