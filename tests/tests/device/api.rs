//! Uses the public crate as a program does: commands and buffers of its own, views, reading back,
//! contexts, and the pipeline cache.

use std::task::{Poll, Waker};
use tilewise::wgpu::{self, BufferUsages};
use tilewise::{
    Activation, Context, ContextOptions, DType, Error, Gemm, GroupEnds, PlaneSource, Prepared,
    QuantFormat, Quantize, QuantizedTensor, RightOperand, Take, Tensor,
};
use tilewise_core::convert;
use tilewise_tests::{Data, Rng, adapters, contexts};

fn random(shape: &[usize], seed: u64) -> Vec<f32> {
    Data::Integers.generate(DType::F32, 1, [shape.iter().product(), 1], &mut Rng::new(seed))
}

fn upload(context: &Context, shape: &[usize], seed: u64) -> Tensor {
    Tensor::upload(context, &random(shape, seed), shape).unwrap()
}

/// The product of integers, computed in the simplest way.
fn product(a: &[f32], b: &[f32], [m, n, k]: [usize; 3]) -> Vec<f32> {
    let element = |i: usize| (0..k).map(|s| a[i / n * k + s] * b[s * n + i % n]).sum();
    (0..m * n).map(element).collect()
}

fn read(tensor: &Tensor) -> Vec<f32> {
    tensor.read_f32_blocking().unwrap()
}

/// A chain of dependent products in one compute pass of one encoder, and independent products in
/// the same submission.
#[test]
fn many_products_in_one_submission() {
    for adapter in adapters() {
        let context = &adapter.context;
        let shape = [24, 24];
        let [a, b, c] = [1, 2, 3].map(|seed| upload(context, &shape, seed));
        let [ab, abc, other] =
            [(); 3].map(|()| Tensor::zeros(context, DType::F32, &shape).unwrap());
        let mut encoder = context.device().unwrap().create_command_encoder(&Default::default());
        {
            let mut pass = encoder.begin_compute_pass(&Default::default());
            Gemm::new(&a, &b).record(&mut pass, &ab).unwrap();
            Gemm::new(&ab, &c).kernel("simt/64x64x16+k2").record(&mut pass, &abc).unwrap();
        }
        Gemm::new(&abc, &a).record(&mut encoder, &other).unwrap();
        Gemm::new(&c, &c).alpha(2.0).beta(1.0).record(&mut encoder, &other).unwrap();
        assert_eq!(read(&other), vec![0.0; 576], "nothing runs before it is submitted");
        context.queue().unwrap().submit([encoder.finish()]);

        let size = [24, 24, 24];
        let [a, b, c] = [1, 2, 3].map(|seed| random(&shape, seed));
        let first = product(&a, &b, size);
        assert_eq!(read(&ab), first, "{}", adapter.name());
        let second = product(&first, &c, size);
        assert_eq!(read(&abc), second);
        let sum: Vec<_> = product(&second, &a, size)
            .iter()
            .zip(product(&c, &c, size))
            .map(|(x, y)| x + 2.0 * y)
            .collect();
        assert_eq!(read(&other), sum);
    }
}

/// Scratch memory is shared by split products of different sizes, small before large and large
/// before small, in one encoder.
#[test]
fn scratch_is_shared() {
    for adapter in adapters() {
        let context = &adapter.context;
        let sizes = [[3, 4, 1100], [40, 36, 1500], [5, 8, 1200], [64, 64, 1100], [1, 4, 1030]];
        let mut encoder = context.device().unwrap().create_command_encoder(&Default::default());
        let mut pass = encoder.begin_compute_pass(&Default::default());
        let outputs = sizes.map(|[m, n, k]| {
            let (a, b) = (upload(context, &[m, k], 7), upload(context, &[k, n], 8));
            let c = Tensor::zeros(context, DType::F32, &[m, n]).unwrap();
            Gemm::new(&a, &b).kernel("gemv/1x4+k2").record(&mut pass, &c).unwrap();
            c
        });
        drop(pass);
        context.queue().unwrap().submit([encoder.finish()]);
        for (size, output) in sizes.into_iter().zip(&outputs) {
            let [m, n, k] = size;
            assert_eq!(
                read(output),
                product(&random(&[m, k], 7), &random(&[k, n], 8), size),
                "{size:?} on {}",
                adapter.name()
            );
        }
    }
}

/// There are more products than the context keeps parameters for, and no waiting between them.
#[test]
fn many_submissions() {
    for adapter in adapters() {
        let context = &adapter.context;
        let a = upload(context, &[6, 6], 1);
        let b = upload(context, &[6, 6], 2);
        let results: Vec<_> = (0..200)
            .map(|i| Gemm::new(&a, &b).alpha(i as f32).kernel("naive").run().unwrap())
            .collect();
        let expected = product(&random(&[6, 6], 1), &random(&[6, 6], 2), [6, 6, 6]);
        for (i, result) in results.iter().enumerate().step_by(37) {
            assert_eq!(read(result), expected.iter().map(|x| x * i as f32).collect::<Vec<_>>());
        }
    }
}

/// Buffers of the caller's, with operands and output at offsets, and with only the usages that are
/// needed.
#[test]
fn buffers_of_the_callers() {
    for adapter in adapters() {
        let context = &adapter.context;
        let (device, queue) = (context.device().unwrap(), context.queue().unwrap());
        let buffer = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: 4096,
                usage,
                mapped_at_creation: false,
            })
        };
        let inputs = buffer(BufferUsages::STORAGE | BufferUsages::COPY_DST);
        let output = buffer(BufferUsages::STORAGE | BufferUsages::COPY_SRC);
        let (a, b) = (random(&[5, 6], 3), random(&[6, 7], 4));
        queue.write_buffer(&inputs, 20, bytemuck::cast_slice(&a));
        queue.write_buffer(&inputs, 1012, bytemuck::cast_slice(&b));
        let view = |buffer: &wgpu::Buffer, at, shape: &[usize], strides: &[usize]| {
            Tensor::from_buffer_strided(context, buffer.clone(), at, DType::F32, shape, strides)
                .unwrap()
        };
        let [va, vb, vc] = [
            view(&inputs, 20, &[5, 6], &[6, 1]),
            view(&inputs, 1012, &[6, 7], &[7, 1]),
            view(&output, 2052, &[5, 7], &[9, 1]),
        ];
        Gemm::new(&va, &vb).run_into(&vc).unwrap();
        assert_eq!(read(&vc), product(&a, &b, [5, 7, 6]), "{}", adapter.name());
        assert_eq!(vc.buffer().unwrap().1, 2052);
        let whole = read(&view(&output, 0, &[1024], &[1]));
        let outside = (0..1024).filter(|i| *i < 513 || (i - 513) % 9 >= 7 || (i - 513) / 9 >= 5);
        assert!(
            outside.into_iter().all(|i| whole[i] == 0.0),
            "something was written outside the view"
        );
    }
}

/// Views give their own elements, and products of views those of these elements: on every adapter
/// and on the CPU.
#[test]
fn views() {
    for context in contexts() {
        let values: Vec<f32> = (0..60).map(|i| i as f32).collect();
        let cube = Tensor::upload(&context, &values, &[3, 4, 5]).unwrap();
        assert_eq!(cube.strides(), [20, 5, 1]);
        assert_eq!((cube.elem_count(), cube.is_contiguous(), cube.dtype()), (60, true, DType::F32));
        let slice = cube.slice(&[1..3, 2..4, 1..3]).unwrap();
        assert_eq!(read(&slice), [31.0, 32.0, 36.0, 37.0, 51.0, 52.0, 56.0, 57.0]);
        assert_eq!(read(&slice.t()), [31.0, 36.0, 32.0, 37.0, 51.0, 56.0, 52.0, 57.0]);
        assert!(!slice.is_contiguous() && !slice.t().is_contiguous());
        assert_eq!(slice.t().shape(), [2, 2, 2]);
        let flat = cube.reshape(&[12, 5]).unwrap();
        assert_eq!(read(&flat.slice(&[11..12, 0..5]).unwrap()), [55.0, 56.0, 57.0, 58.0, 59.0]);
        assert_eq!(read(&cube.slice(&[0..0, 0..4, 0..5]).unwrap()), [] as [f32; 0]);
        assert_eq!(read(&flat.reshape(&[60]).unwrap().t()), values);
        // 16-bit views begin and end inside words.
        let halves: Vec<_> = (0..15).map(|i| half::f16::from_f32(i as f32)).collect();
        let halves = Tensor::upload(&context, &halves, &[3, 5]).unwrap();
        let odd = halves.slice(&[1..3, 0..5]).unwrap();
        assert_eq!(read(&odd), (5..15).map(|i| i as f32).collect::<Vec<_>>());
        assert_eq!(odd.read_blocking::<half::f16>().unwrap()[9].to_f32(), 14.0);

        let [left, right] =
            [cube.slice(&[0..1, 0..4, 1..3]).unwrap(), cube.slice(&[2..3, 1..4, 0..2]).unwrap()];
        let c = context.matmul(&left, &right.t()).unwrap();
        let expected = product(&read(&left), &read(&right.t()), [4, 3, 2]);
        assert_eq!(c.shape(), [1, 4, 3]);
        assert_eq!(read(&c), expected, "{context:?}");
    }
}

/// Shapes and types of the outputs that `run` allocates. `c` starts a product and stays unchanged.
#[test]
fn outputs() {
    for context in contexts() {
        let (a, b) = (upload(&context, &[4, 6], 1), upload(&context, &[6, 3], 2));
        let c = Gemm::new(&a, &b).out_dtype(DType::BF16).run().unwrap();
        assert_eq!((c.dtype(), c.shape()), (DType::BF16, &[4, 3][..]));
        let start = upload(&context, &[4, 3], 9);
        let sum = Gemm::new(&a, &b).beta(3.0).add_to(&start).run().unwrap();
        let plain = product(&random(&[4, 6], 1), &random(&[6, 3], 2), [4, 3, 6]);
        let expected: Vec<_> =
            plain.iter().zip(random(&[4, 3], 9)).map(|(x, y)| x + 3.0 * y).collect();
        assert_eq!(read(&sum), expected);
        assert_eq!(read(&start), random(&[4, 3], 9));
        let batch = context.matmul(&upload(&context, &[5, 4, 6], 3), &b).unwrap();
        assert_eq!(batch.shape(), [5, 4, 3]);
        let ends = GroupEnds::upload(&context, &[1, 2]).unwrap();
        let grouped = Gemm::grouped(&a, upload(&context, &[2, 6, 3], 4), &ends).run().unwrap();
        assert_eq!(read(&grouped)[6..], [0.0; 6], "rows of no group are zero in a new output");
        let format = QuantFormat::affine(4, 64, DType::F32).unwrap();
        let weights =
            QuantizedTensor::quantize(&context, &random(&[8, 64], 5), [8, 64], format).unwrap();
        let y = Gemm::new(&upload(&context, &[2, 64], 6), &weights)
            .activation(Activation::Relu)
            .run()
            .unwrap();
        assert!(y.shape() == [2, 8] && read(&y).iter().all(|&y| y >= 0.0));
        let text = Gemm::new(&a, &b).explain().unwrap();
        assert!(text.contains("C[4,3] = A[4,6]·B[6,3]") && text.contains("chosen"), "{text}");
    }
}

/// A prepared operand is a tensor like the one that it was made of, but it cannot be an output.
#[test]
fn prepared_operands() {
    for context in contexts() {
        for dtype in DType::FLOATS {
            let tensor = |shape: &[usize], seed| {
                let numbers = convert::encode(dtype, &random(shape, seed));
                Tensor::from_bytes(&context, dtype, &numbers, shape).unwrap()
            };
            let (a, b) = (tensor(&[5, 19], 1), tensor(&[19, 6], 2));
            let [left, right] = [Prepared::left(&a).unwrap(), Prepared::right(&b).unwrap()];
            let copied = dtype != DType::F32
                && context.caps().coop.iter().any(|unit| unit.operands == DType::F16);
            assert_eq!(
                [left.bytes() > 0, right.bytes() > 0],
                [copied; 2],
                "{dtype} on {context:?}"
            );
            let plain = read(&Gemm::new(&a, &b).run().unwrap());
            assert_eq!(read(&Gemm::new(&left, &right).run().unwrap()), plain);
            // On the other side, and as a view, it serves without its copy.
            let turned = Gemm::new(&right.t(), left.t()).run().unwrap();
            assert_eq!(read(&turned.t()), plain);
            // Neither the operand nor a view of it can be an output.
            let constant = Prepared::left(&tensor(&[5, 6], 3)).unwrap();
            for view in [constant.narrow(0, 0, 5).unwrap(), constant.t().t(), (*constant).clone()] {
                let error = Gemm::new(&a, &b).run_into(&view).unwrap_err();
                assert!(matches!(error, Error::Misuse(_)), "{error}");
                let error = Take::new(tensor(&[5, 6], 4)).run_into(&view).unwrap_err();
                assert!(matches!(error, Error::Misuse(_)), "{error}");
            }
        }
        let [entries, vector] =
            [[2, 0, 3].as_slice(), &[4]].map(|shape| upload(&context, shape, 1));
        assert_eq!(Prepared::right(&entries).unwrap().bytes(), 0);
        assert!(matches!(Prepared::left(&vector), Err(Error::Shape(_))));
    }
}

/// Prepared weights are like the weights that they were made of, but they cannot be an output.
#[test]
fn prepared_weights() {
    for context in contexts() {
        // Each group has a 0 and a 15, so affine codes of 4 bits are exactly these numbers.
        let [n, k, m] = [24, 128, 5];
        let numbers: Vec<f32> =
            (0..n * k).map(|i| ((5 * (i % k) + 7 * (i / k)) % 16) as f32).collect();
        let format = QuantFormat::affine(4, 64, DType::F16).unwrap();
        let plain = QuantizedTensor::quantize(&context, &numbers, [n, k], format).unwrap();
        let prepared = Prepared::quantized(&plain).unwrap();
        let copied = context.caps().coop.iter().any(|unit| unit.operands == DType::F16);
        assert_eq!(prepared.bytes() > 0, copied, "{context:?}");
        assert_eq!((prepared.shape(), prepared.format()), (plain.shape(), format));

        let x = |shape: &[usize]| {
            let numbers = convert::encode(DType::F16, &random(shape, 1));
            Tensor::from_bytes(&context, DType::F16, &numbers, shape).unwrap()
        };
        let turned = |[rows, columns]: [usize; 2], at: &dyn Fn(usize, usize) -> f32| -> Vec<f32> {
            (0..rows * columns).map(|i| at(i / columns, i % columns)).collect()
        };
        let w = |row: usize, column: usize| numbers[row * k + column];
        let run = |w: RightOperand, inner| {
            read(&Gemm::new(&x(&[m, inner]), w).out_dtype(DType::F32).run().unwrap())
        };
        let of = |b: &[f32], [inner, outer]: [usize; 2]| {
            product(&random(&[m, inner], 1), b, [m, outer, inner])
        };

        let whole = of(&turned([k, n], &|row, column| w(column, row)), [k, n]);
        assert_eq!(run(RightOperand::from(&prepared), k), whole);
        assert_eq!(run(RightOperand::from(&plain), k), whole);
        // The transpose and a slice serve without the copy, and either may be prepared.
        let (across, slice) = (prepared.t(), prepared.slice(3..20, 64..128).unwrap());
        let expected = of(&numbers, [n, k]);
        let again = Prepared::quantized(&across).unwrap();
        assert_eq!(
            [run(RightOperand::from(&across), n), run(RightOperand::from(&again), n)],
            [expected.clone(), expected]
        );
        let expected = of(&turned([64, 17], &|row, column| w(3 + column, 64 + row)), [64, 17]);
        let again = Prepared::quantized(&slice).unwrap();
        assert_eq!(
            [run(RightOperand::from(&slice), 64), run(RightOperand::from(&again), 64)],
            [expected.clone(), expected]
        );
        assert_eq!([again.bytes() > 0, again.bytes() < prepared.bytes()], [copied; 2]);
        // Columns in another order, and no columns.
        let order: Vec<u32> = (0..k as u32).map(|i| i * 5 % k as u32).collect();
        let ordered = Prepared::quantized(&plain.clone().with_order(&order).unwrap()).unwrap();
        let place = |column: usize| order.iter().position(|&own| own as usize == column).unwrap();
        let expected = of(&turned([k, n], &|row, column| w(column, place(row))), [k, n]);
        assert_eq!(run(RightOperand::from(&ordered), k), expected);
        assert!(matches!(Prepared::quantized(&ordered.t()), Err(Error::Misuse(_))));
        let none = Prepared::quantized(&plain.slice(4..4, 0..64).unwrap()).unwrap();
        assert_eq!(none.bytes(), 0);

        // An operand of another context, and weights as an output, are refused.
        let elsewhere = Context::cpu();
        let foreign = Tensor::zeros(&elsewhere, DType::F32, &[m, k]).unwrap();
        let mixed = Gemm::new(&foreign, &prepared).run();
        assert!(tilewise_tests::fails_with(&mixed, "wrong context: "));
        let target = QuantizedTensor::zeros(&context, format, &[n, k]).unwrap();
        let target = Prepared::quantized(&target).unwrap();
        for view in [target.slice(0..n, 0..k).unwrap(), target.t().t(), (*target).clone()] {
            let weights = upload(&context, &[n, k], 3);
            let error = Quantize::new(&weights, format).run_into(&view).unwrap_err();
            assert!(matches!(error, Error::Misuse(_)), "{error}");
        }
        let Some(device) = context.device() else { continue };
        let planes = plain.read_blocking().unwrap().remove(0);
        let buffers: Vec<_> = planes
            .planes()
            .iter()
            .map(|plane| {
                let usage = BufferUsages::STORAGE | BufferUsages::COPY_DST;
                let descriptor = wgpu::BufferDescriptor {
                    label: None,
                    size: 4096,
                    usage,
                    mapped_at_creation: false,
                };
                let buffer = device.create_buffer(&descriptor);
                context.queue().unwrap().write_buffer(&buffer, 0, plane);
                buffer
            })
            .collect();
        let owned: Vec<_> =
            buffers.iter().map(|buffer| PlaneSource::Buffer(buffer.clone(), 0)).collect();
        let weights = QuantizedTensor::from_planes(&context, format, &[n, k], &owned).unwrap();
        let prepared = Prepared::quantized(&weights).unwrap();
        assert_eq!(run(RightOperand::from(&prepared), k), whole);
        let output =
            Tensor::from_buffer(&context, buffers[1].clone(), 2048, DType::F32, &[m, n]).unwrap();
        let error = Gemm::new(&x(&[m, k]), &prepared).run_into(&output).unwrap_err();
        assert!(error.to_string().starts_with("aliasing: the output and B"), "{error}");
    }
}

/// The output of a future. Its polls do not block.
fn polled<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut task = std::task::Context::from_waker(Waker::noop());
    let polled = (0..10_000_000).map(|_| future.as_mut().poll(&mut task)).find(Poll::is_ready);
    let Some(Poll::Ready(output)) = polled else { panic!("it never came") };
    output
}

/// Each poll of a future returns, and the future is ready once the work is done.
#[test]
fn reading_does_not_block() {
    for adapter in adapters() {
        let a = upload(&adapter.context, &[64, 64], 1);
        let c = adapter.context.matmul(&a, &a).unwrap();
        let values = polled(c.read::<f32>()).unwrap();
        let a = random(&[64, 64], 1);
        assert_eq!(values, product(&a, &a, [64, 64, 64]), "{}", adapter.name());
        // A reading that is dropped leaves the context as it was.
        drop(Box::pin(c.read::<f32>()));
        let mut given_up = Box::pin(c.read::<f32>());
        let _ = given_up.as_mut().poll(&mut std::task::Context::from_waker(Waker::noop()));
        drop(given_up);
        assert_eq!(read(&c), values);
        assert_eq!(polled(adapter.context.wait()), Ok(()), "{}", adapter.name());
    }
}

/// Contexts, tensors and products may be used from several threads at once.
#[test]
fn threads() {
    for adapter in adapters() {
        let context = &adapter.context;
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for i in 0..10 {
                        let (m, n, k) = (4 + thread, 5 + i, 600 + thread);
                        let (a, b) = (upload(context, &[m, k], 1), upload(context, &[k, n], 2));
                        let kernel = ["naive", "gemv/1x4+k2"][i % 2];
                        let c = Gemm::new(&a, &b).kernel(kernel).run().unwrap();
                        assert_eq!(
                            read(&c),
                            product(&random(&[m, k], 1), &random(&[k, n], 2), [m, n, k])
                        );
                    }
                });
            }
        });
    }
}

/// Pipelines are kept on disk. Their file is written whole, read again, and ignored if it is not as
/// it should be.
#[test]
fn pipeline_cache() {
    for (number, adapter) in adapters().iter().enumerate() {
        let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join(format!("pipelines-{number}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        let options =
            ContextOptions::default().adapter(adapter.address()).pipeline_cache(folder.clone());
        let use_once = || {
            let context = Context::request_blocking(&options).unwrap();
            let a = upload(&context, &[8, 8], 1);
            let c = Gemm::new(&a, &a).kernel("naive").run().unwrap();
            assert_eq!(
                read(&c),
                product(&random(&[8, 8], 1), &random(&[8, 8], 1), [8, 8, 8]),
                "{}",
                adapter.name()
            );
        };
        let files = || {
            std::fs::read_dir(&folder)
                .map_or(vec![], |all| all.map(|file| file.unwrap().path()).collect())
        };
        use_once();
        let context = Context::request_blocking(&options).unwrap();
        if !context.device().unwrap().features().contains(wgpu::Features::PIPELINE_CACHE) {
            println!("skipped: the pipeline cache on {}: its backend has none", adapter.name());
            assert!(files().is_empty());
            continue;
        }
        drop(context);
        assert_eq!(files().len(), 1, "one file and no drafts: {:?}", files());
        let file = files().remove(0);
        let whole = std::fs::read(&file).unwrap();
        assert!(!whole.is_empty());
        use_once();
        for corrupt in [
            vec![],
            vec![0xa5; 100],
            whole[..whole.len() / 2].to_vec(),
            [&whole[..40], &vec![0xff; whole.len()][..]].concat(),
        ] {
            std::fs::write(&file, &corrupt).unwrap();
            use_once();
        }
        // Several uses at once leave one whole file.
        std::thread::scope(|scope| {
            (0..3).for_each(|_| drop(scope.spawn(use_once)));
        });
        assert_eq!(files().len(), 1, "{:?}", files());
        use_once();
        std::fs::remove_dir_all(&folder).unwrap();
    }
    // It is no failure if a folder cannot be made.
    if let Some(adapter) = adapters().first() {
        let file = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let options =
            ContextOptions::default().adapter(adapter.address()).pipeline_cache(file.join("below"));
        let context = Context::request_blocking(&options).unwrap();
        context.matmul(&upload(&context, &[2, 2], 1), &upload(&context, &[2, 2], 1)).unwrap();
    }
}

/// Adapters are chosen by name and by backend, the CPU by its own name.
#[test]
fn choosing_a_context() {
    let open = tilewise_tests::adapters::open;
    let cpu = open("CPU").unwrap();
    assert!(
        cpu.is_cpu()
            && cpu.device().is_none()
            && cpu.queue().is_none()
            && cpu.backend_name() == "cpu"
    );
    cpu.wait_blocking().unwrap();
    for adapter in adapters() {
        assert_eq!(open(&adapter.name().to_uppercase()).unwrap().adapter_name(), adapter.name());
        assert_eq!(
            open(adapter.description.backend).unwrap().backend_name(),
            adapter.description.backend
        );
        assert_eq!(adapter.context.caps(), adapter.description.caps());
        assert!(!adapter.context.is_cpu());
    }
}
