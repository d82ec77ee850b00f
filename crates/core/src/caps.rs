//! The abilities of an adapter, as plain data: limits that bound the choice, and rough rates that
//! order it.

mod generation;
mod rates;
mod recorded;

pub use generation::Generation;
pub use rates::{COPIED, Rates};
pub use recorded::{RECORDED, Recorded};

use crate::dtype::DType;

/// Kind of device. The rates of a device that is not known by name are guessed by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceClass {
    /// A GPU with memory of its own.
    Discrete,
    /// A GPU that shares the host's memory (Apple silicon too).
    Integrated,
    /// A software rasterizer, or the CPU executor.
    Cpu,
    /// Anything else: browsers hide it.
    Unknown,
}

/// How a device computes `dot4I8Packed`, a product of four bytes by four.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PackedProducts {
    /// By one instruction.
    Instruction,
    /// By several instructions.
    WrittenOut,
    /// Kernels that call it are not used. The reason.
    Absent(&'static str),
}

/// A product of small square matrices that the device's matrix units compute, a subgroup at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CoopMatrix {
    /// Rows and columns of each of the matrices.
    pub size: u32,
    /// Type of the operands' elements.
    pub operands: DType,
    /// Type of the sums' elements.
    pub sums: DType,
}

/// Seconds that a submission may take on a device that drives a display, or may drive one. Drivers
/// end work that keeps a display from its next picture: Windows after two seconds, macOS after
/// five.
pub const PATIENCE: f64 = 0.5;

/// Capabilities of one adapter: everything that [`plan`](crate::plan()) may know about a device.
#[derive(Clone, Debug, PartialEq)]
pub struct Caps {
    /// Name, for people.
    pub name: String,
    /// Kind of device.
    pub class: DeviceClass,
    /// Whether shaders may use the type f16 (WebGPU's `shader-f16`).
    pub f16: bool,
    /// Invocations of a subgroup, if they are one number and it is known.
    pub subgroup_size: Option<u32>,
    /// The products that matrix units compute and shaders may use; empty if there are none.
    pub coop: Vec<CoopMatrix>,
    /// Why the matrix units that the device has, or may have, stay unused. Absent if they are used,
    /// and if it has none.
    pub coop_off: Option<&'static str>,
    /// Products of four bytes by four.
    pub packed_products: PackedProducts,
    /// Whether FXC compiles the shaders (Microsoft's compiler before DXC: DX12 without shader model
    /// 6). Loops that are repeated in the text would take it long; it leaves loops to drivers.
    pub fxc: bool,
    /// Version of Metal's language that the driver compiles, 310 for 3.1; absent if it is not
    /// known. It can be lower than the system's: it follows the SDK that the program is linked
    /// against.
    pub msl_version: Option<u32>,
    /// Bytes of workgroup memory that one workgroup may use.
    pub max_workgroup_bytes: u32,
    /// Invocations in one workgroup, all dimensions multiplied.
    pub max_invocations: u32,
    /// Invocations along x in one workgroup.
    pub max_workgroup_size_x: u32,
    /// Workgroups along one dimension of a dispatch.
    pub max_workgroups: u32,
    /// Storage buffers that one shader may bind.
    pub max_storage_buffers: u32,
    /// Bytes that one storage binding may span.
    pub max_binding_bytes: u64,
    /// Bytes of one buffer.
    pub max_buffer_bytes: u64,
    /// Alignment in bytes of a storage binding's offset.
    pub storage_alignment: u32,
    /// Bytes that a product may use for partial sums, and as many again for packed operands. The
    /// device does not set this limit. `u64::MAX`: whatever is fastest.
    pub max_scratch_bytes: u64,
    /// Seconds that a submission may take by estimate, so that no driver takes the device for hung.
    /// The device does not set this limit. Infinity: no bound.
    pub max_submission_seconds: f64,
}

impl Caps {
    /// WebGPU's default limits without optional features: what every conformant adapter has.
    pub fn webgpu_default() -> Caps {
        Caps {
            name: "WebGPU default limits".into(),
            class: DeviceClass::Unknown,
            f16: false,
            subgroup_size: None,
            msl_version: None,
            packed_products: PackedProducts::WrittenOut,
            fxc: false,
            coop: Vec::new(),
            coop_off: None,
            max_workgroup_bytes: 16 << 10,
            max_invocations: 256,
            max_workgroup_size_x: 256,
            max_workgroups: 65_535,
            max_storage_buffers: 8,
            max_binding_bytes: 128 << 20,
            max_buffer_bytes: 256 << 20,
            storage_alignment: 256,
            max_scratch_bytes: u64::MAX,
            max_submission_seconds: PATIENCE,
        }
    }

    /// Invocations that one workgroup may have if all are along x, as in every kernel of the
    /// library.
    pub fn max_threads(&self) -> u32 {
        self.max_invocations.min(self.max_workgroup_size_x)
    }

    /// Whether loops marked `//unroll` are repeated in the texts of shaders. A GPU then keeps
    /// arrays in registers; a software device gains nothing, and compiles longer.
    pub fn unrolls(&self) -> bool {
        self.class != DeviceClass::Cpu && !self.fxc
    }

    /// The tile `[rows, columns]` of a workgroup: the one given, or a smaller one if the device has
    /// fewer invocations. An invocation has `side_by_side` columns of one row. Sizes are powers of
    /// two.
    pub(crate) fn tile(&self, [rows, columns]: [u32; 2], side_by_side: u32) -> [u32; 2] {
        let power = |most: u32| 1 << most.max(1).ilog2();
        let across = power(self.max_threads()).min(columns / side_by_side);
        [power(self.max_threads() / across).min(rows), across * side_by_side]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_for_few_invocations() {
        let tile = |max_invocations, tile, side_by_side| {
            Caps { max_invocations, ..Caps::webgpu_default() }.tile(tile, side_by_side)
        };
        let packs = [256, 255, 128, 64, 20, 1].map(|most| tile(most, [8, 32], 1));
        assert_eq!(packs, [[8, 32], [4, 32], [4, 32], [2, 32], [1, 16], [1, 1]]);
        let finishes = [64, 63, 32, 5].map(|most| tile(most, [8, 32], 4));
        assert_eq!(finishes, [[8, 32], [4, 32], [4, 32], [1, 16]]);
    }
}
