//! Right kernels give the right results, in whatever way they run.

use crate::common::{everywhere, floats, launch, shorts, text, to_floats, to_shorts};
use half::{bf16, f16};
use tilewise_core::{DType, convert};
use tilewise_tests::harness::{Kernel, Lanes, Launch, Mode, Space, available};

#[test]
fn lanes_exchange() {
    let body = "float x = in[thread_index];
        out[thread_index] = simd_sum(x);
        out[64 + thread_index] = simd_shuffle(x, 5) + 100 * simd_broadcast(x, 7);
        out[128 + thread_index] = simd_shuffle_xor(x, 3);
        out[192 + thread_index] = simd_shuffle_down(x, 4);
        half4 wide = simd_shuffle_xor(half4(half(lane)), 1);
        out[256 + thread_index] = float(wide.w) + simd_sum(uint(lane));";
    let text = text("device const float *in [[buffer(0)]], device float *out [[buffer(1)]]", body);
    let input: Vec<f32> = (0..64).map(|it| it as f32).collect();
    let Some(output) =
        everywhere(&text, &launch(64, vec![floats(input.clone()), floats([0.0; 320])]))
    else {
        return;
    };
    let out = to_floats(&output.buffers[1].1);
    for i in 0..64 {
        let base = i / 32 * 32;
        assert_eq!(out[i], input[base..base + 32].iter().sum::<f32>());
        assert_eq!(out[64 + i], input[base + 5] + 100.0 * input[base + 7]);
        assert_eq!(out[128 + i], input[i ^ 3]);
        if i % 32 < 28 {
            assert_eq!(out[192 + i], input[i + 4]);
        } else {
            assert!(out[192 + i].is_nan());
        }
        assert_eq!(out[256 + i], ((i % 32) ^ 1) as f32 + 496.0);
    }
}

/// C = A·B + C, all 8×8, with both operands transposed or not, through device and threadgroup
/// memory.
#[test]
fn matrices_multiply() {
    let matrix = |i: usize, j: usize, salt: usize| ((i * 7 + j * 3 + salt) % 11) as f32 - 5.0;
    for ty in ["float", "half", "bfloat"] {
        for transposed in [false, true] {
            let body = format!(
                "SHARED({ty}, panel, 80);
                for (uint i = lane; i < 64; i += 32) {{ panel[i / 8 * 10 + i % 8] = b[i]; }}
                simdgroup_barrier(mem_flags::mem_threadgroup);
                simdgroup_matrix<{ty}, 8, 8> x, y;
                simdgroup_float8x8 sums;
                simdgroup_load(x, a + 3, 9, ulong2(1, 2), {transposed});
                simdgroup_load(y, panel, 10, 0, {transposed});
                simdgroup_load(sums, c, 8);
                simdgroup_multiply_accumulate(sums, x, y, sums);
                simdgroup_store(sums, d, 8, 0, {transposed});"
            );
            let arguments = format!(
                "device const {ty} *a [[buffer(0)]], device const {ty} *b [[buffer(1)]], \
                 device const float *c [[buffer(2)]], device float *d [[buffer(3)]]"
            );
            let elements = |values: Vec<f32>| match ty {
                "float" => floats(values),
                "half" => shorts(values.into_iter().map(|it| f16::from_f32(it).to_bits())),
                _ => shorts(values.into_iter().map(|it| bf16::from_f32(it).to_bits())),
            };
            let (mut a, mut b, mut c) =
                (vec![f32::NAN; 3 + 1 + 2 * 9 + 7 * 9 + 8], vec![0.0; 64], vec![0.0; 64]);
            let mut expected = vec![0.0; 64];
            for i in 0..8 {
                for j in 0..8 {
                    let at =
                        |stride: usize| if transposed { j * stride + i } else { i * stride + j };
                    a[3 + 1 + 2 * 9 + at(9)] = matrix(i, j, 1);
                    b[at(8)] = matrix(i, j, 2);
                    c[i * 8 + j] = matrix(i, j, 3);
                    expected[at(8)] =
                        (0..8).map(|k| matrix(i, k, 1) * matrix(k, j, 2)).sum::<f32>()
                            + matrix(i, j, 3);
                }
            }
            let launch = launch(32, vec![elements(a), elements(b), floats(c), vec![0; 256]]);
            let Some(output) = everywhere(&text(&arguments, &body), &launch) else { return };
            assert_eq!(to_floats(&output.buffers[3].1), expected, "{ty}, transposed: {transposed}");
        }
    }
}

#[test]
fn matrices_fill() {
    let body = "simdgroup_float8x8 filled = make_filled_simdgroup_matrix<float, 8, 8>(3.0f), \
                diagonal(2.0f), product, unwritten;
        simdgroup_multiply(product, filled, diagonal);
        simdgroup_store(product, c);
        simdgroup_store(diagonal, c + 64);
        simdgroup_store(unwritten, c + 128);";
    let text = text("device float *c [[buffer(0)]]", body);
    let Some(output) = everywhere(&text, &launch(32, vec![floats([0.0; 192])])) else { return };
    let c = to_floats(&output.buffers[0].1);
    for i in 0..64 {
        assert_eq!((c[i], c[64 + i]), (6.0, if i % 9 == 0 { 2.0 } else { 0.0 }));
        assert!(c[128 + i].is_nan());
    }
}

#[test]
fn barriers_separate() {
    let body = "SHARED(float, tile, 256);
        for (uint step = 0; step < 3; step++) {
            for (uint i = thread_index; i < 256; i += 128) { tile[i] = x[i] + 1; }
            threadgroup_barrier(mem_flags::mem_threadgroup);
            for (uint i = thread_index; i < 256; i += 128) { x[i] = tile[i % 16 * 16 + i / 16]; }
            threadgroup_barrier(mem_flags::mem_threadgroup);
        }";
    let text = text("device float *x [[buffer(0)]]", body);
    let Some(output) = everywhere(&text, &launch(128, vec![floats((0..256).map(|it| it as f32))]))
    else {
        return;
    };
    let expected: Vec<f32> = (0..256).map(|it| (it % 16 * 16 + it / 16) as f32 + 3.0).collect();
    assert_eq!(to_floats(&output.buffers[0].1), expected);
    assert_eq!(output.threadgroup_bytes, 1024);
}

/// Without threadgroup memory, barriers order device memory.
#[test]
fn barriers_separate_device_memory() {
    let body = "x[thread_index] += 1;
        threadgroup_barrier(mem_flags::mem_device);
        float y = x[thread_index ^ 33];
        threadgroup_barrier(mem_flags::mem_device);
        x[thread_index] = y;";
    let text = text("device float *x [[buffer(0)]]", body);
    let Some(output) = everywhere(&text, &launch(64, vec![floats((0..64).map(|it| it as f32))]))
    else {
        return;
    };
    let expected: Vec<f32> = (0..64).map(|it| (it ^ 33) as f32 + 1.0).collect();
    assert_eq!(to_floats(&output.buffers[0].1), expected);
}

#[test]
fn threadgroups_begin_anew() {
    let body = "SHARED(float, kept, 32);
        SHARED(uchar, few, 5);
        out[(workgroup.z * 2 + workgroup.y) * 96 + workgroup.x * 32 + lane] = kept[lane];
        kept[lane] = 1;
        if (lane == 0) { few[0] = 1; }";
    let text = text("device float *out [[buffer(0)]]", body);
    let launch = Launch { grid: [3, 2, 2], ..launch(32, vec![floats([0.0; 384])]) };
    let Some(output) = everywhere(&text, &launch) else { return };
    assert!(to_floats(&output.buffers[0].1).iter().all(|it| it.is_nan()));
    assert_eq!(output.threadgroup_bytes, 133);
}

/// Converts every half and bfloat to float and back, and computes with pairs: the results are
/// compared with the crate `half`.
#[test]
fn small_floats_round() {
    for (ty, other) in [("half", "bfloat"), ("bfloat", "half")] {
        let body = format!(
            "for (uint i = lane; i < 65536; i += 32) {{
                {ty} x = as_type<{ty}>(ushort(i));
                {ty} y = as_type<{ty}>(ushort(i * 40503u + 17u));
                wide[i] = x;
                out[i] = {ty}(float(x));
                out[65536 + i] = x + y;
                out[131072 + i] = x * y;
                out[196608 + i] = {ty}(as_type<float>(i * 65537u + 12345u));
                out[262144 + i] = x / y - {ty}(1);
                out[327680 + i] = fma(x, y, {ty}(i % 7));
                {other} foreign = {other}(x);
                out[393216 + i] = {ty}(foreign);
            }}"
        );
        let text = text(
            &format!("device float *wide [[buffer(0)]], device {ty} *out [[buffer(1)]]"),
            &body,
        );
        if !available(Mode::Plain) {
            return;
        }
        let kernel = Kernel::compile(&text, Mode::Plain).unwrap_or_else(|it| panic!("{it}"));
        let output =
            kernel.run(&launch(32, vec![vec![0; 4 * 65536], vec![0; 2 * 7 * 65536]])).unwrap();
        let (wide, out) = (to_floats(&output.buffers[0].1), to_shorts(&output.buffers[1].1));
        let is_half = ty == "half";
        let widen = |bits: u16| {
            if is_half { f16::from_bits(bits).to_f32() } else { bf16::from_bits(bits).to_f32() }
        };
        let narrow =
            |x: f32| if is_half { f16::from_f32(x).to_f32() } else { bf16::from_f32(x).to_f32() };
        let dtype = if is_half { DType::F16 } else { DType::BF16 };
        let narrow64 = |x: f64| convert::round_f64(dtype, x) as f32;
        let foreign =
            |x: f32| if is_half { bf16::from_f32(x).to_f32() } else { f16::from_f32(x).to_f32() };
        let same = |found: f32, expected: f32, what: &str, i: u32| {
            assert!(
                found == expected || found.is_nan() && expected.is_nan(),
                "{ty}, {what}, {i:#x}: {found} for {expected}"
            );
        };
        for i in 0..65536u32 {
            let (x, y) = (widen(i as u16), widen(i.wrapping_mul(40503).wrapping_add(17) as u16));
            let found = |n: usize| widen(out[n * 65536 + i as usize]);
            same(wide[i as usize], x, "to float", i);
            same(found(0), x, "and back", i);
            same(found(1), narrow(x + y), "sum", i);
            same(found(2), narrow(x * y), "product", i);
            same(
                found(3),
                narrow(f32::from_bits(i.wrapping_mul(65537).wrapping_add(12345))),
                "from float",
                i,
            );
            same(found(4), narrow(narrow(x / y) - 1.0), "quotient", i);
            let (exact, third) = (f64::from(x) * f64::from(y), f64::from(i % 7));
            // If the sum is exact in 64 bits, `narrow64` gives the single rounding of fma.
            if exact + third - third == exact {
                same(found(5), narrow64(exact + third), "fma", i);
            }
            same(found(6), narrow(foreign(x)), "through the other", i);
        }
    }
}

#[test]
fn vectors_compute() {
    let body = "if (lane != 0) { return; }
        float4 v = float4(in[0].xy, 7, 8);
        v.zw = v.xy;
        v.x += 10;
        out[0] = v * 2 + float4(in[1].w);
        uint4 bits = uint4(0x12345678u) >> uint4(0, 8, 16, 24) & 0xffu;
        bits |= uint4(1); bits ^= 2u; bits = bits << 1u;
        out[1] = float4(bits);
        out[2] = select(float4(1), -float4(2), in[0] < float4(2.5f));
        half3 small = half3(half2(1.5f, 2.5f), half(3));
        out[3] = float4(float3(small), dot(float3(small), float3(1)));
        out[4] = float4(sizeof(float3), sizeof(half4), alignof(uchar4), sizeof(ushort2));
        out[5] = clamp(float4(-1, 0.5f, 2, in[0][2]), float4(0), float4(1)) + min(float4(3), \
            max(in[1], float4(1)));
        uchar4 bytes = uchar4(250, 1, 2, 3) + uchar4(10);
        bytes = bytes + params.shape.x + params.shape[1];
        out[6] = float4(bytes);
        int4 signs = int4(-7, 7, -8, 8) % int4(4);
        out[7] = float4(signs);";
    let text = text(
        "constant Params &params [[buffer(0)]], device const float4 *in [[buffer(1)]], device \
         float4 *out [[buffer(2)]]",
        body,
    )
    .replace("kernel void", "struct Params { uint n; uchar2 shape; };\nkernel void");
    let params = vec![0, 0, 0, 0, 1, 2, 0, 0];
    let input = floats((0..8).map(|it| it as f32));
    let Some(output) = everywhere(&text, &launch(32, vec![params, input, floats([0.0; 32])]))
    else {
        return;
    };
    let found = to_floats(&output.buffers[2].1);
    let expected = [
        [27.0, 9.0, 7.0, 9.0],
        [
            (0x79 ^ 2) as f32 * 2.0,
            (0x57 ^ 2) as f32 * 2.0,
            (0x35 ^ 2) as f32 * 2.0,
            (0x13 ^ 2) as f32 * 2.0,
        ],
        [-2.0, -2.0, -2.0, 1.0],
        [1.5, 2.5, 3.0, 7.0],
        [16.0, 8.0, 4.0, 4.0],
        [3.0, 3.5, 4.0, 4.0],
        [7.0, 14.0, 15.0, 16.0],
        [-3.0, 3.0, 0.0, 0.0],
    ];
    assert_eq!(found, expected.concat());
}

#[test]
fn signatures_are_read() {
    if !available(Mode::Plain) {
        return;
    }
    let text = "#define SLOT 3\n\
                #define INPUT device const bfloat *a /* here */ [[buffer(SLOT)]]\n\
                #include <metal_stdlib>\n\
                using namespace metal;\n\
                struct Params { uint m; uint3 shape; };\n\
                kernel void f(constant Params &params [[buffer(0)]], INPUT, device vec<half, 4> *c \
                [[buffer(1)]],\n\
                ushort2 at [[threadgroup_position_in_grid]], uint threads \
                [[threads_per_threadgroup]]) {\n\
                c[at.y] = vec<half, 4>(half(float(a[0]))); c[0].x = half(threads + params.m); }";
    let kernel = Kernel::compile(text, Mode::Plain).unwrap_or_else(|it| panic!("{it}"));
    let signature = kernel.signature();
    assert_eq!(signature.name, "f");
    assert_eq!(signature.builtins, ["threadgroup_position_in_grid", "threads_per_threadgroup"]);
    let arguments: Vec<_> = signature
        .arguments
        .iter()
        .map(|it| (it.slot, it.space, it.writable, it.ty.as_str(), it.name.as_str()))
        .collect();
    let expected = [
        (0, Space::Constant, false, "Params", "params"),
        (3, Space::Device, false, "bfloat", "a"),
        (1, Space::Device, true, "vec < half , 4 >", "c"),
    ];
    assert_eq!(arguments, expected);
    assert_eq!([0, 1, 2, 3].map(|it| kernel.argument_bytes(it)), [32, 8, 0, 2]);
}

#[test]
fn mutants_are_chosen_and_noted() {
    let body = "x[lane] = MUTANT(17) ? 1 : 2;
        if (x[lane] == 1) { x[lane] = MUTANT(300) ? 3 : 4; }";
    let text = text("device float *x [[buffer(0)]]", body);
    for (mutant, value, reached) in
        [(0, 2.0, vec![17]), (17, 4.0, vec![17, 300]), (300, 2.0, vec![17])]
    {
        let launch = Launch { mutant, ..launch(32, vec![vec![0; 128]]) };
        let Some(output) = everywhere(&text, &launch) else { return };
        assert_eq!(to_floats(&output.buffers[0].1), [value; 32]);
        assert_eq!(output.reached, reached);
    }
}

/// The launch's seed decides: the same seed gives the same result, and with another seed other
/// lanes hold the elements of a matrix.
#[test]
fn seeds_decide() {
    if !available(Mode::Plain) {
        return;
    }
    // Lanes race for the cell: the last one wins.
    let kernel = Kernel::compile(
        &text("device uint *x [[buffer(0)]]", "simd_sum(1u); x[0] = lane;"),
        Mode::Plain,
    )
    .unwrap();
    let winner = |seed| {
        kernel.run(&Launch { seed, ..launch(32, vec![vec![0; 4]]) }).unwrap().buffers[0].1[0]
    };
    let winners: Vec<u8> = (0..32).map(winner).collect();
    assert_eq!(winners, (0..32).map(winner).collect::<Vec<_>>());
    assert!(winners.iter().any(|it| *it != winners[0]));
}

#[test]
fn several_threads_compile_and_run_at_once() {
    if !available(Mode::Plain) {
        return;
    }
    // The text was never compiled before, so all threads compile it.
    let salt =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_nanos();
    let text = text("device float *x [[buffer(0)]]", &format!("x[lane] += 1; // {salt}"));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let kernel = Kernel::compile(&text, Mode::Plain).unwrap();
                for lanes in [Lanes::Fibers, Lanes::Threads] {
                    let output = kernel
                        .run(&Launch { lanes, ..launch(32, vec![floats([1.0; 32])]) })
                        .unwrap();
                    assert_eq!(to_floats(&output.buffers[0].1), [2.0; 32]);
                }
            });
        }
    });
}
