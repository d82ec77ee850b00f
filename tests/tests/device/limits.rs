//! The ends of the ranges: empty sizes, very long and very many operands, and devices with small
//! limits.

use tilewise::{DType, Precision, QuantFormat, QuantizedTensor, Take, Tensor};
use tilewise_core::{Caps, DeviceClass, Error, Problem, explain, plan};
use tilewise_shaders::LIBRARY;
use tilewise_tests::{Case, Suite, adapters, floor, minima, one_of_each, themes};

const F32: [DType; 3] = [DType::F32; 3];

/// K = 0 leaves beta·C and the epilogue. If M, N, the batch or the number of groups is 0, there is
/// nothing to do.
#[test]
fn nothing() {
    Suite::on_every_adapter(|adapter| {
        let none = Case::new([5, 7, 0], F32);
        // The planner chooses the kernel of these cases.
        let chosen = Precision::ALL.map(|precision| Case { precision, ..none.clone() });
        [themes::on(&one_of_each(adapter), &themes::empty()), chosen.into()].concat()
    });
}

/// More than 32,767 rows, and as many columns.
#[test]
fn many_rows_and_columns() {
    Suite::on_every_adapter(|adapter| {
        let wide = [
            Case::new([40_000, 3, 5], F32).odd(),
            Case::new([3, 40_000, 5], F32),
            Case::new([3, 4, 40_001], F32),
        ];
        themes::sampled(adapter, &wide, 3)
    });
}

/// More workgroups than one dimension of a dispatch holds: by rows, by columns, and by the batch.
/// (`host/sanitized.rs` has them in a finishing pass.)
#[test]
fn many_workgroups() {
    Suite::on_every_adapter(|_| {
        let cases = vec![
            Case::new([524_300, 1, 2], F32).kernel("naive"),
            Case::new([3, 2_097_200, 1], F32).kernel("naive").layout([true, true]),
            Case::new([1, 1, 2], F32).batch(65_540).kernel("naive"),
            Case::new([1, 3, 2], [DType::F32, DType::F16, DType::BF16])
                .batch(65_540)
                .kernel("naive"),
        ];
        for case in &cases {
            let grid = grid(case);
            assert!(grid[1] > 1, "{case:?} fits one dimension: {grid:?}");
        }
        cases
    });
}

/// The larger grid of a case's passes.
fn grid(case: &Case) -> [u32; 2] {
    let [m, n, k] = case.size.map(|size| size as u64);
    let batch = case.batch.unwrap_or(1) as u64;
    let mut problem = Problem::dense(DType::F32, m, n, k);
    problem.batch = batch;
    for (operand, [rows, cols]) in
        [(&mut problem.a, [m, k]), (&mut problem.b, [k, n]), (&mut problem.c, [m, n])]
    {
        *operand = tilewise_core::Operand::packed(operand.format, batch, rows, cols);
    }
    let forced = case.kernel.as_deref().map(|name| name.parse().unwrap());
    let caps =
        Caps { max_buffer_bytes: 1 << 40, max_binding_bytes: 1 << 40, ..Caps::webgpu_default() };
    let plan = plan(&problem, &caps, &LIBRARY, forced.as_ref()).unwrap();
    plan.passes.iter().map(|pass| pass.grid).max_by_key(|grid| grid[1]).unwrap()
}

/// Devices made with small limits: five workgroups along a dimension, or WebGPU's defaults without
/// features.
#[test]
fn small_devices() {
    for adapter in adapters() {
        let mut suite = Suite::default();
        let few =
            |limits: &mut tilewise::wgpu::Limits| limits.max_compute_workgroups_per_dimension = 5;
        let context = adapter.with_limits(few);
        assert_eq!(context.caps().max_workgroups, 5);
        let case = Case::new([40, 160, 7], F32);
        suite.run(
            "five workgroups",
            &context,
            &[case.clone().kernel("naive"), case.clone().batch(1).kernel("naive/8x32")],
        );
        let too_many = Case::new([41, 160, 7], F32).kernel("naive");
        let refused = tilewise_tests::run(&context, &too_many).unwrap_err();
        assert!(refused.contains("workgroups: 30 needed, 25 allowed"), "{refused}");

        let context = adapter.with_limits(|limits| *limits = tilewise::wgpu::Limits::defaults());
        assert!(!context.caps().f16);
        // If the adapter has no f16, other tests run these cases.
        if adapter.context.caps().f16 {
            let cases: Vec<_> =
                themes::mixed().into_iter().map(|case| case.kernel("naive")).collect();
            suite.run("default limits", &context, &cases);
        }
        suite.run("default limits", &context, &themes::mixed()[..4]);
        suite.run("default limits", &context, &themes::grouped(&themes::ends()[..1], false));
        suite.finish(adapter.name());
    }
}

/// A device with the least that Vulkan and OpenGL ES 3.1 require runs everything. It has four
/// storage buffers and 128 invocations.
#[test]
fn the_smallest_devices() {
    for adapter in adapters() {
        let least = minima::vulkan();
        let context = adapter.with_limits(|limits| minima::lower(limits, &least));
        let own = context.caps();
        assert_eq!((own.max_storage_buffers, own.max_threads()), (4, 128));
        let kernel = Some(floor(adapter).name);
        let case = |case: Case| Case { kernel: kernel.clone(), ..case };
        let mut suite = Suite::default();
        let cases: Vec<_> = themes::few_buffers().into_iter().map(case).collect();
        suite.run("the least limits", &context, &cases);
        // The planner chooses the kernel of these cases.
        suite.run("the least limits", &context, &themes::few_buffers()[..4]);
        // With groups, rows by index would be one buffer too many, so they are copied before.
        let gathered = themes::gathered().into_iter().filter(|case| case.groups.is_some());
        let gathered: Vec<_> = gathered.take(2).map(case).collect();
        suite.run("the least limits", &context, &gathered);
        // One case of each form.
        let [masked, along_k] = [themes::masked(), themes::along_k(&themes::ends()[..1], true)];
        let forms = [masked, along_k, themes::indexed(), themes::listed(&themes::lists()[..1])];
        let forms: Vec<_> =
            forms.into_iter().filter_map(|cases| cases.into_iter().next()).collect();
        suite.run("the least limits", &context, &forms);
        suite.finish(adapter.name());

        // Planes, the output and one or two indices may be too many: then the table is decoded
        // before.
        let upload = |indices: &[u32]| Tensor::upload(&context, indices, &[indices.len()]).unwrap();
        let (rows, columns) = (upload(&[1, 9, 0]), upload(&[63, 0]));
        let order: Vec<u32> = (0..64).rev().collect();
        let numbers: Vec<f32> = (0..128).map(|i| (i / 64 * 8 + i % 8) as f32).collect();
        for format in [QuantFormat::affine(4, 64, DType::F32).unwrap(), "q8_0".parse().unwrap()] {
            let w = QuantizedTensor::quantize(&context, &numbers, [2, 64], format).unwrap();
            let read = |take: Take| take.run().unwrap().read_blocking::<f32>().unwrap();
            let all = read(Take::new(&w));
            let row = |row: usize| &all[row * 64..][..64];
            let taken = read(Take::new(&w).rows(&rows));
            assert_eq!((&taken[..64], &taken[128..]), (row(1), row(0)), "{format}");
            assert!(taken[64..128].iter().all(|number| number.is_nan()), "{format}");
            let taken = read(Take::new(&w).rows(&rows).columns(&columns));
            assert_eq!(taken[..2], [row(1)[63], row(1)[0]], "{format}");
            assert_eq!(taken[4..], [row(0)[63], row(0)[0]], "{format}");
            let turned = w.with_order(&order).unwrap();
            let taken = read(Take::new(&turned).rows(&rows).out_dtype(DType::F32));
            assert!(taken[128..].iter().eq(row(0).iter().rev()), "{format}");
            assert!(read(Take::new(&turned))[..64].iter().eq(row(0).iter().rev()), "{format}");
        }
        // Quantizing binds the planes, the weights and the status.
        let w = Tensor::upload(&context, &numbers, &[2, 64]).unwrap();
        assert!(w.quantize_blocking("q8_0".parse().unwrap()).is_ok());
        assert!(matches!(
            w.quantize(QuantFormat::affine(4, 64, DType::F32).unwrap()),
            Err(Error::DeviceLimit(text)) if text.contains("binds 5 storage buffers")
        ));
    }
}

/// The planner keeps to limits that no real device has.
#[test]
fn plans_within_small_limits() {
    let small = Caps { max_workgroup_bytes: 8192, max_invocations: 64, ..Caps::webgpu_default() };
    let problem = Problem::dense(DType::F32, 512, 512, 512);
    let chosen = plan(&problem, &small, &LIBRARY, None).unwrap();
    for pass in &chosen.passes {
        assert!(pass.workgroup_bytes <= 8192 && pass.threads <= 64, "{pass:?}");
    }
    let text = explain(&problem, &small, &LIBRARY, None).unwrap();
    assert!(text.contains("bytes of workgroup memory: "), "{text}");
    assert!(text.contains("invocations: "), "{text}");

    let refused = |caps: Caps| plan(&problem, &caps, &LIBRARY, None).unwrap_err();
    assert!(matches!(
        refused(Caps { max_storage_buffers: 2, ..small.clone() }),
        Error::DeviceLimit(text) if text.contains("storage buffers: 3 needed, 2 allowed")
    ));
    assert!(matches!(
        refused(Caps { max_workgroups: 1, ..small.clone() }),
        Error::DeviceLimit(text) if text.contains("workgroups")
    ));
    assert!(matches!(
        refused(Caps { max_invocations: 1, ..small.clone() }),
        Error::DeviceLimit(text) if text.contains("invocations")
    ));
    for caps in [
        Caps { max_binding_bytes: 1 << 19, ..small.clone() },
        Caps { max_buffer_bytes: 1 << 19, ..small },
    ] {
        let plan = plan(&problem, &caps, &LIBRARY, None).unwrap();
        assert!(
            plan.passes
                .iter()
                .flat_map(|pass| &pass.bindings)
                .all(|binding| binding.bytes <= 1 << 19)
        );
    }
}

/// A few rows and columns beyond whole tiles, which the planner gives to other kernels. They leave
/// no gap, in every epilogue.
#[test]
fn tiles_and_edges() {
    use tilewise::{Activation, Axis};
    use tilewise_tests::Place;
    let mut edges = 0;
    for adapter in adapters() {
        let mut cases = Vec::new();
        let epilogue = |axis, case: Case| Case {
            beta: 0.5,
            bias: Some((axis, Place::odd(DType::BF16))),
            activation: Activation::Relu,
            residual: Some(Place::odd(DType::F32)),
            ..case.odd()
        };
        for (i, out) in DType::FLOATS.into_iter().enumerate() {
            let case =
                Case::new([513, 514, 33], [DType::F32, DType::F32, out]).layout([i == 1, i == 2]);
            let both = [case.clone().integers(), epilogue([Axis::M, Axis::N][i % 2], case)];
            let turn = |(j, _): &(usize, Case)| adapter.has_turn(i + j);
            cases.extend(both.into_iter().enumerate().filter(turn).map(|(_, case)| case));
        }
        // An edge is another text. A software device compiles it only if that saves much time.
        if adapter.context.caps().class == DeviceClass::Cpu && adapter.has_turn(1) {
            let case = Case::new([129, 129, 65_536], [DType::F32, DType::F32, DType::BF16]);
            cases.push(epilogue(Axis::N, case));
        }
        for case in &cases {
            let [m, n, k] = case.size.map(|size| size as u64);
            let text = explain(
                &Problem::dense(DType::F32, m, n, k),
                adapter.context.caps(),
                &LIBRARY,
                None,
            )
            .unwrap();
            edges += usize::from(text.contains("\nedge "));
        }
        let mut suite = Suite::default();
        suite.run(adapter.name(), &adapter.context, &cases);
        suite.finish(adapter.name());
    }
    // On a large GPU these sizes are too small to give edges a dispatch of their own.
    let software =
        adapters().iter().any(|adapter| adapter.context.caps().class == DeviceClass::Cpu);
    assert!(!software || edges > 0, "no product here has an edge of its own");
}
