//! Tests that wrong input is refused, with its own message, the right exit status, and no file left
//! behind.

use crate::bench::{Bench, adapters, numbers};

/// A folder with a good A \[4,6\] and B \[6,5\].
fn bench() -> Bench {
    let bench = Bench::new();
    bench.npy("a.npy", &[4, 6], &numbers(24, 1));
    bench.npy("b.npy", &[6, 5], &numbers(30, 2));
    bench
}

#[test]
fn truncated_and_lying_npy_files() {
    let bench = bench();
    bench.npy_bytes("short.npy", "<f4", &[4, 6], &[0; 95]);
    bench.refuses(
        "matmul short.npy b.npy -o c.npy",
        &["short.npy", "truncated", "96 bytes", "95 bytes"],
    );
    bench.npy_bytes("long.npy", "<f4", &[4, 6], &[0; 100]);
    bench.refuses("matmul long.npy b.npy -o c.npy", &["too long", "96 bytes", "100 bytes"]);
    bench.npy_bytes("huge.npy", "<f4", &[1 << 62, 6], &[0; 4]);
    bench.refuses("matmul huge.npy b.npy -o c.npy", &["4611686018427387904", "addressed"]);
    // No machine has as many bytes: the file's length tells it before anything is allocated.
    bench.npy_bytes("big.npy", "<f4", &[1 << 40, 6], &[0; 4]);
    bench.refuses("matmul big.npy b.npy -o c.npy", &["truncated", "26388279066624 bytes"]);
    std::fs::write(bench.path("header.npy"), b"\x93NUMPY\x02\x00\xff\xff\xff\xff{").unwrap();
    bench.refuses("matmul header.npy b.npy -o c.npy", &["header of 4294967295 bytes"]);
    std::fs::write(bench.path("empty.npy"), []).unwrap();
    bench.refuses("matmul empty.npy b.npy -o c.npy", &["an empty file"]);
    std::fs::write(bench.path("text.npy"), "not an array").unwrap();
    bench.refuses("matmul text.npy b.npy -o c.npy", &["plain text, which begins \"not an array\""]);
    bench.npy_bytes("complex.npy", "<c8", &[4, 6], &[0; 192]);
    bench.refuses("matmul complex.npy b.npy -o c.npy", &["<c8"]);
    bench.npy_bytes("whole.npy", "<i4", &[4, 6], &[0; 96]);
    bench.refuses("matmul whole.npy b.npy -o c.npy", &["i32"]);
}

#[test]
fn truncated_and_lying_safetensors_files() {
    let bench = bench();
    bench.succeed("matmul a.npy b.npy -o good.safetensors --adapter cpu");
    let good = std::fs::read(bench.path("good.safetensors")).unwrap();
    for (len, why) in [
        (0, "an empty file"),
        (7, "truncated"),
        (8, "truncated"),
        (20, "truncated"),
        (good.len() - 1, "79 bytes of tensors"),
    ] {
        std::fs::write(bench.path("bad.safetensors"), &good[..len]).unwrap();
        bench.refuses("matmul bad.safetensors#c b.npy -o c.npy", &["bad.safetensors", why]);
    }
    std::fs::write(bench.path("bad.safetensors"), [0xff; 100]).unwrap();
    bench.refuses(
        "matmul bad.safetensors#c b.npy -o c.npy",
        &["header of 18446744073709551615 bytes"],
    );
    bench.refuses("matmul good.safetensors#w b.npy -o c.npy", &["no tensor is named \"w\"", "c"]);
    bench
        .refuses("matmul good.safetensors#w.npy b.npy -o c.npy", &["no tensor is named \"w.npy\""]);
}

#[test]
fn missing_and_odd_files() {
    let bench = bench();
    std::fs::create_dir(bench.path("folder.npy")).unwrap();
    std::fs::write(bench.path("a.bin"), [0; 96]).unwrap();
    bench.refuses("matmul none.npy b.npy -o c.npy", &["none.npy"]);
    for line in [
        "inspect a.npy",
        "qmatmul a.npy b.npy -o c.npy",
        "convert a.npy c.safetensors --format f16",
    ] {
        bench.refuses(line, &[".npy: a NumPy array, not a model"]);
    }
    bench.refuses("matmul folder.npy b.npy -o c.npy", &["folder.npy", "not a regular file"]);
    bench.refuses("matmul a.bin b.npy -o c.npy", &["a.bin", "extension"]);
    bench.refuses("matmul a.npy b.npy -o none/c.npy", &["none/c.npy", "no folder"]);
    bench.refuses("matmul a.npy b.npy -o folder.npy", &["folder.npy", "is a folder"]);
}

#[test]
fn dimensions_that_do_not_fit() {
    let bench = bench();
    bench.npy("v.npy", &[6], &numbers(6, 3));
    bench.npy("four.npy", &[1, 1, 4, 6], &numbers(24, 3));
    bench.npy("batch2.npy", &[2, 4, 6], &numbers(48, 3));
    bench.npy("batch3.npy", &[3, 6, 5], &numbers(90, 3));
    for adapter in adapters() {
        let matmul = |operands: &str, parts: &[&str]| {
            bench.refuses(&format!("matmul {operands} -o c.npy --adapter {adapter}"), parts);
        };
        matmul("a.npy a.npy", &["6", "4"]);
        matmul("a.npy b.npy --transpose-b", &["6", "5"]);
        matmul("v.npy b.npy", &["v.npy", "[6]"]);
        matmul("four.npy b.npy", &["four.npy", "[1,1,4,6]"]);
        matmul("batch2.npy batch3.npy", &["2", "3"]);
        matmul("a.npy b.npy --bias v.npy", &["6", "5"]);
        matmul("a.npy b.npy --residual a.npy", &["[4, 6]"]);
        matmul("a.npy b.npy --beta 1 --c b.npy", &["[6, 5]"]);
    }
}

#[test]
fn choices_that_do_not_exist() {
    let bench = bench();
    bench.refuses("matmul a.npy b.npy -o c.npy --adapter no-such-adapter", &["no-such-adapter"]);
    for adapter in adapters() {
        let line =
            format!("matmul a.npy b.npy -o c.npy --adapter {adapter} --kernel no-such-kernel");
        bench.refuses(&line, &["no-such-kernel"]);
    }
    bench.refuses("plan 4 5 6 --caps no-such-caps", &["no-such-caps", "nvidia-h200"]);
}

#[test]
fn bf16_needs_safetensors() {
    let bench = bench();
    // If --out-dtype asks for the type, it is a usage error. If the operands have it, the error is
    // found when they are read.
    assert!(bench.fail(2, "matmul a.npy b.npy -o c.npy --out-dtype bf16").contains("bf16"));
    bench.succeed("matmul a.npy b.npy -o brain.safetensors --out-dtype bf16 --adapter cpu");
    let line = "matmul brain.safetensors brain.safetensors --transpose-b -o c.npy";
    bench.refuses(
        &format!("{line} --adapter cpu"),
        &["bf16", ".safetensors", "another element type"],
    );
    bench.succeed(&format!("{line} --adapter cpu --out-dtype f32 --check"));
}

#[test]
fn usage_errors() {
    let bench = bench();
    let before = bench.files();
    for line in [
        "",
        "multiply a.npy b.npy",
        "matmul a.npy b.npy",
        "matmul a.npy -o c.npy",
        "matmul a.npy b.npy -o c.bin",
        "matmul a.npy b.npy -o c.safetensors#",
        "matmul a.npy b.npy -o c.npy --beta 2",
        "matmul a.npy b.npy -o c.npy --c a.npy",
        "matmul a.npy b.npy -o c.npy --alpha two",
        "matmul a.npy b.npy -o c.npy --activation tanh",
        "matmul a.npy b.npy -o c.npy --out-dtype f64",
        "matmul a.npy b.npy -o c.npy --bias-along m",
        "grouped a.npy b.npy -o c.npy",
        "plan 1 2",
        "plan 1 2 -3",
        "plan 1 2 3 --transpose XX",
        "plan 1 2 3 --caps browser --adapter cpu",
    ] {
        bench.fail(2, line);
    }
    assert_eq!(bench.files(), before);
}

#[test]
fn an_overwritten_file_is_left_whole_by_a_failure() {
    let bench = bench();
    bench.succeed("matmul a.npy b.npy -o c.npy --adapter cpu");
    let good = std::fs::read(bench.path("c.npy")).unwrap();
    bench.fail(1, "matmul a.npy a.npy -o c.npy --adapter cpu");
    assert_eq!(std::fs::read(bench.path("c.npy")).unwrap(), good);
}

#[test]
fn an_input_is_not_overwritten() {
    let bench = bench();
    ["mlx", "gptq-4bit"].iter().for_each(|name| bench.take(name));
    bench.refuses("matmul a.npy b.npy -o a.npy", &["a.npy", "is read from it"]);
    let model = "gptq-4bit/model.safetensors";
    bench.refuses(&format!("dequantize gptq-4bit -o {model}"), &[model, "is read from it"]);
    bench.refuses(&format!("convert {model} {model} --format f16"), &[model, "is read from it"]);
    bench.refuses(
        "convert mlx mlx/model.safetensors --format f16",
        &["mlx/model.safetensors", "is read from it"],
    );
    bench.npy("x.npy", &[1, 64], &[1.0; 64]);
    bench.refuses("qmatmul x.npy gptq-4bit -o x.npy --adapter cpu", &["x.npy", "is read from it"]);
}

/// Tests a model whose files are links, as in Hugging Face's cache, and a model in parts.
#[cfg(unix)]
#[test]
fn an_input_behind_links_is_not_overwritten() {
    use std::os::unix::fs::symlink;
    let bench = Bench::new();
    ["mlx", "gguf"].iter().for_each(|name| bench.take(name));
    std::fs::create_dir(bench.path("snap")).unwrap();
    for name in ["config.json", "model.safetensors"] {
        symlink(format!("../mlx/{name}"), bench.path(&format!("snap/{name}"))).unwrap();
    }
    std::fs::write(bench.path("snap/i.safetensors.index.json"), "{}").unwrap();
    symlink("gguf/split-00002-of-00002.gguf", bench.path("part.safetensors")).unwrap();
    std::fs::write(bench.path("gguf/old.safetensors"), "old").unwrap();
    for line in [
        "snap snap/model.safetensors",
        "snap mlx/model.safetensors",
        "snap/i.safetensors.index.json snap/model.safetensors",
        "gguf/split-00001-of-00002.gguf part.safetensors",
    ] {
        bench.refuses(
            &format!("convert {line} --format f16"),
            &["is read from it; name another output"],
        );
    }
    // Other files beside a model in one file are no part of it.
    bench.succeed("convert gguf/all.gguf gguf/old.safetensors --format f16");
}
