//! Cases for quantized weights as bytes, with elements of A as whole numbers.

use crate::case::Groups;
use crate::cases::Table;
use crate::kernels::Kernel;
use crate::{Case, Data, Rng};
use tilewise::{DType, Precision, QuantFormat};
use tilewise_core::{Access, Variant};

/// One format of each loader and number of bits. Its scales are f32 if that is possible.
#[rustfmt::skip]
const FORMATS: [&str; 26] = [
    "affine-4bit-g32-f32", "q6_k", "q4_0", "fp8-e4m3-g128", "q2_k", "affine-3bit-g64-f16",
    "iq4_xs", "q5_0", "mxfp4", "int8-g16", "q3_k", "affine-8bit-g64-bf16", "nvfp4", "q4_k",
    "nf4-g64", "q8_0", "affine-2bit-g32-f32", "q5_1", "mxfp8", "gguf-mxfp4", "q5_k", "int8-g128",
    "affine-6bit-g32-bf16", "iq4_nl", "fp8-e5m2-g32", "affine-5bit-g64-f32",
];

/// How many of them each variant meets in several cases. It meets the others in one.
const SEVERAL: usize = 9;

/// Permissions to take fewer bytes of A.
const FEWER: [Precision; 2] = [Precision::Int8Activations, Precision::Int16Activations];

/// Formats on every variant that takes codes. Elements of A have every magnitude, in three
/// bytes and in fewer. Rows are longer than the workgroup's memory, or just fill it.
pub fn cases(table: Table) -> Vec<Case> {
    let kernels = table
        .kernels()
        .into_iter()
        .filter(|kernel| matches!(kernel.variant.access, Access::Codes { .. }));
    let of = |(turn, kernel): (usize, Kernel)| {
        let [bm, bn] = [kernel.variant.bm, kernel.variant.bn].map(|size| size as usize);
        let case = |size, a, format: QuantFormat| {
            Case { quantized: Some(format), ..Case::new(size, [a, DType::F32, DType::F32]) }
                .kernel(&kernel.name)
        };
        let mut formats: Vec<_> =
            FORMATS.map(|name| name.parse::<QuantFormat>().expect("a format")).to_vec();
        formats.rotate_left(turn * SEVERAL % FORMATS.len());
        let mut cases: Vec<Case> = (0..)
            .zip(formats.iter().copied().take(SEVERAL))
            .flat_map(|(i, format)| {
                let block = format.block() as usize;
                let a = DType::FLOATS[i % 3];
                let k = (96 + 32 * turn).next_multiple_of(block);
                let edges = case([bm + 1, bn + 3, k], a, format);
                let magnitudes = magnitudes(case([10, 5, 256], DType::F32, format));
                [Case { precision: FEWER[(i + turn) % 2], ..magnitudes.clone() }, magnitudes, edges]
            })
            .collect();
        let few = formats.iter().skip(SEVERAL);
        cases.extend(few.map(|format| case([bm, 5, 256], DType::FLOATS[turn % 3], *format)));
        let format = FORMATS[turn % FORMATS.len()].parse().expect("a format");
        cases.push(specials(case([64, 3, 64], DType::F32, QuantFormat::Q8_0)));
        cases.push(specials(case([64, 3, 64], DType::BF16, QuantFormat::Q4_0)));
        let groups = Some(Groups { ends: vec![bm as u32, bm as u32 + 1], on_device: true });
        let case_of_groups =
            Case { groups, ..case([bm + 1, bn + 1, 160], DType::F32, QuantFormat::Q8_0).odd() };
        cases.push(overflowing(case_of_groups));
        // The infinities are in the last group of the first stripe, in the second stripe's last
        // group that has another after it, and in the last group of all.
        let long = case([bm + 4, 5, 1056], DType::F32, QuantFormat::Q8_0);
        cases.push(infinite(long, &[[0, 32], [1, 1], [2, 32], [3, 3]]));
        cases.push(case([bm, 6, 14_848], DType::F16, format));
        cases.push(infinite(case([1, 3, 14_848], DType::F16, QuantFormat::Q8_0), &[[0, 463]]));
        cases.push(case([bm, bn + 1, 2048], DType::F16, format));
        for (i, precision) in FEWER.into_iter().enumerate() {
            let format = FORMATS[(turn + 3 * i + 1) % FORMATS.len()].parse().expect("a format");
            cases.push(Case { precision, ..case([bm, bn + 1, 2048], DType::BF16, format) });
        }
        cases.push(tiny(case([3, 5, 256], DType::F32, "q4_k".parse().expect("a format"))));
        // Each load has one group, and K is an odd number of whole steps.
        if let Access::Codes { stripes, .. } = kernel.variant.access {
            let step = 32 * stripes as usize;
            let k = step * (1024_usize.div_ceil(step) | 1);
            for name in ["q4_k", "q2_k", "q3_k"] {
                cases.push(case([bm, 5, k], DType::F16, name.parse().expect("a format")));
            }
        }
        for precision in [FEWER[0], FEWER[1], Precision::F32] {
            cases
                .push(Case { precision, ..ends(case([18, 5, 32], DType::F32, QuantFormat::Q8_0)) });
        }
        cases.push(Case {
            exact: true,
            ..case([bm + 1, bn + 1, 1024], DType::F16, QuantFormat::Q4_0).batch(2)
        });
        cases
    };
    kernels.enumerate().flat_map(of).chain(panels(table)).chain(turns(table)).collect()
}

/// Infinities and NaN on variants whose invocations have several groups of columns.
pub fn turns(table: Table) -> Vec<Case> {
    let columns = |kernel: &Kernel| match kernel.variant.access {
        Access::Codes { stripes, .. } => kernel.variant.bn * stripes / kernel.variant.threads,
        _ => 0,
    };
    let kernels =
        table.kernels().into_iter().filter(|kernel| columns(kernel) > kernel.variant.sums[1]);
    let of = |kernel: Kernel| {
        let size = [5, kernel.variant.bn as usize - 3, 64];
        let case = Case { quantized: Some(QuantFormat::Q4_0), ..Case::new(size, [DType::F32; 3]) };
        specials(case.kernel(&kernel.name))
    };
    kernels.map(of).collect()
}

/// Panels of matrix units whose codes are bytes. The smallest tile meets every format, the others
/// two.
fn panels(table: Table) -> Vec<Case> {
    let smallest: Vec<_> = table.one_of_each().into_iter().map(|kernel| kernel.name).collect();
    let kernels = table
        .kernels()
        .into_iter()
        .filter(|kernel| matches!(kernel.variant.access, Access::Words(_)));
    let of = |(turn, kernel): (usize, Kernel)| {
        let Variant { bm, bn, bk, .. } = *kernel.variant;
        let [m, n, k] = [bm + 1, bn + 5, 2 * bk.max(128)].map(|size| size as usize);
        let formats = FORMATS.into_iter().cycle().skip(2 * turn);
        let formats = formats.take(if smallest.contains(&kernel.name) { FORMATS.len() } else { 2 });
        let case = |name: &str| {
            let case = Case {
                quantized: name.parse().ok(),
                ..Case::new([m, n, k], [DType::F16, DType::F32, DType::F32])
            };
            case.kernel(&kernel.name)
        };
        formats.map(case).collect::<Vec<_>>()
    };
    kernels.enumerate().flat_map(of).collect()
}

/// Rows whose groups of 32 reach from subnormal numbers to the largest, and rows of numbers around
/// the largest that three signed bytes hold.
fn magnitudes(case: Case) -> Case {
    let [m, _, k] = case.size;
    let mut rng = Rng::new(17);
    let powers = [0, 79, -95, -96, -97, 80, 81, 98, -120, -140, 12, -12];
    let near = [
        8_355_711, 8_355_712, 8_355_713, 8_388_607, 8_388_608, 4_177_855, 4_177_857, 65_535,
        32_768, 128,
    ];
    let number = |i: usize, rng: &mut Rng| {
        let (row, group, at) = (i / k, i % k / 32, i % 32);
        match (row + group) % 13 {
            12 if group % 2 == 0 => 0.0,
            12 => {
                near[(at + row) % near.len()] as f32
                    * if rng.below(2) == 0 { 1.0 } else { -1.0 }
                    * 2f32.powi(-22)
            }
            i => (f64::from(rng.number()) * 2f64.powi(powers[i])) as f32,
        }
    };
    let a = (0..m * k).map(|i| number(i, &mut rng)).collect();
    Case { a_data: Data::Given(a), ..case }
}

/// Rows of one group. Its largest element is about the largest that three bytes hold, or two, or
/// one. The others are odd multiples of the last digit of such a number: right kernels lose
/// nothing.
fn ends(case: Case) -> Case {
    let largest = [8_355_711.0, 8_355_711.5, 8_355_712.0, 8_355_839.5, 8_355_840.0, 8_388_607.5f32];
    let [m, _, k] = case.size;
    let number = |i: usize| match (i / k, i % k) {
        (row, 0) => largest[row / 3 % largest.len()],
        (row, at) => {
            ((at * 10 % 64 + 1) << (8 * (row % 3))) as f32 * if at % 3 == 0 { -1.0 } else { 1.0 }
        }
    };
    let a = (0..m * k).map(|i| number(i) * 2f32.powi(-22)).collect();
    Case { a_data: Data::Given(a), ..case }
}

/// Elements that are all too small for whole numbers.
fn tiny(case: Case) -> Case {
    let [m, _, k] = case.size;
    let mut rng = Rng::new(31);
    let a = (0..m * k).map(|_| rng.number() * 2f32.powi(-100)).collect();
    Case { a_data: Data::Given(a), ..case }
}

/// Elements whose sums with codes are beyond f32, but whose sums with weights are not.
fn overflowing(case: Case) -> Case {
    let [m, _, k] = case.size;
    let mut rng = Rng::new(23);
    let a = (0..m * k).map(|_| rng.number() * 2f32.powi(122)).collect();
    Case { a_data: Data::Given(a), ..case }
}

/// An infinity in each of these rows and groups of 32.
fn infinite(case: Case, places: &[[usize; 2]]) -> Case {
    let [m, _, k] = case.size;
    let mut rng = Rng::new(29);
    let mut a: Vec<f32> = (0..m * k).map(|_| rng.number()).collect();
    for [row, group] in places {
        a[row * k + group * 32 + row] = f32::INFINITY;
    }
    Case { a_data: Data::Given(a), ..case }
}

/// An infinity or a NaN, at another place in each row; and rows with both infinities.
fn specials(case: Case) -> Case {
    let [m, _, k] = case.size;
    let mut rng = Rng::new(19);
    let mut a: Vec<f32> = (0..m * k).map(|_| rng.number()).collect();
    for row in 0..m {
        a[row * k + row % k] = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN][row % 3];
        if row % 7 == 6 {
            a[row * k + (row + 1) % k] = f32::INFINITY;
        }
    }
    Case { a_data: Data::Given(a), ..case }
}
