//! Written files are read back, by this crate and by the crate `safetensors`; failures leave
//! nothing.

use crate::support::{tensor, with_config};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype::{F16, I32, I64};
use std::collections::BTreeMap;
use tilewise_core::quant::Quantized;
use tilewise_core::{DType, QuantFormat};
use tilewise_files::{Chunk, Error, Model, Output, Result, TensorKind, write, write_to};

fn sample(format: QuantFormat) -> Quantized {
    let mut seed = 7u32;
    let random = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    };
    Quantized::sample(format, 3, 2 * format.block() as usize, random).unwrap()
}

#[test]
fn files_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let weights: Vec<Quantized> = QuantFormat::all().map(sample).collect();
    let scaled = sample(QuantFormat::NVFP4).with_factor(0.3).unwrap();
    let mut outputs: Vec<_> = weights
        .iter()
        .map(|weights| Output::quantized(&format!("l.{}", weights.format()), weights))
        .collect();
    outputs.push(Output::dense("norm", DType::BF16, &[3], &[1, 2, 3, 4, 5, 6]));
    outputs.push(
        Output::quantized("", &weights[0]).with_order((0..weights[0].k() as u32).rev().collect()),
    );
    outputs.push(Output::quantized("scaled", &scaled));
    let metadata = BTreeMap::from([("origin".to_owned(), "here".to_owned())]);
    let mut seen = Vec::new();
    write(&path, outputs, &metadata, &mut |done, total| seen.push((done, total))).unwrap();
    assert!(seen.is_sorted() && seen.last().is_some_and(|(done, total)| done == total));

    let model = Model::open(&path).unwrap();
    for weights in &weights {
        let read = model.get(&format!("l.{}", weights.format())).unwrap();
        assert_eq!(read.quantized().unwrap(), *weights);
    }
    let turned = model.get("").unwrap();
    assert_eq!(turned.quantized().unwrap(), weights[0]);
    assert_eq!(turned.order().unwrap().unwrap()[0], weights[0].k() as u32 - 1);
    assert_eq!(model.get("scaled").unwrap().quantized().unwrap(), scaled);
    assert_eq!(model.get("norm").unwrap().dense().unwrap(), (DType::BF16, &[1, 2, 3, 4, 5, 6][..]));
    assert!(model.metadata().any(|entry| entry == ("origin", "here")));
    let bytes = std::fs::read(&path).unwrap();
    let theirs = SafeTensors::deserialize(&bytes).unwrap();
    assert_eq!(theirs.tensor("norm").unwrap().data(), [1, 2, 3, 4, 5, 6]);
    for (name, view) in theirs.tensors() {
        let at = view.data().as_ptr() as usize - bytes.as_ptr() as usize;
        assert!(at.is_multiple_of(view.dtype().bitsize() / 8), "{name} at {at}");
    }
    // A copy of a copy is the same file.
    let copy = |model: &Model, name: &str| {
        let path = folder.path().join(name);
        let outputs =
            model.tensors().map(|tensor| Output::tensor(&tensor)).collect::<Result<_>>().unwrap();
        write(&path, outputs, &metadata, &mut |_, _| {}).unwrap();
        (Model::open(&path).unwrap(), std::fs::read(&path).unwrap())
    };
    let (first, again) = copy(&model, "first.safetensors");
    assert!(copy(&first, "second.safetensors").1 == again);
}

/// A file of these outputs in memory.
fn bytes_of(outputs: Vec<Output<'_>>, metadata: &[(&str, &str)]) -> Result<Vec<u8>> {
    let metadata =
        metadata.iter().map(|(key, value)| (key.to_string(), value.to_string())).collect();
    let mut bytes = std::io::Cursor::new(Vec::new());
    write_to(&mut bytes, outputs, &metadata, &mut |_, _| {})?;
    Ok(bytes.into_inner())
}

#[test]
fn every_format_tells_its_name() {
    for format in QuantFormat::all() {
        let weights = sample(format);
        for prefix in ["", "w", "layers.0.w"] {
            let bytes = bytes_of(vec![Output::quantized(prefix, &weights)], &[]).unwrap();
            let model = Model::from_bytes("f", bytes).unwrap();
            assert_eq!(model.tensors().map(|tensor| tensor.name()).collect::<Vec<_>>(), [prefix]);
            assert_eq!(model.get_as(prefix, &format.into()).unwrap().quantized().unwrap(), weights);
            for other in QuantFormat::kinds().into_iter().filter(|other| *other != format) {
                let refused = model.get_as(prefix, &other.into()).unwrap_err().to_string();
                assert!(
                    refused.contains(other.name()) && refused.contains(format.name()),
                    "{refused}"
                );
            }
        }
    }
}

#[test]
fn truncated_files_are_refused() {
    for format in QuantFormat::kinds() {
        let bytes = bytes_of(vec![Output::quantized("w", &sample(format))], &[]).unwrap();
        for length in 0..bytes.len() {
            let read = Model::from_bytes("f", bytes[..length].to_vec());
            assert!(matches!(read, Err(Error::File { .. })), "{format}: {length} bytes");
        }
    }
}

/// Entries of the metadata that name formats are those of the outputs, whatever was there.
#[test]
fn formats_of_other_files_are_dropped() {
    let weights = sample(QuantFormat::Q8_0);
    let stale = [
        ("quantization", "mxfp4"),
        ("w.quantization", "mxfp4"),
        ("a.quantization", "int4"),
        ("origin", "x"),
    ];
    for (outputs, expected) in [
        (vec![Output::quantized("w", &weights)], &[("origin", "x"), ("quantization", "q8_0")][..]),
        (vec![Output::dense("w", DType::F16, &[1], &[0; 2])], &[("origin", "x")]),
    ] {
        let model = Model::from_bytes("f", bytes_of(outputs, &stale).unwrap()).unwrap();
        assert_eq!(model.metadata().collect::<Vec<_>>(), expected);
    }
}

/// A file beside a `config.json` must be readable beside it.
#[test]
fn a_config_that_says_otherwise_is_told_before_any_work() {
    let folder = tempfile::tempdir().unwrap();
    let config = r#"{"quantization":{"bits":8,"group_size":32,"mode":"affine",
        "v":{"bits":4,"group_size":64}}}"#;
    std::fs::write(folder.path().join("config.json"), config).unwrap();
    let path = folder.path().join("m.safetensors");
    let put = |name: &str, format: &str| {
        let weights = sample(format.parse().unwrap());
        write(&path, vec![Output::quantized(name, &weights)], &BTreeMap::new(), &mut |_, _| {})
    };
    for (name, format) in [("w", "affine-8bit-g32-f16"), ("v", "affine-4bit-g64-f32")] {
        put(name, format).unwrap();
        assert_eq!(Model::open(&path).unwrap().get(name).unwrap().kind().to_string(), format);
    }
    let before = std::fs::read(&path).unwrap();
    for (name, format) in [("w", "mxfp8"), ("v", "affine-8bit-g32-f16")] {
        let text = put(name, format).unwrap_err().to_string();
        let expected = format!("m.safetensors: {name:?} would be {format}, but ");
        assert!(
            text.contains(&expected)
                && text.contains(" bits, groups of ")
                && text.contains("config.json"),
            "{text}"
        );
        assert!(std::fs::read(&path).unwrap() == before);
    }
    // Numbers are of no format.
    let dense = Output::dense("w", DType::F16, &[1], &[0; 2]);
    write(&path, vec![dense], &BTreeMap::new(), &mut |_, _| {}).unwrap();
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let put = |name: &str| write(at(name), vec![], &BTreeMap::new(), &mut |_, _| {});
    std::fs::create_dir(at("there")).unwrap();
    // Through two links to a file that does not exist yet.
    symlink("second", at("first")).unwrap();
    symlink("there/file", at("second")).unwrap();
    for name in ["first", "second", "there/file"] {
        put(name).unwrap();
        assert!(
            at("first").is_symlink() && at("second").is_symlink() && !at("there/file").is_symlink()
        );
        assert!(Model::open(at("first")).is_ok());
        std::fs::set_permissions(at("there/file"), PermissionsExt::from_mode(0o600)).unwrap();
        put(name).unwrap();
        assert_eq!(
            std::fs::metadata(at("there/file")).unwrap().permissions().mode() & 0o777,
            0o600,
            "{name}"
        );
    }
    symlink("circle", at("circle")).unwrap();
    assert!(
        put("circle").unwrap_err().to_string().contains("circle: leads through more than 40 links")
    );
}

#[test]
fn other_types_and_imports_are_copied() {
    let mut tensors = vec![
        tensor("ids", I64, &[3]),
        tensor("w.qweight", I32, &[16, 8]),
        tensor("w.qzeros", I32, &[2, 1]),
    ];
    tensors.push(tensor("w.scales", F16, &[2, 8]));
    let order = (0..128u32).flat_map(|k| (k % 2).to_le_bytes()).collect();
    tensors.push(("w.g_idx".into(), I32, vec![128], order));
    let model = with_config(&tensors, r#"{"quantization_config":{"quant_method":"gptq"}}"#);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let outputs =
        model.tensors().map(|tensor| Output::tensor(&tensor)).collect::<Result<_>>().unwrap();
    write(&path, outputs, &BTreeMap::new(), &mut |_, _| {}).unwrap();
    let read = Model::open(&path).unwrap();
    assert_eq!(*read.get("ids").unwrap().kind(), TensorKind::Other("I64".into()));
    let (w, written) = (model.get("w").unwrap(), read.get("w").unwrap());
    assert_eq!(w.quantized().unwrap(), written.quantized().unwrap());
    assert_eq!((w.order(), written.stored()), (written.order(), "safetensors"));
    assert!(w.order().unwrap().is_some());
    // A type that nobody knows yet keeps its bytes.
    let header = r#"{"a":{"dtype":"F2","shape":[9],"data_offsets":[0,3]}}"#;
    let bytes = [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &[1, 2, 3]].concat();
    let model = Model::from_bytes("f", bytes).unwrap();
    let copy = bytes_of(vec![Output::tensor(&model.get("a").unwrap()).unwrap()], &[]).unwrap();
    let copy = Model::from_bytes("f", copy).unwrap();
    let a = copy.get("a").unwrap();
    assert_eq!((a.kind(), a.shape()), (&TensorKind::Other("F2".into()), &[9][..]));
    assert_eq!(a.planes(&mut |_, _| {}).unwrap(), [[1, 2, 3]]);
}

#[test]
fn failures_leave_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    std::fs::write(&path, "before").unwrap();
    let stream = |bytes: &'static [&'static [u8]]| {
        Output::streamed("a", TensorKind::Dense(DType::F16), &[2], move |sink| {
            let mut offset = 0;
            for bytes in bytes {
                sink(Chunk { plane: 0, offset, bytes })?;
                offset += bytes.len() as u64;
            }
            Ok(())
        })
    };
    let fails = |outputs: Vec<Output<'_>>, expected: &str| {
        let error =
            write(&path, outputs, &BTreeMap::new(), &mut |_, _| {}).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    };
    fails(vec![stream(&[&[1, 2], &[3]])], "a: the stream ended after 3 of 4 bytes");
    fails(
        vec![stream(&[&[1, 2], &[3, 4, 5]])],
        "a: 3 bytes for offset 2, but 2 of 4 are written so far",
    );
    fails(
        vec![stream(&[&[1; 4]]), Output::dense("a", DType::F32, &[], &[0; 4])],
        "two tensors to be written are named \"a\"",
    );
    let weights = sample(QuantFormat::all().next().unwrap());
    let bytes = [0; 4];
    let name = format!("w.{}", weights.format().planes()[0].name);
    fails(
        vec![Output::quantized("w", &weights), Output::dense(&name, DType::F32, &[1], &bytes)],
        "two tensors",
    );
    let gap = Output::streamed("a", TensorKind::Dense(DType::F16), &[2], |sink| {
        sink(Chunk { plane: 0, offset: 2, bytes: &[0; 2] })
    });
    fails(vec![gap], "a: 2 bytes for offset 2, but 0 of 4 are written so far");
    let other = Output::streamed("a", TensorKind::Dense(DType::F16), &[2], |sink| {
        sink(Chunk { plane: 1, offset: 0, bytes: &[0; 2] })
    });
    fails(vec![other], "a: plane 1 of 1");
    let stopped = Output::streamed("a", TensorKind::Dense(DType::F16), &[2], |_| {
        Err(Error::Misuse("stopped".into()))
    });
    fails(vec![stopped], "stopped");
    let whole =
        Output::streamed("a", TensorKind::Quantized(weights.format()), &[3, 33], |_| Ok(()));
    fails(vec![whole], "K = 33 is not a multiple of");
    let unknown = Output::streamed("a", TensorKind::Other("Q8_K".into()), &[3], |_| Ok(()));
    fails(
        vec![unknown],
        "a: Q8_K is not read, and safetensors has no such type; let another program",
    );
    let reserved = Output::dense("__metadata__", DType::F32, &[], &[0; 4]);
    fails(vec![reserved], "safetensors has no tensor of the name \"__metadata__\"");
    fails(
        vec![Output::dense(&"a".repeat(100_000_000), DType::F32, &[], &[0; 4])],
        "has at most 100000000",
    );
    let huge = Output::streamed("a", TensorKind::Dense(DType::F32), &[usize::MAX, 2], |_| Ok(()));
    fails(vec![huge], "overflow");
    let half =
        |name| Output::streamed(name, TensorKind::Dense(DType::F16), &[usize::MAX / 2], |_| Ok(()));
    // Counts of 32 bits are no offsets that overflow.
    if usize::BITS == 64 {
        fails(vec![half("a"), half("b")], "overflow: b: ");
        fails(vec![half("a")], "overflow: 18446744073709551614 bytes of tensors and");
    }
    let nowhere =
        write(folder.path().join("no/m.safetensors"), vec![], &BTreeMap::new(), &mut |_, _| {});
    assert!(matches!(nowhere, Err(Error::File { text, .. }) if text.contains("m.safetensors")));
    let onto = write(folder.path(), vec![], &BTreeMap::new(), &mut |_, _| {});
    assert!(matches!(onto, Err(Error::File { text, .. }) if text.contains("not a regular file")));
}
