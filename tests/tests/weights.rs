//! Quantized weights as a program gets them: from model files that MLX, gguf and others made, from
//! planes, and from buffers of its own. What a model's products are lies beside it
//! (`crates/cli/tests/data/make_vectors.py`).

use std::path::{Path, PathBuf};
use tilewise::tilewise_files::{Expected, Kind, Model};
use tilewise::wgpu::{BufferDescriptor, BufferUsages};
use tilewise::{Context, DType, Error, Gemm, Part, QuantFormat, Quantized, QuantizedTensor, Tensor, Weights};
use tilewise_core::quant::dequantize;
use tilewise_tests::{Rng, adapters};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cli/tests/data")
}

/// A tensor of a file of expectations, in f32 or f64.
fn expected(model: &Model, name: &str) -> Option<(Vec<usize>, Vec<f64>)> {
    let tensor = model.get(name).ok()?;
    let bytes = tensor.planes(&mut |_, _| {}).unwrap().swap_remove(0);
    let numbers = match tensor.kind() {
        Kind::Dense(DType::F32) => bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b).into()).collect(),
        _ => bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
    };
    Some((tensor.shape().to_vec(), numbers))
}

/// Every matrix of a model against what it gives with x. Returns how many there were.
fn products(context: &Context, model: &str, beside: &str, most: usize) -> usize {
    let weights = Weights::open(context, data().join(model)).unwrap();
    let answers = Model::open(data().join(beside).join("expected.safetensors")).unwrap();
    let mut count = 0;
    for tensor in weights.model().tensors().filter(|tensor| matches!(tensor.kind(), Kind::Quantized(_))) {
        let name = tensor.name();
        let stem = name.strip_suffix(".weight").unwrap_or(name);
        let Some((_, y)) = expected(&answers, &format!("{stem}.y")) else { continue };
        if count == most || tensor.shape().len() > 2 {
            continue;
        }
        count += 1;
        let w = weights.get(name).unwrap().quantized().unwrap();
        let [n, k] = w.shape()[..] else { unreachable!("a matrix") };
        let (shape, x) = expected(&answers, &format!("x.{k}")).unwrap();
        let x: Vec<f32> = x.into_iter().map(|x| x as f32).collect();
        let input = Tensor::upload(context, &x, &shape).unwrap();
        let found = Gemm::new(&input, &w).kernel("naive").run().unwrap().read_blocking::<f32>().unwrap();
        let numbers = w.dequantize(DType::F32).unwrap().read_blocking::<f32>().unwrap();
        for (i, (found, y)) in found.iter().zip(&y).enumerate() {
            let (row, column) = (i / n * k, i % n * k);
            let terms = x[row..row + k].iter().zip(&numbers[column..column + k]);
            let size: f64 = terms.map(|(x, w)| f64::from((x * w).abs())).sum();
            assert!((f64::from(*found) - y).abs() <= 1e-5 * size, "{model} {name} on {context:?}: {found} for {y}");
        }
    }
    count
}

#[test]
fn models_of_others() {
    let gptq = |folder: &Path| folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("gptq-"));
    let mut folders: Vec<_> = std::fs::read_dir(data()).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| gptq(folder));
    assert!(folders.len() >= 8, "{folders:?}");
    let imports: Vec<_> = folders.iter().map(|folder| folder.file_name().unwrap().to_str().unwrap()).collect();
    let cpu = Context::cpu();
    let all = [("mlx", "mlx", 25), ("mlx-sharded", "mlx", 25), ("gguf/all.gguf", "gguf", 12), ("awq", "awq", 1)];
    let some =
        [("gguf/v2.gguf", "gguf", 1), ("gguf/aligned.gguf", "gguf", 1), ("gguf/split-00001-of-00002.gguf", "gguf", 2)];
    for (model, beside, least) in all.into_iter().chain(some) {
        let count = products(&cpu, model, beside, usize::MAX);
        assert!(count >= least, "{count} matrices in {model}");
    }
    for import in &imports {
        assert_eq!(products(&cpu, import, import, usize::MAX), 1, "{import}");
    }
    // The program's tests run all of them on every adapter.
    for adapter in adapters() {
        assert_eq!(products(&adapter.context, "gguf/all.gguf", "gguf", 2), 2);
        assert_eq!(products(&adapter.context, "gptq-4bit-act-order", "gptq-4bit-act-order", 1), 1);
    }
}

#[test]
fn tensors_by_name() {
    let context = Context::cpu();
    let weights = Weights::open(&context, data().join("mlx")).unwrap();
    let names: Vec<_> = weights.names().map(str::to_owned).collect();
    assert_eq!(
        weights.iter().map(|(name, weight)| weight.map(|_| name.to_owned()).unwrap()).collect::<Vec<_>>(),
        names
    );
    let matrix = names.iter().find(|name| name.ends_with("affine-4bit-g64-f16")).unwrap();
    let full = format!("{matrix}.scales");
    assert!(weights.get(&full).unwrap().quantized().is_ok(), "the name of a part is a name of the whole");
    assert!(matches!(weights.get(matrix).unwrap().dense(), Err(Error::Unsupported(_))));
    let typo = matrix.replace("4bit-g64", "4bit-g46");
    assert!(matches!(weights.get(&typo), Err(Error::NotFound(text)) if text.contains(&**matrix)));
    let contradicts = weights.get_with(matrix, &Expected::from(QuantFormat::MXFP4), &mut |_, _| {});
    assert!(matches!(contradicts, Err(Error::Unsupported(text)) if text.contains("mxfp4")));
    let mut last = (0, 0);
    weights.get_with(matrix, &Expected::default(), &mut |done, all| last = (done, all)).unwrap();
    assert!(last.0 == last.1 && last.0 > 0, "{last:?}");
    let path = data().join("mlx/model.safetensors");
    assert!(QuantizedTensor::from_safetensors(&context, &path, matrix).is_ok());
    let dense = weights.model().tensors().find(|tensor| matches!(tensor.kind(), Kind::Dense(_))).unwrap().name();
    let refused = QuantizedTensor::from_safetensors(&context, &path, dense);
    assert!(matches!(refused, Err(Error::Unsupported(_))));
    assert!(
        matches!(Weights::open(&context, data().join("nowhere")), Err(Error::File(text)) if text.contains("nowhere"))
    );
}

/// From bytes, from buffers, transposed, with a factor and in another order: the product that the
/// dequantized weights give.
#[test]
fn parts_and_views() {
    let contexts = adapters().iter().map(|adapter| adapter.context.clone()).chain([Context::cpu()]);
    for context in contexts {
        let mut rng = Rng::new(5);
        let (n, k) = (64, 96);
        for format in [QuantFormat::NVFP4, QuantFormat::Q8_0] {
            let host = Quantized::sample(format, n, k, || rng.bits() as u32).unwrap();
            let numbers = dequantize(&host);
            let bytes: Vec<_> = host.planes().iter().map(|plane| Part::Bytes(plane)).collect();
            let w = QuantizedTensor::from_parts(&context, format, &[n, k], &bytes).unwrap();
            let check = |w: &QuantizedTensor, [n, k]: [usize; 2], wanted: &dyn Fn(usize, usize) -> f32| {
                let x: Vec<f32> = (0..3 * k).map(|i| ((i * 7) % 11) as f32 - 5.0).collect();
                let input = Tensor::upload(&context, &x, &[3, k]).unwrap();
                let found = Gemm::new(&input, w).kernel("naive").run().unwrap().read_blocking::<f32>().unwrap();
                for (i, found) in found.iter().enumerate() {
                    let terms = (0..k).map(|at| f64::from(x[i / n * k + at]) * f64::from(wanted(i % n, at)));
                    let (sum, size) = terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
                    assert!((f64::from(*found) - sum).abs() <= 1e-5 * size, "{format} on {context:?}: {found}, {sum}");
                }
            };
            check(&w, [n, k], &|row, column| numbers[row * k + column]);
            check(&w.t(), [k, n], &|row, column| numbers[column * k + row]);
            let slice = w.slice(8..40, 32..96).unwrap();
            check(&slice.t(), [64, 32], &|row, column| numbers[(column + 8) * k + row + 32]);
            let reversed: Vec<u32> = (0..k as u32).rev().collect();
            let ordered = w.clone().with_order(&reversed).unwrap();
            check(&ordered, [n, k], &|row, column| numbers[row * k + k - 1 - column]);
            let whole = ordered.dequantize(DType::F32).unwrap().read_blocking::<f32>().unwrap();
            assert!((0..n * k).all(|i| whole[i] == numbers[i / k * k + k - 1 - i % k]), "{format}");
            assert!(matches!(ordered.slice(0..n, 0..32), Err(Error::Unsupported(_))));
            assert!(matches!(ordered.read_blocking(), Err(Error::Unsupported(text)) if text.contains("order")));
            assert_eq!(ordered.order().unwrap().read_blocking::<u32>().unwrap(), reversed);
            assert!(w.clone().with_order(&reversed[1..]).is_err() && w.clone().with_order(&vec![0; k]).is_err());
            let factor = w.clone().with_factor(-0.375);
            match format.def().factor_of {
                Some(_) => check(&factor.unwrap(), [n, k], &|row, column| -0.375 * numbers[row * k + column]),
                None => assert!(matches!(factor, Err(Error::Unsupported(_)))),
            }
            let Some(device) = context.device() else { continue };
            let start = u64::from(context.caps().storage_alignment);
            let in_buffer = |plane: &Vec<u8>| {
                let size = start + plane.len().next_multiple_of(4) as u64;
                let usage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
                let descriptor = BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
                let buffer = device.create_buffer(&descriptor);
                context.queue().unwrap().write_buffer(&buffer, start, plane);
                Part::Buffer(buffer, start)
            };
            let buffers: Vec<_> = host.planes().iter().map(in_buffer).collect();
            let there = QuantizedTensor::from_parts(&context, format, &[n, k], &buffers).unwrap();
            check(&there, [n, k], &|row, column| numbers[row * k + column]);
            let refused = |parts: &[Part<'_>], shape: &[usize]| {
                QuantizedTensor::from_parts(&context, format, shape, parts).unwrap_err().to_string()
            };
            assert!(refused(&buffers, &[n + 64, k]).contains("buffer holds"));
            assert!(refused(&buffers[1..], &[n, k]).contains("scales"));
            assert!(refused(&bytes, &[n, k - 1]).contains(&format!("K = {}", k - 1)));
            assert!(refused(&bytes, &[n]).contains("[N,K]"));
            let Part::Buffer(buffer, _) = &buffers[0] else { unreachable!("made above") };
            assert!(refused(&[Part::Buffer(buffer.clone(), 4), buffers[1].clone()], &[n, k]).contains("byte 4"));
        }
    }
}
