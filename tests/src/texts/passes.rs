//! Every pass of every kernel and conversion. Passes with the same files are there once.

use std::collections::HashMap;
use tilewise_core::caps::DeviceClass;
use tilewise_core::plan::{self, Forced, Index, Pass, Quantize, Table, Take};
use tilewise_core::{
    Activation, Axis, Bias, Caps, DType, Epilogue, Format, Gathered, Grouping, Operand,
    PackedProducts, Precision, Problem, QuantFormat,
};
use tilewise_shaders::{CONVERSIONS, LIBRARY};

/// Roomy caps: with the f16 extension and matrix units, without both, and of a software device.
pub fn devices() -> [Caps; 3] {
    let device = Caps {
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size_x: 1024,
        ..Caps::webgpu_default()
    };
    let units = LIBRARY
        .kernels
        .iter()
        .flat_map(|kernel| kernel.variants)
        .filter_map(|variant| variant.unit());
    let coop = units.map(|unit| unit.matrix).collect();
    let software =
        Caps { f16: true, class: DeviceClass::Cpu, name: "software".into(), ..device.clone() };
    [
        Caps {
            f16: true,
            coop,
            subgroup_size: Some(32),
            name: "with f16".into(),
            ..device.clone()
        },
        device,
        software,
    ]
}

/// A device of DX12 whose shaders FXC compiles: no 16-bit numbers and no subgroups.
pub(super) fn with_fxc() -> Caps {
    Caps { fxc: true, packed_products: PackedProducts::Absent("FXC"), ..devices()[1].clone() }
}

/// Problems that together reach every loader, store, schedule and epilogue.
fn problems() -> Vec<Problem> {
    let mut all = Vec::new();
    for dtype in DType::FLOATS {
        for (m, n, k) in [(64, 64, 128), (65, 63, 127), (5, 7, 0)] {
            for (a_transposed, b_transposed) in
                [(false, false), (false, true), (true, false), (true, true)]
            {
                let mut problem = Problem::dense(dtype, m, n, k);
                if a_transposed {
                    problem.a = Operand::packed(Format::Dense(dtype), 1, k, m).t();
                }
                if b_transposed {
                    problem.b = Operand::packed(Format::Dense(dtype), 1, n, k).t();
                }
                all.push(problem);
            }
            for (extra, activation) in DType::FLOATS.into_iter().zip([
                Activation::Relu,
                Activation::Gelu,
                Activation::Silu,
            ]) {
                let mut problem = Problem::dense(dtype, m, n, k);
                let axis = if extra == DType::F16 { Axis::M } else { Axis::N };
                let length = if axis == Axis::M { m } else { n };
                let bias =
                    Bias { axis, operand: Operand::packed(Format::Dense(extra), 1, length, 1) };
                let residual = Some(Operand::packed(Format::Dense(extra), 1, m, n));
                let gated = false;
                problem.epilogue = Epilogue {
                    alpha: 2.0,
                    beta: 0.5,
                    bias: Some(bias),
                    activation,
                    residual,
                    gated,
                };
                all.push(problem);
                if dtype == extra {
                    problem.epilogue.gated = true;
                    all.push(problem);
                    problem.epilogue = Epilogue { residual: None, beta: 0.0, ..problem.epilogue };
                    all.extend(n.is_multiple_of(2).then_some(problem));
                }
            }
        }
        let mut grouped = Problem::dense(dtype, 96, 64, 128);
        grouped.grouping = Grouping::RaggedM { groups: 3, first: 0, offset: 0, expected: None };
        grouped.b = Operand::packed(Format::Dense(dtype), 3, 128, 64);
        all.push(grouped);
        let gathered = Some(Gathered { rows: 96, offset: 0, step: 1, len: 96 });
        all.push(Problem { gathered, ..grouped });
        let indexed = Grouping::Indexed { groups: 3, rows: 96, offset: 0 };
        all.push(Problem { grouping: indexed, ..grouped });
        let mut many = grouped;
        many.grouping = Grouping::RaggedM { groups: 90, first: 0, offset: 0, expected: None };
        many.b = Operand::packed(Format::Dense(dtype), 90, 128, 64);
        if dtype == DType::F32 {
            all.push(many);
        }
        let batch = |dtype| Problem {
            batch: 3,
            a: Operand::packed(Format::Dense(dtype), 3, 96, 128),
            b: Operand::packed(Format::Dense(dtype), 3, 128, 64),
            c: Operand::packed(Format::Dense(dtype), 3, 96, 64),
            ..Problem::dense(dtype, 96, 64, 128)
        };
        let shared = |operand: Operand| Operand { batch_stride: 0, ..operand };
        all.push(Problem {
            grouping: Grouping::Masked { entries: 3, offset: 0, expected: None },
            ..batch(dtype)
        });
        all.push(Problem {
            grouping: Grouping::RaggedK { groups: 3, offset: 0 },
            a: shared(Operand::packed(Format::Dense(dtype), 1, 128, 96).t()),
            b: shared(Operand::packed(Format::Dense(dtype), 1, 128, 64)),
            ..batch(dtype)
        });
        let listed = Problem::dense(dtype, 96, 64, 128);
        all.push(Problem {
            batch: 3,
            grouping: Grouping::Listed { groups: 3, offset: 0, sizes: None },
            c: Operand::packed(Format::Dense(DType::F32), 1, 96, 64),
            ..listed
        });
        let mut nested = Problem { batch: 6, ..Problem::dense(dtype, 96, 64, 128) };
        nested.grouping = Grouping::Nested { sizes: [1, 1, 2, 3] };
        for operand in [&mut nested.a, &mut nested.b, &mut nested.c] {
            operand.len *= 8;
            *operand = operand.with_entry_strides([0, 0, 4 * operand.len / 8, operand.len / 8]);
        }
        all.push(nested);
        // Formats of one kind differ in constants; one type of A is enough for them.
        let kinds = QuantFormat::kinds();
        for format in
            QuantFormat::all().filter(|format| dtype == DType::F32 || kinds.contains(format))
        {
            let k = 2 * format.block().max(64);
            let quantized = Operand::packed(Format::Quantized(format), 3, 64, k).t();
            all.push(Problem {
                a: Operand::packed(Format::Dense(dtype), 1, 96, k),
                k,
                b: quantized,
                ..grouped
            });
            all.push(Problem { b: quantized, ..Problem::dense(dtype, 33, 61, k) });
        }
    }
    all
}

/// Every pass of every kernel and variant, whole and split. Passes with the same files are there
/// once.
pub fn passes() -> impl Iterator<Item = (Pass, String)> {
    passes_on(&devices())
}

/// Every pass on some devices. Passes with the same files are there once.
pub(super) fn passes_on(devices: &[Caps]) -> impl Iterator<Item = (Pass, String)> + use<> {
    let mut passes = HashMap::new();
    let mut take = |pass: Pass, problem: &dyn std::fmt::Debug| {
        let files = (pass.parts.clone(), pass.unroll);
        passes.entry(files).or_insert_with(|| (pass, format!("{problem:?}")));
    };
    for caps in devices {
        for problem in problems() {
            for kernel in LIBRARY.kernels {
                for variant in kernel.variants {
                    // Variants differ in constants. One format and one epilogue are enough for
                    // them.
                    let first =
                        Format::Quantized(QuantFormat::all().next().expect("there are formats"));
                    let dense = matches!(problem.b.format, Format::Dense(_));
                    let plain = problem.epilogue == Epilogue::default();
                    if !(plain && (dense || problem.b.format == first))
                        && variant.name != kernel.variants[0].name
                    {
                        continue;
                    }
                    for splits in [1, 2] {
                        let forced = Forced {
                            kernel: kernel.name.into(),
                            variant: Some(variant.name.into()),
                            pad: None,
                            splits: Some(splits),
                        };
                        // Splits of K have another store. A product without groups is enough for
                        // it.
                        let shown = dense && problem.grouping == Grouping::Batched;
                        if splits > 1 && !(kernel.splits && shown) {
                            continue;
                        }
                        let sums = variant.unit().map(|unit| unit.matrix.sums);
                        let precision = match sums {
                            Some(DType::F16) => Precision::F16Sums,
                            _ => Precision::SplitF32,
                        };
                        let problem = Problem { precision, ..problem };
                        let served =
                            variant.unit().is_none_or(|unit| unit.serves(&problem, caps).is_ok());
                        let absent = matches!(caps.packed_products, PackedProducts::Absent(_));
                        let lacks = absent && variant.multiplies_bytes()
                            || caps.fxc && variant.is_beyond_fxc();
                        if !served || lacks || !kernel.takes(variant, &problem, caps) {
                            continue;
                        }
                        let plan = plan::plan(&problem, caps, &LIBRARY, Some(&forced))
                            .unwrap_or_else(|error| panic!("{forced:?} on {problem:?}: {error}"));
                        plan.passes.into_iter().for_each(|pass| take(pass, &problem));
                    }
                }
            }
        }
    }
    conversions(&devices[0], &mut take);
    passes.into_values()
}

/// Takes a format of each kind to each type: whole, by rows and by columns. Quantizes weights to
/// every format that devices make.
fn conversions(caps: &Caps, pass: &mut impl FnMut(Pass, &dyn std::fmt::Debug)) {
    let dense = DType::FLOATS.map(Format::Dense);
    for format in dense.into_iter().chain(QuantFormat::kinds().into_iter().map(Format::Quantized)) {
        let table = Table::packed(format, 2, 3, 2 * format.block().max(16));
        for (i, dtype) in DType::FLOATS.into_iter().enumerate() {
            let index = Some(Index { offset: 0, step: 1, count: 5, len: 5 });
            let (rows, columns) = [(None, None), (index, None), (index, index)][i];
            let (zeros, beside_c) = (i == 1, false);
            let take =
                Take { table, rows, columns, zeros, dtype, offset: 0, len: 1 << 20, beside_c };
            let passes = plan::take(&take, caps, &CONVERSIONS).unwrap();
            passes.into_iter().for_each(|own| pass(own, &take));
        }
    }
    for (format, dtype) in QuantFormat::all().zip(DType::FLOATS.into_iter().cycle()) {
        let weights = Table::packed(Format::Dense(dtype), 2, 3, 2 * format.block());
        let quantize = Quantize { weights, format, pitch: weights.columns };
        let passes = plan::quantize(&quantize, caps, &CONVERSIONS).unwrap_or_default();
        passes.into_iter().for_each(|own| pass(own, &quantize));
    }
}
