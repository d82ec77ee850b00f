//! Wrong kernels are found out, with the right kind of failure.

use std::time::Duration;

use crate::common::{self, everywhere, fails, floats, launch, text, to_floats};
use tilewise_tests::harness::{Kernel, Kind, Launch, Mode, available};

const DEVICE: &str = "device float *x [[buffer(0)]]";

/// Asserts that with some seed `text` does not leave `expected` in slot 0.
fn wrong_under_some_seed(text: &str, launch: &Launch, expected: &[f32]) {
    if available(Mode::Plain) {
        let kernel = Kernel::compile(text, Mode::Plain).unwrap_or_else(|it| panic!("{it}"));
        let right = |seed| {
            to_floats(&kernel.run(&Launch { seed, ..launch.clone() }).unwrap().buffers[0].1)
                == expected
        };
        assert!(!(0..8).all(right));
    }
}

fn races(text: &str, launch: &Launch, words: &[&str]) {
    fails(text, Mode::Races, launch, Kind::Race, words);
}

/// Reads what other lanes wrote, after `between`.
fn transpose(between: &str) -> String {
    let body = format!(
        "SHARED(float, tile, 256);
        for (uint i = thread_index; i < 256; i += 128) {{ tile[i] = x[i]; }}
        {between};
        for (uint i = thread_index; i < 256; i += 128) {{ x[256 + i] = tile[i % 16 * 16 + i / \
            16]; }}"
    );
    text(DEVICE, &body)
}

/// The text of [`transpose`], but its memory is an argument, as in naga's texts.
fn transpose_an_argument(between: &str) -> String {
    transpose(between)
        .replace("SHARED(float, tile, 256);", "")
        .replace(
            "kernel void test(",
            "struct Tile { float at[256]; }; kernel void test(threadgroup Tile &tile, ",
        )
        .replace("tile[", "tile.at[")
}

#[test]
fn a_missing_threadgroup_barrier() {
    let input: Vec<f32> = (0..256).map(|it| it as f32).chain([0.0; 256]).collect();
    let expected: Vec<f32> = (0..256)
        .map(|it| it as f32)
        .chain((0..256).map(|it| (it % 16 * 16 + it / 16) as f32))
        .collect();
    let launch = launch(128, vec![floats(input)]);
    for between in ["", "simdgroup_barrier(mem_flags::mem_threadgroup)"] {
        wrong_under_some_seed(&transpose(between), &launch, &expected);
    }
    for between in [
        "",
        "simdgroup_barrier(mem_flags::mem_threadgroup)",
        "threadgroup_barrier(mem_flags::mem_none)",
        "threadgroup_barrier(mem_flags::mem_device)",
        "simd_sum(x[0])",
    ] {
        for text in [transpose(between), transpose_an_argument(between)] {
            races(&text, &launch, &["kernel.metal:7", "kernel.metal:9"]);
        }
    }
    let whole = transpose_an_argument("threadgroup_barrier(mem_flags::mem_threadgroup)");
    let output = everywhere(&whole, &launch);
    assert!(output.is_none_or(|output| to_floats(&output.buffers[0].1) == expected));
}

#[test]
fn a_barrier_for_other_memory() {
    let body = "x[thread_index] += 1;
        threadgroup_barrier(mem_flags::mem_threadgroup);
        x[64 + thread_index] = x[thread_index ^ 33];";
    races(
        &text(DEVICE, body),
        &launch(64, vec![vec![0; 512]]),
        &["kernel.metal:6", "kernel.metal:8"],
    );
}

/// A simdgroup's lanes run in lock-step, but nothing orders their memory accesses.
#[test]
fn a_missing_simdgroup_barrier() {
    let body = |between: &str| {
        format!(
            "SHARED(float, tile, 64);
            simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(2.0f);
            simdgroup_store(m, tile, 8);
            {between};
            x[lane] = tile[lane] + tile[lane + 32];"
        )
    };
    let launch = launch(32, vec![vec![0; 128]]);
    let right = text(DEVICE, &body("simdgroup_barrier(mem_flags::mem_threadgroup)"));
    common::everywhere(&right, &launch);
    wrong_under_some_seed(&text(DEVICE, &body("")), &launch, &[4.0; 32]);
    for between in [
        "",
        "simdgroup_barrier(mem_flags::mem_none)",
        "simd_sum(1.0f)",
        "simdgroup_store(m, tile, 8)",
    ] {
        races(&text(DEVICE, &body(between)), &launch, &["simdgroup_store", "kernel.metal:10"]);
    }
    // The other way round: lanes write, and a matrix is read.
    let body = "SHARED(float, tile, 64);
        tile[lane] = 1; tile[lane + 32] = 1;
        simdgroup_float8x8 m;
        simdgroup_load(m, tile, 8);
        simdgroup_store(m, x, 8);";
    let launch = Launch { buffers: vec![(0, vec![0; 256])], ..launch };
    wrong_under_some_seed(&text(DEVICE, body), &launch, &[1.0; 64]);
    races(&text(DEVICE, body), &launch, &["simdgroup_load", "kernel.metal:7"]);
}

/// A second barrier keeps lanes from writing what others still read. Its absence is found as well.
#[test]
fn a_missing_barrier_at_a_loops_end() {
    let body = "SHARED(float, tile, 64);
        float sum = 0;
        for (uint step = 0; step < 4; step++) {
            tile[thread_index] = x[thread_index] + step;
            threadgroup_barrier(mem_flags::mem_threadgroup);
            sum += tile[63 - thread_index];
        }
        x[thread_index] = sum;";
    races(
        &text(DEVICE, body),
        &launch(64, vec![vec![0; 256]]),
        &["kernel.metal:9", "kernel.metal:11"],
    );
}

#[test]
fn threadgroups_that_write_one_cell() {
    let launch = Launch { grid: [2, 1, 1], ..launch(32, vec![vec![0; 128]]) };
    races(&text(DEVICE, "x[lane] = workgroup.x;"), &launch, &["kernel.metal:6"]);
    let reads = "if (workgroup.x == 0) { x[lane] = 1; } else if (x[lane] == 5) { x[lane] = 2; }";
    races(&text(DEVICE, reads), &launch, &["kernel.metal:6"]);
    common::everywhere(&text(DEVICE, "if (lane / 16 == workgroup.x) { x[lane] += 1; }"), &launch);
    // These threadgroups are far from each other in the grid.
    let far = text(DEVICE, "x[workgroup.x % 6 * 128 + thread_index] = 1;");
    races(
        &far,
        &Launch { grid: [7, 1, 1], ..common::launch(128, vec![vec![0; 6 * 512]]) },
        &["kernel.metal:6"],
    );
}

#[test]
fn accesses_beyond_the_end() {
    let memory = |body: &str| {
        let launch = launch(32, vec![floats([0.0; 40])]);
        fails(&text(DEVICE, body), Mode::Memory, &launch, Kind::Memory, &["kernel.metal:7"]);
    };
    memory("uint i = lane + 9;\nx[i] = 1;");
    memory("uint i = lane;\nif (x[i - 1] == 1) { x[0] = 1; }");
    memory("SHARED(float, few, 31); SHARED(float, more, 64); more[lane] = 0;\nfew[lane] = 1;");
    memory("SHARED(half, few, 33);\nif (few[lane + 2] > half(0)) { x[lane] = 1; }");
    memory(
        "simdgroup_float8x8 m = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);\n\
         simdgroup_store(m, x, 5);\n",
    );
    memory(
        "simdgroup_float8x8 m;\nsimdgroup_load(m, x + 1, 4, ulong2(0, 1)); simdgroup_store(m, x, \
         4);",
    );
    memory("float few[4] = {1, 2, 3, 4};\nx[lane] = few[lane];");
    memory("float4 v = float4(lane);\nx[lane] = v[lane];");
    let launch = launch(32, vec![floats([0.0; 32])]);
    for right in ["x[lane] = 1;", "SHARED(float, few, 32); few[lane] = 1; x[lane] = few[lane];"] {
        common::everywhere(&text(DEVICE, right), &launch);
    }
}

#[test]
fn undefined_arithmetic() {
    let undefined = |body: &str, words: &[&str]| {
        fails(
            &text(DEVICE, body),
            Mode::Memory,
            &launch(32, vec![floats([0.0; 64])]),
            Kind::Undefined,
            words,
        );
    };
    undefined(
        "float4 v = *reinterpret_cast<device float4 *>(x + lane % 2);\nx[lane] = v.x;",
        &["misaligned", "kernel.metal:6"],
    );
    undefined(
        "SHARED(half, s, 64); s[lane] = half(1);\n\
         threadgroup half4 *v = reinterpret_cast<threadgroup half4 *>(s + 2);\n\
         x[lane] = v[0].x;",
        &["misaligned", "kernel.metal:8"],
    );
    undefined("x[lane] = 7 / int(x[lane]);", &["division by zero", "kernel.metal:6"]);
    undefined("x[lane] = 7u % (lane - lane);", &["division by zero", "kernel.metal:6"]);
    undefined("int i = 2147483640 + int(lane);\nx[lane] = i;", &["overflow", "kernel.metal:6"]);
}

#[test]
fn lanes_that_do_not_meet() {
    let diverges = |body: &str, words: &[&str]| {
        for mode in [Mode::Plain, Mode::Races, Mode::Memory] {
            fails(
                &text(DEVICE, body),
                mode,
                &launch(64, vec![vec![0; 256]]),
                Kind::Divergence,
                words,
            );
        }
    };
    let barrier = "threadgroup_barrier(mem_flags::mem_threadgroup);";
    diverges(
        &format!("if (lane == 3) {{\n{barrier} }}\nelse {{\n{barrier} }}"),
        &["line 7", "line 9"],
    );
    diverges(
        &format!("if (simdgroup == 0) {{\n{barrier} }}\nelse {{\n{barrier} }}"),
        &["line 7", "line 9"],
    );
    diverges(
        &format!("simd_sum(x[0]);\nif (lane == 3) {{ return; }}\n{barrier}"),
        &["simd_sum in line 6", "threadgroup_barrier in line 8"],
    );
    diverges(
        &format!("simd_sum(x[0]);\nif (simdgroup == 1) {{ return; }}\n{barrier}"),
        &["simd_sum in line 6", "threadgroup_barrier in line 8"],
    );
    diverges(
        "if (lane < 16) { simd_sum(1.0f); } else { simd_sum(2.0f); }",
        &["line 6, column 18", "line 6, column 43"],
    );
    diverges(
        "x[thread_index] = lane < 31 ? simd_shuffle(1.0f, 0) : 0;",
        &["simd_shuffle in line 6"],
    );
    diverges(
        "simdgroup_float8x8 m;\n\
         if (lane == 1) { simdgroup_load(m, x); }\n\
         else { simdgroup_barrier(mem_flags::mem_none); }",
        &["simdgroup_load in line 7", "simdgroup_barrier in line 8"],
    );
}

#[test]
fn loops_without_an_end() {
    if !available(Mode::Plain) {
        return;
    }
    let launch = Launch { timeout: Duration::from_millis(300), ..launch(32, vec![vec![0; 128]]) };
    let endless = text(DEVICE, "while (x[lane] < 1) { if (lane != 5) { x[lane] = 1; } }");
    fails(&endless, Mode::Plain, &launch, Kind::Timeout, &[]);
    fails(&text(DEVICE, "while (true) {}"), Mode::Plain, &launch, Kind::Timeout, &[]);
}

/// After a failure another worker runs.
#[test]
fn runs_go_on_after_a_failure() {
    if !available(Mode::Memory) {
        return;
    }
    let kernel = Kernel::compile(&text(DEVICE, "x[lane] = 1;"), Mode::Memory).unwrap();
    for _ in 0..2 {
        assert_eq!(kernel.run(&launch(32, vec![vec![0; 124]])).unwrap_err().kind, Kind::Memory);
        assert_eq!(
            to_floats(&kernel.run(&launch(32, vec![vec![0; 128]])).unwrap().buffers[0].1),
            [1.0; 32]
        );
    }
}

#[test]
fn a_crash() {
    let wild = "x[lane] = *reinterpret_cast<device float *>(ulong(lane) + 4096);";
    fails(
        &text(DEVICE, wild),
        Mode::Plain,
        &launch(32, vec![vec![0; 128]]),
        Kind::Crash,
        &["signal"],
    );
}
