//! A product between two kernels of your own: on your device, in your compute pass, from your
//! buffer. A classifier of images: bytes to f32, scores by a linear layer, the best class.
//!
//! `cargo run --release --example own_device`; it needs a GPU, if only in software.

use tilewise::wgpu::{self, util::DeviceExt};
use tilewise::{Context, ContextOptions, DType, Gemm, Tensor, device_descriptor};

mod checked;

const IMAGES: usize = 37;
const PIXELS: usize = 64;
const CLASSES: usize = 10; // in the WGSL, too

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    let options = wgpu::RequestAdapterOptions::default();
    let adapter = wgpu::Instance::new(descriptor).request_adapter(&options);
    run(&pollster::block_on(adapter)?)
}

pub(crate) fn run(adapter: &wgpu::Adapter) -> Result<(), Box<dyn std::error::Error>> {
    // Your device, with the features and limits that make products fast. Add yours to them.
    // SAFETY: only tilewise's shaders use the experimental feature, matrix units.
    let experimental = unsafe { wgpu::ExperimentalFeatures::enabled() };
    let descriptor = device_descriptor(adapter, experimental);
    let (device, queue) = pollster::block_on(adapter.request_device(&descriptor))?;
    let options = ContextOptions::default();
    let ctx = Context::from_wgpu(adapter, device.clone(), queue.clone(), &options)?;

    let weights = checked::numbers(CLASSES * PIXELS, 3, 1.0); // [N, K], as a linear layer stores it
    let bias = checked::numbers(CLASSES, 2, 1.0);
    let light = |i: usize| if i * i % 251 > 180 { 255 - i % 70 } else { 1 + i % 7 };
    let images: Vec<u8> = (0..IMAGES * PIXELS).map(|i| light(i) as u8).collect();

    // Your buffers: one with the bytes, and one for their numbers, which is A of the product.
    let pixels = device.create_buffer_init(&wgpu::util::BufferInitDescriptor {
        label: Some("pixels"),
        contents: &images,
        usage: wgpu::BufferUsages::STORAGE,
    });
    let numbers = device.create_buffer(&wgpu::BufferDescriptor {
        label: Some("numbers"),
        size: (IMAGES * PIXELS * 4) as u64,
        usage: wgpu::BufferUsages::STORAGE,
        mapped_at_creation: false,
    });
    let x = Tensor::from_buffer(&ctx, numbers, 0, DType::F32, &[IMAGES, PIXELS])?;
    // The library's buffers, for your own kernels: `binding` has their exact length.
    let w = Tensor::upload(&ctx, &weights, &[CLASSES, PIXELS])?;
    let b = Tensor::upload(&ctx, &bias, &[CLASSES])?;
    let scores = Tensor::zeros(&ctx, DType::F32, &[IMAGES, CLASSES])?;
    let classes = Tensor::zeros(&ctx, DType::U32, &[IMAGES])?;

    let module = device.create_shader_module(wgpu::include_wgsl!("own_device.wgsl"));
    let stage = |entry, resources: [wgpu::BindingResource<'_>; 2]| {
        let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(entry),
            layout: None,
            module: &module,
            entry_point: Some(entry),
            compilation_options: Default::default(),
            cache: None,
        });
        let entry_of = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
        let entries: Vec<_> = (0..).zip(resources).map(entry_of).collect();
        let layout = &pipeline.get_bind_group_layout(0);
        let descriptor = wgpu::BindGroupDescriptor { label: None, layout, entries: &entries };
        let bindings = device.create_bind_group(&descriptor);
        (pipeline, bindings)
    };
    let unpack = stage("unpack", [pixels.as_entire_binding(), x.binding()?]);
    let classify = stage("classify", [scores.binding()?, classes.binding()?]);
    let layer = Gemm::new(&x, w.t()).bias(&b); // may be kept, and recorded in every frame

    let mut encoder = device.create_command_encoder(&Default::default());
    let mut pass = encoder.begin_compute_pass(&Default::default());
    let dispatch = |pass: &mut wgpu::ComputePass<'_>, (pipeline, bindings): &(_, _), size| {
        pass.set_pipeline(pipeline);
        pass.set_bind_group(0, bindings, &[]);
        pass.dispatch_workgroups(usize::div_ceil(size, 64) as u32, 1, 1);
    };
    dispatch(&mut pass, &unpack, IMAGES * PIXELS);
    layer.record(&mut pass, &scores)?; // sets pipeline and bind group 0
    dispatch(&mut pass, &classify, IMAGES);
    drop(pass);
    queue.submit([encoder.finish()]);

    let a: Vec<f64> = images.iter().map(|&pixel| f64::from(pixel)).collect();
    let w = checked::transposed(&checked::wide(&weights), PIXELS);
    let mut expected = checked::product(&a, &w, PIXELS, CLASSES);
    expected.iter_mut().zip(bias.iter().cycle()).for_each(|(sum, bias)| *sum += f64::from(*bias));
    assert_eq!(checked::wide(&scores.read_blocking::<f32>()?), expected);
    let best = |row: &[f64]| (1..CLASSES).fold(0, |b, i| if row[i] > row[b] { i } else { b });
    let expected: Vec<u32> = expected.chunks(CLASSES).map(|row| best(row) as u32).collect();
    assert_eq!(classes.read_blocking::<u32>()?, expected);
    println!("{}: {IMAGES} images classified, {:?} ...", ctx.adapter_name(), &expected[..8]);
    Ok(())
}
