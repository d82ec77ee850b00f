//! A kernel's translation for Metal, by naga.

use super::fitted::no_thread;
use naga::back::msl;
use tilewise_core::{Error, Result};
use tilewise_sanitizer::Shader;
use tilewise_sanitizer::deep;

/// The module in the Metal shading language, with the bounds checks that wgpu asks for, and the
/// buffers in the order of their bindings.
pub(super) fn translate(shader: &Shader) -> Result<String> {
    let module = shader.module();
    let mut bindings: Vec<_> =
        module.global_variables.iter().filter_map(|(_, variable)| variable.binding).collect();
    bindings.sort();
    let slots = (0..).zip(bindings).map(|(slot, binding)| {
        (
            binding,
            msl::BindTarget { buffer: Some(slot), mutable: true, ..msl::BindTarget::default() },
        )
    });
    let resources: msl::BindingMap = slots.collect();
    let sizes_buffer = u8::try_from(resources.len()).ok();
    let resources =
        msl::EntryPointResources { resources, sizes_buffer, ..msl::EntryPointResources::default() };
    let entries = module.entry_points.iter().map(|entry| (entry.name.clone(), resources.clone()));
    let checked = naga::proc::BoundsCheckPolicy::Restrict;
    let options = msl::Options {
        lang_version: (3, 1),
        per_entry_point_map: entries.collect(),
        fake_missing_bindings: false,
        bounds_check_policies: naga::proc::BoundsCheckPolicies {
            index: checked,
            buffer: checked,
            ..Default::default()
        },
        ..msl::Options::default()
    };
    let write =
        || msl::write_string(module, shader.info(), &options, &msl::PipelineOptions::default());
    let written = deep(write).map_err(no_thread)?;
    let (text, _) = written.map_err(|error| Error::Misuse(format!("naga's MSL: {error}")))?;
    Ok(text)
}
