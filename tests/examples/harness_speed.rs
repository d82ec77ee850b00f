//! Times compilation, a product of 8×8 matrices, a sum over a simdgroup, and a barrier of 128
//! lanes: `cargo run -p tilewise-tests --example harness_speed`.

use std::time::Instant;

use tilewise_tests::harness::{Kernel, Lanes, Launch, Mode, available};

const STEPS: u32 = 2000;

fn main() {
    let operations = [
        ("simdgroup_multiply_accumulate", 32, "simdgroup_multiply_accumulate(sums, a, b, sums);"),
        ("simdgroup_load", 32, "simdgroup_load(a, x, 8);"),
        ("simd_sum", 32, "total = simd_sum(total);"),
        (
            "threadgroup_barrier of 128 lanes",
            128,
            "threadgroup_barrier(mem_flags::mem_threadgroup);",
        ),
    ];
    for mode in [Mode::Plain, Mode::Races, Mode::Memory].into_iter().filter(|&it| available(it)) {
        for (name, threads, operation) in operations {
            // A text that was never compiled before.
            let salt = std::process::id();
            let text = format!(
                "#include <metal_stdlib>\n\
                 #include <metal_simdgroup>\n\
                 #include <metal_simdgroup_matrix>\n\
                 using namespace metal; // {salt}\n\
                 kernel void time(constant uint &steps [[buffer(0)]], device const float *x \
                 [[buffer(1)]], device float *y [[buffer(2)]], uint i \
                 [[thread_index_in_threadgroup]]) {{ SHARED(float, unused, 1); simdgroup_float8x8 \
                 a(1.0f), b(1.0f), sums(0.0f); float total = x[i]; for (uint step = 0; step < \
                 steps; step++) {{ {operation} }} y[i] = total; if (total == -1.0f) {{ unused[0] = \
                 total; }} simdgroup_multiply(sums, a, sums); }}"
            );
            let begun = Instant::now();
            let kernel = Kernel::compile(&text, mode).unwrap_or_else(|it| panic!("{it}"));
            println!("{mode:?}: {name}: compiled in {:.0?}", begun.elapsed());
            for lanes in [Lanes::Fibers, Lanes::Threads] {
                let time = |steps: u32| {
                    let buffers = vec![
                        (0, steps.to_ne_bytes().to_vec()),
                        (1, vec![0; 512]),
                        (2, vec![0; 512]),
                    ];
                    let launch = Launch { threads, lanes, buffers, ..Launch::default() };
                    let once = || {
                        let begun = Instant::now();
                        kernel.run(&launch).unwrap_or_else(|it| panic!("{it}"));
                        begun.elapsed()
                    };
                    (0..5).map(|_| once()).min().expect("five")
                };
                let steps = if lanes == Lanes::Threads { STEPS / 20 } else { STEPS };
                let (least, all) = (time(0), time(steps));
                println!(
                    "  {lanes:?}: {:.2?} each; a launch {least:.0?}",
                    all.saturating_sub(least) / steps
                );
            }
        }
    }
}
