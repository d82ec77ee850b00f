//! Cases for mutants of the MSL. A text takes far longer to compile than a case to run, so few
//! texts are run with many sizes.

use crate::case::{Form, Groups, LAYOUTS};
use crate::cases::{MSL, almost_whole};
use crate::kernels::{even_sizes, odd_sizes};
use crate::msl::device;
use crate::{Case, Data, Entries, Place, themes};
use tilewise::{Activation, Axis, DType, QuantFormat};
use tilewise_core::kernel::{Role, Streamed};
use tilewise_core::{Access, Caps, Variant};

const F32: [DType; 3] = [DType::F32; 3];

/// Each case with the device for which it is planned.
pub(super) fn all() -> Vec<(Case, Caps)> {
    let on = |caps: Caps| move |case: Case| (case, caps.clone());
    let cases = [
        tiles(),
        whole(),
        lines(),
        variants(),
        splits(),
        groups(),
        quantized(),
        epilogues(),
        numbers(),
        races(),
    ]
    .concat();
    let small = Caps { max_binding_bytes: 4096, ..device() };
    let narrow = Caps { max_workgroups: 5, ..device() };
    let little = cases.into_iter().map(on(device()));
    little
        .chain(pieces().into_iter().map(on(small)))
        .chain(wide().into_iter().map(on(narrow)))
        .collect()
}

/// Whether races are looked for in a case. That takes another compiled text and more time, so only
/// a few cases are chosen, in which every line runs.
pub(super) fn is_raced(case: &Case) -> bool {
    RACED.contains(&case.seed)
}

/// Seeds of the cases in which races are looked for.
const RACED: std::ops::Range<u64> = 1000..2000;

/// Two tiles of every mainloop side by side, which is enough to show a race. There are several
/// steps along K, vectors and single elements, and two passes.
fn races() -> Vec<Case> {
    let half = [DType::F16, DType::F16, DType::F16];
    let case = |name: &str, size, types: [DType; 3]| {
        Case::new(size, types).layout(layout(name)).kernel(name)
    };
    let cases = vec![
        case(GEMM, [16, 40, 40], half),
        case(GEMM, [33, 9, 35], F32).odd(),
        case(DIRECT, [33, 9, 20], F32).odd(),
        case("msl-gemv/4x32", [3, 34, 260], F32).odd(),
        case("msl-gevm/4x64", [3, 66, 130], F32).odd(),
        Case { beta: 0.5, ..Case::new([9, 34, 20], F32).kernel(format!("{GEMM}+k2")).odd() },
    ];
    (RACED.start..).zip(cases).map(|(seed, case)| Case { seed, ..case }).collect()
}

/// Each size on one text: in single elements if `odd`, else in vectors.
fn sized(
    kernel: &str,
    sizes: &[[usize; 3]],
    types: [DType; 3],
    layout: [bool; 2],
    odd: bool,
) -> Vec<Case> {
    let case = |(i, size): (usize, &[usize; 3])| {
        let case = Case { seed: i as u64, ..Case::new(*size, types) }.layout(layout).kernel(kernel);
        if odd { case.odd() } else { case }
    };
    sizes.iter().enumerate().map(case).collect()
}

/// Rounds sizes up to whole eights, in which types of 16 bits are loaded.
fn eights(sizes: Vec<[usize; 3]>) -> Vec<[usize; 3]> {
    sizes.into_iter().map(|size| size.map(|n| n.next_multiple_of(8))).collect()
}

const GEMM: &str = "msl-gemm/32x32x16";
const DIRECT: &str = "msl-direct/32x32x8";

fn variant(name: &str) -> &'static Variant {
    MSL.kernels().into_iter().find(|kernel| kernel.name == name).expect("a variant").variant
}

/// The kernels of tiles: layouts in vectors and in single elements, with types that agree and that
/// do not.
fn tiles() -> Vec<Case> {
    let half = [DType::F16, DType::F16, DType::F32];
    let bfloat = [DType::BF16, DType::BF16, DType::F16];
    let mixed = [DType::F16, DType::F32, DType::BF16];
    let mut cases = Vec::new();
    for name in [GEMM, DIRECT] {
        let even = even_sizes(variant(name));
        let odd = odd_sizes(variant(name));
        cases.extend(sized(name, &even, F32, LAYOUTS[0], false));
        cases.extend(sized(name, &eights(even.clone()), half, LAYOUTS[1], false));
        cases.extend(sized(name, &eights(even), bfloat, LAYOUTS[2], false));
        cases.extend(sized(name, &odd, F32, LAYOUTS[3], true));
        cases.extend(sized(name, &odd, half, LAYOUTS[0], true));
    }
    // Fewer rows or columns than a matrix has, and exactly as many.
    let few = [[9, 7, 16], [7, 9, 16], [8, 8, 16], [40, 8, 8], [8, 40, 8], [3, 3, 9]];
    cases.extend(sized(DIRECT, &few, F32, LAYOUTS[0], false));
    cases.extend(sized(DIRECT, &few, half, LAYOUTS[1], false));
    cases.extend(sized(GEMM, &odd_sizes(variant(GEMM)), mixed, LAYOUTS[2], true));
    cases.extend(sized(GEMM, &eights(even_sizes(variant(GEMM))), mixed, LAYOUTS[3], false));
    cases
}

/// Whole tiles side by side, with whole slices of K and one that is not whole, and with K split.
/// Also the rest of a tile, where a tile turned round would be whole.
fn whole() -> Vec<Case> {
    let mut cases = Vec::new();
    for (name, rest) in [(GEMM, 15), (DIRECT, 7), (DIRECT, 1)] {
        let Variant { bm, bn, bk, .. } = *variant(name);
        let [m, n, k] = [2 * bm, 2 * bn, 2 * bk + rest].map(|size| size as usize);
        cases.push(Case::new([m, n, k], F32).kernel(name).odd());
        cases.push(Case::new([m, n, 4 * k], F32).kernel(format!("{name}+k2")).odd());
    }
    let tiled =
        |case: &Case| case.kernel.as_deref().is_some_and(|name| [GEMM, DIRECT].contains(&name));
    cases.extend(almost_whole(MSL).into_iter().filter(tiled));
    cases.push(Case::new([104, 64, 64], F32).kernel("msl-gemm/64x32x32").odd());
    // Rows of sums that are not whole vectors, of every length, in more splits than are read at
    // once.
    cases.extend(
        [21, 22, 23].map(|n| Case::new([5, n, 150], F32).kernel(format!("{GEMM}+k9")).odd()),
    );
    cases
}

/// The layout that a kernel is made for. A kernel for few lines wants the other operand along K, or
/// across.
fn layout(name: &str) -> [bool; 2] {
    match variant(name).access {
        Access::Eights { streamed: Some(Streamed { role: Role::A, along_k }) } => [!along_k; 2],
        Access::Eights { streamed: Some(Streamed { along_k, .. }) } => [false, along_k],
        _ => LAYOUTS[1],
    }
}

/// The kernels of few rows, or few columns.
fn lines() -> Vec<Case> {
    let half = [DType::F16, DType::F32, DType::F32];
    // More rows of tiles than a band has. Then operands in the other direction, which the kernels
    // also read.
    let mut cases =
        vec![Case::new([10, 40, 5], F32).layout(LAYOUTS[1]).kernel("msl-gemv/1x32").odd()];
    cases.extend(sized("msl-gemv/4x32", &[[4, 36, 300], [4, 36, 1]], F32, LAYOUTS[2], false));
    cases.push(Case::new([3, 70, 300], F32).layout(LAYOUTS[1]).kernel("msl-gevm/4x64").odd());
    // A lane whose eighth line lies beyond the edge, and in the last step beyond the buffer.
    cases.push(Case::new([3, 71, 512], F32).kernel("msl-gevm/4x64").odd());
    for name in ["msl-gemv/4x32", "msl-gemv/32x4", "msl-gevm/4x64", "msl-gevm/64x4"] {
        let Variant { bm, bn, bk, .. } = *variant(name);
        let [m, n, k] = [bm, bn, bk].map(|size| size as usize);
        cases.extend(sized(
            name,
            &[[m, n, 8], [m, n + 8, 16], [2 * m, n, k + 8]],
            F32,
            layout(name),
            false,
        ));
        cases.extend(sized(
            name,
            &[[m, 2 * n, k + 8], [m, 32, 24]],
            [DType::BF16, DType::F16, DType::F32],
            layout(name),
            false,
        ));
        cases.extend(sized(
            name,
            &[[m, n, 5], [m - 1, n + 1, k + 3], [m + 1, n - 1, k / 2 - 1]],
            half,
            layout(name),
            true,
        ));
    }
    cases
}

/// A case for each variant: the variants of a kernel differ in numbers only.
fn variants() -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in MSL.kernels() {
        let Variant { bm, bn, bk, access, .. } = *kernel.variant;
        let k = if matches!(access, Access::Eights { .. }) { 41 } else { 2 * bk + 1 };
        let [m, n, k] = [bm + 1, bn + 5, k].map(|size| size as usize);
        cases.push(
            Case::new([m, n, k], F32).layout(layout(&kernel.name)).kernel(&kernel.name).odd(),
        );
    }
    cases
}

/// Splits of K: few, more than are read at once, short ones, ones without any of K, and in a batch.
fn splits() -> Vec<Case> {
    let mut cases = Vec::new();
    let bk = variant(GEMM).bk as usize;
    for splits in [2, 3, 9] {
        for k in [1, 3 * bk + 5, 9 * bk - 3] {
            let case = |n| Case::new([9, n, k], F32).kernel(format!("{GEMM}+k{splits}")).odd();
            cases.push(case(37));
            cases.push(Case { a: case(38).a.entries(Entries::Apart(3)), ..case(38).batch(3) });
        }
    }
    for name in [DIRECT, "msl-gemv/1x32", "msl-gevm/1x64"] {
        let k = 2 * variant(name).bk as usize + 5;
        let case = Case::new([1, 66, k], F32)
            .kernel(format!("{name}+k3"))
            .layout(layout(name))
            .batch(2)
            .odd();
        cases.push(Case {
            a: case.a.entries(Entries::Apart(3)),
            b: case.b.entries(Entries::Apart(1)),
            ..case.clone()
        });
        let rows = Case { batch: None, ..case };
        cases.push(rows.indexed(vec![1, 0, 2, 1], 2));
    }
    let name = "msl-gemv/32x1";
    let k = 2 * variant(name).bk as usize + 5;
    cases.push(Case::new([66, 1, k], F32).kernel(format!("{name}+k3")).layout(layout(name)).odd());
    cases
}

fn ragged(ends: &[u32]) -> Option<Groups> {
    Some(Groups { ends: ends.to_vec(), on_device: true })
}

/// Groups: none, empty ones at every place, groups of several tiles, and wrong ends. Each group has
/// its own bias.
fn groups() -> Vec<Case> {
    let mut cases = Vec::new();
    let all: [&[u32]; 8] = [
        &[0, 0, 5, 5, 70, 80, 80],
        &[80],
        &[3, 35, 67],
        &[0, 0],
        &[40, 5, 50],
        &[u32::MAX, 3, 7],
        &[20, 1000, 0],
        &[32, 64],
    ];
    for ends in all {
        let types = [DType::F32, DType::F16, DType::F32];
        let case =
            Case { groups: ragged(ends), ..Case::new([80, 70, 12], types) }.kernel(GEMM).odd();
        let bias = Some((Axis::N, Place::odd(DType::F32)));
        cases.push(Case { bias, beta: -1.5, residual: Some(Place::odd(DType::F32)), ..case });
    }
    for (name, layout) in [
        (DIRECT, [true, false]),
        ("msl-gemv/4x32", [false, true]),
        ("msl-gevm/4x64", [false, false]),
    ] {
        let case = |rows| Case::new([rows, 39, 20], F32).layout(layout).kernel(name).odd();
        cases.push(Case { groups: ragged(&[0, 3, 3, 9, 14]), ..case(15) });
        cases.push(Case { groups: ragged(&[3, 39]), ..case(40) });
        // Fewer rows than a tile has, after an empty group. A tile of the empty group would end
        // before it begins.
        cases.push(Case { groups: ragged(&[0, 3]), ..case(3) });
        cases.push(case(0).indexed(vec![2, 0, 3, 1, u32::MAX, 2], 3));
    }
    // Ranges of K, over several tiles of several entries: with right ends and with wrong ones.
    let oblong = "msl-gemm/64x32x32";
    let kernels = [(GEMM, [true, false]), (DIRECT, [false, true]), (oblong, [true, false])];
    for (name, layout) in kernels {
        for ends in [&[0, 3, 3, 40][..], &[9, 5, 20], &[41, 7]] {
            let groups = Groups { ends: ends.to_vec(), on_device: true };
            let case = Case::new([100, 70, 40], F32).layout(layout).along_k(groups);
            cases.push(case.kernel(name));
        }
    }
    // Each group begins a tile. There are so many groups that exactly the needed tiles are started.
    let ends: Vec<u32> = (1..=12).map(|group| 3 * group).collect();
    cases.push(
        Case { groups: ragged(&ends), ..Case::new([36, 9, 20], F32).layout(LAYOUTS[1]) }
            .kernel("msl-gemv/4x32")
            .odd(),
    );
    cases
}

/// Quantized weights of every kind on every kernel that takes them.
fn quantized() -> Vec<Case> {
    let mut cases = Vec::new();
    for format in QuantFormat::kinds() {
        let block = format.block() as usize;
        let case = |size| Case { quantized: Some(format), ..Case::new(size, F32) };
        for name in [GEMM, "msl-gemv/4x32", "msl-gevm/4x64"] {
            let sizes = [[5, 37, 3 * block], [13, 6, 2 * block], [1, 1, block], [2, 33, 5 * block]];
            cases.extend(sizes.map(|size| case(size).kernel(name)));
            cases.push(case([3, 37, block]).batch(2).kernel(name));
        }
        // Weights stored across K, and exact products.
        for name in [GEMM, "msl-gemv/4x32", "msl-gevm/4x64"] {
            cases.push(Case { across: true, ..case([3, 2 * block, 13]).kernel(name) });
        }
        cases.push(case([3, 5, 2 * block]).kernel(GEMM).integers());
        // Weights rounded to the type of A. Then many rows of A with few lines of weights.
        for a in [DType::F16, DType::BF16] {
            cases.push(Case { a: Place::packed(a), ..case([13, 37, 2 * block]).kernel(GEMM) });
        }
        cases.push(case([33, 1, 2 * block]).kernel("msl-gemv/32x1"));
        cases.push(Case { groups: ragged(&[2, 2, 7]), ..case([7, 70, 2 * block]).kernel(GEMM) });
    }
    MSL.loaded(cases)
}

/// Each step of the epilogue, and strides of everything in a batch.
fn epilogues() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, out) in DType::FLOATS.into_iter().enumerate() {
        let case =
            || Case::new([6, 22, 5], [DType::F32, DType::F32, out]).kernel(GEMM).batch(3).odd();
        let place = |entries| Place::odd(DType::FLOATS[(i + 1) % 3]).entries(entries);
        let activation = Activation::ALL[1 + i];
        for entries in [Entries::Apart(5), Entries::Between] {
            for axis in [Axis::M, Axis::N] {
                let case = Case {
                    a: case().a.entries(entries),
                    b: case().b.entries(entries),
                    c: case().c.entries(entries),
                    ..case()
                };
                let case = Case { beta: 0.5, alpha: -0.75, residual: Some(place(entries)), ..case };
                let case = Case { bias: Some((axis, place(entries))), activation, ..case };
                cases.extend([Case { gated: true, ..case.clone() }, case]);
            }
        }
    }
    // Activations at numbers where they are steep, flat, and far beyond the range of the functions
    // inside them.
    for activation in Activation::ALL {
        for alpha in [1.0, 30.0, 1e3, 1e10, 1e30] {
            cases.push(Case { alpha, activation, ..Case::new([4, 9, 3], F32).kernel(GEMM).odd() });
        }
    }
    // Gates without a bias; with factors on the device, over an old C of NaN; and with a bias of
    // each group.
    let gated = Case {
        gated: true,
        residual: Some(Place::odd(DType::F16)),
        activation: Activation::Silu,
        ..Case::new([9, 22, 5], F32).kernel(GEMM).odd()
    };
    let groups = Some(Groups { ends: vec![2, 2, 7], on_device: true });
    let bias = Some((Axis::N, Place::odd(DType::F32)));
    cases.extend([
        gated.clone(),
        Case { written: true, ..gated.clone() },
        Case { groups, bias, beta: 0.5, ..gated },
    ]);
    cases.push(Case { beta: 2.0, ..Case::new([5, 7, 0], F32).kernel(GEMM) });
    cases.push(Case { written: true, ..Case::new([5, 7, 3], F32).kernel(GEMM) });
    cases
}

/// Infinities and NaN.
fn numbers() -> Vec<Case> {
    let mut cases = Vec::new();
    for activation in Activation::ALL {
        let given = vec![f32::NAN, f32::INFINITY, -f32::INFINITY, -0.0, 1.0, -1.0];
        let case = Case::new([6, 1, 1], F32).kernel(GEMM).odd();
        cases.push(Case {
            a_data: Data::Given(given),
            b_data: Data::Given(vec![1.0]),
            activation,
            ..case
        });
    }
    cases
}

/// Products in pieces.
fn pieces() -> Vec<Case> {
    let ranges = themes::large_forms()
        .into_iter()
        .filter(|case| matches!(case.form, Form::AlongK | Form::Indexed(_)));
    let cases = themes::large().into_iter().filter(|case| case.quantized.is_none()).chain(ranges);
    let (groups, others): (Vec<_>, Vec<_>) = cases.partition(|case| case.groups.is_some());
    // Cases of a long K would take seconds.
    let short =
        groups.into_iter().chain(others.into_iter().step_by(8)).filter(|case| case.size[2] < 200);
    short.map(|case| case.kernel(GEMM)).collect()
}

/// Products with more threadgroups than a dimension of the grid has.
fn wide() -> Vec<Case> {
    let rows = Case::new([0, 3, 40], F32).indexed((0..7).map(|row| row % 3).collect(), 3);
    vec![
        rows.kernel(format!("{GEMM}+k2")),
        Case::new([100, 150, 3], F32).kernel(GEMM),
        Case::new([150, 60, 3], F32).kernel(GEMM).batch(2),
        Case::new([3, 220, 40], F32).kernel(format!("{GEMM}+k2")),
        Case::new([70, 39, 40], F32)
            .along_k(Groups { ends: vec![9, 20, 31], on_device: true })
            .kernel(GEMM),
    ]
}
