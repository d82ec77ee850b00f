//! Every assembled shader passes naga's validation and naga's MSL, HLSL and SPIR-V writers.
//! Reflection compares it with the plan.

use naga::valid::{Capabilities, ModuleInfo, ValidationFlags, Validator};
use naga::{AddressSpace, Module, ResourceBinding, StorageAccess, TypeInner};
use tilewise_core::Params;
use tilewise_core::kernel::Role;
use tilewise_core::plan::Pass;
use tilewise_shaders::assemble;
use tilewise_tests::texts::{self, passes};

#[test]
fn every_shader_is_valid_and_as_planned() {
    let passes: Vec<_> = passes().collect();
    assert!(passes.len() > 200, "only {} texts: the matrix above has shrunk", passes.len());
    for (pass, problem) in &passes {
        let (module, info) = validate(&assemble(pass));
        bindings(&module, pass, problem);
        workgroup(&module, pass);
        params(&module);
        write_all(&module, &info, pass);
    }
    for (pass, problem) in passes.iter().step_by(8) {
        let pass = &Pass { beside_c: true, ..pass.clone() };
        bindings(&validate(&assemble(pass)).0, pass, problem);
    }
}

fn validate(text: &str) -> (Module, ModuleInfo) {
    let module = naga::front::wgsl::parse_str(text)
        .unwrap_or_else(|error| panic!("{}\n{text}", error.emit_to_string(text)));
    let halves = Capabilities::SHADER_FLOAT16 | Capabilities::SHADER_FLOAT16_IN_FLOAT32;
    let subgroups = Capabilities::SUBGROUP | Capabilities::SUBGROUP_BARRIER;
    let capabilities = halves | subgroups | Capabilities::COOPERATIVE_MATRIX;
    let info = Validator::new(ValidationFlags::all(), capabilities)
        .validate(&module)
        .unwrap_or_else(|error| panic!("{}\n{text}", error.emit_to_string(text)));
    (module, info)
}

/// The module's bindings are exactly the plan's, with the same access and element size.
fn bindings(module: &Module, pass: &Pass, problem: &str) {
    let mut found = Vec::new();
    for (_, global) in module.global_variables.iter() {
        let Some(ResourceBinding { group, binding }) = global.binding else { continue };
        assert_eq!(group, 0);
        match global.space {
            AddressSpace::Uniform => assert_eq!(binding, Role::Params.binding()),
            AddressSpace::Storage { access } => {
                let TypeInner::Array { base, stride, .. } = module.types[global.ty].inner else {
                    panic!("{:?}", global.name)
                };
                let _ = base;
                found.push((binding, access.contains(StorageAccess::STORE), u64::from(stride)));
            }
            other => panic!("{:?} in {other:?}", global.name),
        }
    }
    found.sort_unstable();
    let planned: Vec<_> = pass
        .bindings
        .iter()
        .map(|b| (b.role.binding(), !pass.read_only(b), b.element_bytes))
        .collect();
    assert_eq!(found, planned, "{} on {problem}", pass.label);
    for binding in &pass.bindings {
        assert!(
            binding.bytes >= binding.element_bytes && binding.bytes.is_multiple_of(4),
            "{binding:?}"
        );
    }
}

/// Workgroup size and workgroup memory are what the planner checked against the limits.
fn workgroup(module: &Module, pass: &Pass) {
    let entry = &module.entry_points[0];
    assert_eq!(entry.workgroup_size, [pass.threads, 1, 1], "{}", pass.label);
    let bytes: u32 = module
        .global_variables
        .iter()
        .filter(|(_, global)| global.space == AddressSpace::WorkGroup)
        .map(|(_, global)| module.types[global.ty].inner.size(module.to_ctx()))
        .sum();
    assert_eq!(bytes, pass.workgroup_bytes, "{}", pass.label);
}

/// WGSL lays `Params` out as Rust does: one field right after the other.
fn params(module: &Module) {
    let (_, ty) =
        module.types.iter().find(|(_, ty)| ty.name.as_deref() == Some("Params")).expect("Params");
    let TypeInner::Struct { members, span } = &ty.inner else { panic!("Params is no struct") };
    assert_eq!(*span as usize, size_of::<Params>());
    let end = members.iter().fold(0, |end, member| {
        assert_eq!(member.offset, end, "{members:?}");
        end + module.types[member.ty].inner.size(module.to_ctx())
    });
    assert_eq!(end, *span, "{members:?}");
}

fn write_all(module: &Module, info: &ModuleInfo, pass: &Pass) {
    use naga::back::{hlsl, msl, spv};
    spv::write_vec(
        module,
        info,
        &spv::Options { lang_version: (1, 3), ..Default::default() },
        None,
    )
    .expect("SPIR-V");

    let mut slots = msl::BindingMap::default();
    let roles = pass.bindings.iter().map(|b| (b.role, b.writable)).chain([(Role::Params, false)]);
    for (slot, (role, mutable)) in roles.enumerate() {
        let target = msl::BindTarget { buffer: Some(slot as u8), mutable, ..Default::default() };
        slots.insert(ResourceBinding { group: 0, binding: role.binding() }, target);
    }
    let resources =
        msl::EntryPointResources { resources: slots, sizes_buffer: Some(30), ..Default::default() };
    let options = msl::Options {
        lang_version: (2, 4),
        per_entry_point_map: [("main".to_owned(), resources)].into(),
        fake_missing_bindings: false,
        ..Default::default()
    };
    let (_, translation) =
        msl::write_string(module, info, &options, &Default::default()).expect("MSL");
    translation.entry_point_names.iter().for_each(|name| assert!(name.is_ok(), "{name:?}"));

    // HLSL has no cooperative matrices, and wgpu does not offer them on DX12.
    if pass.coop {
        return;
    }
    let options = hlsl::Options { shader_model: hlsl::ShaderModel::V6_2, ..Default::default() };
    let mut text = String::new();
    let pipeline = hlsl::PipelineOptions::default();
    let written =
        hlsl::Writer::new(&mut text, &options, &pipeline).write(module, info, None).expect("HLSL");
    written.entry_point_names.iter().for_each(|name| assert!(name.is_ok(), "{name:?}"));
}

#[test]
fn texts_have_nothing_that_some_compiler_refuses() {
    for text in texts::all() {
        if let Some((number, why)) = texts::lint(&text.wgsl).into_iter().next() {
            let place = text.place(number).unwrap_or_default();
            panic!("{place}: {why}: line {number} of {}\n{}", text.name, text.wgsl);
        }
    }
}
