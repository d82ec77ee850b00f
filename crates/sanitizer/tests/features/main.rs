//! Features of WGSL that are executed or refused: each test is a shader whose output is known.
//!
//! The workspace compares most of the language with real drivers, bit for bit. These tests are for
//! features that those drivers lack.

mod findings;

use tilewise_sanitizer::{Buffer, Error, Launch, Options, Shader, ZeroInit};

fn shader(source: &str) -> Shader {
    Shader::parse("test.wgsl", source).unwrap_or_else(|error| panic!("{error}"))
}

/// Runs a shader whose `out` is `count` words at binding 0; it must be clean.
fn words(launch: Launch<'_>, shader: &Shader, count: usize) -> Vec<u32> {
    let report = launch
        .bind(0, 0, Buffer::output(4 * count))
        .run()
        .unwrap_or_else(|error| panic!("{error}"));
    assert!(report.is_clean(), "{}", report.render(shader, false));
    report.buffers[&(0, 0)]
        .chunks(4)
        .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
        .collect()
}

#[test]
fn numbers_of_64_bits() {
    let shader = shader(
        "@group(0) @binding(0) var<storage, read_write> out: array<u64>;
         @group(0) @binding(1) var<storage, read> given: array<i64>;
         @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
             let x = given[i];
             let y = u64(x) * 0x100000001lu + u64(i);
             var kept: array<i64, 2>;
             kept[i % 2u] = x >> 3u;
             kept[(i + 1u) % 2u] = -x;
             let v = vec2<i64>(min(x, 5li), abs(x));
             out[i] = y ^ bitcast<u64>(kept[0] + kept[1] * 7li) ^ u64(v[i % 2u]) ^ \
                 u64(countOneBits(x)) << 40u;
         }",
    );
    let given = [3i64, -9_000_000_000, i64::MAX, -1];
    let bytes: Vec<u8> = given.iter().flat_map(|x| x.to_le_bytes()).collect();
    let out = words(Launch::new(&shader).bind(0, 1, Buffer::new(bytes)), &shader, 8);
    for (i, x) in (0u64..).zip(given) {
        let y = (x as u64).wrapping_mul(0x1_0000_0001).wrapping_add(i);
        let (even, odd) = if i % 2 == 0 { (x >> 3, -x) } else { (-x, x >> 3) };
        let v = if i % 2 == 0 { x.min(5) } else { x.abs() };
        let kept = even.wrapping_add(odd.wrapping_mul(7)) as u64;
        let expected = y ^ kept ^ v as u64 ^ u64::from(x.count_ones()) << 40;
        let found = u64::from(out[2 * i as usize]) | u64::from(out[2 * i as usize + 1]) << 32;
        assert_eq!(found, expected, "{x}");
    }
}

#[test]
fn floats_of_64_bits() {
    let shader = shader(
        "@group(0) @binding(0) var<storage, read_write> out: array<f64>;
         @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {
             let x = f64(i) + 0.1lf;
             let m = mat2x2<f64>(x, 1.0lf, 2.0lf, x);
             let v = m * vec2<f64>(x, 3.0lf);
             out[i] = fma(x, x, -1.0lf) + sqrt(x) + v.x + v.y + f64(f32(x));
         }",
    );
    let out = words(Launch::new(&shader), &shader, 4);
    for i in 0..2 {
        let x = i as f64 + 0.1;
        let expected = x.mul_add(x, -1.0)
            + x.sqrt()
            + (x * x + 2.0 * 3.0)
            + (x + x * 3.0)
            + f64::from(x as f32);
        let found = f64::from_bits(u64::from(out[2 * i]) | u64::from(out[2 * i + 1]) << 32);
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

#[test]
fn atomics_of_64_bits_across_workgroups() {
    let shader = shader(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read_write> sum: atomic<u64>;
         @compute @workgroup_size(32) fn main(@builtin(global_invocation_id) id: vec3u) {
             atomicAdd(&sum, 0x80000001lu);
             out[id.x] = 0u;
         }",
    );
    let launch = Launch::new(&shader).grid([8, 1, 1]).bind(0, 1, Buffer::new([0; 8]));
    let report = launch.bind(0, 0, Buffer::output(4 * 256)).run().unwrap();
    assert!(report.is_clean(), "{}", report.render(&shader, false));
    assert_eq!(report.buffers[&(0, 1)], (0x8000_0001u64 * 256).to_le_bytes());
    assert_eq!(report.counters.atomics.total, 256);
}

#[test]
fn cooperative_matrices() {
    let shader = shader(
        "enable wgpu_cooperative_matrix;
         @group(0) @binding(0) var<storage, read_write> out: array<f32>;
         @group(0) @binding(1) var<storage, read> a: array<f32>;
         @group(0) @binding(2) var<storage, read> b: array<f32>;
         @compute @workgroup_size(32) fn main() {
             var sum = coop_mat8x8<f32, C>();
             for (var k = 0u; k < 16u; k += 8u) {
                 let left = coopLoadT<coop_mat8x8<f32, A>>(&a[k], 16u);
                 let right = coopLoad<coop_mat8x8<f32, B>>(&b[k], 16u);
                 sum = coopMultiplyAdd(left, right, sum);
             }
             let doubled = sum + sum;
             let to = &out[0];
             coopStoreT(doubled, to, 8u);
         }",
    );
    // A is 8 × 16 by rows, B 16 × 8 by columns.
    let a: Vec<f32> = (0..128).map(|i| (i % 7) as f32 - 2.0).collect();
    let b: Vec<f32> = (0..128).map(|i| (i % 5) as f32 - 1.0).collect();
    let bytes = |x: &[f32]| Buffer::new(x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>());
    for subgroup_size in [4, 8, 32] {
        let mut options = Options::default();
        options.subgroup_size = subgroup_size;
        let launch =
            Launch::new(&shader).bind(0, 1, bytes(&a)).bind(0, 2, bytes(&b)).options(options);
        // With smaller subgroups, several compute the same matrix, and write the same cells.
        if subgroup_size < 32 {
            let report = launch.bind(0, 0, Buffer::output(256)).run().unwrap();
            assert!(
                report.findings.iter().all(|finding| finding.kind.name() == "race")
                    && !report.is_clean()
            );
            continue;
        }
        let out = words(launch, &shader, 64);
        for (row, column) in (0..8).flat_map(|row| (0..8).map(move |column| (row, column))) {
            let expected: f32 = (0..16).map(|k| a[row * 16 + k] * b[column * 16 + k]).sum();
            assert_eq!(f32::from_bits(out[row * 8 + column]), 2.0 * expected, "{row} {column}");
        }
    }
}

/// Checks that sums in f16 are rounded after every product, as a device may do.
#[test]
fn matrices_of_f16_sums() {
    let shader = shader(
        "enable f16;
         enable wgpu_cooperative_matrix;
         @group(0) @binding(0) var<storage, read_write> out: array<vec4<f16>>;
         @group(0) @binding(1) var<storage, read> a: array<vec4<f16>>;
         @group(0) @binding(2) var<storage, read> b: array<vec4<f16>>;
         @compute @workgroup_size(32) fn main() {
             let left = coopLoadT<coop_mat8x8<f16, A>>(&a[0], 2u);
             let right = coopLoadT<coop_mat8x8<f16, B>>(&b[0], 2u);
             let sums = coopMultiplyAdd(left, right, coop_mat8x8<f16, C>());
             let to = &out[0];
             coopStoreT(sums, to, 2u);
         }",
    );
    let bytes = |x: &[u16]| Buffer::new(x.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<_>>());
    // 2048 + 1 lies halfway between neighbours and is rounded back to 2048, seven times over. 7
    // ones and then 2048 are exact, except for the last addition.
    const ONE: u16 = 0x3c00;
    let large_at = |row| if row < 4 { 0 } else { 7 };
    let a: Vec<u16> =
        (0..64).map(|i| if i % 8 == large_at(i / 8) { 0x6800 } else { ONE }).collect();
    let launch = Launch::new(&shader).bind(0, 1, bytes(&a)).bind(0, 2, bytes(&[ONE; 64]));
    let out = words(launch, &shader, 32);
    for (index, word) in out.into_iter().enumerate() {
        let expected = if index < 16 { 0x6800 } else { 0x6804 };
        assert_eq!([word & 0xffff, word >> 16], [expected; 2], "{index}");
    }
}

#[test]
fn overrides_and_immediates() {
    let shader = shader(
        "override WIDTH: u32 = 2u;
         override BIAS: f32;
         @id(7) override ON: bool = false;
         struct Given { scale: f32, add: vec2<f32> }
         var<immediate> given: Given;
         var<workgroup> tile: array<f32, WIDTH * 2u>;
         @group(0) @binding(0) var<storage, read_write> out: array<f32>;
         @compute @workgroup_size(WIDTH) fn main(@builtin(local_invocation_index) i: u32) {
             tile[i] = f32(i) * given.scale + given.add.y + BIAS;
             tile[i + WIDTH] = select(0.0, 100.0, ON);
             out[i] = tile[i] + tile[i + WIDTH];
         }",
    );
    let numbers: Vec<u8> = [3.0f32, 0.0, 9.0, 10.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    let launch =
        Launch::new(&shader).immediates(numbers).constant("WIDTH", 4.0).constant("BIAS", 0.5);
    let out = words(launch.clone().constant("7", 1.0), &shader, 4);
    assert_eq!(
        out.iter().map(|&bits| f32::from_bits(bits)).collect::<Vec<_>>(),
        [110.5, 113.5, 116.5, 119.5]
    );

    let run =
        |launch: Launch<'_>| launch.bind(0, 0, Buffer::output(16)).run().map(|_| ()).unwrap_err();
    assert!(matches!(run(Launch::new(&shader)), Error::Override(why) if why.contains("BIAS")));
    assert!(matches!(
        run(launch.clone().constant("HEIGHT", 1.0)),
        Error::Override(why) if why.contains("HEIGHT")
    ));
    assert!(matches!(
        run(launch.clone().immediates([0; 8])),
        Error::Limit(why) if why.contains("16 bytes")
    ));
}

#[test]
fn what_is_not_executed_is_refused_by_name() {
    let textures = shader(
        "@group(0) @binding(0) var picture: texture_2d<f32>;
         @group(0) @binding(1) var<storage, read_write> out: array<f32>;
         @compute @workgroup_size(1) fn main() { out[0] = textureLoad(picture, vec2i(0, 0), \
             0).x; }",
    );
    let error = Launch::new(&textures).bind(0, 1, Buffer::output(4)).run().unwrap_err();
    let text = error.to_string();
    assert!(
        matches!(error, Error::Unsupported { .. })
            && text.contains("a texture")
            && text.contains("test.wgsl:1:"),
        "{text}"
    );

    let unused = shader(
        "@group(0) @binding(0) var picture: texture_2d<f32>;
         @group(0) @binding(1) var<storage, read_write> out: array<f32>;
         @compute @workgroup_size(1) fn main() { out[0] = 1.0; }",
    );
    assert!(Launch::new(&unused).bind(0, 1, Buffer::output(4)).run().unwrap().is_clean());
}

#[test]
fn entry_points_and_bindings() {
    let two = shader(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(1) @binding(3) var<uniform> scale: vec4<u32>;
         @compute @workgroup_size(1) fn first() { out[0] = 1u; }
         @compute @workgroup_size(1) fn second() { out[0] = scale.z; }",
    );
    let run = |launch: Launch<'_>| launch.run().map(|_| ()).unwrap_err().to_string();
    let launch = || Launch::new(&two).bind(0, 0, Buffer::output(4));
    assert!(run(launch()).contains("first") && run(launch()).contains("second"));
    assert!(run(launch().entry("third")).contains("third"));
    assert_eq!(words(launch().entry("first"), &two, 1), [1]);
    assert_eq!(
        run(launch().entry("second")),
        "binding 1.3 (`scale`): the shader uses it and nothing is bound"
    );
    let short = launch().entry("second").bind(1, 3, Buffer::new([1; 12]));
    assert_eq!(
        run(short),
        "binding 1.3 (`scale`): the shader needs at least 16 bytes, 12 are bound"
    );
    let idle = launch().bind(1, 3, Buffer::output(16)).entry("first").run().unwrap();
    assert_eq!(idle.findings[0].message, "the output `scale` is never written");
    assert_eq!(idle.buffers[&(1, 3)].len(), 16);
    let stray = launch().entry("first").bind(2, 0, Buffer::new([1; 12]));
    assert_eq!(run(stray), "binding 2.0: bound, but the shader declares nothing there");
    assert!(run(launch().entry("first").grid([1, 65_536, 1])).contains("65,535"));
    let mut odd = Options::default();
    odd.subgroup_size = 12;
    assert!(run(launch().entry("first").options(odd)).contains("power of two"));
    assert_eq!(launch().entry("first").grid([0, 1, 1]).run().unwrap().counters.invocations, 0);
}

#[test]
fn execution_is_robust() {
    let shader = shader(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> given: array<u32>;
         @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
             var sum: u32;
             sum += given[i] + 1u;
             out[i * 2u] = sum / (i - i);
         }",
    );
    let launch =
        Launch::new(&shader).bind(0, 0, Buffer::new([7; 16])).bind(0, 1, Buffer::new([1, 0, 0, 0]));
    let report = launch.clone().options(Options::execute()).run().unwrap();
    assert!(report.is_clean());
    assert_eq!(report.buffers[&(0, 0)], [2, 0, 0, 0, 7, 7, 7, 7, 1, 0, 0, 0, 7, 7, 7, 7]);
    let found: Vec<&str> =
        launch.run().unwrap().findings.iter().map(|finding| finding.kind.name()).collect();
    assert_eq!(found, ["uninitialised", "out-of-bounds", "out-of-bounds", "division-by-zero"]);
}

#[test]
fn counts() {
    let shader = shader(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         @group(0) @binding(1) var<storage, read> given: array<vec4<u32>>;
         var<workgroup> tile: array<u32, 64>;
         @compute @workgroup_size(32) fn main(@builtin(local_invocation_index) i: u32) {
             tile[i * 2u] = given[i].x + given[i].w;
             workgroupBarrier();
             if (i < 8u) {
                 out[i] = tile[i * 2u] + tile[62u - i * 2u];
             }
         }",
    );
    let report =
        Launch::new(&shader).bind(0, 0, Buffer::output(32)).bind(0, 1, Buffer::new([1; 512]));
    let counters = report.run().unwrap().counters;
    assert_eq!((counters.global_reads.total, counters.global_reads.max), (64, 2));
    assert_eq!(counters.global_read_bytes.max, 8);
    assert_eq!((counters.global_writes.total, counters.global_writes.max), (8, 1));
    assert_eq!((counters.shared_writes.max, counters.shared_reads.total), (1, 16));
    assert_eq!((counters.barriers.total, counters.barriers.max), (32, 1));
    // 32 lanes at 16 bytes are 4 segments, twice; strides of two words meet in banks by pairs.
    assert_eq!((counters.read_transactions, counters.write_transactions), (8, 1));
    assert_eq!(counters.bank_conflicts, 1);
    assert!(counters.arithmetic.max >= 6 && counters.operations > 0);
}

#[test]
fn zeros_on_request() {
    let shader = shader(
        "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         var<workgroup> tile: array<u32, 8>;
         var<private> own: u32;
         @compute @workgroup_size(8) fn main(@builtin(local_invocation_index) i: u32) {
             for (var k = 0u; k < 2u; k += 1u) {
                 var sum: u32;
                 sum += tile[i] + own;
                 out[i] = sum;
             }
         }",
    );
    let launch = |zero_init| {
        let mut options = Options::default();
        options.zero_init = zero_init;
        Launch::new(&shader).bind(0, 0, Buffer::output(32)).options(options).run().unwrap()
    };
    assert_eq!(launch(ZeroInit::NONE).findings.len(), 3);
    assert_eq!(launch(ZeroInit { function: true, ..ZeroInit::NONE }).findings.len(), 2);
    assert!(launch(ZeroInit::ALL).is_clean());
}

#[test]
fn constants_choose_branches() {
    let shader = |kind: &str, on: bool| {
        shader(&format!(
            "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
             const KIND: u32 = {kind};
             const ON: bool = {on};
             fn of_kind() -> u32 {{
                 switch KIND {{
                     case 1u, 2u: {{ if ON {{ return 10u; }} return 11u; }}
                     case 3u: {{ break; }}
                     case 4u: {{ return 14u; }}
                     default: {{ return 15u; }}
                 }}
                 return 13u;
             }}
             @compute @workgroup_size(1) fn main() {{ out[0] = of_kind(); }}"
        ))
    };
    for (kind, on, expected) in [
        ("1u", true, 10),
        ("2u", true, 10),
        ("2u", false, 11),
        ("3u", true, 13),
        ("4u", true, 14),
        ("5u", true, 15),
    ] {
        let shader = shader(kind, on);
        assert_eq!(words(Launch::new(&shader), &shader, 1), [expected], "{kind} {on}");
    }
}

#[test]
fn a_shader_is_compiled_anew_for_other_options() {
    let shader = shader(
        "override FACTOR: u32 = 1u;
         @group(0) @binding(0) var<storage, read_write> out: array<u32>;
         var<workgroup> shared_word: u32;
         @compute @workgroup_size(1) fn main() { out[0] = shared_word + 3u * FACTOR; }
         @compute @workgroup_size(1) fn other() { out[0] = 7u; }",
    );
    let mut options = Options::default();
    options.zero_init = ZeroInit::ALL;
    let zeroed = || Launch::new(&shader).entry("main").options(options.clone());
    assert_eq!(words(zeroed(), &shader, 1), [3]);
    assert_eq!(words(zeroed().constant("FACTOR", 2.0), &shader, 1), [6]);
    assert_eq!(words(zeroed().constant("FACTOR", 4.0), &shader, 1), [12]);
    assert_eq!(words(zeroed().entry("other"), &shader, 1), [7]);
    let report = Launch::new(&shader).entry("main").bind(0, 0, Buffer::output(4)).run().unwrap();
    assert_eq!(report.findings.len(), 1, "memory of workgroups is not zeroed any more");
}

#[test]
fn programs_that_do_the_same() {
    let text = "@group(0) @binding(0) var<storage, read_write> out: array<u32>;
         const ON: bool = false;
         fn unused(x: u32) -> u32 { return x * 5u; }
         fn twice(x: u32) -> u32 { return x * 2u; }
         @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
             if ON { out[i + 1u] = 0u; }
             out[i] = twice(i);
         }";
    let original = shader(text);
    let same = |from: &str, to: &str| {
        assert!(text.contains(from), "{from}");
        shader(&text.replace(from, to)).is_same_program(&original, &Options::default()).unwrap()
    };
    assert!(same("x * 5u", "x / 12345u"), "nobody calls it");
    assert!(same("i + 1u", "i + 1000u"), "the branch is closed");
    assert!(same("out[i] = ", "/* longer */ out[i] = "), "the text does not matter");
    for (from, to) in [
        ("x * 2u", "x * 3u"),
        ("x * 2u", "x + 2u"),
        ("ON: bool = false", "ON: bool = true"),
        ("workgroup_size(4)", "workgroup_size(5)"),
        ("out[i] =", "out[0] ="),
        ("out[i] = twice(i);", "if i < 4u { out[i] = twice(i); }"),
        ("array<u32>", "array<u32, 4>"),
        ("@binding(0)", "@binding(1)"),
    ] {
        assert!(!same(from, to), "{from} -> {to}");
    }
}
