//! The cases that check the library's kernels on CPUs. Every variant meets sizes around every edge
//! of its tile, in every type, layout, loader and store. One variant of each kernel meets
//! everything that does not depend on the variant.
//!
//! These cases are smaller than the GPU's, because the interpreter is slower than any driver's
//! code. There are more of them, because nothing has to be compiled.

mod buffers;
mod few;
mod forms;
mod gates;
mod gathered;
mod groups;
mod packed;
mod sparse;

use crate::case::{Form, Groups, LAYOUTS};
use crate::kernels::{Kernel, even_sizes, odd_sizes, smallest};
use crate::{Case, Data, Entries, Place, quant_families, scaled, themes};
pub use buffers::{UNCOMPILED, few_buffers, three_buffers};
pub use few::{for_bits, for_mutants};
pub use forms::{forms, ranges_of_k};
pub use gates::gates;
pub use gathered::gathered;
pub use groups::{group_edges, group_splits, groups, halves};
pub use packed::{packed, stacks};
pub use sparse::sparse;
use tilewise::{Activation, Axis, DType};
use tilewise_core::kernel::{SUBGROUP, Words};
use tilewise_core::{Access, Caps, DeviceClass, Format, Grouping, KernelDef, QuantFormat, Variant};
use tilewise_shaders::LIBRARY;

const F32: [DType; 3] = [DType::F32; 3];

/// Roomy devices: the first has the f16 extension and matrix units, the second has not.
pub fn devices() -> [Caps; 2] {
    let device = Caps {
        max_workgroup_bytes: 48 << 10,
        max_invocations: 1024,
        max_workgroup_size_x: 1024,
        name: "without f16".into(),
        ..Caps::webgpu_default()
    };
    let coop = LIBRARY.kernels.iter().flat_map(|kernel| kernel.variants).filter_map(Variant::unit);
    let coop = coop.map(|unit| unit.matrix).collect();
    [
        Caps {
            f16: true,
            coop,
            subgroup_size: Some(SUBGROUP),
            name: "with f16".into(),
            ..device.clone()
        },
        device,
    ]
}

/// The kernels of one language.
#[derive(Clone, Copy)]
pub struct Table(pub &'static [KernelDef]);

/// The kernels in WGSL.
pub const WGSL: Table = Table(LIBRARY.kernels);

/// The kernels in MSL.
pub const MSL: Table = Table(tilewise_msl::KERNELS);

impl Table {
    /// Every kernel and variant.
    pub fn kernels(self) -> Vec<Kernel> {
        let variants = |kernel: &'static KernelDef| {
            kernel.variants.iter().map(|variant| Kernel {
                name: format!("{}/{}", kernel.name, variant.name),
                variant,
                splits: kernel.splits,
            })
        };
        self.0.iter().flat_map(variants).collect()
    }

    /// The cases whose weights the language has a loader for. WGSL has loaders for all formats.
    pub fn loaded(self, mut cases: Vec<Case>) -> Vec<Case> {
        let takes = |format| {
            let mut loaders = self.0[0].kit.operands.iter();
            loaders.any(|loader| (loader.accepts)(Format::Quantized(format), &devices()[0]))
        };
        cases.retain(|case| case.quantized.is_none_or(takes));
        cases
    }

    /// The variant with the smallest tile, of every kernel.
    pub fn one_of_each(self) -> Vec<Kernel> {
        smallest(self.kernels())
    }

    /// The first kernel. It shares the least and compiles the fastest, so it meets everything that
    /// does not depend on the kernel.
    pub fn floor(self) -> String {
        self.one_of_each().swap_remove(0).name
    }
}

/// Every variant and layout around the edges of the tile, in vectors and in single elements. A has
/// the type of this index; the types of B and C take turns.
pub fn edges(table: Table, a: usize) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.kernels() {
        for (i, layout) in LAYOUTS.into_iter().enumerate() {
            let types = [a, (a + i) % 3, (a + 2 * i) % 3].map(|t| DType::FLOATS[t]);
            let odd = odd_sizes(kernel.variant);
            // One of the small sizes for each layout, and all sizes around the tile.
            let odd = [&odd[i..=i], &odd[4..]].concat().into_iter().map(|size| (size, true));
            let sizes = even_sizes(kernel.variant).into_iter().map(|size| (size, false)).chain(odd);
            for (j, (size, odd)) in sizes.enumerate() {
                let case = Case { seed: (100 * i + j) as u64, ..Case::new(size, types) };
                let case = case.kernel(&kernel.name).layout(layout);
                cases.push(if odd { case.odd() } else { case });
            }
        }
    }
    cases
}

/// Every variant with one row, with one column, and with every K around its step, 0 among them.
pub fn thin(table: Table) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.kernels() {
        let Variant { bm, bn, bk, .. } = *kernel.variant;
        let [bm, bn, bk] = [bm, bn, bk].map(|size| size as usize);
        for (i, k) in [0, 1, bk - 1, bk, bk + 1, 2 * bk + 3].into_iter().enumerate() {
            for (j, size) in [[3, 6, k], [1, bn + 1, k], [bm + 1, 1, k]].into_iter().enumerate() {
                let types = [i, i + j, i + 2 * j].map(|t| DType::FLOATS[t % 3]);
                let case = Case { seed: (10 * i + j) as u64, ..Case::new(size, types) };
                let case = case.kernel(&kernel.name).layout(LAYOUTS[(i + j) % 4]);
                cases.push(if j == 1 { case } else { case.odd() });
            }
        }
    }
    cases
}

/// Whole tiles without the last row, the last columns, or the last steps along K, in vectors and in
/// single elements. A guard that lets too much pass takes them for whole.
pub fn almost_whole(table: Table) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.one_of_each() {
        let Variant { bm, bn, bk, .. } = *kernel.variant;
        let [m, n, k] = [bm, bn, bk].map(|size| 2 * size as usize);
        for (layout, less) in [(LAYOUTS[0], 4), (LAYOUTS[2], 2), (LAYOUTS[3], 1)] {
            let short = |size: usize| size.saturating_sub(less).max(1);
            let sizes = [[m - 1, n, k], [m, short(n), k], [m, n, short(k)]];
            let all = sizes.map(|size| Case::new(size, F32).layout(layout).kernel(&kernel.name));
            cases.extend(if less == 4 { all } else { all.map(Case::odd) });
        }
    }
    cases
}

/// More rows of tiles than a band of the walk has, and more rows than columns, on each kernel.
pub fn bands(table: Table) -> Vec<Case> {
    let tiles = |kernel: &Kernel| {
        let size = [10 * kernel.variant.bm as usize - 1, 2 * kernel.variant.bn as usize - 2, 8];
        Case::new(size, F32).kernel(&kernel.name)
    };
    table.one_of_each().iter().flat_map(|kernel| [tiles(kernel), tiles(kernel).batch(2)]).collect()
}

/// Splits of K, on each kernel that takes them: few and many, more than are read at once, splits
/// that are not full, more splits than steps, in a batch, and with 16-bit outputs.
pub fn splits(table: Table) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.one_of_each().into_iter().filter(|kernel| kernel.splits) {
        let bk = kernel.variant.bk as usize;
        for (i, splits) in [2, 3, 4, 7].into_iter().enumerate() {
            for k in [1, 3 * bk + 5] {
                let types = [DType::F32, DType::F32, DType::FLOATS[i % 3]];
                let case = Case::new([5, 18, k], types).layout(LAYOUTS[i % 4]);
                let case = case.kernel(format!("{}+k{splits}", kernel.name));
                cases.push(case.clone());
                cases.push(case.batch(3).odd());
            }
        }
        // Weights whose splits of K are not whole numbers of blocks.
        for (i, format) in quant_families(kernel.variant.bk as usize).into_iter().enumerate() {
            let size = [5, 18, (3 - i % 2) * format.block() as usize];
            let case = Case { quantized: Some(format), ..Case::new(size, F32) };
            cases.push(case.kernel(format!("{}+k{}", kernel.name, 2 + i % 3)));
        }
        // More splits than a finishing pass reads at once.
        cases.push(Case::new([3, 6, 8 * bk + 1], F32).kernel(format!("{}+k9", kernel.name)));
    }
    for kernel in table.kernels().into_iter().filter(|kernel| kernel.splits) {
        let [m, n, k] = [kernel.variant.bm + 1, kernel.variant.bn + 4, 2 * kernel.variant.bk + 4]
            .map(|s| s as usize);
        let case = Case::new([m, n, k], F32).kernel(format!("{}+k3", kernel.name));
        cases.push(Case { beta: 2.0, residual: Some(Place::odd(DType::F16)), ..case });
    }
    table.loaded(cases)
}

/// Batches, strides and offsets on each kernel. If the language has nested batches, the first
/// kernel meets all of them, the others meet some, and each variant meets one.
pub fn strides(table: Table) -> Vec<Case> {
    let nests = table.0[0].kit.schedule(Grouping::Nested { sizes: [1; 4] }).is_some();
    let nested: Vec<_> = nests.then(themes::nested).into_iter().flatten().collect();
    let some: Vec<_> = nested.iter().step_by(4).cloned().collect();
    let (kernels, first) = (table.one_of_each(), usize::from(nests));
    [
        themes::on(&kernels, &[themes::strided(), themes::words()].concat()),
        themes::on(&kernels[..1], &nested),
        themes::on(&kernels[1..], &some),
        themes::on(&table.kernels(), &nested[..first]),
    ]
    .concat()
}

/// Kernels that keep lines in workgroup memory: with no padding between the lines, and with more
/// than their own.
pub fn padded(table: Table) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.kernels() {
        let Access::Words(Words { unit, pad, .. }) = kernel.variant.access else { continue };
        let more = pad + 16 / unit.matrix.operands.bytes() as u32;
        let [m, n, k] = [kernel.variant.bm + 1, kernel.variant.bn - 3, kernel.variant.bk + 1]
            .map(|size| size as usize);
        for (i, pad) in [0, more, more].into_iter().enumerate() {
            let splits = ["", "", "+k2"][i];
            cases.push(
                Case::new([m, n, k], F32)
                    .layout(LAYOUTS[i])
                    .kernel(format!("{}+pad{pad}{splits}", kernel.name)),
            );
        }
    }
    cases
}

/// Every pair of types in every layout on each kernel.
pub fn mixed(table: Table) -> Vec<Case> {
    themes::on(&table.one_of_each(), &themes::mixed())
}

/// Every step of the epilogue, at the end of each mainloop and in a finishing pass, for each output
/// type.
pub fn epilogues(table: Table) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in table.one_of_each() {
        for (i, out) in DType::FLOATS.into_iter().enumerate() {
            let types = [DType::F32, DType::F32, out];
            let case =
                |n| Case::new([6, n, kernel.variant.bk as usize + 3], types).kernel(&kernel.name);
            cases.extend(themes::epilogues(&case(24), DType::FLOATS[(i + 1) % 3]));
            let case = case(22);
            cases.extend(themes::epilogues(&case.clone().odd(), DType::FLOATS[(i + 2) % 3]));
            if kernel.splits {
                let split = case.kernel(format!("{}+k2", kernel.name)).batch(2).odd();
                cases.extend(themes::epilogues(&split, DType::FLOATS[i]));
            }
        }
    }
    cases.extend(gates(table));
    // Activations at numbers where they are steep, flat, and far beyond the range of the functions
    // inside them.
    for activation in Activation::ALL {
        for alpha in [30.0, 1e3, 1e10, 1e30] {
            cases.push(Case {
                alpha,
                activation,
                ..Case::new([4, 9, 3], F32).kernel(table.floor())
            });
        }
    }
    // In a batch, each entry has its own bias and residual, and its own old values of C.
    for (i, entries) in [Entries::Apart(1), Entries::Between].into_iter().enumerate() {
        let place = Place::odd(DType::FLOATS[i]).entries(entries);
        let case = Case::new([5, 9, 3], [DType::F32, DType::F16, DType::FLOATS[i]])
            .kernel(table.floor())
            .batch(3)
            .odd();
        let case = Case { beta: 0.5, residual: Some(place), c: case.c.entries(entries), ..case };
        for axis in [Axis::M, Axis::N] {
            cases.push(Case { bias: Some((axis, Place::odd(DType::F16))), ..case.clone() });
        }
    }
    cases
}

/// Quantized weights on each kernel, and around the edges of every variant.
pub fn quantized(table: Table) -> Vec<Case> {
    let mut cases = themes::on(&table.one_of_each(), &themes::quantized());
    cases.extend(themes::on(&table.one_of_each(), &themes::further_formats()));
    cases.extend(themes::across(table.kernels()));
    // Every kernel has met every format above. Here each variant meets every family.
    for (turn, kernel) in table.kernels().into_iter().enumerate() {
        let [bm, bn] = [kernel.variant.bm, kernel.variant.bn].map(|size| size as usize);
        let sizes = [[bm, bn], [bm + 1, bn + 1], [1, (bn - 1).max(1)], [2 * bm + 1, 2]];
        let families = quant_families(turn);
        for i in 0..families.len().max(sizes.len()) {
            let (format, [m, n]) = (families[i % families.len()], sizes[i % sizes.len()]);
            let size = [m, n, themes::few(format, 1 + i % 2)];
            cases.push(
                Case { quantized: Some(format), ..Case::new(size, F32) }.kernel(&kernel.name),
            );
            if i < families.len() && bn % 8 == 0 {
                let size = [m, (bn + 1).next_multiple_of(format.block() as usize), 3 + 2 * i];
                let case = Case { quantized: Some(format), across: true, ..Case::new(size, F32) };
                cases.push(case.kernel(&kernel.name));
            }
        }
    }
    cases.extend(shared_loads(table));
    table.loaded(cases)
}

/// Codes that several slices of a matrix unit load together: the first ones, the next and the last.
pub fn shared_loads(table: Table) -> Vec<Case> {
    let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
    let case = |kernel: &Kernel| {
        let Variant { bm, bn, bk, .. } = *kernel.variant;
        let k = (3 * bk).next_multiple_of(format.block() as u32);
        let case = Case::new([bm, bn, k].map(|size| size as usize), F32).kernel(&kernel.name);
        Case { quantized: Some(format), ..case }
    };
    let kernels = table.kernels().into_iter().filter(|kernel| kernel.variant.unit().is_some());
    kernels.map(|kernel| case(&kernel)).collect()
}

/// Sizes with nothing to multiply.
pub fn empty(table: Table) -> Vec<Case> {
    themes::on(&table.one_of_each(), &themes::empty())
}

/// Outputs in 16 bits of numbers that f32 holds exactly: ties, the ends of the normal and the
/// subnormal range, infinities and NaN. Each must be rounded to nearest even.
pub fn rounding(table: Table) -> Vec<Case> {
    let step = |exponent: i32| 2f32.powi(exponent);
    let mut numbers = vec![
        1.0,
        f32::INFINITY,
        f32::NAN,
        f32::MAX,
        step(-126),
        1e30,
        65504.0,
        65519.99,
        65520.0,
        65536.0,
    ];
    for (unit, last) in [
        (1.0, 11),
        (1.0, 8),
        (step(-14), 11),
        (step(-15), 10),
        (step(-20), 5),
        (1024.0, 11),
        (3.0, 8),
    ] {
        // Half a step above and below, three and more halves, and the neighbours in f32 of each.
        for halves in [-3.0, -1.0, 1.0, 3.0, 5.0] {
            let number: f32 = unit + halves * unit * step(-last);
            numbers.extend([
                number,
                f32::from_bits(number.to_bits() + 1),
                f32::from_bits(number.to_bits() - 1),
            ]);
        }
    }
    numbers.extend([
        step(-24),
        step(-25),
        step(-25) * 1.001,
        step(-26),
        step(-14) * 0.9999,
        3.0 * step(-25),
    ]);
    // The last number that f16 does not round to infinity, and a NaN whose mantissa would carry
    // into the sign.
    numbers.extend([
        f32::from_bits(0x477f_efff),
        f32::from_bits(0x7fff_ffff),
        1.0,
        1.0,
        f32::from_bits(0x7fff_ffff),
    ]);
    numbers.extend(numbers.clone().iter().map(|number| -number));
    let rows = numbers.len();
    let mut cases = Vec::new();
    for out in DType::FLOATS {
        // A store of four columns stores them at once.
        for (columns, odd) in [(1, false), (1, true), (4, false)] {
            let size = [rows, columns, 1];
            let case = Case::new(size, [DType::F32, DType::F32, out]).kernel(table.floor());
            let case = if odd { case.odd() } else { case };
            cases.push(Case {
                a_data: Data::Given(numbers.clone()),
                b_data: Data::Given(vec![1.0; columns]),
                ..case
            });
        }
    }
    cases
}

/// A device on which five workgroups fill a dimension of the grid, and cases that need two.
pub fn many_workgroups(table: Table) -> (Caps, Vec<Case>) {
    let caps = Caps { max_workgroups: 5, class: DeviceClass::Cpu, ..devices()[0].clone() };
    let floor = &table.one_of_each()[0];
    let [bm, bn] = [floor.variant.bm, floor.variant.bn].map(|size| size as usize);
    let case = |size, types| Case::new(size, types).kernel(&floor.name);
    let half = [DType::F32, DType::F16, DType::BF16];
    // Fifteen tiles are three full rows of the grid. With seven tiles, the last workgroup has none.
    let mut cases = vec![case([5 * bm, 3 * bn - 6, 3], F32), case([7 * bm, bn - 2, 3], F32)];
    cases.push(case([3 * bm - 1, bn - 1, 2], half).batch(2).odd());
    // A pass counts six of the 24 tiles of masked entries.
    if table.0[0].kit.table.is_some() {
        let counts = vec![3 * bm as u32 + 1, 0, 2 * bm as u32];
        let masked = case([8 * bm, bn, 3], F32).masked(counts);
        cases.push(Case { expected_rows: Some(1), ..masked });
    }
    // A finishing pass has seven tiles: the last workgroup has none.
    let kernels = table.kernels();
    let whole = kernels.iter().filter(|kernel| kernel.splits && kernel.variant.unit().is_none());
    if let Some(kernel) = whole.max_by_key(|kernel| kernel.variant.bm * kernel.variant.bn) {
        cases.push(
            Case::new([3, 220, 2 * kernel.variant.bk as usize + 1], F32)
                .kernel(format!("{}+k2", kernel.name)),
        );
        // Both splits have 7, 11 or 12 rows of tiles.
        for (rows, ends) in groups::ends() {
            let size = [rows, 6, 2 * kernel.variant.bk as usize + 1];
            let groups = Some(Groups { ends, on_device: true });
            let case = Case { groups, ..Case::new(size, F32) };
            cases.push(case.kernel(format!("{}+k2", kernel.name)));
        }
        // Both splits have seven rows that name their entries.
        let rows = Case::new([0, 6, 2 * kernel.variant.bk as usize + 1], F32);
        let rows = rows.indexed((0..7).map(|row| row % 3).collect(), 3);
        cases.push(rows.kernel(format!("{}+k2", kernel.name)));
    }
    // A list of seven products.
    if table.0[0].kit.schedule(Grouping::Listed { groups: 1, offset: 0, sizes: None }).is_some() {
        let product = |i: u32| [bm as u32, 20, 3, 24 * i, 3, 60 * i, 20, 160 * i, 20];
        let products: Vec<_> = (0..7).map(product).collect();
        cases.push(case([bm, bn.min(20), 3], F32).listed(&products, [168, 420, 1120]));
    }
    // Operands are packed, in two and in seven strips of 32 lines.
    if let Some(kernel) = kernels.iter().find(|kernel| kernel.variant.unit().is_some()) {
        cases.push(Case::new([55, 9, 5], F32).kernel(&kernel.name));
        cases.push(Case::new([220, 9, 5], [DType::BF16; 3]).kernel(&kernel.name));
        cases.push(scaled::single(Case::new([220, 9, 5], F32).kernel(&kernel.name)));
    }
    (caps, cases)
}

/// A device that binds at most 4 KiB at once, and products that it computes in pieces, on the
/// cheapest kernel.
pub fn pieces(table: Table) -> (Caps, Vec<Case>) {
    let wgsl = table.0[0]
        .kit
        .schedule(Grouping::Masked { entries: 1, offset: 0, expected: None })
        .is_some();
    let forms = themes::large_forms().into_iter();
    let forms =
        forms.filter(move |case| wgsl || matches!(case.form, Form::AlongK | Form::Indexed(_)));
    let forms = forms.chain(wgsl.then(themes::large_gathered).into_iter().flatten());
    let large = themes::large().into_iter().filter(|case| wgsl || case.columns() == 1);
    let cases = large.chain(forms).map(|case| case.kernel(table.floor()));
    (
        Caps { max_binding_bytes: 4096, class: DeviceClass::Cpu, ..devices()[0].clone() },
        table.loaded(cases.collect()),
    )
}

/// A device on which edges are peeled off, and products that have them.
pub fn peeled() -> (Caps, Vec<Case>) {
    let half = Case::new([129, 257, 64], [DType::F32, DType::F32, DType::F16]).odd();
    (
        Caps { class: DeviceClass::Cpu, ..devices()[1].clone() },
        vec![Case::new([65, 129, 64], F32), half],
    )
}
