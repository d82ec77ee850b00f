//! Runs every MSL kernel on CPUs, with the cases of the WGSL kernels. Results are the oracle's,
//! only the operands' logical ranges are touched, and signatures and sizes are as planned. `cargo
//! xtask sanitize-msl` runs the cases of `few_texts.rs` under ThreadSanitizer and AddressSanitizer.

use tilewise::DType;
use tilewise_core::{Caps, Format, Grouping, QuantFormat};
use tilewise_msl::{FILES, KIT, LIBRARY, assemble};
use tilewise_tests::case::LAYOUTS;
use tilewise_tests::cases::{self, MSL};
use tilewise_tests::harness::{Lanes, available, lint};
use tilewise_tests::msl::{Kernels, Options, PLAIN, check, check_on, device, early_device, run};
use tilewise_tests::random::{Weights, property};
use tilewise_tests::sanitized::{Job, planned};
use tilewise_tests::texts::parts;
use tilewise_tests::{Case, Data, few_texts, lines};

#[test]
fn edges_f32() {
    check(&few_texts::edges(MSL, 0));
}

#[test]
fn edges_f16() {
    check(&few_texts::edges(MSL, 1));
}

#[test]
fn edges_bf16() {
    check(&few_texts::edges(MSL, 2));
}

/// GPUs before the M3 multiply bf16 as f32.
#[test]
fn edges_of_widened_bf16() {
    let widened = |case: &Case| case.a.dtype == DType::BF16 && case.b.dtype == DType::BF16;
    let cases: Vec<_> = few_texts::edges(MSL, 2).into_iter().filter(widened).collect();
    check_on(&early_device(), &cases, PLAIN, false);
}

/// Every variant with one row, with one column, and with every K around its step, 0 among them.
#[test]
fn thin() {
    let mut cases = Vec::new();
    for (i, kernel) in MSL.kernels().into_iter().enumerate() {
        let [bm, bn, bk] =
            [kernel.variant.bm, kernel.variant.bn, kernel.variant.bk].map(|size| size as usize);
        for k in [0, 1, bk - 1, bk, bk + 1, 2 * bk + 3] {
            let sizes = [[3, 6, k], [1, bn + 1, k], [bm + 1, 1, k]];
            for (j, size) in sizes.into_iter().enumerate().filter(|(j, _)| k > 0 || *j == 0) {
                let types = [i, i + j, i + 2 * j].map(|t| DType::FLOATS[t % 3]);
                let case = Case { seed: (k + j) as u64, ..Case::new(size, types) };
                let case = case.kernel(&kernel.name).layout(LAYOUTS[(i + j) % 4]);
                cases.push(if j == 1 { case } else { case.odd() });
            }
        }
    }
    check(&cases);
}

#[test]
fn almost_whole() {
    check(&cases::almost_whole(MSL));
}

#[test]
fn bands() {
    check(&cases::bands(MSL));
}

#[test]
fn splits() {
    check(&cases::splits(MSL));
}

/// Every kernel asks one file where the lines of its operands lie.
#[test]
fn lines_elsewhere() {
    if !available(PLAIN.mode) {
        return;
    }
    let kernels = Kernels::with("operand/lines.metal", lines::IN_MSL);
    let job = |case: Case| match lines::exchanged(&case, &device()) {
        Ok(job) => (job, case),
        Err(failure) => panic!("{failure}\n    {case:?}"),
    };
    let jobs: Vec<_> = lines::cases(MSL).into_iter().map(job).collect();
    kernels.prepare(jobs.iter().flat_map(|(job, _)| &job.plan.passes), PLAIN.mode);
    for (job, case) in jobs {
        run(&job, &kernels, PLAIN).unwrap_or_else(|failure| panic!("{failure}\n    {case:?}"));
    }
}

#[test]
fn strides() {
    check(&few_texts::sampled(MSL, cases::strides(MSL)));
}

#[test]
fn mixed() {
    check(&few_texts::sampled(MSL, cases::mixed(MSL)));
}

#[test]
fn epilogues() {
    check(&few_texts::sampled(MSL, cases::epilogues(MSL)));
}

#[test]
fn quantized() {
    check(&few_texts::of_every_kind(MSL));
}

#[test]
fn groups() {
    check(&few_texts::sampled(MSL, cases::groups(MSL)));
}

#[test]
fn group_edges() {
    check(&cases::group_edges(MSL));
}

#[test]
fn ranges_of_k() {
    check(&few_texts::sampled(MSL, cases::ranges_of_k(MSL)));
}

#[test]
fn empty() {
    check(&few_texts::sampled(MSL, cases::empty(MSL)));
}

#[test]
fn rounding() {
    check_on(&device(), &cases::rounding(MSL), PLAIN, true);
}

#[test]
fn many_workgroups() {
    let (caps, cases) = cases::many_workgroups(MSL);
    for case in &cases {
        let plan = planned(case, &caps).unwrap();
        assert!(plan.passes.iter().any(|pass| pass.grid[1] > 1), "{case:?} fits one dimension");
    }
    check_on(&caps, &cases, PLAIN, false);
}

/// Products in pieces: ranges of K that add to the same sums, and ranges of groups and rows.
#[test]
fn pieces() {
    let (caps, cases) = cases::pieces(MSL);
    let cases: Vec<_> = cases.into_iter().step_by(2).collect();
    check_on(&Caps { max_binding_bytes: caps.max_binding_bytes, ..device() }, &cases, PLAIN, false);
}

/// Random products on a kernel, as on WGSL kernels: any shape, stride, type, epilogue and grouping.
fn random(family: &str) {
    let kernels = Kernels::of_library();
    let kernel = MSL
        .one_of_each()
        .into_iter()
        .find(|kernel| kernel.name.split('/').next() == Some(family))
        .unwrap();
    if !tilewise_tests::harness::available(PLAIN.mode) {
        return;
    }
    property(16, Weights::Any, "proptest-regressions/gpu.txt", |case| {
        let split = if case.groups.is_none() && case.seed.is_multiple_of(4) { "+k3" } else { "" };
        let case = case.kernel(format!("{}{split}", kernel.name));
        let job = match Job::new(&case, &device()).map_err(|failure| failure.to_string()) {
            // Kernels in WGSL take these products.
            Err(why)
                if ["no schedule for Nested", "no loader for", "no gates in columns"]
                    .iter()
                    .any(|no| why.contains(no)) =>
            {
                return Ok(());
            }
            job => job?,
        };
        run(&job, kernels, PLAIN).map(drop).map_err(|failure| failure.to_string())
    });
}

#[test]
fn random_gemm() {
    random("msl-gemm");
}

#[test]
fn random_direct() {
    random("msl-direct");
}

#[test]
fn random_gemv() {
    random("msl-gemv");
}

#[test]
fn random_gevm() {
    random("msl-gevm");
}

/// Each kernel once, with a thread of the system for every lane.
fn one_of_each() -> Vec<Case> {
    let case = |name: &str, k: usize| {
        Case::new([33, 34, k], [DType::F16, DType::F16, DType::F32]).kernel(name)
    };
    MSL.one_of_each()
        .iter()
        .map(|kernel| case(&kernel.name, kernel.variant.bk as usize + 1))
        .collect()
}

#[test]
fn on_threads() {
    check_on(&device(), &one_of_each(), Options { lanes: Lanes::Threads, ..PLAIN }, false);
}

/// The bits do not depend on the order of lanes, because sums have a fixed order. (The order of
/// `simd_sum` is the hardware's, and differs here with the seed.)
#[test]
fn same_bits_in_any_order() {
    if !tilewise_tests::harness::available(PLAIN.mode) {
        return;
    }
    let kernels = Kernels::of_library();
    for case in one_of_each()
        .into_iter()
        .filter(|case| !case.kernel.as_ref().is_some_and(|name| name.contains("gemv")))
    {
        let case = Case { a_data: Data::Random, b_data: Data::Random, ..case };
        let job = Job::new(&case, &device()).unwrap();
        let bits =
            [1, 2, 3].map(|seed| run(&job, kernels, Options { seed, ..PLAIN }).unwrap().bytes);
        assert!(bits[0] == bits[1] && bits[0] == bits[2], "{case:?}");
    }
}

/// Texts contain nothing that Metal's compiler refuses and compilers of C++ take.
#[test]
fn no_text_has_what_msl_lacks() {
    let mut known = std::collections::HashSet::new();
    for case in few_texts::edges(MSL, 0)
        .into_iter()
        .chain(cases::quantized(MSL))
        .chain(cases::groups(MSL))
        .chain(cases::splits(MSL))
    {
        for pass in planned(&case, &device()).unwrap().passes {
            let text = assemble(&pass);
            if known.insert(text.clone()) {
                assert_eq!(lint(&text), Vec::<String>::new(), "{}", pass.label);
            }
        }
    }
    assert!(known.len() > 100, "only {} texts", known.len());
}

/// The cases above reach everything: every file is in some text, every variant meets every
/// schedule, and every mainloop meets every kind of format.
#[test]
fn everything_is_reached() {
    let all = [
        few_texts::edges(MSL, 0),
        few_texts::edges(MSL, 1),
        few_texts::edges(MSL, 2),
        cases::splits(MSL),
        cases::epilogues(MSL),
        few_texts::of_every_kind(MSL),
        cases::group_edges(MSL),
        cases::ranges_of_k(MSL),
    ]
    .concat();
    let mut files = std::collections::HashSet::new();
    let mut met = std::collections::HashSet::new();
    let mut loaded = std::collections::HashSet::new();
    for case in all {
        for pass in planned(&case, &device()).unwrap().passes {
            files.extend(parts(&pass).iter().map(|part| part.file));
            for part in &pass.parts {
                met.insert((
                    pass.label.clone(),
                    part.file,
                    part.operand,
                    part.constants.first().copied(),
                ));
                if part.operand == Some("b") {
                    loaded.insert((pass.label.clone(), part.file, part.constants.clone()));
                }
            }
        }
    }
    for (file, _) in FILES {
        assert!(files.contains(file), "{file} is in no case");
    }
    for kernel in MSL.kernels() {
        let wanted = |file: &'static str, operand, constant: Option<(&'static str, u32)>| {
            assert!(
                met.contains(&(kernel.name.clone(), file, operand, constant)),
                "{} meets no {file} {constant:?}",
                kernel.name
            );
        };
        for operand in ["a", "b"] {
            let tile = if operand == "a" { kernel.variant.bm } else { kernel.variant.bn };
            for (file, wide) in
                [("operand/f32.metal", 4), ("operand/f16.metal", 8), ("operand/bf16.metal", 8)]
            {
                wanted(file, Some(operand), Some(("X_WIDTH", 1)));
                // If rows or columns are few, vectors fit only along K.
                if tile >= wide {
                    wanted(file, Some(operand), Some(("X_WIDTH", wide)));
                }
            }
            for along_k in [0, 1] {
                wanted("operand/axes.metal", Some(operand), Some(("X_K_CONTIGUOUS", along_k)));
            }
        }
        // One variant of a mainloop is enough for each kind.
        let mainloop = |label: &str| label.split('/').next().map(str::to_owned);
        for format in QuantFormat::kinds() {
            let loader = KIT
                .operands
                .iter()
                .find(|loader| (loader.accepts)(Format::Quantized(format), &device()));
            // Only kernels in WGSL take some formats.
            let Some(file) = loader.map(|loader| loader.file) else { continue };
            let kind = format
                .def()
                .constants
                .iter()
                .filter(|(name, _)| !["X_BLOCK", "X_SCALE"].contains(name));
            let met = loaded.iter().any(|(label, own, constants)| {
                mainloop(label) == mainloop(&kernel.name)
                    && *own == file
                    && kind.clone().all(|constant| constants.contains(constant))
            });
            assert!(met || kernel.name.starts_with("msl-direct"), "{}: {format}", kernel.name);
        }
        for file in [
            "schedule/batched.metal",
            "schedule/ragged.metal",
            "epilogue/store_f32.metal",
            "epilogue/store_f16.metal",
            "epilogue/store_bf16.metal",
        ] {
            wanted(file, None, None);
        }
        if kernel.variant.takes(Grouping::RaggedK { groups: 1, offset: 0 }) {
            wanted("schedule/ragged_k.metal", None, None);
        }
        wanted("epilogue/partial.metal", None, Some(("ADD", 0)));
    }
    assert!(LIBRARY.kernels.len() > tilewise_msl::KERNELS.len());
}
