//! Measures what planning a product and assembling a shader cost on the CPU.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tilewise_core::{Caps, DType, Problem, caps::RECORDED, plan};
use tilewise_shaders::{LIBRARY, assemble};

fn planning(criterion: &mut Criterion) {
    let caps: Vec<Caps> = RECORDED.iter().map(|(_, caps)| caps()).collect();
    let problem = Problem::dense(DType::F32, 4096, 4096, 4096);
    criterion.bench_function("plan 4096³ on every recorded adapter", |bencher| {
        bencher.iter(|| {
            caps.iter()
                .map(|caps| plan(black_box(&problem), caps, &LIBRARY, None).is_ok())
                .filter(|ok| *ok)
                .count()
        });
    });
    let plan = plan(&problem, &caps[0], &LIBRARY, None).expect("a square fits every adapter");
    criterion.bench_function("assemble a shader", |bencher| {
        bencher.iter(|| assemble(black_box(&plan.passes[0])).len())
    });
}

criterion_group!(benches, planning);
criterion_main!(benches);
