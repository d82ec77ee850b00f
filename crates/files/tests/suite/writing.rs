//! Written files are read back, by this crate and by the crate `safetensors`; failures leave
//! nothing.

use crate::support::{file, open, tensor};
use safetensors::SafeTensors;
use safetensors::tensor::Dtype::{F16, I32, I64};
use std::collections::BTreeMap;
use tilewise_core::quant::Quantized;
use tilewise_core::{DType, QuantFormat};
use tilewise_files::{Chunk, Error, Kind, Model, Output, Result, write};

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
    let mut outputs: Vec<_> =
        weights.iter().map(|weights| Output::quantized(&format!("l.{}", weights.format()), weights)).collect();
    outputs.push(Output::dense("norm", DType::BF16, &[3], &[1, 2, 3, 4, 5, 6]));
    outputs.push(Output::quantized("", &weights[0]).with_order((0..weights[0].k() as u32).rev().collect()));
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
        let outputs = model.tensors().map(|tensor| Output::tensor(&tensor)).collect::<Result<_>>().unwrap();
        write(&path, outputs, &metadata, &mut |_, _| {}).unwrap();
        (Model::open(&path).unwrap(), std::fs::read(&path).unwrap())
    };
    let (first, again) = copy(&model, "first.safetensors");
    assert!(copy(&first, "second.safetensors").1 == again);
}

#[test]
fn other_types_and_imports_are_copied() {
    let mut tensors =
        vec![tensor("ids", I64, &[3]), tensor("w.qweight", I32, &[16, 8]), tensor("w.qzeros", I32, &[2, 1])];
    tensors.push(tensor("w.scales", F16, &[2, 8]));
    let order = (0..128u32).flat_map(|k| (k % 2).to_le_bytes()).collect();
    tensors.push(("w.g_idx".into(), I32, vec![128], order));
    let model = open(&[("m.safetensors", file(&tensors, &[]))]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    let outputs = model.tensors().map(|tensor| Output::tensor(&tensor)).collect::<Result<_>>().unwrap();
    write(&path, outputs, &BTreeMap::new(), &mut |_, _| {}).unwrap();
    let read = Model::open(&path).unwrap();
    assert_eq!(*read.get("ids").unwrap().kind(), Kind::Other("I64".into()));
    let (w, written) = (model.get("w").unwrap(), read.get("w").unwrap());
    assert_eq!(w.quantized().unwrap(), written.quantized().unwrap());
    assert_eq!((w.order(), written.stored()), (written.order(), "safetensors"));
    assert!(w.order().unwrap().is_some());
}

#[test]
fn failures_leave_what_was_there() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.safetensors");
    std::fs::write(&path, "before").unwrap();
    let stream = |bytes: &'static [&'static [u8]]| {
        Output::streamed("a", Kind::Dense(DType::F16), &[2], move |sink| {
            let mut offset = 0;
            for bytes in bytes {
                sink(Chunk { plane: 0, offset, bytes })?;
                offset += bytes.len() as u64;
            }
            Ok(())
        })
    };
    let fails = |outputs: Vec<Output<'_>>, expected: &str| {
        let error = write(&path, outputs, &BTreeMap::new(), &mut |_, _| {}).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"before");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    };
    fails(vec![stream(&[&[1, 2], &[3]])], "a: the stream ended after 3 of 4 bytes");
    fails(vec![stream(&[&[1, 2], &[3, 4, 5]])], "a: 3 bytes at 2 follow 2, of 4");
    fails(vec![stream(&[&[1; 4]]), Output::dense("a", DType::F32, &[], &[0; 4])], "two tensors are named \"a\"");
    let weights = sample(QuantFormat::all().next().unwrap());
    let bytes = [0; 4];
    let name = format!("w.{}", weights.format().planes()[0].name);
    fails(vec![Output::quantized("w", &weights), Output::dense(&name, DType::F32, &[1], &bytes)], "two tensors");
    let gap = Output::streamed("a", Kind::Dense(DType::F16), &[2], |sink| {
        sink(Chunk { plane: 0, offset: 2, bytes: &[0; 2] })
    });
    fails(vec![gap], "a: 2 bytes at 2 follow 0, of 4");
    let other = Output::streamed("a", Kind::Dense(DType::F16), &[2], |sink| {
        sink(Chunk { plane: 1, offset: 0, bytes: &[0; 2] })
    });
    fails(vec![other], "a: plane 1 of 1");
    let stopped = Output::streamed("a", Kind::Dense(DType::F16), &[2], |_| Err(Error::Value("stopped".into())));
    fails(vec![stopped], "stopped");
    let whole = Output::streamed("a", Kind::Quantized(weights.format()), &[3, 33], |_| Ok(()));
    fails(vec![whole], "K = 33 is not a multiple of");
    let unknown = Output::streamed("a", Kind::Other("IQ2_XXS".into()), &[3], |_| Ok(()));
    fails(vec![unknown], "a: elements of IQ2_XXS have no name in safetensors");
    let huge = Output::streamed("a", Kind::Dense(DType::F32), &[usize::MAX, 2], |_| Ok(()));
    fails(vec![huge], "overflow");
    let nowhere = write(folder.path().join("no/m.safetensors"), vec![], &BTreeMap::new(), &mut |_, _| {});
    assert!(matches!(nowhere, Err(Error::File(text)) if text.contains("m.safetensors")));
    let onto = write(folder.path(), vec![], &BTreeMap::new(), &mut |_, _| {});
    assert!(matches!(onto, Err(Error::File(text)) if text.contains("not a regular file")));
}
