//! Measures how fast shaders run in the sanitizer, on one core, with every check on: `cargo bench
//! -p tilewise-sanitizer`.
//!
//! criterion's throughput is in scalar operations of the compiled form, as
//! [`Counters::operations`](tilewise_sanitizer::Counters) counts them. The project asks for 20
//! million a second.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use tilewise_sanitizer::{Buffer, Launch, Options, Shader};

fn numbers(count: usize) -> Vec<u8> {
    (0..count).flat_map(|i| ((i * 37 % 101) as f32 * 0.25 - 12.0).to_le_bytes()).collect()
}

fn speed(criterion: &mut Criterion) {
    let tiled = Shader::parse("matmul.wgsl", include_str!("matmul.wgsl")).expect("it is valid");
    let arithmetic =
        Shader::parse("arithmetic.wgsl", include_str!("arithmetic.wgsl")).expect("it is valid");
    let mut one_core = Options::default();
    one_core.parallel = false;
    let launches = [
        (
            "tiled product, all checks and costs",
            Launch::new(&tiled)
                .grid([4, 4, 1])
                .bind(0, 0, Buffer::new(numbers(64 * 64)))
                .bind(0, 1, Buffer::new(numbers(64 * 64)))
                .bind(0, 2, Buffer::output(64 * 64 * 4))
                .options(one_core.clone()),
        ),
        (
            "arithmetic",
            Launch::new(&arithmetic)
                .grid([4, 1, 1])
                .bind(0, 0, Buffer::output(4 * 256 * 4))
                .options(one_core),
        ),
    ];
    let mut group = criterion.benchmark_group("one core");
    for (name, launch) in &launches {
        let report = launch.run().expect("it runs");
        assert!(report.is_clean(), "{:?}", report.findings);
        group.throughput(Throughput::Elements(report.counters.operations));
        group.bench_function(*name, |bencher| bencher.iter(|| launch.run()));
    }
    group.finish();
}

criterion_group!(benches, speed);
criterion_main!(benches);
