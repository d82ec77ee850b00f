//! WGSL as Metal sees it: the text that naga writes of a pass for wgpu's Metal backend.

use naga::ResourceBinding;
use naga::back::msl;
use naga::valid::{Capabilities, ValidationFlags, Validator};
use tilewise_core::kernel::Role;
use tilewise_core::plan::Pass;
use tilewise_sanitizer::deep;

/// The entry point's name, which naga changes, because MSL keeps `main` to itself.
pub const ENTRY: &str = "main_";

/// A pass in MSL, by naga, with the options of wgpu-hal (`metal/device.rs`) for a pipeline without
/// runtime checks and zeroed workgroup memory. The slots are wgpu's: the parameters, the bindings in
/// their order, and after them the sizes of all.
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
    let capabilities = Capabilities::all();
    let info = Validator::new(ValidationFlags::all(), capabilities).validate(&module);
    let info = info.map_err(|error| error.emit_to_string(text))?;
    let roles = std::iter::once((Role::Params, false)).chain(pass.bindings.iter().map(|it| (it.role, it.writable)));
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
        per_entry_point_map: [("main".to_owned(), resources)].into(),
        fake_missing_bindings: false,
        spirv_cross_compatibility: false,
        zero_initialize_workgroup_memory: false,
        force_loop_bounding: false,
        emit_int_div_checks: false,
        ..Default::default()
    };
    let stage = naga::ShaderStage::Compute;
    let pipeline = msl::PipelineOptions { entry_point: Some((stage, "main".into())), ..Default::default() };
    let (text, _) = msl::write_string(&module, &info, &options, &pipeline).map_err(|error| error.to_string())?;
    Ok(text)
}
