//! Choices of the planner for recorded adapters, as text that is reviewed in diffs.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::Path;
use tilewise_core::caps::RECORDED;
use tilewise_core::kernel::Role;
use tilewise_core::plan::{Forced, Table, choices, prepare};
use tilewise_core::problem::{Copied, Dimension};
use tilewise_core::{
    Activation, Axis, Bias, Caps, DType, Epilogue, Format, Gathered, Grouping, Operand, Plan,
    Precision, Problem, QuantFormat, explain, plan,
};

/// Problems that occur in models, and problems for which a planner easily goes wrong.
pub(crate) fn problems() -> Vec<(&'static str, Problem)> {
    let f32 = |m, n, k| Problem::dense(DType::F32, m, n, k);
    let f16 = |m, n, k| Problem::dense(DType::F16, m, n, k);
    let packed = |dtype, rows, cols| Operand::packed(Format::Dense(dtype), 1, rows, cols);
    let transposed = |problem: Problem, a: bool, b: bool| {
        let Problem { m, n, k, .. } = problem;
        let turn = |operand: Operand, rows, cols, turned| {
            if turned { Operand::packed(operand.format, 1, cols, rows).t() } else { operand }
        };
        Problem { a: turn(problem.a, m, k, a), b: turn(problem.b, k, n, b), ..problem }
    };
    let batched = |batch, m, n, k| {
        let [a, b, c] = [[m, k], [k, n], [m, n]]
            .map(|[rows, cols]| Operand::packed(Format::Dense(DType::F16), batch, rows, cols));
        Problem { batch, a, b, c, ..f16(m, n, k) }
    };
    // Two sequences of 128 tokens, each with 8 heads of queries and 2 of keys and of values.
    let heads = |offset, strides| Operand {
        offset,
        ld: 768,
        len: 2 * 128 * 768,
        ..packed(DType::F16, 128, 64).with_entry_strides(strides)
    };
    let shared_heads = Problem {
        batch: 16,
        grouping: Grouping::Nested { sizes: [1, 2, 2, 4] },
        a: heads(0, [0, 128 * 768, 4 * 64, 64]),
        b: heads(8 * 64, [0, 128 * 768, 64, 0]).t(),
        c: Operand::packed(Format::Dense(DType::F16), 16, 128, 128).with_entry_strides([
            0,
            8 << 14,
            4 << 14,
            1 << 14,
        ]),
        ..f16(128, 128, 64)
    };
    let four_bits = |entries, n, k| {
        let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
        Table::stored(format, entries, n, k).operand.t()
    };
    let quantized = |m, n, k| Problem { b: four_bits(1, n, k), ..f16(m, n, k) };
    let grouped = |groups, m, n, k| Problem {
        b: Operand::packed(Format::Dense(DType::F16), groups, k, n),
        grouping: Grouping::RaggedM { groups, first: 0, offset: 0, expected: None },
        ..f16(m, n, k)
    };
    let by_index = |problem: Problem, rows| {
        let Problem { m, n, k, epilogue, .. } = problem;
        let residual = Some(packed(DType::F16, m, n));
        let activation = Activation::Silu;
        Problem {
            a: packed(DType::F16, rows, k),
            gathered: Some(Gathered { rows, offset: 0, step: 1, len: m }),
            epilogue: Epilogue { residual, activation, gated: true, ..epilogue },
            ..problem
        }
    };
    let masked = |entries, m, n, k| Problem {
        grouping: Grouping::Masked { entries, offset: 0, expected: None },
        ..batched(entries, m, n, k)
    };
    let along_k = |groups, m, n, k| {
        let problem = transposed(f16(m, n, k), true, false);
        let shared = |operand: Operand| Operand { batch_stride: 0, ..operand };
        Problem {
            batch: groups,
            grouping: Grouping::RaggedK { groups, offset: 0 },
            a: shared(problem.a),
            b: shared(problem.b),
            c: Operand::packed(problem.c.format, groups, m, n),
            ..problem
        }
    };
    let listed = |dtype, groups, size: u64, ld| {
        let operand = packed(dtype, 1, 4 * size * size);
        let ab = Operand { ld, ..operand };
        let grouping = Grouping::Listed { groups, offset: 0, sizes: None };
        let c = packed(DType::F32, 1, 4 * size * size);
        let problem = Problem { c, ..Problem::dense(dtype, size, size, size) };
        Problem { batch: groups, a: ab, b: ab, grouping, ..problem }
    };
    let of_bf16 = |problem: Problem| {
        let turned = |operand| Operand { format: Format::Dense(DType::BF16), ..operand };
        let Problem { a, b, c, .. } = problem;
        Problem { a: turned(a), b: turned(b), c: turned(c), ..problem }
    };
    let linear = Problem {
        epilogue: Epilogue {
            alpha: 1.0,
            beta: 0.5,
            bias: Some(Bias { axis: Axis::N, operand: packed(DType::F32, 3072, 1) }),
            activation: Activation::Gelu,
            residual: Some(packed(DType::F16, 77, 3072)),
            gated: false,
        },
        ..transposed(f16(77, 3072, 768), false, true)
    };
    vec![
        ("square", f32(4096, 4096, 4096)),
        ("square, small", f32(256, 256, 256)),
        ("square, odd", f32(4097, 4097, 4097)),
        ("TN", transposed(f32(1024, 1024, 1024), true, false)),
        ("NT, f16", transposed(f16(1024, 1024, 1024), false, true)),
        ("square, f16", f16(4096, 4096, 4096)),
        (
            "square, f16, sums may be f16",
            Problem { precision: Precision::F16Sums, ..f16(4096, 4096, 4096) },
        ),
        (
            "square, split in two parts",
            Problem { precision: Precision::SplitF32, ..f32(4096, 4096, 4096) },
        ),
        (
            "large, split in two parts",
            Problem { precision: Precision::SplitF32, ..f32(8192, 8192, 8192) },
        ),
        (
            "square, odd, split fast",
            Problem { precision: Precision::SplitF32Fast, ..f32(4097, 4097, 4097) },
        ),
        ("bf16 with an odd number of columns", Problem::dense(DType::BF16, 100, 101, 128)),
        ("matrix by vector", f32(8192, 1, 8192)),
        ("vector by matrix", f32(1, 8192, 8192)),
        ("vector by transposed matrix", transposed(f16(1, 8192, 8192), false, true)),
        ("deep and small", f32(64, 64, 65536)),
        ("linear layer", linear),
        ("attention heads", batched(96, 128, 128, 64)),
        ("attention heads that share keys, between rows", shared_heads),
        ("4-bit weights, one token", quantized(1, 4096, 4096)),
        (
            "4-bit weights, four tokens of 8 bits",
            Problem { precision: Precision::Int8Activations, ..quantized(4, 4096, 4096) },
        ),
        ("4-bit weights, a prompt", quantized(512, 4096, 4096)),
        ("eight experts", grouped(8, 1024, 2048, 1024)),
        ("eight experts, rows by index, gated", by_index(grouped(8, 1024, 2048, 1024), 512)),
        ("eight experts, masked", masked(8, 256, 2048, 1024)),
        (
            "64 experts, masked, few rows",
            Problem {
                grouping: Grouping::Masked { entries: 64, offset: 0, expected: Some(8) },
                ..masked(64, 1024, 2048, 1024)
            },
        ),
        (
            "64 experts of 4 bits, masked, few rows",
            Problem {
                grouping: Grouping::Masked { entries: 64, offset: 0, expected: Some(8) },
                b: four_bits(64, 2048, 1024),
                ..masked(64, 1024, 2048, 1024)
            },
        ),
        (
            "64 experts of 4 bits, rows name theirs",
            Problem {
                grouping: Grouping::Indexed { groups: 64, rows: 8, offset: 0 },
                b: four_bits(64, 1408, 2048),
                ..f16(8, 1408, 2048)
            },
        ),
        ("eight experts, slopes of weights", along_k(8, 2048, 1024, 1024)),
        ("64 experts, slopes of weights, bf16", of_bf16(along_k(64, 1408, 2048, 8192))),
        ("a list, aligned", listed(DType::F16, 4, 1024, 8)),
        ("a list that begins anywhere", listed(DType::F16, 4, 1024, 1)),
        ("a list in bf16", listed(DType::BF16, 4, 1024, 8)),
        ("one by one", f32(1, 1, 1)),
        ("K = 0", f32(3, 5, 0)),
        ("K = 0, split", Problem { precision: Precision::SplitF32, ..f32(3, 5, 0) }),
        ("M = 0", f32(0, 5, 3)),
    ]
}

#[test]
fn recorded_adapters() {
    let texts = RECORDED.iter().map(|(name, caps)| {
        // A context on such a device uses this library.
        let library = if name.starts_with("apple-") {
            tilewise_msl::LIBRARY
        } else {
            tilewise_shaders::LIBRARY
        };
        let (mut text, mut said) = (String::new(), HashSet::new());
        for (title, problem) in problems() {
            let plan = explain(&problem, &caps(), &library, None)
                .unwrap_or_else(|error| format!("error: {error}\n"));
            writeln!(text, "== {title}\n{}", unrepeated(&plan, &mut said)).unwrap();
        }
        (format!("{name}.txt"), text)
    });
    golden(texts);
}

/// WebGPU lets a dispatch use a buffer either for reading or for writing. This also holds if an
/// operand lies beside C.
#[test]
fn a_dispatch_reads_packed_memory_or_writes_it() {
    let mut both = 0;
    for ((_, caps), (title, problem)) in
        RECORDED.iter().flat_map(|adapter| problems().into_iter().map(move |own| (adapter, own)))
    {
        let many = match problem.grouping {
            Grouping::RaggedM { first, offset, expected, .. } => {
                let b = Operand { len: 300 * problem.b.batch_stride, ..problem.b };
                let grouping = Grouping::RaggedM { groups: 300, first, offset, expected };
                Problem { grouping, b, ..problem }
            }
            _ => problem,
        };
        for problem in [problem, many] {
            let problem = Problem { beside_c: true, ..problem };
            let Ok(plan) = plan(&problem, &caps(), &tilewise_shaders::LIBRARY, None) else {
                continue;
            };
            for pass in &plan.passes {
                let packed = pass.bindings.iter().filter(|binding| binding.from == Role::Packed);
                let read: Vec<_> = packed.map(|binding| pass.read_only(binding)).collect();
                assert!(read.windows(2).all(|two| two[0] == two[1]), "{title}: {}", pass.label);
                both += usize::from(pass.beside_c && read.len() > 1);
            }
        }
    }
    assert!(both > 0, "no dispatch beside C has an operand and a table there");
}

/// A plan's text without repeated reasons. A reason is repeated if it was given before against the
/// same kernels, with any numbers.
fn unrepeated(plan: &str, said: &mut HashSet<String>) -> String {
    let (mut kept, mut before) = (String::new(), 0);
    let mut lines = plan.lines();
    while let Some(line) = lines.next() {
        let names = if line.starts_with("  no: ") { lines.next() } else { None };
        let text = names.map_or_else(|| line.to_owned(), |names| format!("{line}\n{names}"));
        let known = text.replace(|letter: char| letter.is_ascii_digit(), "");
        if (names.is_some() || line.starts_with("device ")) && !said.insert(known) {
            before += usize::from(names.is_some());
        } else {
            kept += &(text + "\n");
        }
    }
    if before > 0 {
        kept += &format!("  no: {before} reasons as before\n");
    }
    kept
}

/// Bytes, products, registers and expected rates of the MSL kernels, counted and modelled.
#[test]
fn estimates_of_msl_kernels() {
    golden([("msl-estimates.md".to_owned(), tilewise_tests::estimate::report())]);
}

/// Operands are packed in advance, and products with them pack nothing.
#[test]
fn prepared_operands() {
    let (_, h200) = RECORDED.iter().find(|(name, _)| *name == "nvidia-h200").unwrap();
    let library = tilewise_shaders::LIBRARY;
    let copies = |problem: &Problem, caps: &Caps| {
        let Problem { m, n, k, batch, a, b, .. } = *problem;
        let sides = [(a, Role::A, [batch, m, k]), (b, Role::B, [problem.entries(), n, k])];
        sides.map(|(operand, role, sizes)| {
            Some(prepare(operand, role, sizes, problem.precision, caps, &library).unwrap()?.copy)
        })
    };
    let square = |dtype, size| Problem::dense(dtype, size, size, size);
    let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
    let stored = |entries| Table::stored(format, entries, 4096, 4096).operand.t();
    let six_bits: QuantFormat = "q6_k".parse().unwrap();
    let of_six_bits = |entries| Table::stored(six_bits, entries, 4096, 4096).operand.t();
    let quantized = Problem { b: stored(1), ..square(DType::BF16, 4096) };
    let some = |problem: &Problem| copies(problem, &h200()).map(|copy| copy.is_some());
    assert_eq!(some(&square(DType::F16, 4096)), [false; 2]);
    assert_eq!(some(&square(DType::F32, 4097)), [false; 2]);
    assert_eq!(some(&quantized), [true; 2]);
    let split = Problem { precision: Precision::SplitF32, ..square(DType::F32, 4096) };
    assert_eq!(some(&split), [true; 2]);
    assert_eq!(copies(&square(DType::BF16, 4097), &Caps::webgpu_default()), [None; 2]);

    let grouping = Grouping::RaggedM { groups: 8, first: 0, offset: 0, expected: None };
    let reads = |plan: &Plan| {
        let mut bindings = plan.passes.iter().flat_map(|pass| &pass.bindings);
        bindings.any(|binding| binding.from == Role::BCopy)
    };
    let packs =
        |plan: &Plan| plan.passes.iter().filter(|pass| pass.label.starts_with("pack ")).count();
    let odd = Problem { precision: Precision::SplitF32Fast, ..square(DType::F32, 4097) };
    for problem in
        [square(DType::F16, 4097), square(DType::BF16, 4096), square(DType::BF16, 4097), split, odd]
    {
        assert_eq!(some(&problem), [true; 2]);
        let with = Problem { copies: copies(&problem, &h200()), ..problem };
        let [before, after] =
            [problem, with].map(|problem| plan(&problem, &h200(), &library, None).unwrap());
        let elements = |plan: &Plan| plan.packed_bytes / 2;
        assert!(packs(&before) >= 2 && elements(&before) >= 2 * 4096 * 4096);
        // Edges that are peeled off pack their few rows and columns.
        assert!(packs(&after) == 0 || !after.edges.is_empty());
        assert!(elements(&after) < 100_000, "{} bytes are packed", after.packed_bytes);
        let [before, after] = [before, after].map(|plan| plan.choice.unwrap());
        assert_eq!(
            (before.kernel, before.variant, before.splits),
            (after.kernel, after.variant, after.splits)
        );
        assert!(after.cost < before.cost, "{before:?} {after:?}");
    }

    // A stack of f16 that is stored along K gets a copy in slabs, which products read in its place.
    let stack = |transposed| {
        let b = Operand::packed(Format::Dense(DType::F16), 8, 4096, 4096);
        Problem { b: Operand { transposed, ..b }, grouping, ..square(DType::F16, 4096) }
    };
    assert_eq!(some(&stack(false)), [false; 2]);
    assert_eq!(some(&stack(true)), [false, true]);
    let with = Problem { copies: copies(&stack(true), &h200()), ..stack(true) };
    let [before, after] =
        [stack(true), with].map(|problem| plan(&problem, &h200(), &library, None).unwrap());
    assert_eq!([packs(&before), packs(&after)], [0; 2]);
    assert_eq!([reads(&before), reads(&after)], [false, true]);
    assert_eq!(before.choice, after.choice);

    // Few rows read the codes of weights, although there is a copy. More rows read the copy, unless
    // a tile decodes the codes at no cost.
    let weights = |m| Problem { b: quantized.b, ..Problem::dense(DType::F16, m, 4096, 4096) };
    let experts = Problem { b: stored(8), grouping, ..weights(4096) };
    for (problem, packed, copied) in [
        (weights(1), false, false),
        (weights(4), false, false),
        (weights(16), false, false),
        (weights(64), false, true),
        (weights(512), false, true),
        (weights(4096), false, false),
        (experts, false, false),
        (Problem { b: of_six_bits(1), ..weights(4096) }, true, true),
        (Problem { b: of_six_bits(8), ..experts }, true, true),
    ] {
        assert_eq!(some(&problem), [false, true]);
        let with = Problem { copies: copies(&problem, &h200()), ..problem };
        let [before, after] =
            [problem, with].map(|problem| plan(&problem, &h200(), &library, None).unwrap());
        assert_eq!([packs(&before), packs(&after)], [usize::from(packed), 0], "{problem:?}");
        assert_eq!([reads(&before), reads(&after)], [false, copied], "{problem:?}");
        let [before, after] = [before, after].map(|plan| plan.choice.unwrap());
        assert!(
            if copied { after.cost < before.cost } else { after == before },
            "{before:?} {after:?}"
        );
        assert!(
            !packed || (before.kernel, before.variant) == (after.kernel, after.variant),
            "{before:?} {after:?}"
        );
    }

    // A range that begins elsewhere, or ends before K does, is another operand and has no copy.
    let whole =
        Problem { copies: copies(&square(DType::BF16, 512), &h200()), ..square(DType::BF16, 512) };
    let some = |problem: Problem| problem.copies.map(|copy| copy.is_some());
    assert_eq!(some(whole.range(Dimension::M, 0..64)), [true; 2]);
    assert_eq!(some(whole.range(Dimension::M, 64..128)), [false, true]);
    assert_eq!(some(whole.range(Dimension::N, 1..512)), [true, false]);
    assert_eq!(some(whole.range(Dimension::K, 0..512)), [true; 2]);
    assert_eq!(some(whole.range(Dimension::K, 0..256)), [false; 2]);
    assert_eq!(some(whole.range(Dimension::Entries, 1..1)), [false; 2]);
    // Powers of entries are as far apart as the whole operand has rows and columns.
    let several = whole.copies.map(|copy| copy.map(|copy| Copied { entries: 2, ..copy }));
    let several = Problem { copies: several, batch: 2, ..whole };
    assert_eq!(some(several.range(Dimension::N, 0..64)), [true, false]);
    assert_eq!(some(several.range(Dimension::Entries, 0..1)), [true; 2]);
}

/// Compares texts with the files of these names, or writes the files if that is asked for.
fn golden(texts: impl IntoIterator<Item = (String, String)>) {
    let bless = std::env::var("TILEWISE_BLESS").is_ok_and(|value| value == "1");
    let mut changed = Vec::new();
    for (name, text) in texts {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("goldens").join(&name);
        if bless {
            std::fs::write(&path, text).unwrap();
            continue;
        }
        let golden = std::fs::read_to_string(&path).unwrap_or_default().replace("\r\n", "\n");
        if golden != text {
            let line = golden.lines().zip(text.lines()).position(|(old, new)| old != new);
            let line = line.unwrap_or(golden.lines().count().min(text.lines().count()));
            let [old, new] =
                [&golden, &text].map(|text| text.lines().nth(line).unwrap_or("(end)").to_owned());
            changed.push(format!("goldens/{name}:{}\n  was {old}\n  is  {new}", line + 1));
        }
    }
    assert!(
        changed.is_empty(),
        "plans changed; if that is meant, run with TILEWISE_BLESS=1 and look at the diff:\n{}",
        changed.join("\n")
    );
}

/// The fastest tiles for 64 experts of 2048×1408 on an H200, with equal shares of rows and with
/// shares by Zipf's law (benches/record/NOTES.md).
#[test]
fn tiles_by_rows_of_groups() {
    let (_, h200) = RECORDED.iter().find(|(name, _)| *name == "nvidia-h200").unwrap();
    let tiles = ["coop/32x128x32-4", "coop/128x128x32"];
    for (rows, wanted) in [(32, tiles[0]), (48, tiles[1]), (64, tiles[1]), (128, tiles[1])] {
        for expected in [Some(rows), None] {
            let problem = Problem {
                b: Operand::packed(Format::Dense(DType::F16), 64, 2048, 1408),
                grouping: Grouping::RaggedM { groups: 64, first: 0, offset: 0, expected },
                ..Problem::dense(DType::F16, 64 * rows, 1408, 2048)
            };
            let own = plan(&problem, &h200(), &tilewise_shaders::LIBRARY, None).unwrap();
            assert_eq!(own.choice.unwrap().to_string(), wanted, "{rows} rows, {expected:?}");
        }
    }
}

/// With many workgroups, wide tiles save conversions of A; with few, they leave cores idle. A
/// longer K has more invocations along it, as measured on an H200.
#[test]
fn tiles_of_single_rows() {
    let (_, h200) = RECORDED.iter().find(|(name, _)| *name == "nvidia-h200").unwrap();
    let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
    for (rows, [n, k], wanted) in [
        (8, [1408, 2048], "dot/1x32x16"),
        (64, [1408, 2048], "dot/1x64x8"),
        (64, [2048, 1408], "dot/1x64x8"),
        (64, [2048, 4096], "dot/1x64x32"),
    ] {
        let grouping = Grouping::RaggedM { groups: 64, first: 0, offset: 0, expected: Some(1) };
        let b = Table::stored(format, 64, n, k).operand.t();
        let problem = Problem { b, grouping, ..Problem::dense(DType::F16, rows, n, k) };
        let own = plan(&problem, &h200(), &tilewise_shaders::LIBRARY, None).unwrap();
        assert_eq!(own.choice.unwrap().to_string(), wanted, "{rows} rows, {n} x {k}");
    }
}

/// With many rows for each group, a pass decodes weights of four bits before the product. If rows
/// of codes lie a multiple of 2 KiB apart, this pays sooner, as measured on an H200
/// (benches/record/NOTES.md).
#[test]
fn weights_of_groups_are_decoded_where_that_pays() {
    let (_, h200) = RECORDED.iter().find(|(name, _)| *name == "nvidia-h200").unwrap();
    let four_bits = |k| {
        let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
        let stored = Table::stored(format, 64, 1408, k).operand.t();
        let packed = Operand::packed(Format::Quantized(format), 64, 1408, k).t();
        [stored, packed]
    };
    // Tiles wait for rows that lie a multiple of 2 KiB apart, as they may in a caller's buffers.
    let [stored, packed] = four_bits(4096);
    for (rows, k, b, passes) in [
        (512, 2048, four_bits(2048)[0], 1),
        (4096, 2048, four_bits(2048)[0], 1),
        (512, 4096, stored, 1),
        (2048, 4096, stored, 1),
        (128, 4096, packed, 1),
        (1024, 4096, packed, 2),
    ] {
        let problem = Problem {
            b,
            grouping: Grouping::RaggedM { groups: 64, first: 0, offset: 0, expected: Some(rows) },
            ..Problem::dense(DType::F16, 64 * rows, 1408, k)
        };
        let own = plan(&problem, &h200(), &tilewise_shaders::LIBRARY, None).unwrap();
        assert_eq!(own.passes.len(), passes, "{rows} rows, K = {k}");
        assert_eq!(own.choice.unwrap().to_string(), "coop/128x128x32");
    }
}

/// Each choice can be forced by its name, even if K has fewer splits than were asked for.
#[test]
fn choices_can_be_forced() {
    let b = Table::stored(QuantFormat::Q8_0, 1, 24, 320).operand.t();
    let weights = Problem { b, ..Problem::dense(DType::F32, 1, 24, 320) };
    let mut forced = 0;
    for (name, caps) in RECORDED {
        for problem in [weights, Problem::dense(DType::F16, 33, 24, 1100)] {
            for choice in choices(&problem, &caps(), &tilewise_shaders::LIBRARY).unwrap() {
                let named: Forced = choice.to_string().parse().unwrap();
                let own = plan(&problem, &caps(), &tilewise_shaders::LIBRARY, Some(&named));
                let met = own.and_then(|own| named.met_by(&own));
                assert!(met.is_ok(), "{choice} on {name}: {met:?}");
                forced += 1;
            }
        }
    }
    assert!(forced > 100, "{forced} choices");
}
