//! Quantized weights as a program gets them: from model files that MLX, gguf and others made, from
//! planes, and from buffers of the caller's. The expected products lie beside each model
//! (`crates/cli/tests/data/make_vectors.py`).

use half::f16;
use std::ops::Range;
use std::path::{Path, PathBuf};
use tilewise::model::{self, Chunk, Expected, Model, Output, Sink, TensorKind};
use tilewise::wgpu::{BufferDescriptor, BufferUsages};
use tilewise::{
    Context, DType, Error, Gemm, GroupEnds, PlaneSource, QuantFormat, Quantized, QuantizedTensor,
    Take, Tensor, Weights,
};
use tilewise_core::quant::{dequantize, quantize};
use tilewise_tests::{Rng, adapters, contexts};

fn data() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/cli/tests/data")
}

/// A tensor of a file of expectations, in f32 or f64.
fn expected(model: &Model, name: &str) -> Option<(Vec<usize>, Vec<f64>)> {
    let tensor = model.get(name).ok()?;
    let bytes = tensor.planes(&mut |_, _| {}).unwrap().swap_remove(0);
    let numbers = match tensor.kind() {
        TensorKind::Dense(DType::F32) => {
            bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b).into()).collect()
        }
        _ => bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
    };
    Some((tensor.shape().to_vec(), numbers))
}

/// Compares the product of x and every matrix of a model with the expected one. Returns how many
/// matrices there were.
fn products(context: &Context, model: &str, beside: &str, most: usize) -> usize {
    let weights = Weights::open(context, data().join(model)).unwrap();
    let answers = Model::open(data().join(beside).join("expected.safetensors")).unwrap();
    let mut count = 0;
    for tensor in
        weights.model().tensors().filter(|tensor| matches!(tensor.kind(), TensorKind::Quantized(_)))
    {
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
        let found =
            Gemm::new(&input, &w).kernel("naive").run().unwrap().read_blocking::<f32>().unwrap();
        let numbers = w.dequantize(DType::F32).unwrap().read_blocking::<f32>().unwrap();
        for (i, (found, y)) in found.iter().zip(&y).enumerate() {
            let (row, column) = (i / n * k, i % n * k);
            let terms = x[row..row + k].iter().zip(&numbers[column..column + k]);
            let size: f64 = terms.map(|(x, w)| f64::from((x * w).abs())).sum();
            assert!(
                (f64::from(*found) - y).abs() <= 1e-5 * size,
                "{model} {name} on {context:?}: {found} for {y}"
            );
        }
    }
    count
}

#[test]
fn models_of_others() {
    let gptq = |folder: &Path| {
        folder.file_name().is_some_and(|name| name.to_string_lossy().starts_with("gptq-"))
    };
    let mut folders: Vec<_> =
        std::fs::read_dir(data()).unwrap().map(|entry| entry.unwrap().path()).collect();
    folders.retain(|folder| gptq(folder));
    assert!(folders.len() >= 8, "{folders:?}");
    let imports: Vec<_> =
        folders.iter().map(|folder| folder.file_name().unwrap().to_str().unwrap()).collect();
    let cpu = Context::cpu();
    let all = [
        ("mlx", "mlx", 25),
        ("mlx-sharded", "mlx", 25),
        ("gguf/all.gguf", "gguf", 13),
        ("awq", "awq", 1),
    ];
    let some = [
        ("gguf/v2.gguf", "gguf", 1),
        ("gguf/aligned.gguf", "gguf", 1),
        ("gguf/split-00001-of-00002.gguf", "gguf", 2),
    ];
    for (model, beside, least) in all.into_iter().chain(some) {
        let count = products(&cpu, model, beside, usize::MAX);
        assert!(count >= least, "{count} matrices in {model}");
    }
    for import in &imports {
        assert_eq!(products(&cpu, import, import, usize::MAX), 1, "{import}");
    }
    // The program's tests run all matrices on every adapter.
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
        weights
            .iter()
            .map(|(name, weight)| weight.map(|_| name.to_owned()).unwrap())
            .collect::<Vec<_>>(),
        names
    );
    let matrix = names.iter().find(|name| name.ends_with("affine-4bit-g64-f16")).unwrap();
    let full = format!("{matrix}.scales");
    assert!(
        weights.get(&full).unwrap().quantized().is_ok(),
        "the name of a part is a name of the whole"
    );
    assert!(matches!(weights.dense(matrix), Err(Error::Misuse(text)) if text.contains(&**matrix)));
    let typo = matrix.replace("4bit-g64", "4bit-g46");
    assert!(
        matches!(weights.get(&typo), Err(Error::File { text, .. }) if text.contains(&**matrix))
    );
    let contradicts = weights.get_as(matrix, &Expected::from(QuantFormat::MXFP4));
    assert!(matches!(contradicts, Err(Error::File { text, .. }) if text.contains("mxfp4")));
    let mut last = (0, 0);
    weights.get_with(matrix, &Expected::default(), &mut |done, all| last = (done, all)).unwrap();
    assert!(last.0 == last.1 && last.0 > 0, "{last:?}");
    let path = data().join("mlx/model.safetensors");
    let any = Expected::default();
    let named =
        |expected: &Expected| QuantizedTensor::from_safetensors(&context, &path, matrix, expected);
    assert!(named(&any).is_ok());
    assert!(matches!(
        named(&QuantFormat::MXFP4.into()),
        Err(Error::File { text, .. }) if text.contains("mxfp4")
    ));
    // This file does not tell the format.
    let open = data().join("mlx.safetensors");
    let said =
        |expected: &Expected| QuantizedTensor::from_safetensors(&context, &open, "f16", expected);
    assert!(matches!(said(&any), Err(Error::Misuse(_))));
    assert_eq!(said(&any.clone().bits(4)).unwrap().shape(), [5, 192]);
    assert_eq!(
        said(&QuantFormat::affine(8, 32, DType::F16).unwrap().into()).unwrap().shape(),
        [5, 96]
    );
    let gguf = data().join("gguf/all.gguf");
    assert_eq!(
        QuantizedTensor::from_gguf(&context, &gguf, "blk.0.q4_k").unwrap().shape(),
        [6, 512]
    );
    for (refused, word) in [
        (QuantizedTensor::from_gguf(&context, &path, matrix), "model.safetensors is no GGUF file"),
        (
            QuantizedTensor::from_safetensors(&context, &gguf, "blk.0.q4_k", &any),
            "all.gguf is a GGUF file",
        ),
    ] {
        assert!(matches!(&refused, Err(Error::Misuse(text)) if text.contains(word)), "{refused:?}");
    }
    let dense = weights
        .model()
        .tensors()
        .find(|tensor| matches!(tensor.kind(), TensorKind::Dense(_)))
        .unwrap()
        .name();
    assert!(weights.dense(dense).is_ok());
    for refused in
        [QuantizedTensor::from_safetensors(&context, &path, dense, &any), weights.quantized(dense)]
    {
        assert!(
            matches!(&refused, Err(Error::Misuse(text)) if text.contains(dense)),
            "{refused:?}"
        );
    }
    assert!(matches!(
        Weights::open(&context, data().join("nowhere")),
        Err(Error::File { text, .. }) if text.contains("nowhere")
    ));
}

/// Activations are made on the context of the weights and of the offsets of groups.
#[test]
fn weights_and_offsets_name_their_context() {
    for adapter in adapters() {
        let another = adapter.another();
        let experts = quantize(&rows(16, 32), 16, 32, QuantFormat::Q8_0).unwrap();
        let experts = QuantizedTensor::upload(&another, &experts).unwrap();
        let ends = GroupEnds::upload(&another, &[3]).unwrap();
        for context in [experts.context(), ends.context()] {
            let x = Tensor::upload(context, &rows(3, 32), &[3, 32]).unwrap();
            assert!(Gemm::new(&x, &experts).run().is_ok());
        }
        let x = Tensor::upload(&adapter.context, &rows(3, 32), &[3, 32]).unwrap();
        assert!(tilewise_tests::fails_with(&Gemm::new(&x, &experts).run(), "wrong context: "));
    }
}

/// A stack of one matrix stays a stack: quantized, from planes and from a file, read, dequantized,
/// and multiplied. Its rows are stored with gaps between them.
#[test]
fn a_stack_of_one_matrix_keeps_its_shape() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("one.safetensors");
    let (n, k, format) = (8, 1024, QuantFormat::Q8_0);
    assert!(format.pitch(k as u64) > k as u64);
    let host = quantize(&rows(n, k), n, k, format).unwrap();
    let planes = |sink: &mut Sink<'_>| {
        let mut planes = host.planes().iter().enumerate();
        planes.try_for_each(|(plane, bytes)| sink(Chunk { plane, offset: 0, bytes }))
    };
    let output = Output::streamed("w", TensorKind::Quantized(format), &[1, n, k], planes);
    model::write(&path, vec![output], &Default::default(), &mut |_, _| {}).unwrap();
    for context in contexts() {
        let dense = Tensor::upload(&context, &rows(n, k), &[1, n, k]).unwrap();
        let sources: Vec<_> = host.planes().iter().map(|plane| PlaneSource::Bytes(plane)).collect();
        let x = Tensor::upload(&context, &rows(3, k), &[3, k]).unwrap();
        for (name, w) in [
            ("quantized", dense.quantize(format)),
            ("zeros", QuantizedTensor::zeros(&context, format, &[1, n, k])),
            ("planes", QuantizedTensor::from_planes(&context, format, &[1, n, k], &sources)),
            ("groups", QuantizedTensor::upload_groups(&context, std::slice::from_ref(&host))),
            ("file", QuantizedTensor::from_safetensors(&context, &path, "w", &Expected::default())),
        ] {
            let w = w.unwrap();
            let same = w.read_blocking().unwrap() == std::slice::from_ref(&host);
            assert_eq!(same, name != "zeros", "{name}");
            assert_eq!(
                (w.shape(), w.slice(0..4, 0..k).unwrap().shape()),
                (vec![1, n, k], vec![1, 4, k]),
                "{name}"
            );
            assert_eq!(w.dequantize(DType::F32).unwrap().shape(), [1, n, k], "{name}");
            // The product has the shape that dense weights of the same shape give.
            assert_eq!(Gemm::new(&x, &w).run().unwrap().shape(), [1, 3, n], "{name}");
            assert_eq!(Gemm::new(&x, dense.t()).run().unwrap().shape(), [1, 3, n]);
        }
        let one = QuantizedTensor::upload(&context, &host).unwrap();
        assert_eq!(
            (one.shape(), Gemm::new(&x, &one).run().unwrap().shape()),
            (vec![n, k], &[3, n][..])
        );
    }
}

/// Rows of small integers.
fn rows(count: usize, k: usize) -> Vec<f32> {
    (0..count * k).map(|i| ((i * 7) % 11) as f32 - 5.0).collect()
}

/// Fails unless a product [rows, n] is that of rows of X with weights. `wanted` gives a weight by
/// row and column of the product and by its place along K.
#[track_caller]
fn same_product(
    product: &Tensor,
    x: &[f32],
    k: usize,
    wanted: impl Fn(usize, usize, usize) -> f32,
) {
    let found = product.read_blocking::<f32>().unwrap();
    let n = found.len() * k / x.len();
    for (i, found) in found.iter().enumerate() {
        let (row, column) = (i / n, i % n);
        let terms =
            (0..k).map(|at| f64::from(x[row * k + at]) * f64::from(wanted(row, column, at)));
        let (sum, size) =
            terms.fold((0.0, 0.0), |(sum, size), term| (sum + term, size + term.abs()));
        let near = (f64::from(*found) - sum).abs() <= 1e-5 * size;
        assert!(near, "row {row}, column {column} on {:?}: {found}, {sum}", product.context());
    }
}

/// Weights from bytes, from buffers, transposed and with a factor give the product of the
/// dequantized weights.
#[test]
fn parts_and_views() {
    for context in contexts() {
        let mut rng = Rng::new(5);
        let (n, k) = (64, 96);
        for format in [QuantFormat::NVFP4, QuantFormat::Q8_0] {
            let host = Quantized::sample(format, n, k, || rng.bits() as u32).unwrap();
            let numbers = dequantize(&host);
            let bytes: Vec<_> =
                host.planes().iter().map(|plane| PlaneSource::Bytes(plane)).collect();
            let w = QuantizedTensor::from_planes(&context, format, &[n, k], &bytes).unwrap();
            let check =
                |w: &QuantizedTensor, [n, k]: [usize; 2], wanted: &dyn Fn(usize, usize) -> f32| {
                    let x = rows(3, k);
                    let input = Tensor::upload(&context, &x, &[3, k]).unwrap();
                    let product = Gemm::new(&input, w).kernel("naive").run().unwrap();
                    assert_eq!(product.shape(), [3, n]);
                    same_product(&product, &x, k, |_, column, at| wanted(column, at));
                };
            check(&w, [n, k], &|row, column| numbers[row * k + column]);
            check(&w.t(), [k, n], &|row, column| numbers[column * k + row]);
            let slice = w.slice(8..40, 32..96).unwrap();
            check(&slice.t(), [64, 32], &|row, column| numbers[(column + 8) * k + row + 32]);
            let factor = w.clone().with_factor(-0.375);
            match format.def().factor_of {
                Some(_) => check(&factor.unwrap(), [n, k], &|row, column| {
                    -0.375 * numbers[row * k + column]
                }),
                None => assert!(matches!(factor, Err(Error::Unsupported(_)))),
            }
            let Some(device) = context.device() else { continue };
            let start = u64::from(context.caps().storage_alignment);
            let in_buffer = |plane: &Vec<u8>| {
                let size = start + plane.len().next_multiple_of(4) as u64;
                let usage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
                let descriptor =
                    BufferDescriptor { label: None, size, usage, mapped_at_creation: false };
                let buffer = device.create_buffer(&descriptor);
                context.queue().unwrap().write_buffer(&buffer, start, plane);
                PlaneSource::Buffer(buffer, start)
            };
            let buffers: Vec<_> = host.planes().iter().map(in_buffer).collect();
            let there = QuantizedTensor::from_planes(&context, format, &[n, k], &buffers).unwrap();
            check(&there, [n, k], &|row, column| numbers[row * k + column]);
            let refused = |sources: &[PlaneSource<'_>], shape: &[usize]| {
                QuantizedTensor::from_planes(&context, format, shape, sources)
                    .unwrap_err()
                    .to_string()
            };
            assert!(refused(&buffers, &[n + 64, k]).contains("buffer holds"));
            assert!(refused(&buffers[1..], &[n, k]).contains("scales"));
            assert!(refused(&bytes, &[n, k - 1]).contains(&format!("K = {}", k - 1)));
            assert!(refused(&bytes, &[n]).contains("[N,K]"));
            let PlaneSource::Buffer(buffer, _) = &buffers[0] else { unreachable!("made above") };
            assert!(
                refused(&[PlaneSource::Buffer(buffer.clone(), 4), buffers[1].clone()], &[n, k])
                    .contains("byte 4")
            );
        }
    }
}

/// Columns that are stored in another order: of all matrices and of some rows, by every kind of
/// product and of look-up.
#[test]
fn columns_in_another_order() {
    let [n, k] = [64, 96];
    // The inverse of this order is another order.
    let order: Vec<u32> = (0..k as u32).map(|i| (i * 7 + 5) % k as u32).collect();
    let formats = [QuantFormat::NVFP4, QuantFormat::Q8_0];
    for (context, format) in
        contexts().into_iter().flat_map(|context| formats.map(|format| (context.clone(), format)))
    {
        let mut rng = Rng::new(6);
        let stored =
            [(); 2].map(|()| Quantized::sample(format, n, k, || rng.bits() as u32).unwrap());
        let numbers = stored.each_ref().map(|matrix| {
            let stored = dequantize(matrix);
            let mut numbers = vec![0.0; n * k];
            for (i, number) in stored.into_iter().enumerate() {
                numbers[i / k * k + order[i % k] as usize] = number;
            }
            numbers
        });
        let unordered = QuantizedTensor::upload(&context, &stored[0]).unwrap();
        let w = unordered.clone().with_order(&order).unwrap();
        let both =
            QuantizedTensor::upload_groups(&context, &stored).unwrap().with_order(&order).unwrap();
        let of_first = |_: usize, column: usize, at: usize| numbers[0][column * k + at];
        let x = rows(6, k);
        let input = Tensor::upload(&context, &x, &[6, k]).unwrap();

        same_product(&Gemm::new(&input, &w).kernel("naive").run().unwrap(), &x, k, of_first);
        let some = w.slice(8..40, 0..k).unwrap();
        let product = Gemm::new(&input, &some).kernel("naive").run().unwrap();
        same_product(&product, &x, k, |_, column, at| numbers[0][(column + 8) * k + at]);
        let halves: Vec<_> = x.iter().map(|&x| f16::from_f32(x)).collect();
        let batch = Tensor::upload(&context, &halves, &[2, 3, k]).unwrap();
        let product = Gemm::new(&batch, &w).out_dtype(DType::F32).kernel("naive").run().unwrap();
        assert_eq!(product.shape(), [2, 3, n]);
        same_product(&product, &x, k, of_first);
        let ends = GroupEnds::upload(&context, &[2, 6]).unwrap();
        let product = Gemm::grouped(&input, &both, &ends).kernel("naive").run().unwrap();
        same_product(&product, &x, k, |row, column, at| {
            numbers[usize::from(row >= 2)][column * k + at]
        });
        // The planner chooses the kernel.
        if let Some(device) = context.device() {
            let c = Tensor::zeros(&context, DType::F32, &[6, n]).unwrap();
            let mut encoder = device.create_command_encoder(&Default::default());
            Gemm::new(&input, &w)
                .record(&mut encoder.begin_compute_pass(&Default::default()), &c)
                .unwrap();
            context.queue().unwrap().submit([encoder.finish()]);
            same_product(&c, &x, k, of_first);
        }

        let whole = both.dequantize(DType::F32).unwrap().read_blocking::<f32>().unwrap();
        assert_eq!(whole, numbers.concat(), "{format} on {context:?}");
        let indices = Tensor::upload(&context, &[40u32, 0, 63], &[3]).unwrap();
        let looked_up = w.rows(&indices, DType::F32).unwrap().read_blocking::<f32>().unwrap();
        let wanted = [40, 0, 63].map(|row| &numbers[0][row * k..][..k]).concat();
        assert_eq!(looked_up, wanted, "{format} on {context:?}");
        assert_eq!(w.order().unwrap().read_blocking::<u32>().unwrap(), order);

        fn misused<T>(result: Result<T, Error>) -> bool {
            matches!(result, Err(Error::Misuse(text)) if text.contains("in another order"))
        }
        let narrow = Tensor::zeros(&context, DType::F32, &[3, n]).unwrap();
        let (turned, wide) = (w.t(), Tensor::zeros(&context, DType::F32, &[3, k]).unwrap());
        let across = Gemm::new(&narrow, &turned);
        assert!(misused(across.run()) && misused(across.run_into(&wide)));
        assert!(misused(across.plans()) && misused(across.explain()));
        assert!(misused(across.problems()) && misused(across.choices()));
        assert!(misused(Take::new(&w).columns(&indices).run()) && misused(w.slice(0..n, 0..32)));
        assert!(misused(w.read_blocking()));
        let no_orders = [
            (&order[1..], "it has 95 of 96"),
            (&[0; 96], "column 0 stands at 0 and at 1"),
            (&[96; 96], "column 96 at 0, of 96 columns"),
        ];
        for (order, word) in no_orders {
            let refused = unordered.clone().with_order(order).unwrap_err();
            assert!(matches!(&refused, Error::Misuse(text) if text.contains(word)), "{refused}");
        }
        let shared = Tensor::zeros(&context, DType::F32, &[3 * (n + k)]).unwrap();
        let part = |range: Range<usize>, columns| {
            shared.slice(std::slice::from_ref(&range)).unwrap().reshape(&[3, columns]).unwrap()
        };
        let refused =
            Gemm::new(&part(0..3 * k, k), &w).run_into(&part(3 * k - 1..3 * (n + k) - 1, n));
        assert!(tilewise_tests::fails_with(&refused, "aliasing: the output and A"));
    }
}

/// numpy's files: two operands of each product, and numpy's results in f64.
#[test]
fn dense_tensors_of_files() {
    for context in contexts() {
        let load = |name: &str| Tensor::from_npy(&context, data().join(name)).unwrap();
        for (a, dtype, b, ab) in [
            ("numpy_a_f64.npy", DType::F32, "numpy_b_f64.npy", "numpy_ab_f64.npy"),
            ("numpy_a_f16_columns.npy", DType::F16, "numpy_b_f32_big.npy", "numpy_ab_f32.npy"),
        ] {
            let (a, b, ab) = (load(a), load(b), load(ab));
            assert_eq!((a.dtype(), b.dtype()), (dtype, DType::F32));
            let c = Gemm::new(&a, &b).out_dtype(DType::F32).run().unwrap();
            assert_eq!(c.shape(), ab.shape());
            let (c, ab) = (c.read_f32_blocking().unwrap(), ab.read_f32_blocking().unwrap());
            let near = |(c, ab): (&f32, &f32)| (c - ab).abs() <= 1e-5 * (1.0 + ab.abs());
            assert!(c.iter().zip(&ab).all(near), "{c:?}\n{ab:?}");
        }
        let file = data().join("mlx_expected.safetensors");
        let answers = Model::open(&file).unwrap();
        let name = answers.tensors().find(|t| *t.kind() == TensorKind::Dense(DType::F32)).unwrap();
        let read = Tensor::from_safetensors(&context, &file, name.name()).unwrap();
        let (shape, numbers) = expected(&answers, name.name()).unwrap();
        let numbers: Vec<_> = numbers.into_iter().map(|x| x as f32).collect();
        assert_eq!((read.shape(), read.read_f32_blocking().unwrap()), (&shape[..], numbers));
    }
    let context = Context::cpu();
    let folder = tempfile::tempdir().unwrap();
    let (npy, absent) = (folder.path().join("i.npy"), folder.path().join("no.npy"));
    let header = "{'descr': '<i8', 'fortran_order': False, 'shape': (1,), }\n";
    let start = [b"\x93NUMPY\x01\x00", &(header.len() as u16).to_le_bytes()[..]].concat();
    std::fs::write(&npy, [&start[..], header.as_bytes(), &[0; 8]].concat()).unwrap();
    let mlx = data().join("mlx.safetensors");
    for (result, kind, text) in [
        (Tensor::from_npy(&context, &npy), "Unsupported", "i.npy: elements are i64"),
        (Tensor::from_npy(&context, &absent), "File", "no.npy"),
        (Tensor::from_npy(&context, &mlx), "File", "mlx.safetensors: a safetensors file"),
        (Tensor::from_safetensors(&context, &mlx, "f16"), "Misuse", "name the format"),
        (Tensor::from_safetensors(&context, data().join("gguf/all.gguf"), "x"), "Misuse", "GGUF"),
    ] {
        let error = result.unwrap_err();
        assert!(
            format!("{error:?}").starts_with(kind) && error.to_string().contains(text),
            "{error:?}"
        );
    }
}
