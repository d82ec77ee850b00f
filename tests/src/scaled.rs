//! Cases for matrix units of f16 with other operands. Lines of bf16 along K are divided by powers
//! of two; f32 is also split in two terms.

use crate::case::{Groups, LAYOUTS};
use crate::cases::Table;
use crate::kernels::Kernel;
use crate::{Case, Data, Entries, Place, Rng, quant_families};
use tilewise::{DType, Precision};
use tilewise_core::kernel::Unit;

/// The types of A, B and C.
const BF16: [DType; 3] = [DType::BF16, DType::BF16, DType::F32];

/// Every way to load, in strips along K and across; with K split, in groups, and of a wide range.
pub fn cases(table: Table) -> Vec<Case> {
    let units = table.one_of_each().into_iter().filter(|kernel| kernel.variant.unit().is_some());
    let cases = units.flat_map(|kernel| {
        let case = |size, types| Case::new(size, types).kernel(&kernel.name);
        // The cases load eights, fours and single elements, in strips along K and across.
        let mixed =
            [BF16, [DType::BF16, DType::F16, DType::BF16], [DType::F16, DType::BF16, DType::F32]];
        let sizes = LAYOUTS.into_iter().enumerate().flat_map(|(i, layout)| {
            let sizes = [[5, 101, 35], [36, 44, 4 * i + 260]];
            let [odd, even] = sizes.map(|size| case(size, mixed[i % 3]).layout(layout));
            [odd.batch(2).odd(), even]
        });
        let mut cases: Vec<Case> = sizes.collect();
        let split = case([8, 36, 300], BF16).kernel(format!("{}+k2", kernel.name)).batch(2);
        cases.push(split.clone());
        cases.push(Case { a: split.a.entries(Entries::Stride0), beta: 0.5, ..split });
        let groups = Some(Groups { ends: vec![3, 3, 17, 19], on_device: true });
        cases.push(Case { groups, ..case([22, 37, 40], BF16) });
        for format in quant_families(0).into_iter().take(2) {
            let size = [9, 40, format.block() as usize];
            cases.push(Case { quantized: Some(format), ..case(size, BF16) });
        }
        cases.extend(LAYOUTS.map(|layout| wide(case([13, 38, 70], BF16).layout(layout))));
        let tiny = LAYOUTS.map(|layout| wide(case([13, 38, 38], BF16).layout(layout)));
        cases.extend(tiny.map(|case| Case { b_data: Data::Identity, ..case }));
        cases.extend(LAYOUTS.map(|layout| growing(case([2, 3, 2100], BF16).layout(layout))));
        // A number too small for f16 must not become zero: its product with an infinity is
        // infinite.
        let (a, b) = ([1.0, 2f32.powi(-60)].repeat(5), [[0.0; 6], [f32::INFINITY; 6]].concat());
        let infinite = Case {
            a_data: Data::Given(a),
            b_data: Data::Given(b),
            exact: true,
            ..case([5, 6, 2], BF16)
        };
        cases.push(infinite);
        let exact_ones = |kind: fn(&Case) -> [Case; 2]| {
            LAYOUTS
                .into_iter()
                .flat_map(move |layout| kind(&case([21, 21, 21], BF16).layout(layout)))
        };
        cases.extend(exact_ones(exact));
        cases.extend(exact_ones(near_the_least));
        cases
    });
    cases.chain(side_by_side(table)).collect()
}

/// A wide range on a tile that several subgroups share along N.
pub fn side_by_side(table: Table) -> Vec<Case> {
    let several = |kernel: &Kernel| {
        let f16 = |unit: &Unit| unit.matrix.operands == DType::F16;
        kernel.variant.unit().is_some_and(f16) && kernel.variant.sums[1] < kernel.variant.bn
    };
    let found = table.kernels().into_iter().find(several);
    found
        .map(|kernel| wide(Case::new([5, 101, 35], BF16).kernel(&kernel.name)))
        .into_iter()
        .collect()
}

/// Cases for f32 in two terms: in every way to load, with K split, in groups, and of a wide range.
pub fn split(table: Table) -> Vec<Case> {
    let units = table.one_of_each().into_iter().filter(|kernel| kernel.variant.unit().is_some());
    let cases = units.flat_map(|kernel| {
        let case = |size| single(Case::new(size, BF16).kernel(&kernel.name));
        let split = |splits: usize| Some(format!("{}+k{splits}", kernel.name));
        let sizes = LAYOUTS.into_iter().enumerate().flat_map(|(i, layout)| {
            let [odd, even] =
                [[5, 101, 35], [36, 44, 4 * i + 132]].map(|size| case(size).layout(layout));
            [odd.batch(2).odd(), even]
        });
        let mut cases: Vec<Case> = sizes.collect();
        let halved = Case { kernel: split(2), ..case([8, 36, 170]).batch(2) };
        cases.push(halved.clone());
        cases.push(Case { a: halved.a.entries(Entries::Stride0), beta: 0.5, ..halved });
        // Segments without zeros at the end.
        cases.push(case([3, 9, kernel.variant.bk as usize]));
        cases.extend(LAYOUTS.map(|layout| some_infinite(case([11, 22, 35]).layout(layout))));
        // Lines that are divided by 2, with zeros in them.
        let halves =
            |rng: &mut Rng| (rng.below(3) as f32 - 1.0) * (40_000.0 + rng.number() * 20_000.0);
        let mut rng = Rng::new(29);
        let mut given = |len| Data::Given((0..len).map(|_| halves(&mut rng)).collect());
        cases.push(Case { a_data: given(5 * 40), b_data: given(40 * 8), ..case([5, 8, 40]) });
        // 2064 steps want three splits.
        cases.push(Case { kernel: split(3), precision: Precision::SplitF32, ..case([3, 9, 683]) });
        let groups = Some(Groups { ends: vec![3, 3, 17, 19], on_device: true });
        cases.push(Case { groups, ..case([22, 37, 40]) });
        cases.extend(LAYOUTS.map(|layout| wide(case([13, 38, 70]).layout(layout))));
        let tiny = LAYOUTS.map(|layout| wide(case([13, 38, 38]).layout(layout)));
        cases.extend(tiny.map(|case| Case { b_data: Data::Identity, ..case }));
        cases.extend(LAYOUTS.map(|layout| growing(case([2, 3, 2100]).layout(layout))));
        let (a, b) = ([1.0, 2f32.powi(-60)].repeat(5), [[0.0; 6], [f32::INFINITY; 6]].concat());
        cases.push(Case {
            a_data: Data::Given(a),
            b_data: Data::Given(b),
            exact: true,
            ..case([5, 6, 2])
        });
        cases.extend(
            LAYOUTS
                .into_iter()
                .flat_map(|layout| exact_in_terms(&case([21, 21, 21]).layout(layout))),
        );
        cases
    });
    cases.chain(chains(table)).collect()
}

/// Cases for kernels that keep chains of additions short. In one, a chain of ones follows a sum
/// that adding one would not change. In the others there are two chains and a part of one, in a
/// batch and in groups, and splits of K.
pub fn chains(table: Table) -> Vec<Case> {
    let chained = table.kernels().into_iter().filter(|kernel| kernel.variant.chain() > 0);
    let cases = chained.flat_map(|kernel| {
        let case = |size, splits: usize| {
            let case = Case::new(size, BF16).kernel(format!("{}+k{splits}", kernel.name));
            Case { precision: Precision::SplitF32, ..single(case) }
        };
        let chain = kernel.variant.chain() as usize;
        let k = 2 * chain / 3 + 17;
        let groups = Some(Groups { ends: vec![3, 3, 5], on_device: true });
        let after = |first| [vec![first; chain - 1], vec![4096.0], vec![1.0; chain]].concat();
        let (a, b) = (
            after(1.0).repeat(64),
            after(0.0).into_iter().flat_map(|number| [number; 64]).collect(),
        );
        [
            Case {
                a_data: Data::Given(a),
                b_data: Data::Given(b),
                exact: true,
                ..case([64, 64, 2 * chain], 1)
            },
            case([3, 9, k], 1).batch(2).odd(),
            Case { groups, ..case([5, 6, k], 1) },
            case([4, 8, k + 340], 2),
        ]
    });
    cases.collect()
}

/// A product of given rows of A in two terms.
pub fn split_rows(table: Table, size: [usize; 3]) -> Vec<Case> {
    let units = table.one_of_each().into_iter().filter(|kernel| kernel.variant.unit().is_some());
    let mut rng = Rng::new(19);
    let a: Vec<f32> =
        (0..size[0] * size[2]).map(|_| rng.number() * 2f32.powi(-(rng.below(20) as i32))).collect();
    let case = |name: &str| Case {
        a_data: Data::Given(a.clone()),
        ..single(Case::new(size, BF16).kernel(name))
    };
    units.map(|kernel| case(&kernel.name)).collect()
}

/// Makes the operands f32, in two terms.
pub fn single(case: Case) -> Case {
    let [a, b] = [case.a, case.b].map(|place| Place { dtype: DType::F32, ..place });
    Case { a, b, precision: Precision::SplitF32Fast, ..case }
}

/// Rows of A and columns of B between 2^-133 and 2^120, some of zeros. Their numbers go down to
/// 2^-45 of the largest.
fn wide(case: Case) -> Case {
    let [m, n, k] = case.size;
    let mut rng = Rng::new(7);
    let mut line = |power: i32| -> Vec<f32> {
        let small = |rng: &mut Rng| if rng.below(3) == 0 { -(rng.below(46) as i32) } else { 0 };
        (0..k)
            .map(|_| (f64::from(rng.number()) * 2f64.powi(power + small(&mut rng))) as f32)
            .collect()
    };
    let mut lines = |count: usize, powers: [i32; 5]| -> Vec<Vec<f32>> {
        (0..count).map(|i| if i == 7 { vec![0.0; k] } else { line(powers[i % 5]) }).collect()
    };
    let (a, b) = (lines(m, [0, 120, -100, -131, 60]), lines(n, [3, -118, 100, -130, 15]));
    Case { a_data: Data::Given(a.concat()), b_data: across(&b), ..case }
}

/// Lines whose largest numbers are at the end. The lines are longer than the part that a kernel
/// loads at a time.
fn growing(case: Case) -> Case {
    let [m, n, k] = case.size;
    let mut rng = Rng::new(9);
    let mut lines = |count: usize| -> Vec<Vec<f32>> {
        let number = |rng: &mut Rng, i: usize| rng.number() * 2f32.powi((24 * i / k) as i32);
        (0..count).map(|_| (0..k).map(|i| number(&mut rng, i)).collect()).collect()
    };
    let (a, b) = (lines(m), lines(n));
    Case { a_data: Data::Given(a.concat()), b_data: across(&b), ..case }
}

/// Numbers that lose nothing, in one operand and then in the other: C must equal that operand. Some
/// are subnormal in bf16, some in f16.
fn exact(case: &Case) -> [Case; 2] {
    let [_, _, k] = case.size;
    let mut rng = Rng::new(13);
    let mut number = |power: i32| {
        let digits = (128 + rng.below(128)) as f64 * if rng.below(2) == 0 { 1.0 } else { -1.0 };
        (digits * 2f64.powi(power - 7 - rng.below(33) as i32)) as f32
    };
    let mut line = |i: usize| -> Vec<f32> {
        match i % 3 {
            0 => (0..k).map(|_| number(120 - 5 * i as i32)).collect(),
            1 => (0..k).map(|_| number(-90 - i as i32 % 5)).collect(),
            _ => (0..k).map(|j| f32::from_bits((1 + 13 * j as u32 % 127) << 16)).collect(),
        }
    };
    let lines: Vec<Vec<f32>> = (0..k).map(&mut line).collect();
    either(case, &lines)
}

/// Numbers that lose nothing. One of each eight is near the least normal number of f16, which is
/// 2^-29 of the largest in its line. Neighbouring lines have unlike powers of two.
fn near_the_least(case: &Case) -> [Case; 2] {
    let [_, _, k] = case.size;
    let mut rng = Rng::new(31);
    let mut number = |power: i32, near: bool, turn: usize| {
        let (digits, below) = match near {
            true => [(128, 29), (255, 30), (200, 28)][turn],
            false => (128 + rng.below(128), 0),
        };
        let sign = if rng.below(2) == 0 { 1.0 } else { -1.0 };
        (sign * digits as f64 * 2f64.powi(power - below - 7)) as f32
    };
    // In the first eight lines the first of each two is higher, in the next eight the second.
    let powers = [40, 0, 9, -60, 25, 9, 0, -20];
    let mut line = |i: usize| -> Vec<f32> {
        let power = powers[(i ^ (i / 8 % 2)) % 8];
        (0..k).map(|j| number(power, j % 8 == i % 8, j / 8)).collect()
    };
    let lines: Vec<Vec<f32>> = (0..k).map(&mut line).collect();
    either(case, &lines)
}

/// Products of these lines with an identity, as A and as B.
fn either(case: &Case, lines: &[Vec<f32>]) -> [Case; 2] {
    let case = Case { exact: true, ..case.clone() };
    let a = Case { a_data: Data::Given(lines.concat()), b_data: Data::Identity, ..case.clone() };
    [a, Case { a_data: Data::Identity, b_data: across(lines), ..case }]
}

/// Infinities in some rows of A and NaN in some columns of B, beside finite numbers.
fn some_infinite(case: Case) -> Case {
    let [m, n, k] = case.size;
    let mut rng = Rng::new(23);
    let mut lines = |count: usize, special: f32, first: usize| -> Vec<Vec<f32>> {
        let mut lines: Vec<Vec<f32>> =
            (0..count).map(|_| (0..k).map(|_| rng.number()).collect()).collect();
        for i in (first..count).step_by(3) {
            lines[i][i] = special;
        }
        lines
    };
    let (a, b) = (lines(m, f32::INFINITY, 1), lines(n, f32::NAN, 2));
    Case { a_data: Data::Given(a.concat()), b_data: across(&b), ..case }
}

/// Numbers of 23 digits, which two terms hold, down to 2^-16 of the largest; and some of 8 digits,
/// which one term holds. They are in one operand and then in the other: C must equal that operand.
/// Some are subnormal. The largest f32 has 24 digits, but only one beside a power of two.
fn exact_in_terms(case: &Case) -> [Case; 2] {
    let [_, _, k] = case.size;
    let mut rng = Rng::new(17);
    let mut number = |power: i32| {
        let long = (1 << 22) + rng.below(1 << 22);
        let digits = if rng.below(4) == 0 { long >> 15 << 15 } else { long };
        let digits = digits as f64 * if rng.below(2) == 0 { 1.0 } else { -1.0 };
        (digits * 2f64.powi(power - 22 - rng.below(17) as i32)) as f32
    };
    let mut line = |i: usize| -> Vec<f32> {
        match i % 3 {
            0 => (0..k).map(|j| if j == i { f32::MAX } else { number(127) }).collect(),
            1 => (0..k).map(|j| if j == i { 2f32.powi(-90) } else { number(-90) }).collect(),
            _ => (0..k).map(|j| f32::from_bits(1 + 399_981 * j as u32 % 0x7fffff)).collect(),
        }
    };
    let lines: Vec<Vec<f32>> = (0..k).map(&mut line).collect();
    either(case, &lines)
}

/// The elements of these columns, row by row.
fn across(columns: &[Vec<f32>]) -> Data {
    let rows = 0..columns[0].len();
    Data::Given(rows.flat_map(|i| columns.iter().map(move |column| column[i])).collect())
}

/// The cases of [`specials`] for f32 in two terms.
pub fn split_specials(table: Table) -> Vec<Case> {
    specials(table).into_iter().map(single).collect()
}

/// An infinity, a NaN and a subnormal number at every place of an operand. Each row of A, or column
/// of B, has one; each entry of a batch has it at another place.
pub fn specials(table: Table) -> Vec<Case> {
    const SIZE: [usize; 3] = [17, 17, 33];
    let [m, n, k] = SIZE;
    let units = table.one_of_each().into_iter().filter(|kernel| kernel.variant.unit().is_some());
    let numbers = [f32::INFINITY, f32::NAN, f32::from_bits(0x0003_0000)];
    let cases = units.flat_map(|kernel| numbers.map(|special| (kernel.name.clone(), special)));
    let on_both = |(kernel, special): (String, f32)| {
        let mut rng = Rng::new(11);
        let mut operand = |rows: usize, cols: usize| {
            let place = |at: usize| (at / (rows * cols), at / cols % rows, at % cols);
            let number = |at| match place(at) {
                (entry, row, col) if (row + col) % k == entry => special,
                // Some numbers are too small for f16 beside the others.
                _ => rng.number() * if rng.below(8) == 0 { 1e-17 } else { 1.0 },
            };
            Data::Given((0..k * rows * cols).map(number).collect())
        };
        let (a_data, b_data) = (operand(m, k), operand(k, n));
        let case = Case::new(SIZE, BF16).kernel(kernel).batch(k);
        let [a, b] = [&case.a, &case.b].map(|place| place.entries(Entries::Stride0));
        [Case { a_data, b, ..case.clone() }, Case { b_data, a, ..case }]
    };
    cases.flat_map(on_both).collect()
}
