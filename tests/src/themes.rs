//! Cases by theme, for any kernel: the GPU's kernels and the CPU executor must get all of them
//! right.

mod forms;
mod gated;
mod gathered;
mod groups;

use crate::case::{Groups, LAYOUTS, mixtures};
use crate::kernels::{Kernel, smallest};
use crate::{Case, Data, Entries, Place, quant_formats};
pub use forms::{aligned_lists, along_k, indexed, large_forms, listed, lists, masked};
pub use gated::{gates, pairs};
pub use gathered::{gathered, large_gathered};
pub use groups::{bad_ends, ends, grouped, in_shards, lanes};
use tilewise::{Activation, Axis, DType, QuantFormat};

/// Every case on every kernel.
pub fn on(kernels: &[Kernel], cases: &[Case]) -> Vec<Case> {
    kernels
        .iter()
        .flat_map(|kernel| cases.iter().map(|case| case.clone().kernel(&kernel.name)))
        .collect()
}

/// Every case on the kernel that compiles fastest. Every `step`th case on one variant of each other
/// kernel, on software adapters by turns. Most of what a theme tests lies in files that all kernels
/// share, and compiling takes far longer than running.
#[cfg(not(target_family = "wasm"))]
pub fn sampled(adapter: &crate::Adapter, cases: &[Case], step: usize) -> Vec<Case> {
    let floor = crate::floor(adapter);
    let others: Vec<_> = crate::one_of_each(adapter)
        .into_iter()
        .filter(|kernel| kernel.name != floor.name)
        .collect();
    let few = |(i, kernel): (usize, Kernel)| {
        let turn =
            cases.iter().step_by(step).enumerate().filter(move |(j, _)| adapter.has_turn(i + j));
        turn.map(move |(_, case)| case.clone().kernel(&kernel.name))
    };
    let others = others.into_iter().enumerate().flat_map(few);
    on(&[floor], cases).into_iter().chain(others).collect()
}

/// Every pair of types in every layout, in vectors and in single elements by turns.
pub fn mixed() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, types) in mixtures().into_iter().enumerate() {
        for (j, layout) in LAYOUTS.into_iter().enumerate() {
            let case = Case::new([36, 44, 72], types).layout(layout);
            cases.push(if (i + j) % 2 == 0 {
                case
            } else {
                Case { size: [35, 43, 71], ..case }.odd()
            });
        }
    }
    cases
}

/// Every step of the epilogue by itself, and all together. They are added to `case`; bias and
/// residual are in `dtype`.
pub fn epilogues(case: &Case, dtype: DType) -> Vec<Case> {
    let [packed, odd] = [Place::packed(dtype), Place::odd(dtype)];
    let case = || case.clone();
    vec![
        Case { alpha: -0.75, ..case() },
        Case { alpha: 0.0, ..case() },
        Case { beta: 1.5, ..case() },
        Case { alpha: -0.75, beta: 2.0, written: true, ..case() },
        Case { written: true, ..case() },
        Case { bias: Some((Axis::N, packed)), ..case() },
        Case { bias: Some((Axis::M, odd)), ..case() },
        Case { activation: Activation::Relu, ..case() },
        Case { activation: Activation::Gelu, ..case() },
        Case { activation: Activation::Silu, ..case() },
        Case { activation: Activation::GeluErf, ..case() },
        Case { residual: Some(odd), ..case() },
        all_steps(case(), [(Axis::N, odd), (Axis::N, packed)], Activation::Gelu),
        all_steps(case(), [(Axis::M, packed), (Axis::M, odd)], Activation::Silu),
    ]
}

fn all_steps(case: Case, [bias, residual]: [(Axis, Place); 2], activation: Activation) -> Case {
    Case {
        alpha: 1.25,
        beta: -0.5,
        bias: Some(bias),
        activation,
        residual: Some(residual.1),
        ..case
    }
}

/// Batches with gaps, interleaved batches, and batches with one entry for all; rows with gaps; odd
/// offsets. Words of 16-bit outputs reach over the ends of rows and entries.
pub fn strided() -> Vec<Case> {
    let mut cases = Vec::new();
    let ways =
        [Entries::Apart(0), Entries::Apart(5), Entries::Between, Entries::Stride0, Entries::Single];
    for (i, out) in DType::FLOATS.into_iter().enumerate() {
        let types = [DType::FLOATS[(i + 1) % 3], DType::FLOATS[(i + 2) % 3], out];
        for (j, entries) in ways.into_iter().enumerate() {
            let case = Case::new([5, 7, 9], types).batch(3).layout(LAYOUTS[(i + j) % 4]).odd();
            let [a, b] = [case.a, case.b].map(|place| place.entries(ways[(j + 1) % 5]));
            // Entries of an output must not share a place.
            let c = case.c.entries(ways[j % 3]);
            let case = Case { a: a.entries(entries), b, c, ..case };
            cases.push(case.clone());
            cases.push(Case {
                beta: 2.0,
                residual: Some(Place { entries, ..case.a.transposed(false) }),
                ..case.clone()
            });
            cases.push(Case {
                bias: Some((Axis::N, Place { entries, ..Place::odd(types[1]) })),
                ..case
            });
        }
        // Packed rows of odd width: every second row of a 16-bit output starts inside a word.
        cases.push(Case::new([4, 7, 8], types).batch(2));
        cases.push(Case::new([4, 8, 8], types).batch(2));
        for lead in 8..12 {
            let case = Case::new([3, 6, 4], types);
            cases.push(Case {
                c: Place { lead, ..case.c },
                a: Place { lead, ..case.a },
                ..case.clone()
            });
            cases.push(Case {
                c: Place { lead, pad: 1, ..case.c },
                b: Place { pad: 4, ..case.b },
                ..case
            });
        }
    }
    cases
}

/// Outputs in 16 bits, two to a word. Rows end in every part of four columns, and begin at whole
/// words; rows and entries share words; and the last word is half full. Also numbers of 16 bits
/// that must arrive unchanged.
pub fn words() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, out) in [DType::F16, DType::BF16].into_iter().enumerate() {
        let types = [out, DType::F32, out];
        for n in 5..9 {
            let case = Case::new([3, n, 5], types);
            cases.push(Case { c: Place { pad: n % 2 + 2 * i, ..case.c }, ..case });
        }
        cases.push(Case::new([3, 3, 2], types));
        cases.push(Case::new([3, 3, 2], types).batch(3));
        let columns = Case::new([4, 1, 3], types).batch(3);
        cases.push(Case { c: columns.c.entries(Entries::Between), ..columns });
        let case = Case::new([5, 6, 6], [out, DType::F32, DType::F32]);
        for case in [case.clone(), case.odd()] {
            cases.push(Case { b_data: Data::Identity, exact: true, ..case });
        }
    }
    cases
}

/// Batches of two dimensions, as in attention: heads between rows, fewer heads in one operand, and
/// one entry for all outer entries. Outputs are of either kind, with every epilogue that has
/// entries. In some, rows of 16-bit outputs share words.
pub fn nested() -> Vec<Case> {
    use Entries::{Apart, Heads, Inner, Shared, SharedHeads, SharedInner, SharedOuter, Single};
    let mut cases = Vec::new();
    for (i, out) in DType::FLOATS.into_iter().enumerate() {
        let types = [DType::FLOATS[(i + 1) % 3], DType::FLOATS[(i + 2) % 3], out];
        let ways = [
            // Q·Kᵀ and P·V of attention, with equally many heads and with fewer.
            ([1, 2, 1, 3], [Heads, Heads, Apart(0)]),
            ([1, 2, 2, 4], [Heads, SharedHeads, Apart(0)]),
            ([1, 3, 2, 2], [Apart(0), SharedHeads, Heads]),
            ([1, 1, 2, 3], [Apart(3), Shared, Apart(3)]),
            ([1, 2, 3, 2], [Shared, Heads, Heads]),
            ([1, 2, 1, 5], [Inner, Heads, Apart(1)]),
            ([1, 3, 2, 2], [Heads, SharedInner, Heads]),
            ([1, 2, 1, 3], [Heads, Single, Heads]),
            ([1, 5, 1, 1], [Heads, Heads, Heads]),
            ([2, 3, 2, 2], [SharedOuter, SharedHeads, Apart(0)]),
        ];
        for (j, (sizes, [a, b, c])) in ways.into_iter().enumerate() {
            // Even rows, which begin at whole words, and odd rows.
            for (size, odd) in [([4, 8, 8], false), ([5, 7, 9], true), ([1, 1, 3], true)] {
                let case = Case::new(size, types).nested(sizes).layout(LAYOUTS[(i + j) % 4]);
                let case = if odd { case.odd() } else { case };
                let case = Case {
                    a: case.a.entries(a),
                    b: case.b.entries(b),
                    c: case.c.entries(c),
                    ..case
                };
                let place = |entries| Place::odd(types[1]).entries(entries);
                let case = match j % 3 {
                    0 => Case { beta: 2.0, residual: Some(place(Heads)), ..case },
                    1 => Case { bias: Some((Axis::N, place(Inner))), ..case },
                    _ => Case {
                        bias: Some((Axis::M, place(Heads))),
                        residual: Some(place(Inner)),
                        ..case
                    },
                };
                cases.push(case);
            }
        }
        let format = QuantFormat::kinds()[i];
        for b in [Single, Inner, SharedInner] {
            let size = [3, 9, 2 * format.block() as usize];
            let case = Case::new(size, types).nested([1, 2, 2, 3]);
            let [a, c] = [case.a, case.c].map(|place| place.entries(Heads));
            cases.push(Case { a, b: case.b.entries(b), c, quantized: Some(format), ..case });
        }
    }
    cases
}

/// Elements in this many blocks of a format; in one block if it is long.
pub(crate) fn few(format: QuantFormat, blocks: usize) -> usize {
    let block = format.block() as usize;
    (blocks * block).min(block.max(128))
}

/// Quantized weights of every kind under A and C of every type, in a batch, and with integers.
pub fn quantized() -> Vec<Case> {
    let mut cases = Vec::new();
    for (i, format) in QuantFormat::kinds().into_iter().enumerate() {
        let block = format.block() as usize;
        let types = [DType::FLOATS[(i + 1) % 3], DType::F32, DType::FLOATS[(i + 2) % 3]];
        let case = |size| Case { quantized: Some(format), ..Case::new(size, types) };
        cases.push(case([5, 37, 3 * block]));
        cases.push(case([33, 70, few(format, 2)]).integers());
        // Batches, layouts and epilogues do not depend on the loader.
        if i % 4 != 0 {
            continue;
        }
        cases.push(case([1, 1, block]));
        let case = case([3, 9, block]).batch(2).odd();
        cases.push(Case { b: case.b.entries(Entries::Single), ..case.clone() });
        let bias = Some((Axis::N, Place::odd(DType::FLOATS[i % 3])));
        cases.push(Case { a: case.a.transposed(true), bias, beta: 0.5, ..case });
    }
    cases
}

/// Quantized weights \[K,N\] on kernels whose tiles are whole eights wide, on the smallest tile of
/// each mainloop. By turns they are plain, in a batch inside larger matrices, in groups, and with
/// an epilogue.
pub fn across(kernels: Vec<Kernel>) -> Vec<Case> {
    let wide = kernels.into_iter().filter(|kernel| kernel.variant.bn % 8 == 0).collect();
    let case = |(i, format): (usize, QuantFormat)| {
        let size = [[1, 9, 3][i % 3], few(format, 2), 7 + i % 5];
        let case = Case::new(size, [DType::F32, DType::F32, DType::FLOATS[i % 3]]);
        let case = Case { quantized: Some(format), across: true, ..case };
        match i % 5 {
            0 => case.batch(2).odd(),
            1 => Case {
                groups: Some(Groups { ends: vec![1, 1, size[0] as u32], on_device: true }),
                ..case
            },
            2 => Case { bias: Some((Axis::N, Place::odd(DType::F16))), beta: 0.5, ..case },
            _ => case,
        }
    };
    on(&smallest(wide), &QuantFormat::kinds().into_iter().enumerate().map(case).collect::<Vec<_>>())
}

/// The formats that differ from another of their kind only by group and type of scales.
pub fn further_formats() -> Vec<Case> {
    let kinds = QuantFormat::kinds();
    let further = quant_formats().into_iter().filter(|format| !kinds.contains(format));
    let case = |format: QuantFormat| Case {
        quantized: Some(format),
        ..Case::new([3, 13, 2 * format.block() as usize], [DType::F32; 3])
    };
    further.map(case).collect()
}

/// Cases that bind four storage buffers or more: epilogues, groups, and quantized weights stored
/// along K and across it.
pub fn few_buffers() -> Vec<Case> {
    let mut cases = epilogues(&Case::new([9, 22, 12], [DType::F32; 3]), DType::BF16);
    let kinds = QuantFormat::kinds();
    for (i, format) in kinds.into_iter().enumerate() {
        let types = [DType::FLOATS[i % 3], DType::F32, DType::FLOATS[(i / 2) % 3]];
        let [bias, residual] = [Place::odd(DType::F16), Place::odd(DType::F32)];
        // Whole vectors of C, and others.
        let size = [5, [24, 22][i % 2], few(format, 2)];
        let case = Case { quantized: Some(format), ..Case::new(size, types) };
        let across = Case { across: true, size: [5, few(format, 2), 9], ..case.clone() };
        let groups = Some(Groups { ends: vec![1, 1, 4], on_device: true });
        cases.push(all_steps(
            case.clone(),
            [(Axis::M, bias), (Axis::N, residual)],
            Activation::Relu,
        ));
        cases.push(Case { groups, bias: Some((Axis::N, bias)), ..case });
        cases.push(if i % 2 == 0 { across.batch(2) } else { Case { beta: 0.5, ..across } });
    }
    // In groups, bias and residual are in different passes. If C is in words, some rows share them.
    for (i, out) in DType::FLOATS.into_iter().enumerate() {
        let groups = Some(Groups { ends: vec![3, 3, 17, 18], on_device: true });
        let case = Case { groups, ..Case::new([20, 21, 12], [DType::F32, DType::F16, out]) };
        let [bias, residual] = [Place::packed(DType::F32), Place::odd(DType::FLOATS[(i + 1) % 3])];
        let case = all_steps(case, [(Axis::N, bias), (Axis::N, residual)], Activation::Silu);
        let case = if i == 0 { case } else { case.odd() };
        cases.extend([Case { gated: true, ..case.clone() }, case]);
    }
    for out in DType::FLOATS {
        let case = Case::new([20, 22, 12], [DType::F32, DType::F16, out]).odd();
        cases.extend(pairs(&case, DType::F32).pop());
    }
    let gathered = Case::new([4, 22, 12], [DType::F32; 3]).gathered(3, &[2, 0, 9, 2]);
    let bias = Some((Axis::N, Place::odd(DType::F16)));
    cases.extend([gathered.clone(), Case { bias, ..gathered }]);
    cases
}

/// Whether a format is cut for bindings of this many bytes. A range of a plane starts at a multiple
/// of 256 bytes. With the 34 bytes of a block of q8_0 that is a multiple of 4,352.
pub fn has_ranges(format: QuantFormat, bytes: u64) -> bool {
    let step = |bytes: u64| 256 >> bytes.trailing_zeros().min(8);
    let steps = format.planes().iter().map(|plane| step(plane.bytes)).max().unwrap_or(1);
    format.planes().iter().all(|plane| steps * plane.bytes <= bytes)
}

/// Products with an operand of more than 4 KiB: every type in every layout, long rows, batches,
/// epilogues, outputs that need two passes, weights, and groups.
pub fn large() -> Vec<Case> {
    let mut cases = mixed();
    for (i, layout) in LAYOUTS.into_iter().enumerate() {
        let types = [DType::F32, DType::FLOATS[i % 3], DType::FLOATS[(i + 1) % 3]];
        cases.push(Case::new([3, 5, 2100], types).layout(layout));
        cases.push(Case::new([70, 61, 3], types).layout(layout));
        cases.push(Case {
            beta: 0.5,
            ..Case::new([9, 10, 11], types).batch(20).layout(layout).odd()
        });
        let between = |place: Place| place.entries(Entries::Between);
        let case = Case::new([10, 9, 12], types).batch(17).layout(layout);
        let residual = Some(between(Place::odd(DType::F16)));
        cases.push(Case {
            a: between(case.a),
            b: between(case.b),
            c: between(case.c),
            residual,
            ..case
        });
    }
    let bias = |axis, dtype| Some((axis, Place { pad: 13, ..Place::odd(dtype) }));
    cases.push(Case { bias: bias(Axis::M, DType::F32), ..Case::new([300, 5, 3], [DType::F32; 3]) });
    cases.push(Case { bias: bias(Axis::N, DType::F16), ..Case::new([5, 300, 3], [DType::F16; 3]) });
    cases.extend(epilogues(
        &Case::new([40, 44, 30], [DType::F32, DType::F16, DType::BF16]).odd(),
        DType::F32,
    ));
    cases.extend(pairs(&Case::new([2, 4, 2100], [DType::F32, DType::F16, DType::F32]), DType::F32));
    cases.extend(pairs(
        &Case::new([40, 44, 30], [DType::F32, DType::F16, DType::BF16]).odd(),
        DType::F32,
    ));
    for (i, format) in
        quant_formats().into_iter().filter(|format| has_ranges(*format, 4096)).enumerate()
    {
        // Rows of A and of C by turns are longer than one binding.
        let size = [[2, 5, 17][i % 3], 70, few(format, 2 + i % 3)];
        cases.push(Case { quantized: Some(format), ..Case::new(size, [DType::F32; 3]) });
    }
    for format in QuantFormat::kinds().into_iter().filter(|format| has_ranges(*format, 4096)) {
        let groups = Some(Groups { ends: vec![3, 9, 9, 30], on_device: true });
        let case = Case::new([40, 40, few(format, 2)], [DType::F32; 3]);
        cases.push(Case { quantized: Some(format), groups, ..case });
    }
    // Many rows, and a table of groups.
    let groups = Some(Groups { ends: (0..260).map(|group| group * 4).collect(), on_device: true });
    cases.push(Case { groups, ..Case::new([1100, 2, 2], [DType::F32; 3]) });
    let ends = [vec![0, 0, 25, 25, 185, 200, 200], vec![90, 20, 250], vec![70; 3]];
    for (i, ends) in ends.into_iter().enumerate() {
        let types = [DType::F32, DType::FLOATS[i], DType::FLOATS[(i + 1) % 3]];
        let groups = Some(Groups { ends, on_device: true });
        let case = Case { groups, ..Case::new([200, 23, 26], types).layout([i == 1, i == 2]) };
        let bias = Some(([Axis::M, Axis::N][i % 2], Place::odd(DType::F16)));
        cases.push(Case {
            bias,
            residual: Some(Place::odd(DType::F32)),
            beta: 2.0,
            ..case.clone().odd()
        });
        cases.push(Case { size: [40, 10, 500], ..case });
    }
    // Ranges of K: the groups are met in each of them.
    let groups = Some(Groups { ends: vec![7, 20], on_device: true });
    cases.push(Case { groups, ..Case::new([20, 3, 100], [DType::F32; 3]).layout([true, false]) });
    // Pieces of several groups, or of rows of many groups; with a table and without.
    let pieces = [
        (24, 2, 9, DType::F32),
        (14, 3, 11, DType::BF16),
        (24, 2, 9, DType::BF16),
        (20, 19, 9, DType::F32),
    ];
    for (count, rows, n, out) in pieces {
        let ends = (1..=count).map(|group| group * rows).collect();
        let groups = Some(Groups { ends, on_device: true });
        let size = [(count * rows) as usize + 2, n, 8];
        let case = Case { groups, ..Case::new(size, [DType::F32, DType::F32, out]) };
        cases.push(Case { bias: Some((Axis::N, Place::odd(DType::F32))), ..case });
    }
    cases
}

/// Sizes with nothing to multiply. K = 0 leaves beta·C and the rest of the epilogue; the others
/// leave nothing to do.
pub fn empty() -> Vec<Case> {
    let mut cases = Vec::new();
    for out in DType::FLOATS {
        let case = |size| Case::new(size, [DType::F32, DType::F16, out]);
        cases.push(case([5, 7, 0]));
        cases.push(case([5, 7, 0]).odd());
        cases.push(Case { beta: 2.0, bias: Some((Axis::M, Place::odd(out))), ..case([5, 7, 0]) });
        cases.extend([
            case([0, 7, 3]),
            case([5, 0, 3]),
            case([0, 0, 0]),
            case([5, 7, 3]).batch(0),
            case([5, 7, 0]).batch(2),
        ]);
        for ends in [vec![], vec![0], vec![0, 3, 5]] {
            let groups = Some(Groups { ends, on_device: false });
            cases.push(Case { groups: groups.clone(), ..case([5, 7, 0]) });
            cases.push(Case { groups: groups.clone(), ..case([5, 0, 3]) });
            let none = groups.as_ref().is_some_and(|groups| groups.ends.is_empty());
            cases.extend(none.then(|| Case { groups, ..case([5, 7, 3]) }));
        }
    }
    cases
}
