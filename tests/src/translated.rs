//! WGSL in the form that drivers get: the text that naga writes for wgpu's backends, with the
//! options of wgpu-hal.

use naga::back::{hlsl, msl, spv};
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ResourceBinding, ShaderStage, StorageAccess};
use tilewise_core::kernel::Role;
use tilewise_core::plan::Pass;
use tilewise_sanitizer::deep;

/// No index is checked: wgpu compiles trusted shaders like this.
const UNCHECKED: BoundsCheckPolicies = BoundsCheckPolicies {
    index: BoundsCheckPolicy::Unchecked,
    buffer: BoundsCheckPolicy::Unchecked,
    image_load: BoundsCheckPolicy::Unchecked,
    binding_array: BoundsCheckPolicy::Unchecked,
};

/// A text that naga has read.
pub struct Read {
    module: Module,
    info: ModuleInfo,
    checks: Checks,
}

/// The checks that wgpu adds to a text, as `gpu/pipeline.rs` asks it to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checks {
    /// The library's own kernels, and operations on matrix units, have no checks.
    None,
    /// Operations have checks of indices.
    Operation,
    /// Custom kernels have zeroed memory and an end to every loop, too.
    All,
}

impl Checks {
    /// Whether indices are checked.
    fn indices(self) -> bool {
        self != Checks::None
    }

    /// Whether memory is zeroed, and every loop ends.
    fn zeros_and_loops(self) -> bool {
        self == Checks::All
    }
}

impl Read {
    /// Reads and validates a text.
    ///
    /// # Errors
    /// naga's words.
    pub fn new(text: &str, checks: Checks) -> Result<Self, String> {
        let read = || {
            let module =
                naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
            let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
            let info = validator.validate(&module).map_err(|error| error.emit_to_string(text))?;
            Ok(Read { module, info, checks })
        };
        deep(read).map_err(|error| error.to_string())?
    }

    /// The text for DX12, and the name of its entry point. Registers are counted as wgpu-hal's DX12
    /// backend counts those of a layout. Uniforms, read-only buffers and writable buffers have
    /// their own counts, each in the order of the bindings. Then comes one for the number of
    /// workgroups.
    ///
    /// # Errors
    /// naga's words.
    pub fn hlsl(&self, shader_model: hlsl::ShaderModel) -> Result<(String, String), String> {
        let mut bound: Vec<_> = self
            .module
            .global_variables
            .iter()
            .filter_map(|(_, global)| Some((global.binding?, global.space)))
            .collect();
        bound.sort_unstable_by_key(|(binding, _)| (binding.group, binding.binding));
        let [mut uniforms, mut read, mut written] = [0; 3];
        let mut target = |space| {
            let next = match space {
                AddressSpace::Storage { access } if access.contains(StorageAccess::STORE) => {
                    &mut written
                }
                AddressSpace::Storage { .. } => &mut read,
                _ => &mut uniforms,
            };
            *next += 1;
            hlsl::BindTarget { register: *next - 1, restrict_indexing: true, ..Default::default() }
        };
        let binding_map = bound.into_iter().map(|(own, space)| (own, target(space))).collect();
        let special = hlsl::BindTarget { register: uniforms, ..Default::default() };
        let options = hlsl::Options {
            shader_model,
            binding_map,
            fake_missing_bindings: false,
            special_constants_binding: Some(special),
            zero_initialize_workgroup_memory: self.checks.zeros_and_loops(),
            restrict_indexing: self.checks.indices(),
            force_loop_bounding: self.checks.zeros_and_loops(),
            ..Default::default()
        };
        let pipeline =
            hlsl::PipelineOptions { entry_point: Some((ShaderStage::Compute, "main".into())) };
        let mut text = String::new();
        let written = hlsl::Writer::new(&mut text, &options, &pipeline)
            .write(&self.module, &self.info, None)
            .map_err(|error| error.to_string())?;
        let mut names = written.entry_point_names.into_iter();
        let entry = names.next().ok_or("no entry point")?.map_err(|error| error.to_string())?;
        Ok((text, entry))
    }

    /// The words for Vulkan 1.3.
    ///
    /// # Errors
    /// naga's words.
    pub fn spirv(&self) -> Result<Vec<u32>, String> {
        let policies = match self.checks.indices() {
            false => UNCHECKED,
            true => BoundsCheckPolicies {
                index: BoundsCheckPolicy::Restrict,
                buffer: BoundsCheckPolicy::Restrict,
                image_load: BoundsCheckPolicy::Restrict,
                binding_array: BoundsCheckPolicy::Unchecked,
            },
        };
        let zeroed = match self.checks.zeros_and_loops() {
            false => spv::ZeroInitializeWorkgroupMemoryMode::None,
            true => spv::ZeroInitializeWorkgroupMemoryMode::Polyfill,
        };
        let options = spv::Options {
            lang_version: (1, 6),
            flags: spv::WriterFlags::LABEL_VARYINGS,
            bounds_check_policies: policies,
            zero_initialize_workgroup_memory: zeroed,
            force_loop_bounding: self.checks.zeros_and_loops(),
            emit_int_div_checks: self.checks.indices(),
            // Bindings keep their numbers.
            fake_missing_bindings: true,
            ..Default::default()
        };
        let pipeline =
            spv::PipelineOptions { shader_stage: ShaderStage::Compute, entry_point: "main".into() };
        spv::write_vec(&self.module, &self.info, &options, Some(&pipeline))
            .map_err(|error| error.to_string())
    }
}

/// A pass in MSL, by naga, with the options of wgpu-hal (`metal/device.rs`) for the library's
/// pipelines, which run without checks and without zeroed memory. The slots are wgpu's: the
/// parameters, the bindings in their order, and then a buffer with the sizes of the bindings.
///
/// # Errors
/// naga's words.
pub fn translate(pass: &Pass) -> Result<String, String> {
    let text = tilewise_shaders::assemble(pass);
    let read = Read::new(&text, Checks::None).map_err(|why| format!("{}: {why}", pass.label))?;
    let translated = deep(|| translate_text(&read, pass)).map_err(|error| error.to_string())?;
    translated.map_err(|why| format!("{}: {why}", pass.label))
}

fn translate_text(Read { module, info, .. }: &Read, pass: &Pass) -> Result<String, String> {
    let bound = pass.bindings.iter().map(|binding| (binding.role, binding.writable));
    let roles = std::iter::once((Role::Params, false)).chain(bound);
    let target = |(slot, (role, mutable)): (u8, (Role, bool))| {
        let binding = ResourceBinding { group: 0, binding: role.binding() };
        (binding, msl::BindTarget { buffer: Some(slot), mutable, ..Default::default() })
    };
    let resources = msl::EntryPointResources {
        resources: (0..).zip(roles).map(target).collect(),
        sizes_buffer: Some(pass.bindings.len() as u8 + 1),
        ..Default::default()
    };
    let options = msl::Options {
        lang_version: (3, 1),
        bounds_check_policies: UNCHECKED,
        per_entry_point_map: [("main".to_owned(), resources)].into(),
        fake_missing_bindings: false,
        spirv_cross_compatibility: false,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..Default::default()
    };
    let pipeline = msl::PipelineOptions {
        entry_point: Some((ShaderStage::Compute, "main".into())),
        ..Default::default()
    };
    let written = msl::write_string(module, info, &options, &pipeline);
    written.map(|(text, _)| text).map_err(|error| error.to_string())
}
