//! Less exact products: they are planned only by permission, and only on kernels that have a way
//! for them. Otherwise plans are as without the permission.

use std::collections::BTreeSet;
use tilewise::{DType, Gemm, Precision, Tensor};
use tilewise_core::caps::{Caps, RECORDED};
use tilewise_core::plan::{Choice, Pass, Plan, admits, choices};
use tilewise_core::{Error, Format, Operand, Problem, plan};
use tilewise_shaders::LIBRARY;
use tilewise_tests::cases::devices;
use tilewise_tests::contexts;

/// Names of the variants whose sums are f16.
fn half_sums() -> BTreeSet<String> {
    let variants = LIBRARY
        .kernels
        .iter()
        .flat_map(|kernel| kernel.variants.iter().map(move |variant| (kernel, variant)));
    let half = variants
        .filter(|(_, variant)| variant.unit().is_some_and(|unit| unit.matrix.sums == DType::F16));
    half.map(|(kernel, variant)| format!("{}/{}", kernel.name, variant.name)).collect()
}

/// Without permission and with it.
const PRECISIONS: [Precision; 2] = [Precision::F32, Precision::F16Sums];

/// The problem without permission and with it.
fn both(problem: Problem) -> [Problem; 2] {
    PRECISIONS.map(|precision| Problem { precision, ..problem })
}

fn square(side: u64) -> Problem {
    Problem::dense(DType::F16, side, side, side)
}

fn recorded(name: &str) -> Caps {
    RECORDED.iter().find(|(known, _)| *known == name).expect("caps of that name").1()
}

fn name(choice: &Choice) -> String {
    format!("{}/{}", choice.kernel, choice.variant)
}

#[test]
fn refused_by_name_without_permission() {
    let names = half_sums();
    assert!(names.len() >= 2, "{names:?}");
    for kernel in &names {
        let [refused, taken] = both(square(64))
            .map(|p| plan(&p, &devices()[0], &LIBRARY, Some(&kernel.parse().unwrap())));
        match refused {
            Err(Error::DeviceLimit(why)) => assert!(why.contains("f16-sums"), "{why}"),
            other => panic!("{kernel}: {other:?}"),
        }
        assert_eq!(&name(&taken.unwrap().choice.unwrap()), kernel);
        // A permission does not replace a unit that is not there.
        let forced = kernel.parse().unwrap();
        match plan(&both(square(64))[1], &devices()[1], &LIBRARY, Some(&forced)) {
            Err(Error::DeviceLimit(why)) => assert!(why.contains("no matrix unit"), "{why}"),
            other => panic!("{kernel}: {other:?}"),
        }
    }
}

#[test]
fn chosen_only_with_permission() {
    for side in [64, 333, 1024, 4096] {
        let [without, with] = both(square(side)).map(|problem| {
            let choices = choices(&problem, &recorded("nvidia-h200"), &LIBRARY).unwrap();
            choices.iter().map(name).collect::<BTreeSet<_>>()
        });
        let added: BTreeSet<_> = with.difference(&without).cloned().collect();
        assert!(
            without.is_subset(&with) && !added.is_empty() && added.is_subset(&half_sums()),
            "{side}: {added:?}"
        );
    }
    for side in [2048, 4096, 8192] {
        let planned = |problem| {
            plan(&problem, &recorded("nvidia-h200"), &LIBRARY, None).unwrap().choice.unwrap()
        };
        let [without, with] = both(square(side)).map(planned);
        assert!(
            half_sums().contains(&name(&with)) && with.cost < without.cost,
            "{side}: {with} {without}"
        );
    }
}

/// If the device has no unit for it, or an operand is not f16, a permission changes no plan.
#[test]
fn changes_nothing_elsewhere() {
    let mut f32_sums = recorded("nvidia-h200");
    f32_sums.coop.retain(|matrix| matrix.sums == DType::F32);
    let wide = Operand::packed(Format::Dense(DType::F32), 1, 1024, 1024);
    let problems = [
        (
            square(1024),
            vec![f32_sums, recorded("browser"), recorded("lavapipe"), recorded("apple-m4-max")],
        ),
        (Problem { a: wide, ..square(1024) }, vec![recorded("nvidia-h200")]),
        (Problem { b: wide, ..square(1024) }, vec![recorded("nvidia-h200")]),
        (
            Problem::dense(DType::BF16, 1024, 1024, 1024),
            vec![recorded("nvidia-h200"), recorded("apple-m1")],
        ),
    ];
    for (problem, devices) in problems {
        for caps in devices {
            let [without, with] =
                both(problem).map(|problem| plan(&problem, &caps, &LIBRARY, None).unwrap());
            assert_eq!(
                (without.choice, without.passes),
                (with.choice, with.passes),
                "{}",
                caps.name
            );
        }
    }
}

/// Split f32 is for products of f32 by f32 on matrix units. It keeps chains as short as it says, in
/// the kernel or by splits of K. If the sums of many splits do not fit a binding, they are added in
/// several ranges of K.
#[test]
fn chains_of_split_f32() {
    let caps = recorded("nvidia-h200");
    let by = |kernel: Option<&str>, precision, [m, n, k]: [u64; 3]| {
        let problem = Problem { precision, ..Problem::dense(DType::F32, m, n, k) };
        plan(&problem, &caps, &LIBRARY, kernel.map(|name| name.parse().unwrap()).as_ref()).unwrap()
    };
    let of = |precision, size| by(None, precision, size);
    let chain = |pass: &Pass| {
        let mut constants = pass.parts.iter().flat_map(|part| &part.constants);
        let own = constants.find(|(name, _)| *name == "CHAIN").map_or(0, |(_, value)| *value);
        if own > 0 { own.min(pass.params.k_split) } else { pass.params.k_split }
    };
    for size in [[4096; 3], [8192; 3], [4096, 4096, 100_000], [2000, 3000, 1111]] {
        let longest = |plan: &Plan| {
            assert!(
                plan.scratch_bytes <= caps.max_binding_bytes
                    && plan.packed_bytes <= caps.max_buffer_bytes
            );
            plan.passes.iter().filter(|pass| pass.coop).map(chain).max().unwrap_or(0)
        };
        let [strict, short, fast] = [Precision::F32, Precision::SplitF32, Precision::SplitF32Fast]
            .map(|precision| longest(&of(precision, size)));
        assert_eq!(strict, 0, "{size:?}");
        let split = longest(&by(Some("coop/128x128x32"), Precision::SplitF32, size));
        for short in [short, split] {
            assert!((1..=Precision::CHAIN as u32).contains(&short), "{size:?}: {short}");
        }
        assert!(fast > short, "{size:?}: {fast}");
    }
    assert!(of(Precision::SplitF32, [8192; 3]).cuts.is_empty());
    assert!(!by(Some("coop/128x128x32"), Precision::SplitF32, [8192; 3]).cuts.is_empty());
    assert!(of(Precision::SplitF32Fast, [8192; 3]).cuts.is_empty());
    assert_eq!(of(Precision::SplitF32Fast, [1, 4096, 4096]).choice.unwrap().kernel, "gemv");

    let refused = |problem: Problem, kernel: &str| {
        let refused = plan(&problem, &caps, &LIBRARY, Some(&kernel.parse().unwrap()))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("split-f32"), "{refused}");
    };
    let square = Problem::dense(DType::F32, 1024, 1024, 1024);
    refused(square, "coop/128x128x32");
    let chained = "coop/chains-128x128x32".parse().unwrap();
    let of_use = |precision| admits(&Problem { precision, ..square }, &caps, &LIBRARY, &chained);
    assert_eq!(Precision::ALL.map(of_use), [false, true, false, false, false, false]);
    refused(Problem { precision: Precision::SplitF32, ..square }, "coop/128x128x32+k2");
}

/// Fewer bytes of activations are used for few rows of quantized weights, if they are expected to
/// be faster.
#[test]
fn bytes_of_activations() {
    let caps = recorded("nvidia-h200");
    let planned = |m: u64, format: &str, precision| {
        let format = format.parse().expect("a format");
        let b = Operand::packed(Format::Quantized(format), 1, 14_336, 4096).t();
        let problem = Problem { b, precision, ..Problem::dense(DType::F16, m, 14_336, 4096) };
        plan(&problem, &caps, &LIBRARY, None).unwrap()
    };
    let bytes = |plan: &Plan| {
        let mut constants =
            plan.passes.iter().flat_map(|pass| &pass.parts).flat_map(|part| &part.constants);
        constants.find(|(name, _)| *name == "BYTES").map(|(_, bytes)| *bytes)
    };
    let [strict, two, one] =
        [Precision::F32, Precision::Int16Activations, Precision::Int8Activations];
    for format in ["affine-4bit-g64-f16", "q4_0", "q4_k", "mxfp4"] {
        let of = |precision| bytes(&planned(1, format, precision));
        assert_eq!([strict, two, one].map(of), [Some(3), Some(2), Some(1)], "{format}");
    }
    // Without the permission, four rows are multiplied in f32.
    let four = [strict, two, one].map(|precision| planned(4, "affine-4bit-g64-f16", precision));
    assert_eq!([bytes(&four[0]), bytes(&four[2])], [None, Some(1)]);
    let [strictly, _, cheaply] = four.map(|plan| plan.choice.unwrap().cost);
    assert!(cheaply < strictly);
    // Many rows, weights of other formats, and dense weights are planned as without the permission.
    for (m, format) in [(512, "affine-4bit-g64-f16"), (1, "nf4-g64"), (1, "mxfp8")] {
        let [strict, one] = [strict, one].map(|precision| planned(m, format, precision));
        assert_eq!((strict.choice, strict.passes), (one.choice, one.passes), "{m} {format}");
    }
    let [strict, one] = [strict, one].map(|precision| {
        plan(&Problem { precision, ..square(1024) }, &caps, &LIBRARY, None).unwrap()
    });
    assert_eq!((strict.choice, strict.passes), (one.choice, one.passes));
}

/// The builder tells the planner of the permission. A product that needs no such unit has equal
/// bits with it.
#[test]
fn by_the_builder() {
    for context in contexts() {
        let values: Vec<f32> =
            (0..64 * 64).map(|i| ((i * 37 % 101) as f32 - 50.0) / 64.0).collect();
        let a = Tensor::upload(&context, &values, &[64, 64]).unwrap();
        let [strict, permitted] =
            PRECISIONS.map(|precision| Gemm::new(&a, &a).precision(precision));
        assert_eq!(Gemm::new(&a, &a).problems().unwrap()[0].precision, Precision::F32);
        assert_eq!(
            [&strict, &permitted].map(|gemm| gemm.problems().unwrap()[0].precision),
            PRECISIONS
        );
        let [strict, permitted] =
            [strict, permitted].map(|gemm| gemm.run().unwrap().read_bytes_blocking().unwrap());
        assert_eq!(strict, permitted);
    }
}
