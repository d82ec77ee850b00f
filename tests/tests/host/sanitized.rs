//! Every kernel of the library in the sanitizer. The logical ranges of all operands are declared,
//! and nothing is zeroed. There must be no finding, and the results must be the oracle's. The
//! library's shaders run without checks because of this proof (ARCHITECTURE.md, "Unchecked
//! shaders").

use std::collections::BTreeSet;
use tilewise::DType;
use tilewise_core::kernel::{Constant, Role, ScheduleDef};
use tilewise_core::plan::{Part, Pass};
use tilewise_core::problem::ListSizes;
use tilewise_core::{Caps, Format, Grouping, QuantFormat};
use tilewise_shaders::{FILES, KIT};
use tilewise_tests::cases::{self, WGSL, devices};
use tilewise_tests::conversions;
use tilewise_tests::sanitized::{Job, Shaders, check, options, plans};
use tilewise_tests::texts::parts;
use tilewise_tests::{Case, Data, Kernel, counted, lines, scaled, turns};

fn clean(cases: &[Case]) {
    check(&devices(), &turns::some(cases), &options(), false);
}

/// The cases around edges, with A in the type of this index. Each layout meets half of the sizes,
/// by turns: every size in every layout has some type of A, and every layout has every type.
fn edges(a: usize) -> Vec<Case> {
    // A case's seed is 100 times its layout plus its size.
    let turn = |case: &Case| (case.seed / 100 + case.seed % 100 + a as u64).is_multiple_of(2);
    cases::edges(WGSL, a).into_iter().filter(turn).collect()
}

#[test]
fn edges_f32() {
    clean(&edges(0));
}

#[test]
fn edges_f16() {
    clean(&edges(1));
}

#[test]
fn edges_bf16() {
    clean(&edges(2));
}

#[test]
fn thin() {
    // A kernel has eighteen cases, which differ by K, side and types. The next kernel runs the
    // other half.
    let turn = |(i, _): &(usize, Case)| (i + i / 18).is_multiple_of(2);
    let half = cases::thin(WGSL).into_iter().enumerate().filter(turn).map(|(_, case)| case);
    clean(&half.collect::<Vec<_>>());
}

#[test]
fn almost_whole() {
    clean(&cases::almost_whole(WGSL));
}

#[test]
fn bands() {
    clean(&cases::bands(WGSL));
}

#[test]
fn splits() {
    clean(&cases::splits(WGSL));
}

/// A kernel's shader has the padding that the kernel's name asks for.
#[test]
fn padded() {
    let cases = cases::padded(WGSL);
    for (case, _, plan) in plans(&devices(), &cases) {
        let mut constants =
            plan.passes.iter().flat_map(|pass| &pass.parts).flat_map(|part| &part.constants);
        let pad =
            constants.find(|(name, _)| *name == "PAD").map(|(_, value)| format!("+pad{value}"));
        let name = case.kernel.as_deref().unwrap_or_default();
        assert!(
            pad.as_ref()
                .is_some_and(|pad| name.ends_with(pad) || name.contains(&format!("{pad}+"))),
            "{name} {pad:?}"
        );
    }
    clean(&cases);
}

#[test]
fn counted() {
    clean(&counted::cases(WGSL));
}

#[test]
fn packed() {
    clean(&cases::packed(WGSL));
}

#[test]
fn scaled() {
    let cases = [scaled::cases(WGSL), scaled::specials(WGSL)].concat();
    for (case, _, plan) in plans(&devices(), &cases) {
        let divides = |pass: &Pass| {
            pass.parts.iter().any(|part| KIT.pack.is_some_and(|pack| pack.scale == part.file))
        };
        assert!(plan.passes.iter().any(divides), "{case:?} divides nothing");
    }
    clean(&cases);
}

#[test]
fn split_in_terms() {
    let cases = [scaled::split(WGSL), scaled::split_specials(WGSL)].concat();
    for (case, _, plan) in plans(&devices(), &cases) {
        let splits = |pass: &Pass| {
            pass.parts.iter().any(|part| KIT.pack.is_some_and(|pack| pack.split == part.file))
        };
        assert!(plan.passes.iter().any(splits), "{case:?} splits nothing");
    }
    clean(&cases);
}

/// If a row of A is scaled by a power of two, that row of C is scaled too, to the bit.
#[test]
fn split_rows_scale() {
    let shaders = Shaders::of_library();
    let [m, n, k] = [17, 9, 33];
    for (case, caps, _) in plans(&devices(), &scaled::split_rows(WGSL, [m, n, k])) {
        let c = |case: &Case| {
            let job = Job::new(case, caps).unwrap();
            job.run(shaders, &options()).unwrap_or_else(|failure| panic!("{failure}")).c
        };
        let Data::Given(a) = &case.a_data else { panic!("{:?}", case.a_data) };
        let power = |row: usize| 2f32.powi(11 * (row as i32 % 7) - 30);
        let rows = a.iter().enumerate().map(|(i, value)| value * power(i / k)).collect();
        let rows = Case { a_data: Data::Given(rows), ..case.clone() };
        let wanted = c(case).into_iter().enumerate().map(|(i, value)| value * power(i / n));
        assert_eq!(c(&rows), wanted.collect::<Vec<_>>(), "{case:?}");
    }
}

/// Prepared operands give the same bits as operands that the same kernel packs, and so do quantized
/// weights. Some kernels decode weights on their way, and read a copy if that is faster. Then the
/// result only has to be right.
#[test]
fn prepared() {
    let shaders = Shaders::of_library();
    let mut weights = [cases::quantized(WGSL), cases::groups(WGSL)].concat();
    weights.retain(|case| case.quantized.is_some() && case.unit().is_some());
    // A table of many groups needs the memory for packed operands.
    weights.retain(|case| case.groups.as_ref().is_none_or(|groups| groups.ends.len() <= 16));
    // Each way to load meets several shapes, so half of the cases are enough.
    let weights = weights.into_iter().step_by(2).collect();
    let cases = [cases::packed(WGSL), scaled::cases(WGSL), scaled::split(WGSL), weights].concat();
    let run = |case: &Case, caps: &Caps| {
        let job = Job::new(case, caps).unwrap();
        (job.run_recorded(shaders, &options()).unwrap(), job.plan)
    };
    let both = |case: &Case, caps: &Caps| {
        (run(case, caps), run(&Case { prepared: true, ..case.clone() }, caps))
    };
    let mut met = BTreeSet::new();
    for (case, caps, plan) in plans(&devices(), &cases) {
        let (before, with) = both(case, caps);
        assert!(
            plan.packed_bytes == before.1.packed_bytes && with.1.packed_bytes == 0,
            "{case:?} {:?}",
            with.1
        );
        let packs = plan.passes.iter().any(|pass| pass.label == "pack b");
        let copied = |pass: &Pass| {
            pass.coop && pass.bindings.iter().any(|binding| binding.from == Role::BCopy)
        };
        let copied = with.1.passes.iter().any(copied);
        // The copy has the numbers that such kernels decode, except for the last bit.
        if case.quantized.is_none() || packs || !copied {
            assert_eq!(before.0.output(), with.0.output(), "{case:?}");
        }
        met.insert((
            case.quantized.is_some(),
            packs,
            case.groups.is_some(),
            case.across,
            case.batch.is_some(),
            copied,
        ));
    }
    for (packs, groups, across) in
        [(false, false, false), (true, false, false), (true, true, false), (true, false, true)]
    {
        assert!(met.contains(&(true, packs, groups, across, false, true)), "{met:?}");
    }

    // Stacks of f16 that are stored along K have copies in slabs. Without copies nothing is packed.
    for (case, caps, plan) in plans(&devices(), &cases::stacks(WGSL)) {
        let (before, with) = both(case, caps);
        let mut bound = with.1.passes.iter().flat_map(|pass| &pass.bindings);
        assert!(bound.any(|binding| binding.from == Role::BCopy), "{case:?}");
        assert_eq!([plan.packed_bytes, with.1.packed_bytes], [0; 2], "{case:?}");
        assert_eq!(before.0.output(), with.0.output(), "{case:?}");
    }

    // C is cut along M, and A's copy serves the first piece.
    let caps = Caps { max_binding_bytes: 400_000, ..devices()[0].clone() };
    let types = [DType::BF16, DType::BF16, DType::F32];
    let case = Case { prepared: true, ..Case::new([600, 300, 64], types).kernel("coop/16x32x128") };
    let job = Job::new(&case, &caps).unwrap();
    let binds = |role| {
        move |pass: &&Pass| pass.coop && pass.bindings.iter().any(|binding| binding.from == role)
    };
    let count = |role| job.plan.passes.iter().filter(binds(role)).count();
    assert_eq!(
        (count(Role::ACopy), count(Role::BCopy), count(Role::Packed)),
        (1, 2, 1),
        "{:?}",
        job.plan.cuts
    );
    job.run(shaders, &options()).unwrap_or_else(|failure| panic!("{failure}"));
}

/// Every kernel asks one file where the lines of its operands lie.
#[test]
fn lines_elsewhere() {
    let shaders = Shaders::with("operand/lines.wgsl", lines::IN_WGSL, Shaders::of_library());
    let cases = lines::cases(WGSL);
    for (case, caps, _) in plans(&devices(), &cases) {
        let outcome = lines::exchanged(case, caps).and_then(|job| job.run(&shaders, &options()));
        outcome.unwrap_or_else(|failure| panic!("{failure}\n    {case:?}"));
    }
}

#[test]
fn strides() {
    clean(&cases::strides(WGSL));
}

#[test]
fn mixed() {
    clean(&cases::mixed(WGSL));
}

#[test]
fn epilogues() {
    clean(&cases::epilogues(WGSL));
}

#[test]
fn quantized() {
    clean(&cases::quantized(WGSL));
}

#[test]
fn groups() {
    clean(&cases::groups(WGSL));
}

#[test]
fn group_edges() {
    clean(&cases::group_edges(WGSL));
}

#[test]
fn forms() {
    clean(&cases::forms(WGSL));
}

/// Every variant reads rows by index from where they lie.
#[test]
fn gathered() {
    let cases = cases::gathered(WGSL);
    let met: BTreeSet<_> = plans(&devices(), &cases)
        .filter_map(|(case, _, plan)| plan.choice.and(case.kernel.clone()))
        .map(|name| name.split('+').next().unwrap_or_default().to_owned())
        .collect();
    for kernel in WGSL.kernels() {
        assert!(met.contains(&kernel.name), "{} is not among {met:?}", kernel.name);
    }
    clean(&cases);
}

#[test]
fn empty() {
    clean(&cases::empty(WGSL));
}

#[test]
fn rounding() {
    check(&devices(), &cases::rounding(WGSL), &options(), true);
}

#[test]
fn many_workgroups() {
    let (caps, cases) = cases::many_workgroups(WGSL);
    for (case, _, plan) in plans(std::slice::from_ref(&caps), &cases) {
        assert!(plan.passes.iter().any(|pass| pass.grid[1] > 1), "{case:?} fits one dimension");
    }
    check(&[caps], &cases, &options(), false);
}

/// Whole tiles and edges are separate passes of one plan.
#[test]
fn peeled() {
    let (caps, cases) = cases::peeled();
    for (case, _, plan) in plans(std::slice::from_ref(&caps), &cases) {
        assert!(!plan.edges.is_empty(), "{case:?} has no edge of its own");
    }
    check(&[caps], &cases, &options(), false);
}

/// Passes with as many workgroups as the pass before them counted, and passes whose workgroups
/// stride over that many tiles.
#[test]
fn sparse() {
    let (caps, cases) = cases::sparse(WGSL);
    for (case, _, plan) in plans(std::slice::from_ref(&caps), &cases) {
        let known = plan.problem.grouping.list_sizes().is_some();
        let counted = plan.passes.iter().any(|pass| pass.indirect.is_some() || pass.strides);
        assert!(counted != known, "{case:?} has all");
    }
    check(&[caps], &cases, &options(), false);
}

/// No kernel but those for matrix units relies on the size of a subgroup.
#[test]
fn small_subgroups() {
    let cases: Vec<_> = WGSL
        .one_of_each()
        .iter()
        .filter(|kernel| kernel.variant.unit().is_none())
        .map(|kernel| Case::new([9, 35, 19], [DType::F32; 3]).kernel(&kernel.name))
        .collect();
    for subgroup_size in [1, 8] {
        let mut options = options();
        options.subgroup_size = subgroup_size;
        check(&devices()[..1], &cases, &options, false);
    }
}

/// The cases above reach all of the library: every file; and under every variant, every loader in
/// every type and direction, every way to end, and every schedule.
#[test]
fn everything_is_reached() {
    let all: Vec<Case> = [
        (0..3).flat_map(edges).collect(),
        cases::thin(WGSL),
        cases::splits(WGSL),
        cases::epilogues(WGSL),
        cases::quantized(WGSL),
        cases::group_edges(WGSL),
        cases::gathered(WGSL),
        cases::forms(WGSL),
        cases::groups(WGSL),
        cases::strides(WGSL),
        scaled::split_specials(WGSL),
        counted::cases(WGSL),
    ]
    .concat();
    let mut seen = BTreeSet::new();
    let (software, sparse) = cases::sparse(WGSL);
    for (_, _, plan) in plans(&devices(), &all).chain(plans(&[software], &sparse)) {
        for pass in &plan.passes {
            seen.extend(parts(pass).iter().map(|part| key(&pass.label, part, pass)));
        }
    }
    let mut files: BTreeSet<_> = seen.iter().map(|key| key.file).collect();
    let (few, cases) = cases::few_buffers(WGSL);
    for (_, _, plan) in plans(&[few], &cases) {
        files.extend(plan.passes.iter().flat_map(parts).map(|part| part.file));
    }
    let conversions = conversions::planned(&devices()[0]).unwrap();
    let passes = conversions.iter().flat_map(|conversion| &conversion.passes);
    files.extend(passes.flat_map(parts).map(|part| part.file));
    for (file, _) in FILES {
        assert!(files.contains(file), "{file} is in no case");
    }
    let mut missing = Vec::new();
    for kernel in WGSL.kernels() {
        for wanted in wanted(&kernel) {
            if !seen.contains(&wanted) {
                missing.push(format!("{wanted:?}"));
            }
        }
    }
    assert!(missing.is_empty(), "{} not reached:\n{}", missing.len(), missing.join("\n"));
}

/// A use of a file in a pass.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Use {
    label: String,
    file: &'static str,
    operand: Option<&'static str>,
    constants: Vec<Constant>,
    /// Whether the storage runs along K, for an operand A or B.
    along_k: Option<bool>,
}

fn key(label: &str, part: &Part, pass: &Pass) -> Use {
    let axes =
        pass.parts.iter().find(|other| other.file == KIT.axes && other.operand == part.operand);
    let along_k = axes.and_then(|axes| axes.constants.first()).map(|(_, value)| *value != 0);
    // Other tests meet the binding, the number of groups for each lane, the table of a list, and
    // the format of a family. Early returns depend on matrix units only.
    let aside = |name: &str| {
        let mut constants = QuantFormat::all().flat_map(|format| format.def().constants);
        name.starts_with("X_BINDING")
            || ["EACH", "RETURNS_EARLY", "TABLE"].contains(&name)
            || constants.any(|(own, _)| *own == name)
    };
    let constants = part.constants.iter().copied().filter(|(name, _)| !aside(name)).collect();
    Use { label: label.to_owned(), file: part.file, operand: part.operand, constants, along_k }
}

/// The uses that a variant must have met.
fn wanted(kernel: &Kernel) -> Vec<Use> {
    let label = &kernel.name;
    let mut wanted = Vec::new();
    let quantized = QuantFormat::kinds().into_iter().map(Format::Quantized);
    let formats: Vec<_> = DType::FLOATS.map(Format::Dense).into_iter().chain(quantized).collect();
    for operand in ["a", "b"] {
        for loader in KIT.operands {
            for &format in &formats {
                let quantized = matches!(format, Format::Quantized(..));
                let takes = devices().iter().any(|caps| (loader.accepts)(format, caps));
                let multiplied =
                    kernel.variant.unit().map(|unit| Format::Dense(unit.matrix.operands));
                let fetched = loader.provides(kernel.variant.access)
                    && multiplied.is_none_or(|own| format == own);
                if !takes || !fetched || quantized && operand == "a" {
                    continue;
                }
                for along_k in [false, true] {
                    // Vectors along the tile fit only if tiles start at multiples of them.
                    let starts = if operand == "a" { kernel.variant.bm } else { kernel.variant.bn };
                    if !along_k
                        && (loader.along_k || !u64::from(starts).is_multiple_of(loader.vector))
                    {
                        continue;
                    }
                    let constants = (loader.constants)(format);
                    let (label, operand) = (label.to_owned(), Some(operand));
                    wanted.push(Use {
                        label,
                        file: loader.file,
                        operand,
                        constants,
                        along_k: Some(along_k),
                    });
                }
            }
        }
    }
    let plain = |file| Use {
        label: label.to_owned(),
        file,
        operand: None,
        constants: Vec::new(),
        along_k: None,
    };
    let takes =
        |schedule: &&ScheduleDef| {
            let (groups, offset) = (1, 0);
            let [known, unknown] = [Some(ListSizes::default()), None]
                .map(|sizes| Grouping::Listed { groups, offset, sizes });
            let of_known = (schedule.serves)(known) && !(schedule.serves)(unknown);
            let has_table = ListSizes::table([kernel.variant.bm, kernel.variant.bn]).is_some();
            [Grouping::RaggedK { groups, offset }, known]
                .iter()
                .all(|grouping| !(schedule.serves)(*grouping) || kernel.variant.takes(*grouping))
                && (has_table || !of_known)
        };
    let schedules = KIT.schedules.iter().filter(takes);
    wanted.extend(
        schedules
            .flat_map(|schedule| {
                std::iter::once(schedule.file).chain(schedule.extents).chain(schedule.bases)
            })
            .map(plain),
    );
    // Pieces add up ranges of K, so that is not wanted here.
    wanted.push(Use { constants: vec![("ADD", 0)], ..plain(KIT.partial) });
    let glue = ["epilogue/direct.wgsl", "schedule/split_k.wgsl", "schedule/strides.wgsl"];
    wanted.extend(glue.map(plain));
    for caps in devices() {
        if kernel.variant.unit().is_some_and(|unit| !caps.coop.contains(&unit.matrix)) {
            continue;
        }
        for dtype in DType::FLOATS {
            for store in KIT.stores.iter().filter(|store| (store.accepts)(dtype, &caps)) {
                wanted.push(Use { constants: (store.constants)(dtype), ..plain(store.file) });
                // This store fits whenever the others do not.
                if store.vector == 1 {
                    break;
                }
            }
        }
    }
    wanted
}
