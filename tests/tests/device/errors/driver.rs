//! If the driver refuses something, there is an error, at the latest when the output is read.

use super::{kind, refused, zeros};
use std::process::Command;
use tilewise::wgpu::{
    Backends, Buffer, DeviceDescriptor, Instance, InstanceDescriptor, MemoryBudgetThresholds,
};
use tilewise::{Call, Context, ContextOptions, DType, Error, Gemm, Kernel, Tensor};
use tilewise_tests::{Adapter, adapters};

type Read = Result<Vec<f32>, Error>;

fn buffer(tensor: &Tensor) -> &Buffer {
    tensor.buffer().unwrap().0
}

#[test]
fn buffers_that_are_destroyed() {
    let uses: [fn(&Tensor, &Tensor) -> Read; 4] = [
        |gone, a| a.context().matmul(gone, a)?.read_blocking(),
        |gone, a| Gemm::new(a, a).run_into(gone).and_then(|()| gone.read_blocking()),
        |gone, _| tilewise::ops::exp(gone).run()?.read_blocking(),
        |gone, _| gone.read_blocking(),
    ];
    for adapter in adapters() {
        let context = &adapter.context;
        let a = zeros(context, &[4, 4]);
        for used in uses {
            let gone = zeros(context, &[4, 4]);
            used(&gone, &a).unwrap();
            buffer(&gone).destroy();
            // The second time uses what the context has kept from the first.
            for _ in 0..2 {
                refused(used(&gone, &a), kind!(Device), &["destroyed"]);
            }
            pollster::block_on(context.wait()).unwrap();
        }
    }
}

/// Naga accepts the text, and a device without the feature refuses it.
#[test]
fn pipelines_that_fail() {
    for adapter in adapters() {
        let context =
            adapter.with_limits(|limits| limits.max_compute_workgroup_storage_size = 1 << 10);
        let kernel = Kernel::new("roomy")
            .outputs(["out"])
            .header("var<workgroup> room: array<f32, 1024>;")
            .source("room[local_index] = 1.0; out[global_id.x] = room[local_index];");
        let call = || Call::new(&context).output(DType::F32, &[64]).grid([64, 1, 1]);
        for _ in 0..2 {
            let read = || kernel.run_one(&call())?.read_blocking::<f32>();
            refused(read(), kind!(DeviceLimit), &["roomy", "1024"]);
        }
    }
}

/// A context whose wgpu may use this percentage of all memory, if the driver tells how much there
/// is.
fn with_memory(adapter: &Adapter, percent: u8) -> Option<Context> {
    let ours = adapter.context.device().unwrap().adapter_info();
    let backends = Backends::from(ours.backend);
    let descriptor = InstanceDescriptor {
        backends,
        memory_budget_thresholds: MemoryBudgetThresholds {
            for_resource_creation: Some(percent),
            for_device_loss: None,
        },
        ..InstanceDescriptor::new_without_display_handle()
    };
    let all = pollster::block_on(Instance::new(descriptor).enumerate_adapters(backends));
    let found = all.into_iter().find(|found| found.get_info().name == ours.name)?;
    let required_limits = found.limits();
    let descriptor = DeviceDescriptor { required_limits, ..Default::default() };
    let (device, queue) = pollster::block_on(found.request_device(&descriptor)).ok()?;
    Context::from_device(device, queue, &ContextOptions::default()).ok()
}

/// OpenGL reports missing memory only to callers that ask, and wgpu does not ask. The test runs
/// again in a process that may use little memory.
#[test]
fn memory_that_opengl_lacks() {
    const AGAIN: &str = "TILEWISE_LITTLE_MEMORY";
    let mut of_opengl = adapters().iter().filter(|own| own.context.backend_name() == "gl");
    let Some(context) = of_opengl.next().map(|own| &own.context) else {
        eprintln!("skipped: there is no OpenGL");
        return;
    };
    if std::env::var_os(AGAIN).is_none() {
        let test = "errors::driver::memory_that_opengl_lacks";
        let mut again = Command::new("sh");
        again.args(["-c", "ulimit -v 4000000 && exec \"$@\"", "sh"]);
        again.arg(std::env::current_exe().unwrap()).args(["--exact", test]).env(AGAIN, "1");
        let output = again.output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && out.contains("1 passed"), "{out}");
        return;
    }
    let mut tensors = Vec::new();
    let refusal = (0..32).find_map(|_| {
        let tensor = Tensor::zeros(context, DType::F32, &[1 << 27]);
        tensor.map(|tensor| tensors.push(tensor)).err()
    });
    assert!(matches!(refusal, Some(Error::OutOfMemory(_))), "{}: {refusal:?}", tensors.len());
    drop(tensors);
    // Memory that is given back can be used again.
    let ones = Tensor::upload(context, &[1.0f32; 64], &[64]).unwrap();
    assert_eq!(ones.read_blocking::<f32>().unwrap(), [1.0; 64]);
}

/// Memory is limited: to little more than others use, or to what the driver has.
#[test]
fn memory_that_is_not_there() {
    for adapter in adapters() {
        let mut contexts = (5..100).step_by(5).filter_map(|most| with_memory(adapter, most));
        let context = contexts.next().unwrap();
        let most = context.caps().max_buffer_bytes as usize / 4;
        let mut tensors = Vec::new();
        let refusal = (0..256).find_map(|_| {
            let tensor = Tensor::zeros(&context, DType::F32, &[most]);
            tensor.map(|tensor| tensors.push(tensor)).err()
        });
        let made = tensors.len();
        let name = adapter.name();
        assert!(matches!(refusal, Some(Error::OutOfMemory(_))), "{name}: {made}, {refusal:?}");
        drop(tensors);
        context.wait_blocking().unwrap();
        let a = Tensor::upload(&context, &[1.0f32; 4], &[2, 2]).unwrap();
        assert_eq!(context.matmul(&a, &a).unwrap().read_blocking::<f32>().unwrap(), [2.0; 4]);
    }
}
