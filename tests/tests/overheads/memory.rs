//! Things that are kept between products hold no memory of the caller's, and no more than is
//! documented.

// It checks its losses, too; its `main` is not called.
#[allow(dead_code)]
#[path = "../../../crates/tilewise/examples/training.rs"]
mod training;

use super::{Raw, encoder, filled, read, zeros};
use tilewise::moe::{MoeLayer, Router, Scoring};
use tilewise::wgpu::{self, BufferUsages};
use tilewise::{Call, Context, DType, Error, Gemm, Kernel, Tensor};
use tilewise_tests::{Adapter, adapters};

/// Bytes of the device's buffers with this label; none if the backend does not tell.
fn held(context: &Context, label: &str) -> Option<u64> {
    context.wait_blocking().unwrap();
    let report = context.device().unwrap().generate_allocator_report()?;
    Some(
        report
            .allocations
            .iter()
            .filter(|buffer| buffer.name == label)
            .map(|buffer| buffer.size)
            .sum(),
    )
}

/// Runs `test` with a context of its own on every adapter that tells how much memory is in use.
fn where_memory_is_counted(test: impl Fn(&Adapter, &Context)) {
    for adapter in adapters() {
        let context = adapter.another();
        match held(&context, "") {
            Some(_) => test(adapter, &context),
            None => println!("skipped: memory on {}: its backend does not tell", adapter.name()),
        }
    }
}

const MIB: u64 = 1 << 20;

/// Whichever operand is dropped, its memory is freed at once, while the other operands of the
/// product live on.
#[test]
fn dropped_tensors_free_their_memory() {
    where_memory_is_counted(|adapter, context| {
        let bytes = || held(context, "tilewise tensor").unwrap() / MIB;
        let square = || Some(zeros(context, &[512, 512]));
        let kernel = Kernel::new("sum").inputs(["a", "b", "r"]).outputs(["c"]);
        let kernel = kernel.ensure_contiguous(false).source("c[0] = a[0] + b[0] + r[0];");
        for dropped in 0..4 {
            let mut tensors = [(); 4].map(|()| square());
            {
                let [Some(a), Some(b), Some(c), Some(residual)] = &tensors else {
                    panic!("all four are there")
                };
                let [a, b, c, residual] =
                    [a, b, c, residual].map(|t| t.slice(&[0..16, 0..16]).unwrap());
                for _ in 0..2 {
                    Gemm::new(&a, &b).residual(&residual).run_into(&c).unwrap();
                    Gemm::new(&a, b.t()).run_into(&c).unwrap();
                    let call = Call::of(&a).input(&b).input(&residual).output_into(&c);
                    kernel.run(&call.grid([1, 1, 1])).unwrap();
                }
            }
            assert_eq!(bytes(), 4, "{}", adapter.name());
            let view = tensors[dropped].as_ref().unwrap().t();
            tensors[dropped] = None;
            assert_eq!(bytes(), 4, "a view holds it still");
            drop(view);
            assert_eq!(bytes(), 3, "operand {dropped} on {}", adapter.name());
            drop(tensors);
            assert_eq!(bytes(), 0);
        }
    });
}

/// A large buffer of the caller's.
fn mine(context: &Context) -> wgpu::Buffer {
    let (label, usage) = (Some("mine"), BufferUsages::STORAGE | BufferUsages::COPY_SRC);
    let descriptor = wgpu::BufferDescriptor { label, size: MIB, usage, mapped_at_creation: false };
    context.device().unwrap().create_buffer(&descriptor)
}

/// A tensor on such a buffer.
fn square(context: &Context, buffer: &wgpu::Buffer, at: u64) -> Tensor {
    Tensor::from_buffer(context, buffer.clone(), at, DType::F32, &[64, 64]).unwrap()
}

/// A buffer of the caller's is freed with the last tensor on it, if the context does not keep it.
/// If the caller destroys a buffer, that is an error and nothing worse.
#[test]
fn buffers_of_the_callers_are_let_go() {
    where_memory_is_counted(|adapter, context| {
        let bytes = || held(context, "mine").unwrap() / MIB;
        let buffer = || mine(context);
        let tensor = |buffer: &wgpu::Buffer, at| square(context, buffer, at);
        let (b, input, output) = (filled(context, &[64, 64], 1.0), buffer(), buffer());
        let (a, again, c) = (tensor(&input, 0), tensor(&input, 4096), tensor(&output, 0));
        for a in [&a, &again, &a] {
            Gemm::new(a, &b).run_into(&c).unwrap();
        }
        drop((a, input));
        context.release_scratch();
        assert_eq!(bytes(), 2, "another tensor is on it");
        drop(again);
        assert_eq!(bytes(), 1, "{}", adapter.name());

        output.destroy();
        assert_eq!(bytes(), 0);
        let a = filled(context, &[64, 64], 2.0);
        for _ in 0..2 {
            let error = Gemm::new(&a, &b).run_into(&c).unwrap_err();
            assert!(
                matches!(error, Error::Device { .. }) && error.to_string().contains("destroyed"),
                "{error}"
            );
        }
        assert_eq!(read(&Gemm::new(&a, &b).run().unwrap()), [128.0; 4096]);

        let c = tensor(&buffer(), 0);
        Gemm::new(&a, &b).run_into(&c).unwrap();
        c.buffer().unwrap().0.destroy();
        let error = Gemm::new(&a, &b).run_into(&c).unwrap_err();
        assert!(matches!(error, Error::Device { .. }), "bound before it was destroyed: {error}");
        assert_eq!(read(&Gemm::new(&a, &b).run().unwrap()), [128.0; 4096]);
    });
}

/// If scratch memory grows, the smaller memory is freed. Products that were recorded with the
/// smaller memory are still right.
#[test]
fn outgrown_scratch_is_let_go() {
    where_memory_is_counted(|adapter, context| {
        let (sizes, k) = ([8, 16, 32, 64], 1100);
        let largest = 2 * 4 * (64 * 64);
        for _ in 0..2 {
            for n in sizes {
                let (a, b) = (filled(context, &[n, k], 1.0), filled(context, &[k, n], 2.0));
                let c = Gemm::new(&a, &b).kernel("gemv/1x4+k2").run().unwrap();
                assert_eq!(read(&c), vec![2200.0; n * n], "{}", adapter.name());
            }
            let held = held(context, "tilewise scratch").unwrap();
            assert!(
                (largest..largest + 1024).contains(&held),
                "{held} bytes, {largest} and some padding are needed"
            );
        }
    });
}

/// The context keeps the last of many buffers of the caller's, and none when it is told to free
/// them.
#[test]
fn the_last_buffers_of_the_callers_are_kept() {
    where_memory_is_counted(|adapter, context| {
        let bytes = || held(context, "mine").unwrap() / MIB;
        let (b, c) = (filled(context, &[64, 64], 1.0), zeros(context, &[64, 64]));
        let (kept, many) = (64, 1000);
        for number in 1..=many {
            Gemm::new(&square(context, &mine(context), 0), &b).run_into(&c).unwrap();
            if number % 100 == 0 {
                assert_eq!(bytes(), kept, "after {number} on {}", adapter.name());
            }
        }
        context.release_scratch();
        assert_eq!(bytes(), 0, "{}", adapter.name());
    });
}

/// If a tensor is made again on a buffer of the caller's, there is no new bind group: it allocates
/// as little as a tensor that stayed. A tensor on another buffer allocates more.
#[test]
fn tensors_of_one_buffer_share_bind_groups() {
    for adapter in adapters() {
        let context = &adapter.another();
        let (b, input, output) = (filled(context, &[64, 64], 1.0), mine(context), mine(context));
        let [warm, same] = [(); 2].map(|()| {
            let (a, c) = (square(context, &input, 0), square(context, &output, 0));
            recorded(&Gemm::new(&a, &b).kernel("naive"), &c)
        });
        let (a, c) = (square(context, &mine(context), 0), square(context, &output, 0));
        let other = recorded(&Gemm::new(&a, &b).kernel("naive"), &c);
        let raw = {
            let (raw, mut encoder) = (Raw::new(context, 1), encoder(context));
            let mut pass = encoder.begin_compute_pass(&Default::default());
            allocation_counter::measure(|| raw.record(&mut pass)).count_total
        };
        let name = adapter.name();
        assert!(warm > raw && other > raw, "{warm}, {other} and {raw} on {name}");
        assert_eq!(same, raw, "{name}");
        context.release_scratch();
        let (a, c) = (square(context, &input, 0), square(context, &output, 0));
        assert!(recorded(&Gemm::new(&a, &b).kernel("naive"), &c) > raw, "{name}");
    }
}

/// Allocations of recording a product.
fn recorded(gemm: &Gemm, c: &Tensor) -> u64 {
    let mut encoder = encoder(c.context());
    let mut pass = encoder.begin_compute_pass(&Default::default());
    allocation_counter::measure(|| gemm.record(&mut pass, c).unwrap()).count_total
}

/// Scratch memory is freed when the program says so, even if products with it are recorded and not
/// submitted yet. They and later products are right.
#[test]
fn scratch_is_released() {
    where_memory_is_counted(|adapter, context| {
        let scratch = || held(context, "tilewise scratch").unwrap();
        let (a, b) = (filled(context, &[64, 1100], 3.0), filled(context, &[1100, 64], 2.0));
        let gemm = Gemm::new(&a, &b).kernel("gemv/1x4+k2");
        let right = vec![6600.0; 64 * 64];
        for _ in 0..2 {
            assert_eq!(read(&gemm.run().unwrap()), right, "{}", adapter.name());
            assert!(scratch() >= 2 * 4 * 64 * 64);
            let (c, mut encoder) = (zeros(context, &[64, 64]), encoder(context));
            gemm.record(&mut encoder, &c).unwrap();
            context.release_scratch();
            assert!(scratch() >= 2 * 4 * 64 * 64, "it is recorded");
            context.queue().unwrap().submit([encoder.finish()]);
            assert_eq!(read(&c), right, "{}", adapter.name());
            assert_eq!(scratch(), 0, "{}", adapter.name());
        }
    });
}

/// A layer of experts makes its tensors in its first call. Later calls of as many tokens or fewer
/// make none, if tokens are few.
#[test]
fn experts_make_tensors_once() {
    where_memory_is_counted(|adapter, context| {
        let (tokens, experts, f, h) = (64, 8, 24, 16);
        let [gate, down] = [[experts, f, h], [experts, h, f]].map(|shape| zeros(context, &shape));
        let (gate_up, shared) = (zeros(context, &[experts, 2 * f, h]), zeros(context, &[f, h]));
        let (x, logits) = (zeros(context, &[tokens, h]), zeros(context, &[tokens, experts]));
        let y = zeros(context, &[tokens, h]);
        let router = || Router::new(2).scoring(Scoring::Sigmoid).normalize(true);
        for layer in [
            MoeLayer::new(&gate, &gate, &down, 2).shared(&shared, &shared, shared.t()),
            MoeLayer::fused(&gate_up, &down, router()),
        ] {
            let mut encoder = encoder(context);
            let mut record = |tokens| {
                let [x, logits, y] = [&x, &logits, &y].map(|t| t.narrow(0, 0, tokens).unwrap());
                layer.record(&mut encoder, &x, &logits, &y).unwrap();
                held(context, "tilewise tensor").unwrap()
            };
            let first = record(tokens);
            assert!(first > 4 * (tokens * 2 * (h + 2 * f)) as u64, "{first}");
            for few in [tokens, 1, 3, tokens] {
                assert_eq!(record(few), first, "{few} on {}", adapter.name());
            }
        }
    });
}

/// A training loop takes no more memory with its steps. After a hundred steps, only the numbers of
/// its last calls may be added, of which a megabyte is kept. Three calls of each step have a new
/// number, which takes 256 bytes. The test runs on one adapter, because all adapters count alike.
#[test]
fn training_takes_no_more_memory_with_its_steps() {
    let steps = 2000;
    let once = std::cell::Cell::new(false);
    where_memory_is_counted(|adapter, context| {
        if once.replace(true) {
            return;
        }
        let mut seen = Vec::new();
        let work = |step| {
            if step == 100 || step % 500 == 0 {
                context.wait_blocking().unwrap();
                let report = context.device().unwrap().generate_allocator_report().unwrap();
                seen.push((report.allocations.len(), report.total_allocated_bytes));
            }
        };
        training::train(context, steps as i32, work).unwrap();
        println!("buffers and bytes on {}: {seen:?}", adapter.name());
        let (first, most) = (seen[0], MIB + (4 << 16));
        assert!(3 * 256 * steps > most + (1 << 16), "too few steps to tell");
        for (buffers, bytes) in seen {
            assert!(buffers <= first.0 + (most >> 16) as usize, "{buffers} after {}", first.0);
            assert!(bytes <= first.1 + most, "{bytes} after {}", first.1);
        }
    });
}
