//! `tilewise info`.

use crate::args::InfoArgs;
use crate::failure::Result;
use crate::product::CPU_KERNEL;
use serde_json::{Value, json};
use std::io::Write;
use tilewise::{AdapterDescription, Context, ContextOptions};
use tilewise_core::caps::Caps;
use tilewise_core::kernel::Language;
use tilewise_core::plan::{Forced, plan};
use tilewise_core::problem::{DType, Format, Operand, Problem};
use tilewise_core::{Error, QuantFormat};

pub(super) fn run(args: &InfoArgs, out: &mut dyn Write) -> Result<()> {
    let executor = AdapterDescription::cpu();
    let adapters = [pollster::block_on(tilewise::adapters()), vec![executor]].concat();
    if args.json {
        let adapters: Vec<Value> = adapters.iter().map(to_json).collect();
        writeln!(
            out,
            "{:#}",
            json!({ "version": env!("CARGO_PKG_VERSION"), "adapters": adapters })
        )?;
        return Ok(());
    }
    for (index, adapter) in adapters.iter().enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        print(adapter, out)?;
    }
    Ok(())
}

/// Whether products are planned with kernels in MSL, too.
fn has_msl(adapter: &AdapterDescription) -> bool {
    let library = adapter.library(&ContextOptions::from_env().unwrap_or_default());
    adapter.backend != "cpu"
        && library.kernels.iter().any(|kernel| kernel.kit.language == Language::Msl)
}

/// The version of Metal's language. It takes a device to tell.
fn msl_version(adapter: &AdapterDescription) -> Option<u32> {
    let options = ContextOptions::from_env().ok()?.adapter(&adapter.name);
    let context =
        has_msl(adapter).then(|| pollster::block_on(Context::request(&options)).ok())??;
    context.caps().msl_version
}

/// A kernel, and the reason if the adapter's limits exclude it.
struct Admission {
    name: String,
    rejected: Option<String>,
}

/// All kernels of an adapter. The CPU executor's kernel is in no library.
fn admissions(adapter: &AdapterDescription) -> Vec<Admission> {
    if adapter.backend == "cpu" {
        return vec![Admission { name: CPU_KERNEL.into(), rejected: None }];
    }
    // Only the limits of the adapter matter here, so any problems will do, as long as each kernel
    // takes one of them.
    let plain = |dtype| Problem::dense(dtype, 1024, 1024, 1024);
    let half = plain(DType::F16);
    let weights = Operand::packed(Format::Quantized(QuantFormat::MXFP4), 1, 1024, 1024).t();
    let problems = [plain(DType::F32), half, Problem { b: weights, ..half }];
    let library = adapter.library(&ContextOptions::from_env().unwrap_or_default());
    let variants = library
        .kernels
        .iter()
        .flat_map(|kernel| kernel.variants.iter().map(move |variant| (kernel, variant)));
    let admission = |(kernel, variant): (&tilewise_core::KernelDef, &tilewise_core::Variant)| {
        let forced = Forced {
            kernel: kernel.name.into(),
            variant: Some(variant.name.into()),
            pad: None,
            splits: None,
        };
        let name = forced.to_string();
        let reason = |problem| match plan(problem, adapter.caps(), library, Some(&forced)).err()? {
            Error::DeviceLimit(why) => {
                let why = why.strip_prefix("no kernel takes this problem here: ").unwrap_or(&why);
                Some(why.strip_prefix(&format!("{name}: ")).unwrap_or(why).to_owned())
            }
            other => Some(other.to_string()),
        };
        let reasons: Option<Vec<_>> = problems.iter().map(reason).collect();
        Admission { rejected: reasons.and_then(|mut reasons| reasons.pop()), name }
    };
    variants.map(admission).collect()
}

/// The limits, with their names in JSON and in text.
fn limits(caps: &Caps) -> [(&'static str, &'static str, u64); 7] {
    [
        ("max_workgroup_bytes", "bytes of workgroup memory", caps.max_workgroup_bytes.into()),
        ("max_invocations", "invocations per workgroup", caps.max_invocations.into()),
        ("max_workgroups", "workgroups per dimension", caps.max_workgroups.into()),
        ("max_storage_buffers", "storage buffers per shader", caps.max_storage_buffers.into()),
        ("max_binding_bytes", "bytes per binding", caps.max_binding_bytes),
        ("max_buffer_bytes", "bytes per buffer", caps.max_buffer_bytes),
        ("storage_alignment", "bytes of alignment of a binding", caps.storage_alignment.into()),
    ]
}

fn to_json(adapter: &AdapterDescription) -> Value {
    let mut caps: serde_json::Map<String, Value> = limits(adapter.caps())
        .iter()
        .map(|&(name, _, value)| (name.into(), value.into()))
        .collect();
    caps.insert("max_workgroup_size_x".into(), adapter.caps().max_workgroup_size_x.into());
    caps.insert("f16".into(), adapter.caps().f16.into());
    caps.insert("class".into(), format!("{:?}", adapter.caps().class).to_lowercase().into());
    let kernel = |kernel: &Admission| {
        json!({
            "name": kernel.name,
            "admitted": kernel.rejected.is_none(),
            "reason": kernel.rejected,
        })
    };
    json!({
        "name": adapter.name,
        "backend": adapter.backend,
        "driver": adapter.driver,
        "hardware": adapter.hardware,
        "timestamps": adapter.timestamps,
        "msl": has_msl(adapter),
        "msl_version": msl_version(adapter),
        "caps": caps,
        "kernels": admissions(adapter).iter().map(kernel).collect::<Vec<_>>(),
    })
}

fn print(adapter: &AdapterDescription, out: &mut dyn Write) -> Result<()> {
    writeln!(out, "{}", adapter.name)?;
    writeln!(out, "  backend  {}", adapter.backend)?;
    if !adapter.driver.is_empty() {
        writeln!(out, "  driver   {}", adapter.driver)?;
    }
    if adapter.backend != "cpu" {
        let yes_no = |flag| if flag { "yes" } else { "no" };
        writeln!(
            out,
            "  device   {:?}; f16 in shaders: {}; timestamps: {}; kernels in MSL: {}",
            adapter.caps().class,
            yes_no(adapter.caps().f16),
            yes_no(adapter.timestamps),
            yes_no(has_msl(adapter))
        )?;
        if let Some(version) = msl_version(adapter) {
            writeln!(out, "  metal    language {}.{}", version / 100, version / 10 % 10)?;
        }
        for (_, text, value) in limits(adapter.caps()) {
            writeln!(out, "  limit    {value} {text}")?;
        }
    }
    let admissions = admissions(adapter);
    let admitted: Vec<&str> =
        admissions.iter().filter(|a| a.rejected.is_none()).map(|a| a.name.as_str()).collect();
    writeln!(out, "  kernels  {}", admitted.join(" "))?;
    for Admission { name, rejected } in &admissions {
        if let Some(reason) = rejected {
            writeln!(out, "  without  {name}: {reason}")?;
        }
    }
    Ok(())
}
