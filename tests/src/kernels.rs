//! Kernels, sizes and formats to test, from the library's own tables.

use tilewise::Context;
use tilewise_core::{Access, DType, Format, Operand, Precision, Problem, QuantFormat, Variant};

/// A kernel and one of its variants.
#[derive(Clone, Debug)]
pub struct Kernel {
    /// The name that forces it: `simt/64x64x16`.
    pub name: String,
    /// Its tile.
    pub variant: &'static Variant,
    /// Whether it can split K.
    pub splits: bool,
}

/// Every kernel and variant that fits the adapter and takes dense operands.
pub fn kernels(context: &Context) -> Vec<Kernel> {
    let dense = |kernel: &Kernel| !matches!(kernel.variant.access, Access::Codes { .. });
    all_kernels(context).into_iter().filter(dense).collect()
}

/// Every kernel and variant that fits the adapter. The others are printed with the reason.
pub fn all_kernels(context: &Context) -> Vec<Kernel> {
    let mut fitting = Vec::new();
    let library = context.library();
    if context.backend_name() == "metal" && context.caps().msl_version.is_none() {
        eprintln!(
            "skipped: kernels in MSL on {}: it lists no simdgroup matrices",
            context.adapter_name()
        );
    }
    for kernel in library.kernels {
        for variant in kernel.variants {
            let name = format!("{}/{}", kernel.name, variant.name);
            if let Some(reason) = slow_to_compile(context, variant) {
                eprintln!("skipped: {name} on {}: {reason}", context.adapter_name());
                continue;
            }
            let forced = name.parse().expect("a kernel's name");
            let dtype = variant.unit().map_or(DType::F32, |unit| unit.matrix.operands);
            let mut problem =
                Problem { precision: Precision::F16Sums, ..Problem::dense(dtype, 8, 8, 32) };
            if let Access::Codes { .. } = variant.access {
                problem.b = Operand::packed(Format::Quantized(QuantFormat::Q8_0), 1, 8, 32).t();
            }
            match tilewise_core::plan(&problem, context.caps(), library, Some(&forced)) {
                Ok(_) => fitting.push(Kernel { name, variant, splits: kernel.splits }),
                Err(error) => eprintln!("skipped: {name} on {}: {error}", context.adapter_name()),
            }
        }
    }
    assert!(!fitting.is_empty(), "{} takes no kernel at all", context.adapter_name());
    fitting
}

/// Why SwiftShader leaves a variant out: with more than 16 sums (ROWS×COLS, each invocation's) it
/// takes half a second or more to compile. Other adapters and the sanitizer run such variants.
fn slow_to_compile(context: &Context, variant: &Variant) -> Option<&'static str> {
    let [rows, cols] = variant.sums;
    let unrolled =
        matches!(variant.access, Access::Eights { .. } | Access::Codes { .. }) && rows * cols > 16;
    (context.adapter_name().contains("SwiftShader") && unrolled)
        .then_some("it takes too long to compile")
}

/// The variant with the smallest tile of every kernel, for tests that do not depend on the tile. It
/// compiles the fastest.
pub fn one_of_each(context: &Context) -> Vec<Kernel> {
    smallest(kernels(context))
}

/// The variant with the smallest tile of each kernel.
pub fn smallest(kernels: Vec<Kernel>) -> Vec<Kernel> {
    let mut smallest: Vec<Kernel> = Vec::new();
    let family = |kernel: &Kernel| kernel.name.split('/').next().unwrap_or_default().to_owned();
    let area = |kernel: &Kernel| kernel.variant.bm * kernel.variant.bn;
    for kernel in kernels {
        match smallest.iter_mut().find(|other| family(other) == family(&kernel)) {
            Some(other) if area(&kernel) < area(other) => *other = kernel,
            Some(_) => {}
            None => smallest.push(kernel),
        }
    }
    smallest
}

/// The kernel that is the cheapest to compile. It shares schedules, loaders, epilogues and stores
/// with all others, and runs all cases of a theme.
pub fn floor(context: &Context) -> Kernel {
    kernels(context)
        .into_iter()
        .min_by_key(|kernel| (kernel.variant.workgroup_bytes, kernel.variant.threads))
        .expect("a kernel")
}

/// Every quantized format.
pub fn quant_formats() -> Vec<QuantFormat> {
    QuantFormat::all().collect()
}

/// A format of every family. If a family has several kinds, `turn` chooses one.
pub fn quant_families(turn: usize) -> Vec<QuantFormat> {
    let mut families: Vec<Vec<QuantFormat>> = Vec::new();
    for format in QuantFormat::kinds() {
        match families.iter_mut().find(|formats| formats[0].def().family == format.def().family) {
            Some(formats) => formats.push(format),
            None => families.push(vec![format]),
        }
    }
    families.iter().map(|formats| formats[turn % formats.len()]).collect()
}

/// Sizes \[M,N,K\] at which almost nothing is a multiple of four: around the edges of a tile, and
/// small and odd ones at which kernels go wrong.
pub fn odd_sizes(variant: &Variant) -> Vec<[usize; 3]> {
    let [bm, bn, bk] = [variant.bm, variant.bn, variant.bk].map(|size| size as usize);
    vec![
        [1, 1, 1],
        [2, 3, 5],
        [33, 29, 31],
        [7, 61, 67],
        [bm + 1, bn + 1, bk + 1],
        [bm.max(2) - 1, bn - 1, bk.max(2) - 1],
        [bm + 2, 2 * bn - 1, bk / 2 + 1],
    ]
}

/// Sizes \[M,N,K\] that vector loads take: whole tiles, and tiles with a few rows, columns and
/// steps more or fewer.
pub fn even_sizes(variant: &Variant) -> Vec<[usize; 3]> {
    let [bm, bn, bk] =
        [variant.bm, variant.bn, variant.bk].map(|size| (size as usize).next_multiple_of(4));
    vec![
        [bm, bn, bk],
        [bm + 4, bn + 4, bk + 4],
        [(bm - 4).max(4), (bn - 4).max(4), (bk - 4).max(4)],
        [2 * bm, bn + 8, 2 * bk],
    ]
}
