//! The questions as a table: each lists its cases for the sizes of an adapter.

use super::{compiler, language_version};
use tilewise::DType;
use tilewise_core::kernel::Language;

/// A question of the table.
pub struct Asked {
    /// The question in words.
    pub asks: &'static str,
    pub(super) cases: fn(&Sizes) -> Vec<Case>,
}

/// A part of a question. Its answer may be a reason why there is none.
pub(super) struct Case {
    pub(super) label: String,
    pub(super) kind: Kind,
}

pub(super) enum Kind {
    /// Compiles all texts with Apple's compiler, in this version of the language.
    Compile(u32),
    /// Asks for the threads of all pipelines.
    Pipelines,
    /// Measures the rates that the device reaches.
    Peaks,
    /// Times a product by the library; if there are ends, in groups of rows.
    Timed { shape: String, ends: Vec<u32>, by: By },
    /// Times a product by texts that the library would not assemble.
    Changed { shape: String, kernel: &'static str, change: Change },
    /// Checks a product of operands at odd places.
    Odd { kernel: &'static str, layout: &'static str },
    /// Times the product of 4-bit weights by MLX.
    Mlx { rows: usize, width: usize },
}

/// Who chooses the kernel.
#[derive(Clone, Copy)]
pub(super) enum By {
    Planner,
    Language(Language),
    Kernel(&'static str),
}

/// How texts differ from the library's.
#[derive(Clone, Copy)]
pub(super) struct Change {
    /// Whether the limit of threads is kept.
    pub(super) limit: bool,
    /// The type of the elements of simdgroup matrices; the library's choice if none is given.
    pub(super) staged: Option<DType>,
}

/// Sizes for a kind of adapter.
pub(super) struct Sizes {
    /// Sides of squares.
    square: usize,
    /// Rows and columns of quantized weights.
    weights: usize,
    /// Rows of activations that meet the weights.
    rows: [usize; 3],
    /// A number of rows that is not whole tiles, and one that is; both with `square` columns.
    edge: [usize; 2],
    /// Rows of each group.
    groups: &'static [u32],
    /// N and K of each group.
    grouped: usize,
}

pub(super) const FULL: Sizes = Sizes {
    square: 4096,
    weights: 4096,
    rows: [1, 8, 512],
    edge: [77, 96],
    groups: &[5, 40, 17, 8, 33, 12, 25, 21],
    grouped: 2048,
};

pub(super) const TINY: Sizes = Sizes {
    square: 64,
    weights: 64,
    rows: [1, 8, 16],
    edge: [13, 32],
    groups: &[5, 12, 7],
    grouped: 32,
};

/// The questions.
pub const QUESTIONS: &[Asked] = &[
    Asked {
        asks: "Do all texts in MSL compile, in each version of the language, and with which \
               warnings?",
        cases: texts,
    },
    Asked {
        asks: "How many threads does each pipeline allow, with the thread limit and without?",
        cases: |_| vec![Case { label: "every pipeline".into(), kind: Kind::Pipelines }],
    },
    Asked {
        asks: "How fast are the large kernels, with the thread limit and without?",
        cases: limits,
    },
    Asked { asks: "Is msl-direct right where rows and offsets are odd?", cases: odd },
    Asked { asks: "How fast are 4-bit weights, and how fast is MLX?", cases: quantized },
    Asked { asks: "Is bf16 faster widened to f32 or as it is?", cases: widened },
    Asked {
        asks: "Which kernel is best for tiles with an edge, beside whole ones, and for groups of \
               few rows?",
        cases: edges,
    },
];

const DIRECT: &str = "msl-direct/32x32x8+k1";
const GEMMS: [&str; 2] = ["msl-gemm/64x64x16+k1", "msl-gemm/64x32x32+k1"];

fn texts(_: &Sizes) -> Vec<Case> {
    let case = |version| Case {
        label: format!("version {}", language_version(version)),
        kind: Kind::Compile(version),
    };
    compiler::VERSIONS.map(case).into()
}

fn limits(sizes: &Sizes) -> Vec<Case> {
    let label = "peak rates: multiply-adds in f32, and a copy".into();
    let mut cases = vec![Case { label, kind: Kind::Peaks }];
    for dtype in ["f32", "f16"] {
        for layout in ["NN", "NT"] {
            for kernel in [DIRECT, GEMMS[0], GEMMS[1]] {
                for (limit, word) in [(true, "with"), (false, "without")] {
                    let shape = square(sizes, layout, dtype);
                    let label = format!("{shape} by {kernel} {word} the thread limit");
                    let change = Change { limit, staged: None };
                    cases.push(Case { label, kind: Kind::Changed { shape, kernel, change } });
                }
            }
        }
    }
    cases
}

fn square(Sizes { square, .. }: &Sizes, layout: &str, dtype: &str) -> String {
    format!("{square}x{square}x{square}:{layout}:{dtype}")
}

fn odd(_: &Sizes) -> Vec<Case> {
    let case = |layout| Case {
        label: format!("f16 {layout} by msl-direct, every element against f64 sums"),
        kind: Kind::Odd { kernel: DIRECT, layout },
    };
    ["NN", "NT", "TN", "TT"].map(case).into()
}

fn quantized(sizes: &Sizes) -> Vec<Case> {
    let width = sizes.weights;
    let mut cases = Vec::new();
    for rows in sizes.rows {
        let shape = format!("{rows}x{width}x{width}:NT:f16:affine-4bit-g64-f16");
        for (by, word) in [
            (By::Planner, "the planner's choice"),
            (By::Language(Language::Msl), "kernels in MSL"),
            (By::Language(Language::Wgsl), "kernels in WGSL"),
        ] {
            cases.push(timed(&shape, &[], by, word));
        }
        let label = format!("{shape} by mlx.core.quantized_matmul");
        cases.push(Case { label, kind: Kind::Mlx { rows, width } });
    }
    cases
}

fn widened(sizes: &Sizes) -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in [GEMMS[0], GEMMS[1], DIRECT] {
        for (staged, word) in [(DType::F32, "widened to f32"), (DType::BF16, "as it is")] {
            // msl-direct loads matrices from memory without converting them.
            if kernel != DIRECT || staged == DType::BF16 {
                let shape = square(sizes, "NN", "bf16");
                let label = format!("{shape} by {kernel}, bf16 {word}");
                let change = Change { limit: true, staged: Some(staged) };
                cases.push(Case { label, kind: Kind::Changed { shape, kernel, change } });
            }
        }
    }
    cases
}

fn edges(sizes: &Sizes) -> Vec<Case> {
    let Sizes { square, edge, groups, grouped, .. } = sizes;
    let end = |end: &mut u32, rows: &u32| {
        *end += rows;
        Some(*end)
    };
    let ends: Vec<u32> = groups.iter().scan(0, end).collect();
    let rows = ends.last().copied().unwrap_or(0);
    let mut shapes: Vec<_> =
        edge.iter().map(|rows| (format!("{rows}x{square}x{square}:NT:f16"), vec![])).collect();
    shapes.push((format!("{rows}x{grouped}x{grouped}:NT:f16"), ends));
    let mut cases = Vec::new();
    for (shape, ends) in &shapes {
        for (by, word) in [
            (By::Kernel("msl-direct"), "msl-direct"),
            (By::Kernel("msl-gemm"), "msl-gemm"),
            (By::Planner, "the planner's choice"),
        ] {
            cases.push(timed(shape, ends, by, word));
        }
    }
    cases
}

fn timed(shape: &str, ends: &[u32], by: By, word: &str) -> Case {
    let groups =
        if ends.is_empty() { String::new() } else { format!(" in groups that end at {ends:?}") };
    let kind = Kind::Timed { shape: shape.into(), ends: ends.into(), by };
    Case { label: format!("{shape}{groups} by {word}"), kind }
}
