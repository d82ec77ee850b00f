//! `tilewise inspect` and the list of formats.

use crate::bench::Bench;
use serde_json::{Value, json};
use tilewise_core::QuantFormat;
use tilewise_tests::program::text;

fn json_of(bench: &Bench, model: &str) -> Value {
    serde_json::from_str(&bench.succeed(&format!("inspect {model} --json"))).unwrap()
}

/// The cells of the line that begins with a name.
fn row<'a>(table: &'a str, name: &str) -> Vec<&'a str> {
    let found = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    found
        .into_iter()
        .find(|cells| cells.first() == Some(&name))
        .unwrap_or_else(|| panic!("no {name} in\n{table}"))
}

#[test]
fn tables() {
    let bench = Bench::new();
    ["mlx", "mlx-sharded", "gguf", "gptq-8bit-act-order"]
        .iter()
        .for_each(|folder| bench.take(folder));
    let gguf = bench.succeed("inspect gguf/all.gguf");
    assert!(gguf.contains("version 3, architecture \"llama\", name \"vectors\""), "{gguf}");
    assert_eq!(row(&gguf, "blk.0.q6_k"), ["blk.0.q6_k", "[6,512]", "q6_k", "2520", "6.56"]);
    assert_eq!(
        row(&gguf, "output_norm.weight"),
        ["output_norm.weight", "[64]", "f32", "256", "32.00"]
    );
    assert!(
        gguf.contains("total    18 tensors, 28768 bytes; 41920 elements of 5.49 bits"),
        "{gguf}"
    );
    assert!(!gguf.contains("vectors.nested"));
    assert!(
        bench
            .succeed("inspect gguf/all.gguf --metadata")
            .contains("vectors.nested = [[1, 2], [3]]")
    );

    let name = "model.layers.0.affine-3bit-g64-f16";
    let cells = [name, "[6,128]", "affine-3bit-g64-f16", "336", "3.50"];
    assert_eq!(row(&bench.succeed("inspect mlx"), name), cells);
    let sharded = bench.succeed("inspect mlx-sharded");
    assert_eq!(row(&sharded, name), [&cells[..], &["model-00001-of-00002.safetensors"]].concat());
    assert!(bench.succeed(&format!("inspect mlx#{name}")).contains("total    1 tensors"));
    let gptq = bench.succeed("inspect gptq-8bit-act-order");
    let name = "model.layers.0.self_attn.q_proj";
    assert_eq!(
        row(&gptq, name),
        [name, "[32,64]", "affine-8bit-g32-f32", "from", "gptq", "2496", "9.75"]
    );
}

#[test]
fn json() {
    let bench = Bench::new();
    ["mlx", "gguf", "awq"].iter().for_each(|folder| bench.take(folder));
    let gguf = json_of(&bench, "gguf/all.gguf");
    assert_eq!(
        (&gguf["gguf_version"], &gguf["metadata"]["general.architecture"]),
        (&json!(3), &json!("llama"))
    );
    assert_eq!(gguf["metadata"]["vectors.nested"], json!([[1, 2], [3]]));
    assert_eq!(gguf["metadata"]["tokenizer.ggml.scores"], json!([0.0, -1.0, -2.5]));
    assert_eq!(gguf["files"], json!(["gguf/all.gguf"]));
    let found = gguf["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tensor| tensor["name"] == "blk.0.q4_k")
        .unwrap();
    for (key, value) in [
        ("shape", json!([6, 512])),
        ("class", json!("quantized")),
        ("format", json!("q4_k")),
        ("bytes", json!(1728)),
        ("bits_per_weight", json!(4.5)),
        ("stored", json!("gguf")),
        ("file", json!("gguf/all.gguf")),
        ("error", Value::Null),
    ] {
        assert_eq!(found[key], value, "{key}");
    }
    let bytes = std::fs::read(bench.path("gguf/all.gguf")).unwrap();
    let offset = found["offset"].as_u64().unwrap();
    assert!(offset.is_multiple_of(32) && offset + 1728 <= bytes.len() as u64, "{offset}");
    let stored = |model: &str| json_of(&bench, model)["tensors"][0]["stored"].clone();
    assert_eq!((stored("mlx"), stored("awq")), (json!("safetensors"), json!("awq")));
    assert_eq!(json_of(&bench, "mlx")["metadata"], json!({ "format": "mlx" }));
}

/// Sizes are shown if the size of the type is known.
#[test]
fn types_of_unknown_size() {
    let bench = Bench::new();
    let entry = |name: &str| {
        format!(r#""{name}":{{"dtype":"F2","shape":[{}],"data_offsets":[0,0]}}"#, 1u64 << 63)
    };
    let float = r#""c":{"dtype":"F32","shape":[1,1],"data_offsets":[0,4]}"#;
    let header = format!("{{{},{},{float}}}", entry("a"), entry("b"));
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[0; 4]].concat();
    std::fs::write(bench.path("m.safetensors"), bytes).unwrap();
    // More elements than can be counted.
    bench.succeed("convert m.safetensors n.safetensors --format f16 --only c --only a --only b");
    // Q8_K, I8 and a number that is no type's.
    for (name, number, shown, sizes) in [
        ("blk.0.q4_k.weight", 15, &["Q8_K"][..], ["-", "-"]),
        ("blk.1.f32.weight", 24, &["I8"], ["384", "8.00"]),
        ("blk.0.q4_k.weight", 99, &["type", "99"], ["-", "-"]),
    ] {
        bench.gguf_with_type("t.gguf", name, number);
        let table = bench.succeed("inspect t.gguf");
        assert_eq!(row(&table, name)[2..], [shown, &sizes].concat(), "{table}");
        let is_unknown = sizes == ["-", "-"];
        let said = "bits; 1 of a type whose size is not known are not counted\n";
        assert_eq!(table.contains(said), is_unknown, "{table}");
        let listed = json_of(&bench, "t.gguf");
        let tensors = listed["tensors"].as_array().unwrap();
        let found = tensors.iter().find(|tensor| tensor["name"] == name).unwrap();
        for key in ["bytes", "bits_per_weight"] {
            assert_eq!(found[key].is_null(), is_unknown, "{found}");
        }
        let sum: u64 = tensors.iter().filter_map(|tensor| tensor["bytes"].as_u64()).sum();
        assert_eq!(listed["bytes"], sum);
    }
    // A type that becomes another format.
    bench.gguf_with_type("t.gguf", "blk.0.q4_k.weight", 16);
    let (table, name) = (bench.succeed("inspect t.gguf"), "blk.0.q4_k");
    let cells = [name, "[6,512]", "int8-g32", "from", "IQ2_XXS", "792", "2.06"];
    assert_eq!(row(&table, name), cells, "{table}");
    let table = bench.succeed("inspect m.safetensors");
    assert_eq!(row(&table, "a"), ["a", "[9223372036854775808]", "F2", "-", "-"]);
    assert!(
        table.contains("total    3 tensors, 4 bytes; 1 elements of 32.00 bits; 2 of a type"),
        "{table}"
    );
}

/// Group sizes that contradict shapes, and formats that are left open, are shown.
#[test]
fn unclear_tensors_are_shown_with_their_errors() {
    let bench = Bench::new();
    ["mlx.safetensors", "gptq-4bit", "mlx"].iter().for_each(|name| bench.take(name));
    let open = bench.succeed("inspect mlx.safetensors");
    assert_eq!(row(&open, "f16")[2..], ["unclear", "540", "-"]);
    assert!(open.contains("f16 [5, 192] or affine-8bit-g32-f16 [5, 96]"), "{open}");
    assert_eq!(
        row(&bench.succeed("inspect mlx.safetensors --bits 4"), "f16")[1..3],
        ["[5,192]", "affine-4bit-g64-f16"]
    );

    // The arguments that do not fit are in the error.
    let wrong = bench.succeed("inspect mlx.safetensors#f16 --bits 3");
    assert!(
        wrong.contains("these tensors are not 3 bits (the arguments): ")
            && !wrong.contains("it may be"),
        "{wrong}"
    );
    let wrong = json_of(&bench, "mlx.safetensors#f16 --bits 3");
    assert!(
        wrong["tensors"][0]["error"].as_str().unwrap().contains("3 bits (the arguments)"),
        "{wrong}"
    );

    let config = std::fs::read_to_string(bench.path("gptq-4bit/config.json")).unwrap();
    std::fs::write(
        bench.path("gptq-4bit/config.json"),
        config.replace("\"group_size\": 32", "\"group_size\": 16"),
    )
    .unwrap();
    let why = "config.json says groups of 16: K = 64 has 4 of them, but the file has 2";
    let shown = json_of(&bench, "gptq-4bit");
    let wrong = shown["tensors"]
        .as_array()
        .unwrap()
        .iter()
        .find(|tensor| tensor["class"] == "unclear")
        .unwrap();
    assert!(wrong["error"].as_str().unwrap().contains(why), "{wrong}");
    let config = std::fs::read_to_string(bench.path("mlx/config.json")).unwrap();
    std::fs::write(
        bench.path("mlx/config.json"),
        config.replace("\"group_size\": 16", "\"group_size\": 32"),
    )
    .unwrap();
    assert!(bench.succeed("inspect mlx").contains("groups of 32, mode nvfp4"));
    // Nothing is computed with them, and nothing written.
    bench.npy("x.npy", &[1, 64], &[1.0; 64]);
    for line in [
        "qmatmul x.npy gptq-4bit -o y.npy --adapter cpu",
        "dequantize gptq-4bit -o y.npy",
        "convert gptq-4bit y.safetensors --format f16",
    ] {
        bench.refuses(
            line,
            &["gptq-4bit/model.safetensors", "model.layers.0.self_attn.q_proj", why],
        );
    }
}

/// The number of unclear tensors is on stderr, too, and the status is that of success.
#[test]
fn unclear_tensors_are_counted() {
    let bench = Bench::new();
    ["mlx.safetensors", "mlx", "mlx-sharded"].iter().for_each(|name| bench.take(name));
    let formats =
        "; the formats of 3 are left open: name them by --format, or --bits, --group and --mode";
    for (line, expected) in [
        ("mlx.safetensors", format!("3 of 3 tensors are unclear{formats}\n")),
        ("mlx.safetensors --json", format!("3 of 3 tensors are unclear{formats}\n")),
        ("mlx.safetensors --bits 4", String::new()),
        ("mlx.safetensors --bits 3", "3 of 3 tensors are unclear\n".to_owned()),
        ("mlx", String::new()),
        (
            "mlx-sharded/model-00001-of-00002.safetensors",
            "1 of 10 tensors are unclear\n".to_owned(),
        ),
    ] {
        let output = bench.run(&format!("inspect {line}"));
        let said = text(&output.stderr);
        assert!(output.status.success() && said.ends_with(&expected), "{line}: {said}");
        assert_eq!(said.is_empty(), expected.is_empty(), "{line}: {said}");
    }
}

#[test]
fn a_method_that_is_not_read_is_named() {
    let bench = Bench::new();
    std::fs::create_dir(bench.path("m")).unwrap();
    bench.safetensors("m/model.safetensors", &[("w", &[1, 32], &[1.0; 32])]);
    let config = r#"{"quantization_config":{"quant_method":"exl2"}}"#;
    std::fs::write(bench.path("m/config.json"), config).unwrap();
    let method = "config.json says quant_method \"exl2\"";
    let said = text(&bench.run("inspect m").stderr);
    assert!(said.contains(&format!("{method}, which is not read: ")), "{said}");
    let shown = json_of(&bench, "m");
    assert!(shown["unread_quantization"].as_str().unwrap().ends_with(method), "{shown}");
}

/// An option that fits no tensor is an error if no format is open: it was meant for another file.
#[test]
fn options_without_meaning_are_refused() {
    let bench = Bench::new();
    ["gguf", "mlx", "gptq-4bit"].iter().for_each(|name| bench.take(name));
    for command in ["inspect {}", "convert {} new.safetensors --format f16"] {
        let line = |rest: &str| command.replace("{}", rest);
        for (rest, said) in [
            (
                "gguf/all.gguf --group 16",
                "gguf/all.gguf: the arguments say groups of 16; no tensor has that format,",
            ),
            ("gguf/all.gguf --bits 4", "say 4 bits;"),
            ("gguf/all.gguf --mode affine --bits 4", "say 4 bits, mode affine;"),
            ("mlx --group 512", "mlx: the arguments say groups of 512;"),
            ("gptq-4bit --group 64", "say groups of 64;"),
        ] {
            bench.refuses(&line(rest), &[said]);
        }
        for rest in ["gguf/all.gguf --group 32", "mlx --bits 3", "gptq-4bit --bits 4 --group 32"] {
            bench.succeed(&line(rest));
            _ = std::fs::remove_file(bench.path("new.safetensors"));
        }
        for rest in ["mlx --group 0", "mlx --bits -1"] {
            bench.fail(2, &line(rest));
        }
        for bits in [0, 1, 7, 9] {
            let said = bench.fail(2, &line(&format!("mlx --bits {bits}")));
            assert!(said.contains("codes have 2, 3, 4, 5, 6, 8 bits"), "{said}");
        }
    }
}

/// `--format` names a format of the codes; their type of numbers is something else.
#[test]
fn types_of_numbers_are_no_formats() {
    let bench = Bench::new();
    for line in [
        "inspect q.safetensors",
        "dequantize q.safetensors -o w.npy",
        "qmatmul x.npy q.safetensors -o y.npy",
        "quantize w.npy -o q.safetensors",
    ] {
        let said = bench.fail(2, &format!("{line} --format f32"));
        assert!(
            said.contains("f32 is a type of numbers; `tilewise quantize --list-formats` lists"),
            "{said}"
        );
    }
}

#[test]
fn every_format_is_listed() {
    let bench = Bench::new();
    let list = bench.succeed("quantize --list-formats");
    assert_eq!(list.lines().count(), 1 + QuantFormat::all().count());
    assert_eq!(row(&list, "nvfp4"), ["nvfp4", "4.5000", "16", "MLX", "yes"]);
    assert_eq!(
        row(&list, "q6_k"),
        ["q6_k", "6.5625", "256", "GGUF", "no,", "it", "is", "only", "read"]
    );
    assert_eq!(row(&list, "nf4-g64")[..4], ["nf4-g64", "4.5000", "64", "others"]);
    assert!(bench.fail(2, "quantize -o q.safetensors").contains("<W>"));
    for command in [
        "inspect",
        "quantize",
        "dequantize",
        "qmatmul",
        "convert",
        "matmul",
        "grouped",
        "plan",
        "info",
        "demo",
    ] {
        assert!(
            bench
                .succeed(&format!("{command} --help"))
                .contains(&format!("Example: tilewise {command} ")),
            "{command}"
        );
    }
}
