//! Which files make a model.

use crate::support::{file, open, tensor};
use safetensors::tensor::Dtype::{F8_E4M3, F16, F32, I32, I64, U8, U32};
use tilewise_files::{Expected, Model, TensorKind};

const INDEX: &str = "model.safetensors.index.json";

fn index(entries: &[(&str, &str)]) -> Vec<u8> {
    let entries: Vec<_> = entries.iter().map(|(name, file)| format!("{name:?}:{file:?}")).collect();
    format!(r#"{{"metadata":{{"total_size":0}},"weight_map":{{{}}}}}"#, entries.join(","))
        .into_bytes()
}

#[test]
fn planes_may_lie_in_several_shards() {
    let first = file(&[tensor("w.weight", U32, &[3, 16]), tensor("n", F32, &[2])], &[]);
    let second = file(&[tensor("w.scales", F16, &[3, 2]), tensor("w.biases", F16, &[3, 2])], &[]);
    let listed =
        index(&[("w.weight", "a.st"), ("n", "a.st"), ("w.scales", "b.st"), ("w.biases", "b.st")]);
    let config = br#"{"quantization":{"bits":4,"group_size":64}}"#.to_vec();
    let model =
        open(&[(INDEX, listed), ("a.st", first), ("b.st", second), ("config.json", config)])
            .unwrap();
    let w = model.get("w").unwrap();
    assert_eq!((w.kind().to_string(), w.shape()), ("affine-4bit-g64-f16".into(), &[3, 128][..]));
    assert_eq!(w.quantized().unwrap().planes()[2], tensor("w.biases", F16, &[3, 2]).3);
    assert_eq!(model.files().collect::<Vec<_>>(), ["a.st", "b.st"]);
    assert_eq!(model.tensors().len(), 2);
}

#[test]
fn an_index_that_lies_is_refused() {
    let shard = || ("a.st", file(&[tensor("n", F32, &[2])], &[]));
    let refused = |index: Vec<u8>, expected: &str| {
        let text = open(&[(INDEX, index), shard()]).err().expect(expected).to_string();
        assert!(text.contains(expected), "{text}");
    };
    refused(
        index(&[("m", "a.st")]),
        "tensor \"m\" is said to be in \"a.st\", which does not hold it",
    );
    refused(
        index(&[("n", "b.st")]),
        "model.safetensors.index.json: it names b.st: b.st: there is no such file",
    );
    for bad in ["../a.st", "/a.st", "..", "", "d\\a.st", "c:a"] {
        refused(index(&[("n", bad)]), "the name of a file beside it is expected");
    }
    refused(br#"{"weight_map":{"n":1}}"#.to_vec(), "is in 1, the name of a file");
    refused(br#"{"weight_map":[]}"#.to_vec(), "weight_map is an array");
    refused(b"{}".to_vec(), "weight_map is null");
    refused(index(&[]), "model.safetensors.index.json: weight_map is empty");
    refused(b"{\"weight_map\":".to_vec(), "line 1 column 14");
    // Words that Python writes and entries of other makers are no lies.
    let text =
        "\u{feff}{\"metadata\":{\"total\":NaN},\"x\":-Infinity,\"weight_map\":{\"n\":\"a.st\"}}";
    assert_eq!(open(&[(INDEX, text.into()), shard()]).unwrap().tensors().len(), 1);
}

/// A shard is inspected by its own name, and is not taken for the whole model.
#[test]
fn a_shard_alone_is_a_shard() {
    let (one, two) = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors");
    let format = [("quantization", "affine-4bit-g64-f16")];
    let first = file(
        &[
            tensor("w.weight", U32, &[3, 16]),
            tensor("p.qweight", I32, &[8, 32]),
            tensor("v.weight", U32, &[3, 16]),
            tensor("v.scales", F16, &[3, 2]),
            tensor("v.biases", F16, &[3, 2]),
            tensor("n.weight", F32, &[2]),
            tensor("ids", U32, &[2]),
            tensor("u.weight", U32, &[3, 16]),
            tensor("u.scales", F16, &[3, 2]),
        ],
        &format,
    );
    let second = file(
        &[
            tensor("w.scales", F16, &[3, 2]),
            tensor("w.biases", F16, &[3, 2]),
            tensor("u.biases", F16, &[3, 2]),
        ],
        &format,
    );
    let shard = open(&[(one, first.clone()), (two, second.clone())]).unwrap();
    assert_eq!((shard.shard(), shard.files().len()), (Some((1, 2)), 1));
    let listed: Vec<_> =
        shard.tensors().map(|tensor| format!("{} {}", tensor.name(), tensor.kind())).collect();
    let split =
        ["ids u32", "n.weight f32", "p.qweight unclear", "u unclear", "v affine-4bit-g64-f16"];
    assert_eq!(listed, [&split[..], &["w.weight unclear"]].concat());
    let others = "; this file is shard 1 of 2: open the index, or the folder";
    for (name, why) in [
        ("w.weight", "\"w.weight\": w.weight U32 [3, 16] at byte "),
        ("p.qweight", "scales or other planes of the quantized matrix are missing"),
        ("w", "no tensor is named \"w\""),
        ("u", "; u.biases is missing; this file"),
        ("w.scales", "no tensor is named \"w.scales\""),
    ] {
        let text = shard
            .get(name)
            .and_then(|tensor| tensor.planes(&mut |_, _| {}))
            .unwrap_err()
            .to_string();
        assert!(text.contains(why) && text.ends_with(others), "{text}");
    }
    // Scales are numbers, whatever they belong to.
    assert_eq!(
        open(&[(two, second.clone())]).unwrap().get("w.scales").unwrap().kind().to_string(),
        "f16"
    );
    for whole in ["model-00001-of-00001.safetensors", "model.safetensors"] {
        let model = open(&[(whole, first.clone())]).unwrap();
        assert_eq!(
            (model.shard(), model.get("w.weight").unwrap().kind().to_string()),
            (None, "u32".into()),
            "{whole}"
        );
    }

    let folder = tempfile::tempdir().unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    for (name, bytes) in [(one, &first), (two, &second)] {
        put(name, bytes);
        let text = Model::open(folder.path()).err().unwrap().to_string();
        assert!(
            text.contains(&format!("{one} is one of several files, and their index")),
            "{text}"
        );
    }
    put(INDEX, &index(&[("w.weight", one), ("w.scales", two), ("w.biases", two)]));
    let whole = Model::open(folder.path()).unwrap();
    assert_eq!((whole.shard(), whole.get("w").unwrap().shape()), (None, &[3, 128][..]));
}

/// Numbers that change the weights may lie in another shard than codes and scales.
#[test]
fn a_shard_alone_lacks_no_factor_and_no_order() {
    let (one, two) = ("m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors");
    let with = |extra: &[(&str, safetensors::tensor::Dtype, &[usize])]| {
        let tensors = [
            ("affine.weight", U32, &[2, 10][..]),
            ("affine.scales", F16, &[2, 1]),
            ("affine.biases", F16, &[2, 1]),
            ("nvfp4.weight", U32, &[2, 2]),
            ("nvfp4.scales", U8, &[2, 1]),
            ("opt.weight", U8, &[2, 8]),
            ("opt.weight_scale", F8_E4M3, &[2, 1]),
            ("opt.weight_scale_2", F32, &[1]),
            ("gptq.qweight", I32, &[8, 32]),
            ("gptq.qzeros", I32, &[1, 4]),
            ("gptq.scales", F16, &[1, 32]),
            ("awq.qweight", I32, &[64, 4]),
            ("awq.qzeros", I32, &[1, 4]),
            ("awq.scales", F16, &[1, 32]),
        ];
        let all =
            tensors.iter().chain(extra).map(|(name, dtype, shape)| tensor(name, *dtype, shape));
        file(&all.collect::<Vec<_>>(), &[])
    };
    let matrices = ["affine", "awq", "gptq", "nvfp4", "opt"];
    // The shard holds `extra`, the index lists `listed` of the other shard: some matrices are
    // unclear.
    let unclear = |extra: &[_], listed: Option<&[&str]>| {
        let listed =
            listed.map(|names| index(&names.iter().map(|name| (*name, two)).collect::<Vec<_>>()));
        let index = listed.map(|bytes| ("m.safetensors.index.json", bytes));
        let files: Vec<_> = [(one, with(extra))].into_iter().chain(index).collect();
        let model = open(&files).unwrap();
        let text = |name: &&str| {
            let any = Expected::default();
            let expected = if *name == "gptq" { any.mode("gptq") } else { any };
            match model.get_as(name, &expected).as_ref().map(|tensor| tensor.kind()) {
                Err(error) | Ok(TensorKind::Unclear(error)) => Some(error.to_string()),
                Ok(kind) => {
                    assert!(matches!(kind, TensorKind::Quantized(_)), "{name}: {kind}");
                    None
                }
            }
        };
        matrices.iter().filter_map(text).collect::<Vec<_>>()
    };
    let own = [("gptq.g_idx", I32, &[64][..]), ("nvfp4.global_scale", F32, &[1])];
    let others = "; this file is shard 1 of 2: open the index, or the folder";
    assert_eq!(unclear(&own, None), Vec::<String>::new());
    assert_eq!(unclear(&[], Some(&["n"])), Vec::<String>::new());
    let texts = unclear(&[], None);
    assert_eq!(texts.len(), 2);
    for (text, name) in texts.iter().zip(["gptq.g_idx", "nvfp4.weight_scale_2"]) {
        assert!(
            text.contains(&format!("{name} may lie in another shard")) && text.ends_with(others),
            "{text}"
        );
    }
    for name in ["affine.order", "gptq.g_idx", "nvfp4.global_scale", "nvfp4.weight_scale_2"] {
        let texts = unclear(&[], Some(&[name]));
        assert!(texts[0].ends_with(&format!("{name} lies in {two}{others}")), "{texts:?}");
        assert_eq!(texts.len(), 1);
    }
    // A broken index closes no more than none, and the error says what is wrong with it.
    let broken = open(&[(one, with(&[])), ("m.safetensors.index.json", b"{}".to_vec())]).unwrap();
    let text = broken.get("nvfp4").and_then(|tensor| tensor.sizes()).unwrap_err().to_string();
    assert!(
        text.contains("may lie in another shard, and m.safetensors.index.json: weight_map is null"),
        "{text}"
    );
    assert!(broken.get("affine").unwrap().sizes().is_ok());
}

#[test]
fn a_tensor_in_two_shards_is_the_one_that_the_index_says() {
    let shards = [
        ("a.st", file(&[tensor("n", F32, &[2])], &[])),
        ("b.st", file(&[tensor("n", F32, &[3]), tensor("m", F32, &[1])], &[])),
    ];
    let with = |entries: &[(&str, &str)]| open(&[&[(INDEX, index(entries))][..], &shards].concat());
    let model = with(&[("n", "b.st"), ("m", "b.st")]).unwrap();
    assert_eq!((model.get("n").unwrap().shape(), model.files().len()), (&[3][..], 1));
    let third = ("c.st", file(&[tensor("m", F32, &[5])], &[]));
    let all = [&[(INDEX, index(&[("n", "a.st"), ("m", "c.st")]))][..], &shards, &[third]].concat();
    assert_eq!(open(&all).unwrap().get("m").unwrap().shape(), [5]);
}

#[test]
fn folders_hold_one_model() {
    let folder = tempfile::tempdir().unwrap();
    let refused = || Model::open(folder.path()).err().unwrap().to_string();
    assert!(refused().contains("no .safetensors or .gguf file is there"));
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    put("x.safetensors", &file(&[tensor("n", F32, &[2])], &[]));
    assert_eq!(Model::open(folder.path()).unwrap().tensors().len(), 1);
    put("y.safetensors", &file(&[], &[]));
    assert!(
        refused().ends_with("several models are there, name one: x.safetensors, y.safetensors")
    );
    put("z.gguf", &part("a", &[]));
    assert!(refused().ends_with("name one: x.safetensors, y.safetensors, z.gguf"));
    put("model.safetensors", &file(&[tensor("n", F32, &[3])], &[]));
    // Without the GGUF file, `model.safetensors` would be taken.
    assert!(
        refused().ends_with("name one: model.safetensors, x.safetensors, y.safetensors, z.gguf")
    );
    (0..7).for_each(|i| put(&format!("z{i}.gguf"), &part("a", &[])));
    assert!(
        refused()
            .ends_with(", z.gguf, z0.gguf, z1.gguf, z2.gguf, z3.gguf, z4.gguf, z5.gguf and 1 more")
    );
    (0..7).for_each(|i| std::fs::remove_file(folder.path().join(format!("z{i}.gguf"))).unwrap());
    std::fs::remove_file(folder.path().join("z.gguf")).unwrap();
    let model = Model::open(folder.path()).unwrap();
    assert_eq!(model.get("n").unwrap().shape(), [3]);
    assert!(model.get("n").unwrap().file().ends_with("model.safetensors"));
    let length = std::fs::metadata(folder.path().join("model.safetensors")).unwrap().len();
    assert_eq!(model.get("n").unwrap().offset(), length - 12);
    put(INDEX, &index(&[("n", "x.safetensors")]));
    assert_eq!(Model::open(folder.path()).unwrap().get("n").unwrap().shape(), [2]);
    assert!(matches!(
        Model::open(folder.path().join("none.gguf")),
        Err(tilewise_files::Error::File { text, .. }) if text.contains("none.gguf")
    ));
    put("empty.safetensors", &[]);
    let text = Model::open(folder.path().join("empty.safetensors")).err().unwrap().to_string();
    assert!(text.contains("empty.safetensors: an empty file: download"), "{text}");
}

/// A GGUF file of one tensor of F32 [1], with numbers of a split.
fn part(name: &str, split: &[(&str, u32, u64)]) -> Vec<u8> {
    let text = |text: &str| [&(text.len() as u64).to_le_bytes()[..], text.as_bytes()].concat();
    let mut bytes = b"GGUF\x03\0\0\0\x01\0\0\0\0\0\0\0".to_vec();
    bytes.extend((split.len() as u64).to_le_bytes());
    for (key, kind, value) in split {
        bytes.extend(text(key));
        bytes.extend(kind.to_le_bytes());
        bytes.extend(&value.to_le_bytes()[..if *kind == 2 { 2 } else { 4 }]);
    }
    bytes.extend(text(name));
    bytes.extend(1u32.to_le_bytes());
    bytes.extend(1u64.to_le_bytes());
    bytes.extend([0; 12]);
    bytes.resize(bytes.len().next_multiple_of(32), 0);
    bytes.extend(1f32.to_le_bytes());
    bytes
}

#[test]
fn split_files_are_opened_together() {
    let numbers = |no, count, total| {
        [("split.no", 2, no), ("split.count", 2, count), ("split.tensors.count", 5, total)]
    };
    let (one, two) = ("m-00001-of-00002.gguf", "m-00002-of-00002.gguf");
    let pair = |a: Vec<u8>, b: Vec<u8>| open(&[(one, a), (two, b)]);
    let (a, b) = (part("a", &numbers(0, 2, 2)), part("b", &numbers(1, 2, 2)));
    let model = pair(a.clone(), b.clone()).unwrap();
    let names: Vec<_> =
        model.tensors().map(|tensor| format!("{} {}", tensor.name(), tensor.file())).collect();
    assert_eq!(names, ["a m-00001-of-00002.gguf", "b m-00002-of-00002.gguf"]);
    assert_eq!(model.gguf_value("split.count").unwrap().as_u64(), Some(2));
    assert_eq!(open(&[(two, b.clone()), (one, a.clone())]).unwrap().tensors().len(), 2);
    let refused = |model: tilewise_files::Result<Model>, expected: &str| {
        let text = model.err().expect(expected).to_string();
        assert!(text.contains(expected), "{text}");
    };
    refused(open(&[(one, a.clone())]), "m-00002-of-00002.gguf: there is no such file");
    refused(
        open(&[("m.gguf", a.clone())]),
        "it is one of 2 files, which are named NAME-00001-of-00002.gguf",
    );
    refused(
        pair(a.clone(), part("a", &numbers(1, 2, 2))),
        "tensor \"a\" is in m-00001-of-00002.gguf already",
    );
    refused(pair(a.clone(), part("b", &numbers(0, 2, 2))), "split.no 0 and split.count 2");
    refused(pair(a.clone(), part("b", &[])), "split.no -1");
    refused(
        pair(part("a", &numbers(0, 2, 3)), b),
        "split.tensors.count is 3; the 2 files hold 2 tensors",
    );
    let alone = open(&[("m.gguf", part("a", &[]))]).unwrap();
    assert_eq!(
        (alone.gguf_version(), alone.get("a").unwrap().kind()),
        (Some(3), &TensorKind::Dense(tilewise_core::DType::F32))
    );
}

/// The tensors of a matrix that cannot be put together are named with their types, and so are those
/// that it lacks.
#[test]
fn a_matrix_that_lacks_a_tensor() {
    let file = file(
        &[
            tensor("a.weight", U32, &[3, 8]),
            tensor("b.weight", I64, &[3, 8]),
            tensor("b.scales", F16, &[3, 1]),
            tensor("b.biases", F16, &[3, 1]),
            tensor("c.qweight", I32, &[8, 32]),
            tensor("c.scales", F16, &[1, 32]),
            tensor("d.weight", F32, &[3, 8]),
        ],
        &[],
    );
    let model = open(&[("m.safetensors", file)]).unwrap();
    for (name, why) in [
        ("a", "a.weight (U32), and affine-4bit-g64-f32 needs a.scales (F32), a.biases (F32)"),
        ("b", "b.weight (I64), and affine-4bit-g64-f16 needs b.weight (U32)"),
        (
            "c",
            "; there is c.qweight (I32), c.scales (F16), and gptq or awq-gemv or awq-gemv-fast or \
             awq needs c.qzeros (any type)",
        ),
        ("d", "the nearest of 7 is \"d.weight\""),
    ] {
        let text = model.get(name).err().unwrap().to_string();
        assert!(text.contains(why), "{text}");
    }
}
