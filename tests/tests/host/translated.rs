//! WGSL as Metal gets it: naga's MSL of every kernel runs on CPUs, like the hand-written kernels.
//! Macs that do not take our MSL texts run this.

use rayon::prelude::*;
use std::collections::BTreeSet;
use tilewise::DType;
use tilewise_core::Caps;
use tilewise_shaders::{FILES, KIT};
use tilewise_tests::case::Form;
use tilewise_tests::cases::{self, WGSL, devices};
use tilewise_tests::conversions::{few_texts as few_texts_of, planned as planned_conversions};
use tilewise_tests::harness::{Kernel, available};
use tilewise_tests::msl::{Kernels, PLAIN, check, check_on, convert, device};
use tilewise_tests::sanitized::{Conversion, planned};
use tilewise_tests::texts::parts;
use tilewise_tests::translated::translate;
use tilewise_tests::{Case, few_texts, themes};

/// Whether a case's kernel needs matrix units, which Metal has only for kernels in MSL.
fn of_units(case: &Case) -> bool {
    let kernels = WGSL.kernels();
    let mut units = kernels.iter().filter(|kernel| kernel.variant.unit().is_some());
    case.kernel.as_ref().is_some_and(|name| units.any(|unit| name.starts_with(&unit.name)))
}

fn plain(cases: Vec<Case>) -> Vec<Case> {
    few_texts::sampled(
        WGSL,
        cases.into_iter().filter(|case| !of_units(case) && case.is_for(&device())).collect(),
    )
}

#[test]
fn edges() {
    check(&few_texts::each_variant(WGSL));
}

#[test]
fn splits() {
    check(&plain(cases::splits(WGSL)));
}

#[test]
fn strides() {
    check(&plain(cases::strides(WGSL)));
}

#[test]
fn mixed() {
    check(&plain(cases::mixed(WGSL)));
}

/// Loaders and stores of halves in words, for devices without the f16 extension.
#[test]
fn without_f16() {
    let cases = plain(cases::mixed(WGSL)).into_iter().chain(plain(cases::edges(WGSL, 1)));
    check_on(&Caps { f16: false, ..device() }, &cases.step_by(5).collect::<Vec<_>>(), PLAIN, false);
}

#[test]
fn epilogues() {
    check(&plain(cases::epilogues(WGSL)));
}

#[test]
fn quantized() {
    check(&plain(cases::quantized(WGSL)));
}

#[test]
fn groups() {
    check(&plain([cases::groups(WGSL), forms()].concat()));
}

/// One case of each variant.
fn ragged() -> Vec<Case> {
    let all: Vec<_> = cases::group_edges(WGSL).into_iter().filter(|case| !of_units(case)).collect();
    let of_variants = all.chunk_by(|one, next| one.kernel == next.kernel).enumerate();
    of_variants.map(|(i, own)| own[i % own.len()].clone()).collect()
}

/// The other forms. If C is finished by words, no code reads the ends of ranges of K, and naga
/// leaves them out of the arguments: these cases are not run.
fn forms() -> Vec<Case> {
    let words = |case: &Case| {
        let passes = planned(case, &device()).map(|plan| plan.passes).unwrap_or_default();
        let is_words = |file| KIT.by_words.is_some_and(|own| own.finish == file);
        passes.iter().flat_map(|pass| &pass.parts).any(|part| is_words(part.file))
    };
    let all = cases::forms(WGSL).into_iter();
    // Lists of one layout share a text.
    let listed = |case: &Case| {
        matches!(case.form, Form::Listed(_)) && [[40, 22, 12], [16, 16, 3]].contains(&case.size)
    };
    all.filter(|case| !listed(case) && (case.form != Form::AlongK || !words(case))).collect()
}

#[test]
fn group_edges() {
    check(&ragged());
}

/// Rows by index on one kernel: plain, in groups, with rows that share words, and with a gate.
fn gathered() -> Vec<Case> {
    let on = |case: Case| case.kernel(WGSL.floor());
    let mut cases: Vec<_> = themes::gathered().into_iter().take(6).map(on).collect();
    cases.remove(4);
    cases
}

#[test]
fn rows_by_index() {
    check(&gathered());
}

/// Workgroups that an earlier pass counts, on one kernel.
fn sparse() -> (Caps, Vec<Case>) {
    let (software, mut cases) = cases::sparse(WGSL);
    let floor = WGSL.floor();
    cases.retain(|case| case.kernel.as_ref().is_some_and(|name| name.starts_with(&floor)));
    (Caps { class: software.class, ..device() }, cases)
}

#[test]
fn counted_workgroups() {
    let (software, cases) = sparse();
    check_on(&software, &cases, PLAIN, false);
}

/// Batches whose dimensions have no common stride.
fn nested() -> Vec<Case> {
    let case = |case: Case| case.kernel("simt/32x32x32");
    themes::nested().into_iter().step_by(5).map(case).collect()
}

#[test]
fn nested_batches() {
    check(&nested());
}

#[test]
fn empty() {
    check(&plain(cases::empty(WGSL)));
}

#[test]
fn rounding() {
    check_on(&device(), &plain(cases::rounding(WGSL)), PLAIN, true);
}

/// Taking and quantizing.
#[test]
fn conversions() {
    if !available(PLAIN.mode) {
        return;
    }
    let kernels = Kernels::of_library();
    let conversions = few_conversions();
    kernels.prepare(conversions.iter().flat_map(|conversion| &conversion.passes), PLAIN.mode);
    let failures: Vec<_> = conversions
        .par_iter()
        .filter_map(|conversion| {
            let failure = convert(conversion, kernels, PLAIN).err()?;
            Some(format!("{failure}\n    {}", conversion.name))
        })
        .collect();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn few_conversions() -> Vec<Conversion> {
    few_texts_of(planned_conversions(&device()).unwrap(), |conversion| conversion.passes.clone())
}

/// naga loads a matrix through a pointer to vectors as if it were a pointer to numbers, and no
/// compiler of MSL takes that. Therefore Metal's caps have no matrix units. If naga learns it, this
/// test fails, and the caps may have them.
#[test]
fn matrix_units_do_not_compile() {
    if !available(PLAIN.mode) {
        return;
    }
    let [with_f16, _] = devices();
    let kernels = WGSL.kernels().into_iter();
    let small =
        kernels.filter(|kernel| kernel.variant.unit().is_some_and(|unit| unit.matrix.size == 8));
    let mut tried = 0;
    for kernel in small {
        for dtype in [DType::F16, DType::F32] {
            let case = Case::new([64, 64, 64], [dtype; 3]).kernel(&kernel.name);
            let Ok(plan) = planned(&case, &with_f16) else { continue };
            let pass = plan.passes.iter().find(|pass| pass.coop).expect("a pass on matrix units");
            // Apple's <metal_stdlib> has matrices, the shim's has not.
            let text = format!("#include <metal_simdgroup_matrix>\n{}", translate(pass).unwrap());
            let complaint = Kernel::compile_foreign(&text, PLAIN.mode).unwrap_err();
            let known = "no known conversion from '__local metal::";
            assert!(complaint.contains(known), "{}: {complaint}", kernel.name);
            tried += 1;
        }
    }
    assert!(tried > 0);
}

/// Every file except those of matrix units, and every variant with both schedules.
#[test]
fn everything_is_reached() {
    let groups = [ragged(), plain(forms())].concat();
    let shared = [cases::splits, cases::mixed, cases::quantized, cases::gates]
        .map(|theme| plain(theme(WGSL)))
        .concat();
    let without_f16 = Caps { f16: false, ..device() };
    let (mut files, mut labels) = (BTreeSet::new(), BTreeSet::new());
    let others = [nested(), gathered()].concat();
    let cases = few_texts::each_variant(WGSL);
    for case in cases.iter().chain(&groups).chain(&shared).chain(&others) {
        for caps in [&device(), &without_f16] {
            for pass in planned(case, caps).unwrap().passes {
                labels.insert((pass.label.clone(), case.groups.is_some()));
                files.extend(parts(&pass).iter().map(|part| part.file));
            }
        }
    }
    let (software, sparse) = sparse();
    for case in &sparse {
        let passes = planned(case, &software).unwrap().passes;
        files.extend(passes.iter().flat_map(parts).map(|part| part.file));
    }
    let conversions = few_conversions();
    let passes = conversions.iter().flat_map(|conversion| &conversion.passes);
    files.extend(passes.flat_map(parts).map(|part| part.file));
    for (file, _) in
        FILES.iter().filter(|(file, _)| !OF_UNITS.iter().any(|name| file.contains(name)))
    {
        assert!(files.contains(file), "{file} is in no text");
    }
    for kernel in WGSL.kernels().into_iter().filter(|kernel| kernel.variant.unit().is_none()) {
        for grouped in [false, true] {
            assert!(
                labels.contains(&(kernel.name.clone(), grouped)),
                "{}, grouped: {grouped}",
                kernel.name
            );
        }
    }
}

/// Parts of the names of files that only kernels of matrix units have.
const OF_UNITS: [&str; 19] = [
    "unit/",
    "schedule/lanes_subgroup.wgsl",
    "coop",
    "panel",
    "pack",
    "scale",
    "split",
    "powers",
    "all_k",
    "range_of_k",
    "divisors",
    "slabs",
    "to_words",
    "f16x8",
    "divided",
    // Only devices that bind four storage buffers use these files, and no Mac is such a device.
    "to_floats",
    "keep",
    "epilogue/scratch",
    "epilogue/kept",
];
