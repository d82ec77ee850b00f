//! WGSL as Metal sees it: the text that naga writes of a pass for wgpu's Metal backend.

use naga::ResourceBinding;
use naga::back::msl;
use naga::proc::{BoundsCheckPolicies, BoundsCheckPolicy};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use tilewise_core::kernel::Role;
use tilewise_core::plan::Pass;
use tilewise_sanitizer::deep;

/// A pass in MSL, by naga, with the options of wgpu-hal (`metal/device.rs`) for the library's
/// pipelines, which run without checks and without zeroed memory. The slots are wgpu's: the
/// parameters, the bindings in their order, and then a buffer with the sizes of the bindings.
///
/// # Errors
/// naga's words.
pub fn translate(pass: &Pass) -> Result<String, String> {
    let text = tilewise_shaders::assemble(pass);
    let translated = deep(|| translate_text(&text, pass)).map_err(|error| error.to_string())?;
    translated.map_err(|why| format!("{}: {why}", pass.label))
}

fn translate_text(text: &str, pass: &Pass) -> Result<String, String> {
    let module = naga::front::wgsl::parse_str(text).map_err(|error| error.emit_to_string(text))?;
    let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
    let info = validator.validate(&module).map_err(|error| error.emit_to_string(text))?;
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
    let no = BoundsCheckPolicy::Unchecked;
    let unchecked =
        BoundsCheckPolicies { index: no, buffer: no, image_load: no, binding_array: no };
    let options = msl::Options {
        lang_version: (3, 1),
        bounds_check_policies: unchecked,
        per_entry_point_map: [("main".to_owned(), resources)].into(),
        fake_missing_bindings: false,
        spirv_cross_compatibility: false,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..Default::default()
    };
    let stage = naga::ShaderStage::Compute;
    let pipeline =
        msl::PipelineOptions { entry_point: Some((stage, "main".into())), ..Default::default() };
    let written = msl::write_string(&module, &info, &options, &pipeline);
    written.map(|(text, _)| text).map_err(|error| error.to_string())
}
