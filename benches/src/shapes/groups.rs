//! Groups of shapes that are worth measuring.

use std::collections::HashSet;

/// Shapes that are measured and shown together: `--shapes GROUP`.
pub struct Group {
    /// Its name.
    pub name: &'static str,
    /// Its contents, in words.
    pub about: &'static str,
    pub(super) members: fn() -> Vec<String>,
}

/// The groups that are measured without `--shapes`: some 180 shapes.
pub const DEFAULT: [&str; 10] = [
    "square",
    "odd",
    "layouts",
    "transformer",
    "skinny",
    "batched",
    "deep",
    "bf16",
    "quantized",
    "split",
];

/// Every group.
pub const GROUPS: &[Group] = &[
    Group {
        name: "square",
        about: "squares from 256 to 8192",
        members: || squares(&[256, 512, 1024, 2048, 4096, 8192]),
    },
    Group {
        name: "odd",
        about: "squares whose sides no vector divides",
        members: || squares(&[1023, 1025, 4095, 4097]),
    },
    Group {
        name: "layouts",
        about: "4096×4096×4096 with A, B or both transposed",
        members: || {
            each(&["", ":f16"], &["NN", "NT", "TN", "TT"], |dtype, layout| {
                format!("4096x4096x4096:{layout}{dtype}")
            })
        },
    },
    Group {
        name: "transformer",
        about: "linear layers of Llama-like models of 7B, 8B, 13B and 70B parameters at 1, 16, \
                512 and 4096 tokens",
        members: transformer,
    },
    Group {
        name: "skinny", about: "few rows, or few columns, against 8192×8192", members: skinny
    },
    Group {
        name: "batched",
        about: "attention: queries × keys, and weights × values",
        members: batched,
    },
    Group {
        name: "deep",
        about: "K far larger than M and N",
        members: || {
            each(
                &["", ":f16"],
                &["512x512x32768", "256x256x65536", "128x128x131072", "64x64x262144"],
                |dtype, mnk| format!("{mnk}{dtype}"),
            )
        },
    },
    Group {
        name: "bf16",
        about: "the type of models, with operands packed each time and beforehand",
        members: || owned(BF16),
    },
    Group {
        name: "quantized",
        about: "quantized weights against 1 to 4096 rows",
        members: quantized,
    },
    Group {
        name: "split",
        about: "f32 on matrix units, in two parts of f16, with operands packed each time and \
                beforehand",
        members: || {
            each(&["4096x4096x4096", "8192x8192x8192"], &["", ":prepared-b"], |mnk, prepared| {
                ["split-f32", "split-f32-fast"]
                    .map(|precision| format!("{mnk}{prepared}:{precision}"))
            })
            .concat()
        },
    },
    Group {
        name: "experts",
        about: "64 experts, evenly and by Zipf's law: 8 rows in all, then 1 to 512 rows to each",
        members: experts,
    },
    Group {
        name: "groups",
        about: "other forms of groups: the first rows of each of 64 entries, ranges of K, lists of \
                cubes; rows by index and gates, each beside the product without",
        members: groups,
    },
    Group {
        name: "floor",
        about: "what the records of a kernel's development hold",
        members: || owned(FLOOR),
    },
    Group { name: "half", about: "16-bit types beside each other", members: || owned(HALF) },
    Group {
        name: "tiny",
        about: "what software adapters are given by default",
        members: || owned(TINY),
    },
];

const FLOOR: &[&str] = &[
    "4096x4096x4096",
    "4096x4096x4096:NT",
    "4096x4096x4096:TN",
    "4096x4096x4096:TT",
    "4095x4095x4095",
    "4097x4097x4097",
    "1x8192x8192",
    "1x8192x8192:NT",
    "8192x1x8192",
];

const HALF: &[&str] = &[
    "4096x4096x4096:f16",
    "4096x4096x4096:bf16",
    "4095x4095x4095:f16",
    "1x8192x8192:f16",
    "1x8192x8192:NT:bf16",
];

const BF16: &[&str] = &[
    "4096x4096x4096:bf16",
    "4096x4096x4096:bf16:prepared-b",
    "8192x8192x8192:bf16",
    "8192x8192x8192:bf16:prepared-b",
    "2048x11008x4096:NT:bf16",
    "2048x11008x4096:NT:bf16:prepared-b",
    "1x8192x8192:NT:bf16",
    "1x8192x8192:NT:bf16:prepared-b",
    "16x8192x8192:NT:bf16",
    "16x8192x8192:NT:bf16:prepared-b",
    "64x8192x8192:NT:bf16",
    "64x8192x8192:NT:bf16:prepared-b",
    "512x14336x4096:NT:bf16:affine-4bit-g64-bf16",
    "4097x4097x4097:f16:prepared",
];

const TINY: &[&str] = &[
    "64x64x64",
    "128x128x128",
    "128x128x128:f16",
    "127x129x65",
    "1x512x512:NT",
    "512x1x512:f16",
    "64x64x32:NT:x4",
    "16x16x4096",
];

/// The members of the default groups that `--quick` keeps.
pub(super) const QUICK: &[&str] = &[
    "1024x1024x1024",
    "4096x4096x4096",
    "1024x1024x1024:f16",
    "4096x4096x4096:f16",
    "4095x4095x4095",
    "4095x4095x4095:f16",
    "4096x4096x4096:NT",
    "4096x4096x4096:NT:f16",
    "1x4096x4096:NT:f16",
    "1x14336x4096:NT:f16",
    "16x14336x4096:NT:f16",
    "512x14336x4096:NT:f16",
    "4096x4096x14336:NT:f16",
    "1x8192x8192:NT",
    "1x8192x8192:NN:f16",
    "8x8192x8192:NT:f16",
    "8192x1x8192",
    "512x512x64:NT:f16:x32",
    "2048x2048x128:NT:f16:x32",
    "256x256x65536",
];

pub(super) fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Names every member of `inner` with every member of `outer`.
fn each<A, B, C>(outer: &[A], inner: &[B], name: impl Fn(&A, &B) -> C) -> Vec<C> {
    outer.iter().flat_map(|a| inner.iter().map(|b| name(a, b)).collect::<Vec<_>>()).collect()
}

/// Rows by experts of two widths, in f16, bf16, prepared bf16 and 4 bits.
fn experts() -> Vec<String> {
    let rows = [(8, "e"), (64, "e"), (256, "e"), (2048, "e"), (8192, "e"), (32_768, "e")];
    let shares = rows.into_iter().chain([(2048, "zipf"), (8192, "zipf"), (32_768, "zipf")]);
    let mut names = Vec::new();
    for (m, spread) in shares {
        for nk in ["1408x2048", "14336x4096"] {
            let formats = [":NN:f16", ":NT:f16:affine-4bit-g64-f16"];
            names.extend(formats.map(|format| format!("{m}x{nk}{format}:{spread}64")));
            names.push(format!("{m}x{nk}:NN:bf16:{spread}64:prepared-b"));
        }
        names.push(format!("{m}x1408x2048:NN:bf16:{spread}64"));
    }
    names.extend(["f32", "f16"].map(|dtype| format!("8192x128x128:{dtype}:e64")));
    names
}

/// Masked entries and ranges of K: small ones, and the gradients of experts' weights. Masked
/// entries with few rows of many, beside entries in which all rows count. Rows by index, and gates.
/// Lists of cubes: Triton's four, and a thousand. The rows of one token, which name their experts.
fn groups() -> Vec<String> {
    let small = each(&["f32", "f16"], &["TN", "NN"], |dtype, layout| match *layout {
        "TN" => format!("128x128x8192:TN:{dtype}:ragged-k64"),
        _ => format!("128x128x128:{dtype}:masked64"),
    });
    let slopes = [8192, 32_768].map(|rows| format!("2048x1408x{rows}:TN:f16:ragged-k64"));
    let masked = [
        "32x1408x2048:f16:masked64",
        "128x1408x2048:f16:masked64-32",
        "1024x1408x2048:f16:masked64-32",
        "4096x1408x2048:f16:masked64-32",
    ];
    let extras =
        each(&[64, 2048, 8192], &["", ":gathered", ":gated", ":gathered:gated"], |rows, extra| {
            format!("{rows}x1408x2048:f16:e64{extra}")
        });
    let lists = each(&["f32", "f16"], &[4, 1000], |dtype, products| {
        format!("1024x1024x1024:{dtype}:list{products}")
    });
    let named = ["1408x2048", "14336x4096"]
        .map(|nk| format!("8x{nk}:NT:f16:affine-4bit-g64-f16:indexed64"));
    [small, slopes.to_vec(), owned(&masked), extras, lists, named.to_vec()].concat()
}

fn squares(sides: &[usize]) -> Vec<String> {
    each(&["", ":f16"], sides, |dtype, side| format!("{side}x{side}x{side}{dtype}"))
}

/// Q, K, V and output projections; gate and up; down. W is stored [N, K], as in linear layers.
fn transformer() -> Vec<String> {
    let models = [(4096, 11_008), (4096, 14_336), (5120, 13_824), (8192, 28_672)];
    let mut names = Vec::new();
    for tokens in [1, 16, 512, 4096] {
        for (width, hidden) in models {
            for (n, k) in [(width, width), (hidden, width), (width, hidden)] {
                names.push(format!("{tokens}x{n}x{k}:NT:f16"));
            }
        }
    }
    // Models of one width share their projections.
    let mut seen = HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

fn skinny() -> Vec<String> {
    let kinds = ["NN", "NT", "NN:f16", "NT:f16"];
    let rows = each(&kinds, &[1, 2, 4, 8, 16, 32, 64], |kind, m| format!("{m}x8192x8192:{kind}"));
    let columns = each(&["", ":f16"], &[1, 4, 16], |dtype, n| format!("8192x{n}x8192{dtype}"));
    [rows, columns].concat()
}

/// Affine weights of 4 bits with every number of rows, and prepared for many rows. Other formats
/// with few rows and with a prompt.
fn quantized() -> Vec<String> {
    const WIDE: &str = "128256x4096:f16";
    let rows = each(&["affine-4bit-g64-f16"], &[1, 2, 4, 8, 16, 32, 64, 512, 4096], |format, m| {
        format!("{m}x14336x4096:f16:{format}")
    });
    let prepared =
        [64, 512, 4096].map(|m| format!("{m}x14336x4096:f16:affine-4bit-g64-f16:prepared-b"));
    let formats = ["affine-8bit-g64-f16", "q4_0", "q8_0", "q4_k", "mxfp4"];
    let others = each(&formats, &[1, 16, 512], |format, m| format!("{m}x14336x4096:f16:{format}"));
    let wide = ["affine-4bit-g64-f16", "affine-8bit-g64-f16", "q4_0", "q8_0", "q4_k", "mxfp4"];
    let wide = wide.map(|format| format!("1x{WIDE}:{format}"));
    [
        rows,
        prepared.to_vec(),
        others,
        wide.to_vec(),
        vec!["1x4096x14336:f16:affine-4bit-g64-f16".into()],
    ]
    .concat()
}

fn batched() -> Vec<String> {
    let attention = [(32, 128), (32, 512), (32, 2048), (64, 1024), (128, 128), (128, 512)];
    let half = |&(heads, tokens): &(usize, usize), depth: &usize| {
        format!("{tokens}x{tokens}x{depth}:NT:f16:x{heads},{tokens}x{depth}x{tokens}:f16:x{heads}")
    };
    let mut names = each(&attention, &[64, 128], half);
    names.push("512x512x64:NT:x32,512x64x512:x32".into());
    names.iter().flat_map(|pair| pair.split(',')).map(str::to_owned).collect()
}
