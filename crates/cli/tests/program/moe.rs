//! `tilewise moe`, `tilewise gather-matmul`, and `tilewise grouped` with quantized weights or
//! several files.

use crate::bench::{Bench, adapters, assert_close, numbers, product, transposed};
use std::collections::BTreeMap;
use tilewise_core::quant::{dequantize, quantize};
use tilewise_core::{DType, QuantFormat};
use tilewise_files::{Chunk, Output, Sink, TensorKind};

/// Writes a stack [groups,n,k] of quantized weights, and gives the numbers that it stands for.
fn quantized(bench: &Bench, file: &str, shape: [usize; 3], format: &str, w: &[f32]) -> Vec<f32> {
    let format: QuantFormat = format.parse().unwrap();
    let all = quantize(w, shape[0] * shape[1], shape[2], format).unwrap();
    let planes = |sink: &mut Sink<'_>| {
        all.planes()
            .iter()
            .enumerate()
            .try_for_each(|(plane, bytes)| sink(Chunk { plane, offset: 0, bytes }))
    };
    let output = Output::streamed("w", TensorKind::Quantized(format), &shape, planes);
    tilewise_files::write(bench.path(file), vec![output], &BTreeMap::new(), &mut |_, _| {})
        .unwrap();
    dequantize(&all)
}

/// Σ weight · (silu(x·Gᵀ)∘(x·Uᵀ))·Dᵀ in f64; the weights are a softmax over the chosen experts.
fn layer(operands: [&[f32]; 2], weights: [&[f32]; 3], sizes: [usize; 4]) -> Vec<f64> {
    let softmax =
        |logit: f64, chosen: &[f64]| logit.exp() / chosen.iter().map(|own| own.exp()).sum::<f64>();
    scored(operands, weights, sizes, softmax)
}

/// Like [`layer`], with weights that `score` makes of a logit and all chosen logits.
fn scored(
    [x, logits]: [&[f32]; 2],
    [gate, up, down]: [&[f32]; 3],
    [experts, k, f, h]: [usize; 4],
    score: impl Fn(f64, &[f64]) -> f64,
) -> Vec<f64> {
    let mut y = Vec::new();
    for (x, logits) in x.chunks(h).zip(logits.chunks(experts)) {
        let mut order: Vec<usize> = (0..experts).collect();
        order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]));
        order.truncate(k);
        let chosen: Vec<f64> = order.iter().map(|&e| logits[e].into()).collect();
        let mut row = vec![0.0; h];
        for e in order {
            let weight = score(logits[e].into(), &chosen);
            let part = |all: &[f32]| all[e * f * h..][..f * h].to_vec();
            let through = |w: &[f32], n: usize, k: usize, x: &[f32]| {
                product(x, &transposed(w, n, k), 1, n, k)
            };
            let [g, u] = [gate, up].map(|w| through(&part(w), f, h, x));
            let inner: Vec<f64> =
                g.iter().zip(&u).map(|(g, u)| g / (1.0 + (-g).exp()) * u).collect();
            for (i, out) in row.iter_mut().enumerate() {
                let column = &part(down)[i * f..][..f];
                let dot: f64 = column.iter().zip(&inner).map(|(d, h)| f64::from(*d) * h).sum();
                *out += weight * dot;
            }
        }
        y.extend(row);
    }
    y
}

/// The report of work by the kernel `naive` names the kernel, and the time.
#[track_caller]
fn assert_timed(report: &str, adapter: &str, works: bool) {
    let kernel = match (adapter, works) {
        ("cpu", _) => "matrixmultiply\n",
        (_, true) => "naive/8x32\n",
        (_, false) => "none: C has no elements\n",
    };
    let at = report.find("\nkernel   ").expect(report);
    assert!(report[at..].starts_with(&format!("\nkernel   {kernel}time     ")), "{report}");
    assert!(report.contains(" TFLOP/s\n"), "{report}");
}

#[test]
fn a_layer_of_experts() {
    for adapter in adapters() {
        for [tokens, experts, k, f, h] in
            [[7, 5, 2, 9, 13], [1, 1, 1, 1, 1], [0, 3, 2, 4, 5], [5, 3, 3, 64, 128]]
        {
            let bench = Bench::new();
            let (x, logits) = (numbers(tokens * h, 1), numbers(tokens * experts, 2));
            let weights = [3, 4, 5].map(|seed| numbers(experts * f * h, seed));
            bench.npy("x.npy", &[tokens, h], &x);
            bench.npy("l.npy", &[tokens, experts], &logits);
            for (name, held) in ["g.npy", "u.npy"].iter().zip(&weights) {
                bench.npy(name, &[experts, f, h], held);
            }
            bench.npy("d.npy", &[experts, h, f], &weights[2]);
            let line = format!("--top-k {k} -o y.npy --adapter {adapter} --check");
            let report =
                bench.succeed(&format!("moe x.npy l.npy g.npy u.npy d.npy {line} --kernel naive"));
            assert!(report.contains("within the bound of the f64 oracle"), "{report}");
            let plural = if experts == 1 { "" } else { "s" };
            let chosen = format!("{k} of {experts} expert{plural}, ");
            assert!(report.contains(&chosen), "{report}");
            assert_timed(&report, adapter, tokens > 0);
            let sizes = [experts, k, f, h];
            let [gate, up, down] = weights.each_ref().map(Vec::as_slice);
            let (shape, values) = bench.read_npy("y.npy");
            assert_eq!(shape, [tokens, h]);
            assert_close(&values, &layer([&x, &logits], [gate, up, down], sizes), 1e-4);
            let sigmoid = |logit: f64, _: &[f64]| 1.0 / (1.0 + (-logit).exp());
            let wanted = scored([&x, &logits], [gate, up, down], sizes, sigmoid);
            bench.succeed(&format!("moe x.npy l.npy g.npy u.npy d.npy {line} --scoring sigmoid"));
            assert_close(&bench.read_npy("y.npy").1, &wanted, 1e-4);
            if f < 64 {
                continue;
            }
            // Tensors of a model, of which two are quantized.
            let gate = quantized(&bench, "g.safetensors", [experts, f, h], "mxfp4", gate);
            let down = quantized(&bench, "d.safetensors", [experts, h, f], "q8_0", down);
            bench.safetensors("u.safetensors", &[("u", &[experts, f, h], up)]);
            bench.succeed(&format!(
                "moe x.npy l.npy g.safetensors#w u.safetensors#u d.safetensors {line} --out-dtype \
                 f16"
            ));
            let wanted = layer([&x, &logits], [&gate, up, &down], sizes);
            // f16 has steps of 1/16 below 128.
            assert_close(&bench.read_npy("y.npy").1, &wanted, 1.01 / 32.0);
        }
    }
}

/// Files that leave their formats open may each have another format.
#[test]
fn formats_of_each() {
    const E: usize = 3;
    const F: usize = 32;
    const H: usize = 128;
    let bench = Bench::new();
    let (x, logits) = (numbers(4 * H, 1), numbers(4 * E, 2));
    bench.npy("x.npy", &[4, H], &x);
    bench.npy("l.npy", &[4, E], &logits);
    let [four, eight] = ["affine-4bit-g64-f16", "affine-8bit-g32-f16"];
    // In MLX's naming, without the metadata that tells a format.
    let open = |file: &str, seed, name: &str| {
        let all = quantize(&numbers(E * F * H, seed), E * F, H, name.parse().unwrap()).unwrap();
        let planes = all.planes().iter().zip(["weight", "scales", "biases"]);
        let outputs = planes.map(|(bytes, plane)| {
            let dtype = if plane == "weight" { DType::U32 } else { DType::F16 };
            let row = bytes.len() / (E * F) / dtype.bytes() as usize;
            Output::dense(&format!("w.{plane}"), dtype, &[E, F, row], bytes)
        });
        let outputs = outputs.collect();
        tilewise_files::write(bench.path(file), outputs, &BTreeMap::new(), &mut |_, _| {}).unwrap();
        dequantize(&all)
    };
    let gate = open("g.safetensors", 3, four);
    let up = open("u.safetensors", 4, eight);
    let down = quantized(&bench, "d.safetensors", [E, H, F], "mxfp4", &numbers(E * H * F, 5));
    let wanted = layer([&x, &logits], [&gate, &up, &down], [E, 2, F, H]);
    let files = "x.npy l.npy g.safetensors u.safetensors d.safetensors --top-k 2 -o y.npy";
    let line = format!("moe {files} --adapter cpu");
    // H and F decide, too.
    for formats in [
        String::new(),
        format!("--gate-format {four}"),
        format!("--gate-format {four} --up-format {eight}"),
        format!("--format {four} --up-format {eight} --down-format mxfp4"),
        format!("--format mxfp4 --up-format {eight} --gate-format {four}"),
    ] {
        bench.succeed(&format!("{line} {formats} --check"));
        assert_close(&bench.read_npy("y.npy").1, &wanted, 1e-4);
    }
    // If neither format fits, the format must still be named.
    let unfit = line.replace("x.npy", "x96.npy");
    bench.npy("x96.npy", &[4, 96], &numbers(4 * 96, 1));
    bench.refuses(&unfit, &["g.safetensors", four, eight, "name the format"]);
    bench.refuses(&format!("{unfit} --gate-format {four}"), &["u.safetensors", four, eight]);
    // K decides in the other products with stacks, too.
    bench.npy_bytes("ends.npy", "<u4", &[3], &[1u32, 3, 4].map(u32::to_le_bytes).concat());
    bench.npy_bytes("r.npy", "<u4", &[4], &[1u32, 0, 2, 1].map(u32::to_le_bytes).concat());
    for (product, numbers) in [("grouped", "--offsets ends"), ("gather-matmul", "--rhs-indices r")]
    {
        let tail = format!("g.safetensors {numbers}.npy -o y.npy --adapter cpu --check");
        bench.succeed(&format!("{product} x.npy {tail}"));
        bench.succeed(&format!("{product} x.npy {tail} --mode affine"));
        bench.refuses(&format!("{product} x96.npy {tail}"), &[four, eight, "name the format"]);
    }
    bench.refuses(&format!("{line} --format {four}"), &["d.safetensors", "mxfp4", four]);
    bench.refuses(
        &format!("{line} --format {four} --down-format mxfp4"),
        &["[3, 32, 256]", "[3, 32, 128]"],
    );
}

/// Options of quantized weights are errors for dense weights.
#[test]
fn formats_of_dense_weights() {
    let bench = Bench::new();
    bench.npy("x.npy", &[3, 32], &numbers(96, 1));
    bench.npy("l.npy", &[3, 2], &numbers(6, 2));
    let weights = numbers(2 * 32 * 32, 3);
    bench.npy("w.npy", &[2, 32, 32], &weights);
    bench.safetensors("w.safetensors", &[("w", &[2, 32, 32], &weights)]);
    bench.safetensors("m.safetensors", &[("m", &[32, 32], &weights[..1024])]);
    quantized(&bench, "q.safetensors", [2, 32, 32], "mxfp4", &weights);
    bench.npy_bytes("r.npy", "<u4", &[2], &[1u32, 2].map(u32::to_le_bytes).concat());
    bench.npy_bytes("i.npy", "<u4", &[3], &[0; 12]);
    let tail = "-o y.npy --adapter cpu";
    let layer =
        |weights: &str, said: &str| format!("moe x.npy l.npy {weights} --top-k 1 {said} {tail}");
    let [dense, mixed] = ["w.npy w.npy w.npy", "w.npy q.safetensors w.safetensors#w"];
    for (line, parts) in [
        (layer(dense, "--gate-format mxfp4"), ["w.npy: the weights are dense", "say mxfp4"]),
        (layer(dense, "--format mxfp4"), ["w.npy: the weights are dense", "say mxfp4"]),
        (layer(dense, "--bits 4"), ["w.npy: the weights are dense", "say 4 bits"]),
        (layer(mixed, "--down-format mxfp4"), ["w.safetensors#w: the weights are dense", "mxfp4"]),
        (
            layer(mixed, "--up-format mxfp4 --format mxfp8"),
            ["w.npy: the weights are dense", "say mxfp8"],
        ),
        (
            format!("grouped x.npy w.npy --offsets r.npy --group 32 {tail}"),
            ["w.npy: the weights are dense", "say groups of 32"],
        ),
        (
            format!("gather-matmul x.npy w.safetensors --rhs-indices i.npy --mode mxfp4 {tail}"),
            ["w.safetensors: the weights are dense", "say mode mxfp4"],
        ),
        (
            format!("qmatmul x.npy m.safetensors --bits 4 {tail}"),
            ["m.safetensors: the weights are dense", "say 4 bits"],
        ),
    ] {
        bench.refuses(&line, &parts);
    }
    // A format is admitted if one of several weights is quantized.
    for said in ["--format mxfp4", "--up-format mxfp4 --bits 4", "--mode mxfp4"] {
        bench.succeed(&layer(mixed, said));
    }
}

#[test]
fn layers_that_do_not_fit() {
    let bench = Bench::new();
    bench.npy("x.npy", &[3, 4], &numbers(12, 1));
    bench.npy("x5.npy", &[3, 5], &numbers(15, 1));
    bench.npy("l.npy", &[3, 2], &numbers(6, 2));
    bench.npy("l4.npy", &[4, 2], &numbers(8, 2));
    bench.npy("g.npy", &[2, 5, 4], &numbers(40, 3));
    bench.npy("g6.npy", &[2, 6, 4], &numbers(48, 3));
    bench.npy("d.npy", &[2, 4, 5], &numbers(40, 4));
    bench.npy("m.npy", &[5, 4], &numbers(20, 4));
    let whole = std::fs::read(bench.path("g.npy")).unwrap();
    std::fs::write(bench.path("broken.npy"), &whole[..whole.len() - 3]).unwrap();
    let line = "--top-k 2 -o y.npy --adapter cpu";
    for (operands, parts) in [
        (
            "x.npy l.npy g.npy g.npy d.npy --top-k 3 -o y.npy --adapter cpu",
            ["3 of 2 experts", "more than"],
        ),
        ("x.npy l.npy g.npy g.npy d.npy --top-k 0 -o y.npy --adapter cpu", ["0 of 2", "one"]),
        (&format!("x.npy l4.npy g.npy g.npy d.npy {line}"), ["[4, 2]", "[3, 4]"]),
        (&format!("x5.npy l.npy g.npy g.npy d.npy {line}"), ["[3, 5]", "is 4"]),
        (&format!("x.npy l.npy g.npy g6.npy d.npy {line}"), ["[2, 6, 4]", "[2, 5, 4]"]),
        (&format!("x.npy l.npy g.npy g.npy g.npy {line}"), ["[2, 5, 4]", "[2, 4, 5]"]),
        (
            &format!("x.npy l.npy m.npy g.npy d.npy {line}"),
            ["gate of", "[1, 5, 4], wanted [2, 5, 4]"],
        ),
        (&format!("x.npy l.npy broken.npy g.npy d.npy {line}"), ["broken.npy", "157"]),
        (&format!("x.npy l.npy none.npy g.npy d.npy {line}"), ["none.npy", ""]),
        (&format!("x.npy l.npy g.npy g.npy d.npy {line} --kernel none"), ["none", "nearest"]),
    ] {
        bench.refuses(&format!("moe {operands}"), &parts);
    }
    bench.fail(2, "moe x.npy l.npy g.npy g.npy d.npy -o y.npy");
}

/// A kernel that only takes quantized weights refuses the first product with dense weights.
#[test]
fn a_kernel_that_one_product_refuses() {
    let bench = Bench::new();
    bench.npy("x.npy", &[4, 64], &numbers(256, 1));
    bench.npy("l.npy", &[4, 3], &numbers(12, 2));
    let weights = numbers(3 * 64 * 64, 3);
    bench.npy("w.npy", &[3, 64, 64], &weights);
    quantized(&bench, "q.safetensors", [3, 64, 64], "q4_0", &weights);
    let [w, q] = ["w.npy", "q.safetensors"];
    for adapter in adapters().into_iter().filter(|adapter| *adapter != "cpu") {
        let tail = format!("--top-k 2 -o y.npy --kernel rows --adapter {adapter}");
        for (weights, part) in [([w, q, q], "gate"), ([q, w, q], "up"), ([q, q, w], "down")] {
            let line = format!("moe x.npy l.npy {} {tail}", weights.join(" "));
            bench.refuses(
                &line,
                &[&format!(": {part} of the experts: "), ": no loader takes f32 as codes"],
            );
        }
    }
}

#[test]
fn products_by_index() {
    const M: usize = 6;
    const E: usize = 3;
    for adapter in adapters() {
        for [k, n] in [[7, 5], [64, 3]] {
            let bench = Bench::new();
            let (x, w) = (numbers(M * k, 1), numbers(E * n * k, 2));
            let parts = |all: &[f32]| all.chunks(n * k).map(<[f32]>::to_vec).collect::<Vec<_>>();
            let flipped: Vec<f32> =
                parts(&w).iter().flat_map(|part| transposed(part, k, n)).collect();
            bench.npy("x.npy", &[M, k], &x);
            bench.npy("w.npy", &[E, k, n], &w);
            bench.npy("wt.npy", &[E, n, k], &flipped);
            let words = |name: &str, all: &[u32]| {
                let bytes: Vec<u8> = all.iter().flat_map(|&i| i64::from(i).to_le_bytes()).collect();
                bench.npy_bytes(name, "<i8", &[all.len()], &bytes);
            };
            let lhs = [5, 0, 0, 3, 1, 2, 4, 5];
            let rhs = [2, 0, 1, 1, 0, 2, 0, 0];
            words("l.npy", &lhs);
            words("r.npy", &rhs);
            let mut order: Vec<usize> = (0..8).collect();
            order.sort_by_key(|&i| rhs[i]);
            words("ls.npy", &order.iter().map(|&i| lhs[i]).collect::<Vec<_>>());
            words("rs.npy", &order.iter().map(|&i| rhs[i]).collect::<Vec<_>>());
            words("r6.npy", &rhs[..6]);
            words("l3.npy", &lhs[..3]);
            words("one.npy", &[1]);
            let row = |w: &[f32], l: u32, r: u32| {
                let [l, r] = [l, r].map(|index| index as usize);
                product(&x[l * k..][..k], &parts(w)[r], 1, n, k)
            };
            let of = |w: &[f32], pairs: &mut dyn Iterator<Item = (u32, u32)>| {
                pairs.flat_map(|(l, r)| row(w, l, r)).collect::<Vec<f64>>()
            };
            let all = of(&w, &mut lhs.into_iter().zip(rhs));
            let run = |line: &str, wanted: &[f64]| {
                let line = format!("gather-matmul x.npy {line} -o y.npy --adapter {adapter}");
                let report = bench.succeed(&format!("{line} --check --kernel naive"));
                assert!(report.contains("within the bound"), "{report}");
                assert_timed(&report, adapter, true);
                let (shape, values) = bench.read_npy("y.npy");
                assert_eq!(shape, [wanted.len() / n, n]);
                assert_close(&values, wanted, 1e-4);
                std::fs::read(bench.path("y.npy")).unwrap()
            };
            let both = "--lhs-indices l.npy --rhs-indices r.npy";
            let bits = run(&format!("w.npy {both}"), &all);
            assert_eq!(run(&format!("wt.npy --transpose-b {both}"), &all).len(), bits.len());
            // Only sums beyond the range of f16 become infinite.
            let huge = numbers(M * k, 1).iter().map(|x| x.signum() * 3e4).collect::<Vec<_>>();
            bench.npy("huge.npy", &[M, k], &huge);
            let line = format!("gather-matmul huge.npy w.npy {both} -o y.npy --adapter {adapter}");
            let report = bench.succeed(&format!("{line} --out-dtype f16 --check"));
            assert!(report.contains("within the bound"), "{report}");
            assert!(bench.read_npy("y.npy").1.iter().any(|y| y.is_infinite()));
            let sorted: Vec<f64> = order.iter().flat_map(|&i| all[i * n..][..n].to_vec()).collect();
            let lines = "w.npy --lhs-indices ls.npy --rhs-indices rs.npy";
            assert_eq!(run(lines, &sorted), run(&format!("{lines} --sorted"), &sorted));
            let named = of(&w, &mut (0..).zip(rhs[..6].iter().copied()));
            run("w.npy --rhs-indices r6.npy", &named);
            run("w.npy --lhs-indices l3.npy", &of(&w, &mut lhs[..3].iter().copied().zip(0..)));
            run("w.npy --rhs-indices one.npy", &of(&w, &mut (0..M as u32).map(|l| (l, 1))));
            run("w.npy --lhs-indices one.npy", &of(&w, &mut (0..E as u32).map(|r| (1, r))));
            if k == 64 {
                let few = quantized(&bench, "q.safetensors", [E, n, k], "mxfp8", &flipped);
                let few: Vec<f32> =
                    few.chunks(n * k).flat_map(|part| transposed(part, n, k)).collect();
                let wanted = of(&few, &mut lhs.into_iter().zip(rhs));
                let named = run(&format!("q.safetensors#w {both}"), &wanted);
                assert_eq!(run(&format!("q.safetensors {both} --transpose-b"), &wanted), named);
            }
        }
    }
}

#[test]
fn indices_that_do_not_fit() {
    let bench = Bench::new();
    bench.npy("x.npy", &[4, 2], &numbers(8, 1));
    bench.npy("w.npy", &[3, 2, 5], &numbers(30, 2));
    bench.npy("w7.npy", &[3, 7, 5], &numbers(105, 2));
    bench.npy("m.npy", &[2, 5], &numbers(10, 2));
    let words = |name: &str, all: &[i32]| {
        let bytes: Vec<u8> = all.iter().flat_map(|i| i.to_le_bytes()).collect();
        bench.npy_bytes(name, "<i4", &[all.len()], &bytes);
    };
    words("r.npy", &[0, 2, 1, 0]);
    words("r3.npy", &[0, 3, 1, 0]);
    words("minus.npy", &[0, -1, 1, 0]);
    words("five.npy", &[0, 1, 2, 3, 3]);
    words("beyond.npy", &[0, 1, 4, 0]);
    bench.npy_bytes("two.npy", "<i4", &[2, 2], &[0; 16]);
    for (line, parts) in [
        ("x.npy w.npy --rhs-indices r3.npy", ["index 1 is 3", "W has 3 matrices"]),
        ("x.npy w.npy --rhs-indices r.npy --lhs-indices beyond.npy", ["2 is 4", "X has 4 rows"]),
        ("x.npy w.npy --rhs-indices minus.npy", ["minus.npy: index 1 is -1", "0..=4294967295"]),
        (
            "x.npy w.npy --rhs-indices r.npy --lhs-indices r.npy --sorted",
            ["2 is 1, after 2", "r.npy"],
        ),
        ("x.npy w.npy --rhs-indices five.npy", ["five.npy: index 3 is 3", "3 matrices"]),
        ("x.npy w.npy --lhs-indices five.npy", ["5 indices", "W has 3 matrices"]),
        ("x.npy w.npy", ["X has 4 rows", "W has 3 matrices"]),
        ("x.npy w.npy --rhs-indices two.npy", ["[2,2]", "indices are a vector"]),
        ("x.npy w.npy --rhs-indices x.npy", ["x.npy", "[4,2]"]),
        ("x.npy w7.npy --rhs-indices r.npy", ["[4, 2]", "[3, 7, 5]"]),
        ("x.npy m.npy --rhs-indices r.npy", ["r.npy", "W has 1 matrix\n"]),
        ("x.npy w.npy --rhs-indices r.npy --kernel none", ["none", "nearest"]),
    ] {
        bench.refuses(&format!("gather-matmul {line} -o y.npy --adapter cpu"), &parts);
    }
}

#[test]
fn groups_of_several_files_and_few_bits() {
    let (k, n, groups) = (64, 5, 3);
    let ends = [4u32, 4, 9];
    let (a, b) = (numbers(10 * k, 1), numbers(groups * k * n, 2));
    let bench = Bench::new();
    bench.npy("a.npy", &[10, k], &a);
    bench.npy("b.npy", &[groups, k, n], &b);
    let parts: Vec<&[f32]> = b.chunks(k * n).collect();
    for (at, part) in parts.iter().enumerate() {
        bench.npy(&format!("b{at}.npy"), &[k, n], part);
    }
    bench.npy("rest.npy", &[2, k, n], &b[k * n..]);
    bench.npy("odd.npy", &[k, n + 1], &numbers(k * (n + 1), 3));
    let bytes: Vec<u8> = ends.iter().flat_map(|end| end.to_le_bytes()).collect();
    bench.npy_bytes("ends.npy", "<u4", &[3], &bytes);
    bench.npy_bytes("end.npy", "<u8", &[1], &9u64.to_le_bytes());
    let flipped: Vec<f32> = parts.iter().flat_map(|part| transposed(part, k, n)).collect();
    quantized(&bench, "q.safetensors", [groups, n, k], "q4_0", &flipped);
    let one = |at: usize| &flipped[at * k * n..][..k * n];
    (0..3).for_each(|at| {
        quantized(&bench, &format!("q{at}.safetensors"), [1, n, k], "q4_0", one(at));
    });
    for adapter in adapters() {
        let tail = format!("--offsets ends.npy -o c.npy --check --adapter {adapter}");
        let bits = |operands: &str| {
            bench.succeed(&format!("grouped a.npy {operands} {tail}"));
            std::fs::read(bench.path("c.npy")).unwrap()
        };
        let whole = bits("b.npy");
        assert_eq!(bits("b0.npy b1.npy b2.npy"), whole);
        assert_eq!(bits("b0.npy rest.npy"), whole);
        let few = bits("q.safetensors#w");
        assert_ne!(few, whole);
        assert_eq!(bits("q0.safetensors q1.safetensors q2.safetensors --transpose-b"), few);
        let line = format!("--offsets end.npy -o c.npy --check --adapter {adapter}");
        bench.succeed(&format!("grouped a.npy b0.npy {line}"));
        std::fs::remove_file(bench.path("c.npy")).unwrap();
    }
    for (operands, parts) in [
        ("b0.npy b1.npy odd.npy", ["[64,5] of f32", "[64,6] of f32"]),
        ("b0.npy b1.npy q0.safetensors", ["[64,5] of f32", "[5,64] of q4_0"]),
        ("b0.npy b1.npy", ["3", "2"]),
        ("b0.npy", ["3 group offsets", "1 entry of B"]),
    ] {
        let line = format!("grouped a.npy {operands} --offsets ends.npy -o c.npy --adapter cpu");
        bench.refuses(&line, &parts);
    }
}

/// Stacks in the models of MLX and of GGUF.
#[test]
fn stacks_of_models() {
    let bench = Bench::new();
    bench.take("mlx");
    bench.take("gguf");
    bench.npy_bytes("ends.npy", "<u4", &[2], &[3u32, 5].map(u32::to_le_bytes).concat());
    bench.npy_bytes("r2.npy", "<u4", &[2], &[1u32, 3].map(u32::to_le_bytes).concat());
    bench.npy_bytes("r.npy", "<u4", &[5], &[1u32, 0, 1, 1, 0].map(u32::to_le_bytes).concat());
    for adapter in adapters() {
        for (k, stack) in [
            (128, "mlx#model.layers.1.switch_mlp.affine-4bit-g64-f16"),
            (64, "gguf/all.gguf#blk.1.exps.q4_0"),
        ] {
            bench.npy("x.npy", &[5, k], &numbers(5 * k, 1));
            bench.npy("entries.npy", &[2, 3, k], &numbers(6 * k, 1));
            let tail = format!("-o y.npy --check --adapter {adapter}");
            let grouped = format!("grouped x.npy {stack} --offsets ends.npy {tail}");
            assert!(bench.succeed(&grouped).contains("within the bound"));
            let masked = format!("grouped entries.npy {stack} --masked r2.npy {tail}");
            assert!(bench.succeed(&masked).contains("within the bound"));
            let gathered = format!("gather-matmul x.npy {stack} --rhs-indices r.npy {tail}");
            assert!(bench.succeed(&gathered).contains("within the bound"));
        }
    }
    // Columns in another order.
    bench.take("gptq-4bit-act-order");
    let line = "grouped x.npy gptq-4bit-act-order gptq-4bit-act-order --offsets ends.npy";
    bench.refuses(&format!("{line} -o c.npy --adapter cpu"), &["act-order", "convert"]);
}
