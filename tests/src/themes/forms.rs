//! Masked batches, and groups along K.

use crate::case::{Groups, LAYOUTS};
use crate::{Case, Data, Entries, Place};
use tilewise::{Axis, DType, QuantFormat};

/// Counts of rows for a batch of three: none, one, whole tiles, and all. On a device they may be
/// larger.
fn counts() -> Vec<Vec<u32>> {
    vec![vec![40, 0, 17], vec![1, 64, 33], vec![0; 3], vec![32, 8, 66], vec![u32::MAX, 67, 39]]
}

/// Masked products of 66 rows at most; a format of each kind meets one of the counts.
pub fn masked() -> Vec<Case> {
    let (mut cases, all) = (Vec::new(), counts());
    for (i, counts) in all.iter().enumerate() {
        let types = [DType::F32, DType::FLOATS[i % 3], DType::FLOATS[(i + 1) % 3]];
        let case = Case::new([66, 22, 12], types).layout(LAYOUTS[i % 4]).masked(counts.clone());
        let [bias, residual] = [Place::odd(types[1]), Place::odd(DType::F32)];
        cases.push(case.clone());
        // The case says that rows are few, so a device counts its workgroups.
        let few = Case { expected_rows: Some(1), ..case.clone() };
        cases.push(few.clone());
        cases.push(Case { size: [66, 21, 13], ..few }.odd());
        cases.push(Case { size: [66, 21, 13], ..case.clone() }.odd());
        cases.push(Case {
            bias: Some(([Axis::M, Axis::N][i % 2], bias)),
            beta: -1.5,
            residual: Some(residual),
            c: case.c.entries([Entries::Between, Entries::Apart(4)][i % 2]),
            ..case.clone()
        });
        cases.push(Case { a: case.a.entries(Entries::Single), ..case.clone() });
        for format in QuantFormat::kinds().into_iter().skip(i).step_by(all.len()) {
            let size = [9, 7, format.block() as usize];
            cases.push(Case { quantized: Some(format), size, ..case.clone() });
        }
    }
    cases
}

/// Rows that name their entries of B: no rows, one and many. Some name an entry twice, all name the
/// same, and some name no entry.
pub fn indexed() -> Vec<Case> {
    let mut cases = Vec::new();
    let indices = [
        vec![],
        vec![2],
        vec![1, 0, 2, 1, 4, 1, 3],
        vec![5, 0, u32::MAX, 4, 1 << 31],
        vec![3; 9],
        (0..40).map(|row| row * 7 % 6).collect(),
    ];
    for (i, indices) in indices.iter().enumerate() {
        let types = [DType::F32, DType::FLOATS[i % 3], DType::FLOATS[(i + 1) % 3]];
        let case = Case::new([0, 22, 12], types).layout(LAYOUTS[i % 4]);
        let case = case.indexed(indices.clone(), 5);
        cases.push(case.clone());
        cases.push(Case { size: [indices.len(), 21, 13], ..case.clone() }.odd());
        cases.push(Case {
            bias: Some(([Axis::N, Axis::M][i % 2], Place::odd(types[1]))),
            beta: -1.5,
            residual: Some(Place::odd(DType::F32)),
            ..case.clone()
        });
        // The first row is there twice, and one index lies beyond the last row.
        let rows: Vec<_> = (0..indices.len() as u32).map(|row| row.saturating_sub(1)).collect();
        let stored = rows.len().max(3) - 2;
        cases.push(case.clone().layout([false, i % 2 == 0]).gathered(stored, &rows));
        for format in QuantFormat::kinds().into_iter().skip(i).step_by(6) {
            let size = [indices.len(), 7, 2 * format.block() as usize];
            cases.push(Case { quantized: Some(format), size, ..case.clone() });
        }
    }
    cases
}

/// Sums over ranges of 40 elements of K. Some ranges begin inside every step, and some are empty.
pub fn along_k(ends: &[Vec<u32>], on_device: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, ends) in ends.iter().enumerate() {
        let groups = Groups { ends: ends.clone(), on_device };
        let types = [0, 1, 2].map(|j| DType::FLOATS[(i + i / 3 * j + j) % 3]);
        let case = Case::new([12, 20, 40], types).layout(LAYOUTS[(i + 2) % 4]).along_k(groups);
        let [a, b, c] = [Place::odd(types[0]), Place::odd(types[1]), Place::odd(types[2])];
        let bias = Some(([Axis::M, Axis::N][i % 2], Place::odd(types[1])));
        cases.push(Case {
            size: [11, 21, 40],
            a: a.transposed(case.a.transposed).entries(Entries::Single),
            b: b.transposed(case.b.transposed).entries(Entries::Single),
            c,
            ..case.clone()
        });
        cases.push(Case { bias, beta: -1.5, residual: Some(a), ..case.clone() });
        cases.push(case);
    }
    cases
}

/// Lists of products up to 40×22×12, in 900 elements of A, 520 of B and 1,500 of C. First products
/// of any sizes, empty ones, and none. Then products that only a device can hold, each between
/// right ones: larger than the largest, beyond an operand by one element, just within it, far
/// beyond it, and with rows that overlap.
pub fn lists() -> Vec<Vec<[u32; 9]>> {
    let right = [40, 22, 12, 5, 13, 7, 23, 30, 25];
    let with = |changes: &[(usize, u32)]| {
        let mut numbers = right;
        changes.iter().for_each(|&(at, number)| numbers[at] = number);
        vec![[3, 5, 2, 600, 3, 400, 6, 0, 6], numbers, [1, 1, 12, 700, 0, 450, 1, 20, 0]]
    };
    let mut all = vec![
        vec![right, [1, 1, 1, 899, 9, 519, 9, 1499, 9], [9, 20, 0, 0, 0, 0, 0, 1100, 21]],
        // Without K, A and B may lie anywhere. One line or element leaves A. Rows of C are one row,
        // or overlap.
        vec![
            [9, 20, 0, u32::MAX, 9, u32::MAX, 9, 1100, 21],
            [1, 1, 5, 897, 9, 0, 9, 1400, 9],
            [2, 1, 1, 899, 1, 0, 9, 1410, 9],
            [1, 3, 2, 0, 9, 0, 9, 1420, 0],
            [2, 1, 1, 0, 9, 0, 9, 1430, 0],
            [2, 3, 1, 0, 9, 0, 9, 1440, 2],
        ],
        vec![],
        vec![
            [0, 7, 5, 0, 9, 0, 9, 0, 9],
            [7, 0, 5, 0, 9, 0, 9, 0, 9],
            [8, 8, 12, 0, 9, 0, 9, 0, 8],
        ],
        (0..20).map(|i| [1 + i % 3, 1 + i % 5, i % 13, i, 13, i, 13, 60 * i, 7]).collect(),
        with(&[(0, u32::MAX), (1, 23), (2, 1 << 31)]),
        with(&[(8, u32::MAX / 39 + 1)]),
        with(&[(6, u32::MAX / 11)]),
    ];
    // The last place of each operand that fits, and the next one; for B also if it is transposed.
    let places = [(3, 381), (5, 25), (5, 245), (7, 503)].into_iter();
    all.extend(places.flat_map(|(at, place)| [place, place + 1].map(|place| with(&[(at, place)]))));
    let others =
        [(3, u32::MAX), (4, u32::MAX), (4, 1 << 31), (5, 1 << 31), (8, 21), (8, 22), (8, 39)];
    all.extend(others.map(|change| with(&[change])));
    all
}

/// Each of these lists; layouts take turns.
pub fn listed(lists: &[Vec<[u32; 9]>]) -> Vec<Case> {
    let case = |(i, list): (usize, &Vec<[u32; 9]>)| {
        // Neighbours differ in one number, and have the same layout.
        let turn = i / 2;
        let types = [DType::FLOATS[i % 3], DType::FLOATS[(i / 3) % 3], DType::F32];
        let case = Case::new([40, 22, 12], types).layout(LAYOUTS[turn % 4]);
        // A and B begin at different places.
        let b = case.b;
        let case = if i % 2 == 0 { case } else { Case { b, ..case.odd() } };
        let beta = [0.0, -1.5][i / 2 % 2];
        Case { beta, ..case.listed(list, [900, 520, 1500]) }
    };
    lists.iter().enumerate().map(case).collect()
}

/// Lists that are said to be aligned, in every layout. Products of any sizes are aligned, one of
/// them at the end of its storage. Others break the promise or would leave A or B, each between
/// right ones. Infinite numbers stand beyond the K of one product.
pub fn aligned_lists() -> Vec<Case> {
    let right = [40, 22, 12, 8, 16, 8, 24, 30, 25];
    let with = |at: usize, number: u32| {
        let mut numbers = right;
        numbers[at] = number;
        vec![[3, 5, 2, 648, 8, 400, 8, 0, 8], numbers, [1, 1, 12, 704, 0, 448, 8, 25, 0]]
    };
    let mut lists = vec![
        // The row stride of a single row, and places without K, may be anything.
        vec![
            right,
            [1, 1, 8, 896, 3, 512, 0, 1499, 9],
            [9, 20, 0, 7, u32::MAX, 3, 1 << 20, 1100, 21],
        ],
        (0..20).map(|i| [1 + i % 3, 1 + i % 5, i % 13, 8 * i, 16, 8 * i, 16, 60 * i, 7]).collect(),
        vec![
            [0, 7, 5, 0, 8, 0, 8, 0, 9],
            [7, 0, 5, 0, 8, 0, 8, 0, 9],
            [40, 0, 0, 1, 1, 1, 1, 0, 1],
        ],
        vec![[40, 22, 0, u32::MAX, 1, 1, 1, 0, 22]],
    ];
    let far = u32::MAX - 7;
    let changes = [
        (0, u32::MAX),
        (3, 9),
        (3, 12),
        (3, 264),
        (3, 272),
        (3, far),
        (4, 17),
        (4, 20),
        (4, far),
        (4, 1 << 31),
        (5, 7),
        (5, 4),
        (5, 240),
        (5, 248),
        (6, 25),
        (6, 28),
        (6, 1 << 31),
    ];
    lists.extend(changes.map(|(at, number)| with(at, number)));
    let types = [[DType::F16; 2], [DType::F32, DType::F16], [DType::BF16, DType::F32]];
    let case = |i: usize, list: &Vec<_>, layout| {
        let [a, b] = types[[0, 0, 0, 1, 0, 2][i % 6]];
        let beta = [0.0, -1.5][i % 2];
        let case = Case::new([40, 22, 12], [a, b, DType::F32]).layout(layout);
        Case { beta, aligned: true, ..case.listed(list, [904, 528, 1500]) }
    };
    let mut cases: Vec<_> =
        lists.iter().enumerate().map(|(i, list)| case(i, list, LAYOUTS[i % 4])).collect();
    for (i, layout) in LAYOUTS.into_iter().enumerate() {
        cases.extend(lists[..2].iter().map(|list| case(i, list, layout)));
        let [lda, ldb] = [8 << u32::from(layout[0]), if layout[1] { 8 } else { 16 }];
        let list = [[16, 16, 3, 0, lda, 0, ldb, 0, 16]];
        let infinite = |at: usize, ld: u32, along_k: bool| {
            let (line, place) = (at / ld as usize, at % ld as usize);
            let k = if along_k { place } else { line };
            if k < 3 { [1.0, -2.0, 0.5][at % 3] } else { f32::INFINITY }
        };
        let data = |ld, along_k| (0..128).map(|at| infinite(at, ld, along_k)).collect();
        let (a_data, b_data) = (data(lda, !layout[0]), data(ldb, layout[1]));
        let (a_data, b_data) = (Data::Given(a_data), Data::Given(b_data));
        let size = [16, 16, 3];
        let case = Case::new(size, [DType::F16, DType::F16, DType::F32]).layout(layout);
        let case = case.listed(&list, [128, 128, 256]);
        cases.push(Case { a_data, b_data, exact: true, aligned: true, ..case });
    }
    cases
}

/// Pieces for bindings of 4 KiB: of a masked batch, along entries and rows, and of ranges of K.
pub fn large_forms() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, counts) in [vec![200, 130, 7, 300], vec![3; 30]].into_iter().enumerate() {
        let size = [[200, 23, 26], [40, 10, 12]][i];
        let case = Case::new(size, [DType::F32, DType::F16, DType::F32]).masked(counts.clone());
        cases.push(Case {
            bias: Some((Axis::M, Place::odd(DType::F16))),
            residual: Some(Place::odd(DType::F32)),
            beta: 2.0,
            ..case.clone().odd()
        });
        cases.push(case);
        let ends = if i == 0 { counts } else { (0..30).map(|group| group * 20 / 29).collect() };
        let groups = Groups { ends, on_device: true };
        let case = Case::new([[30, 44, 20], [50, 9, 20]][i], [DType::F32; 3]).along_k(groups);
        cases.push(Case { bias: Some((Axis::N, Place::odd(DType::F32))), ..case });
    }
    // Workgroups are counted in each piece.
    let case = Case::new([600, 4, 2], [DType::F32; 3]).masked(vec![300, 7, 600]);
    cases.push(Case { expected_rows: Some(3), ..case });
    // Rows in pieces. The rows name entries, and each piece binds all entries.
    let indices = (0..90).map(|row| row * 7 % 5).collect();
    cases.push(Case::new([0, 6, 20], [DType::F32; 3]).indexed(indices, 4));
    cases
}
