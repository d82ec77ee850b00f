//! WGSL means the same to the sanitizer's executor and to every adapter. Each file in `semantics/`
//! is the body of a kernel that stores its results by `put`. Every word must have the same bits
//! everywhere.
//!
//! The files leave out operations that devices may round freely: division, square roots, and
//! transcendental functions.

use std::process::Command;
use tilewise::{Call, Context, DType, Edge, Error, Kernel, Tensor};
use tilewise_sanitizer::{Options, ZeroInit};
use tilewise_tests::{Rng, adapters};

const INVOCATIONS: usize = 64;
const WORDS: usize = 32;

fn random() -> impl Iterator<Item = u32> {
    let mut rng = Rng::new(0);
    std::iter::repeat_with(move || rng.bits() as u32)
}

/// Normal floats of all sizes up to 2^16, and a few special ones. There is no NaN, because WGSL
/// does not fix its bits.
fn some_floats() -> Vec<f32> {
    let special = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 65504.0, -65536.0, 0.333_333_34, 1e-7];
    let plain = |bits: u32| f32::from_bits(bits & 0x807F_FFFF | (110 + (bits >> 23) % 33) << 23);
    special.into_iter().chain(random().map(plain)).take(12 * INVOCATIONS).collect()
}

fn some_integers() -> Vec<u32> {
    let special = [0, 1, 2, 7, 31, 32, 0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFFF, 0x0080_FF7F];
    special.into_iter().chain(random().skip(100)).take(12 * INVOCATIONS).collect()
}

fn kernel_of(name: &str, body: &str, header: &str) -> Kernel {
    let put = format!(
        "fn put(word: u32, bits: u32) {{ written[word] = bits; }}\n\
         fn put_f(word: u32, value: f32) {{ written[word] = bitcast<u32>(value); }}\n\
         var<private> written: array<u32, {WORDS}> = array<u32, {WORDS}>();\n"
    );
    let kernel =
        Kernel::new(name).inputs(["f", "u"]).outputs(["out"]).header(format!("{put}{header}"));
    kernel.source(format!(
        "{body}\nfor (var word = 0u; word < {WORDS}u; word += 1u) {{ out[global_id.x * {WORDS}u + \
         word] = written[word]; }}"
    ))
}

fn call_on(context: &Context) -> Call {
    let f = Tensor::upload(context, &some_floats(), &[12 * INVOCATIONS]).unwrap();
    let u = Tensor::upload(context, &some_integers(), &[12 * INVOCATIONS]).unwrap();
    let call = Call::new(context).input(&f).input(&u).output(DType::U32, &[INVOCATIONS, WORDS]);
    call.grid([INVOCATIONS as u32, 1, 1]).workgroup([INVOCATIONS as u32, 1, 1]).edge(Edge::Whole)
}

/// Checks that there are no findings, and returns the output.
fn checked(name: &str, kernel: &Kernel, call: &Call, mut options: Options) -> Vec<u32> {
    options.zero_init = ZeroInit::ALL;
    let check =
        kernel.check_blocking(call, options).unwrap_or_else(|error| panic!("{name}: {error}"));
    assert!(check.is_clean(), "{name}:\n{}", check.render(false));
    check.outputs[0].read_blocking().unwrap()
}

fn run(name: &str, body: &str, header: &str, context: &Context) -> Vec<u32> {
    let (kernel, call) = (kernel_of(name, body, header), call_on(context));
    let out = kernel.run(&call).unwrap_or_else(|error| panic!("{name}: {error}"));
    let words = out[0].read_blocking().unwrap();
    if context.is_cpu() {
        assert_eq!(
            checked(name, &kernel, &call, Options::default()),
            words,
            "{name}: executed and checked"
        );
    }
    words
}

/// Whether the backend decides a word (docs/platforms.md). In `integers.wgsl` it decides `%` with a
/// negative operand: naga leaves that to GLSL, in which it is undefined. In `floats.wgsl` it
/// decides the sign of zero in `frexp`, which naga's HLSL loses.
fn is_left_to(backend: &str, name: &str, invocation: usize, word: usize, here: u32) -> bool {
    let integers = some_integers();
    let sign = 1 << 31;
    let negative = (integers[invocation] | integers[invocation + 256]) & sign != 0;
    match (backend, name, word) {
        ("gl", "integers", 8) => negative,
        ("dx12", "floats", 21) => here == sign,
        _ => false,
    }
}

/// Compares the results of one file on every adapter for which `can` is true.
fn same_everywhere(name: &str, body: &str, header: &str, can: impl Fn(&Context) -> bool) {
    let ours = run(name, body, header, &Context::cpu());
    let distinct: std::collections::HashSet<u32> = ours.iter().copied().collect();
    assert!(distinct.len() > 8, "{name} computes too little to compare");
    for adapter in adapters() {
        if !can(&adapter.context) {
            eprintln!(
                "skipped: {name} on {}: it lacks a feature that the file needs",
                adapter.name()
            );
            continue;
        }
        let theirs = run(name, body, header, &adapter.context);
        let backend = adapter.context.backend_name();
        let different: Vec<String> = (0..ours.len())
            .filter(|&at| ours[at] != theirs[at])
            .filter(|&at| !is_left_to(backend, name, at / WORDS, at % WORDS, ours[at]))
            .map(|at| {
                let (invocation, word) = (at / WORDS, at % WORDS);
                format!(
                    "invocation {invocation}, word {word}: {:#010x}, there {:#010x}",
                    ours[at], theirs[at]
                )
            })
            .collect();
        let shown = &different[..different.len().min(20)];
        assert!(
            different.is_empty(),
            "{name} on {}: {} differ\n{}",
            adapter.name(),
            different.len(),
            shown.join("\n")
        );
    }
}

macro_rules! same {
    ($name:ident) => {
        same!($name, "", |_| true);
    };
    ($name:ident, $header:expr, $can:expr) => {
        #[test]
        fn $name() {
            let body = include_str!(concat!("semantics/", stringify!($name), ".wgsl"));
            same_everywhere(stringify!($name), body, $header, $can);
        }
    };
}

same!(integers);
same!(floats);
same!(conversions);
same!(vectors);
same!(atomics);
same!(control, include_str!("semantics/control_header.wgsl"), |_| true);
same!(memory, include_str!("semantics/memory_header.wgsl"), |context: &Context| {
    context.backend_name() != "dx12"
});
same!(halves, "", |context: &Context| context.caps().f16);

/// naga's HLSL would set a matrix of two rows in a copy of its struct.
#[test]
fn matrices_of_two_rows_in_structs() {
    let header = "struct Item { turn: mat2x2<f32> }";
    let body = "var item = Item(); item.turn[global_id.x % 2u] = vec2<f32>(f[global_id.x], 1.0); \
                put_f(0u, item.turn[0].y); put_f(1u, item.turn[1].x);";
    let kernel = kernel_of("turns", body, header);
    let ours = run("turns", body, header, &Context::cpu());
    for adapter in adapters() {
        let context = &adapter.context;
        if context.backend_name() == "dx12" {
            let refusal = kernel.run(&call_on(context)).err();
            assert!(matches!(refusal, Some(Error::Unsupported(_))), "{refusal:?}");
        } else {
            assert_eq!(run("turns", body, header, context), ours, "{}", adapter.name());
        }
    }
}

/// WGSL lets a device round `fma` once or twice. Each adapter always does one of both, and the
/// sanitizer can do either.
#[test]
fn fma_is_fused_or_it_is_not() {
    let body = "put_f(0u, fma(f[global_id.x], f[global_id.x + 256u], f[global_id.x + 512u])); \
                put(1u, u[0]);";
    let kernel = kernel_of("fma", body, "");
    let call = call_on(&Context::cpu());
    let rounding = |fused| {
        let mut options = Options::default();
        options.fused = fused;
        checked("fma", &kernel, &call, options)
    };
    let (fused, unfused) = (rounding(true), rounding(false));
    assert_ne!(fused, unfused);
    for adapter in adapters() {
        let there = run("fma", body, "", &adapter.context);
        assert!(there == fused || there == unfused, "{}", adapter.name());
    }
}

/// Runs subgroup operations for the adapter's size. A quad needs four invocations, but `cargo xtask
/// test` tells lavapipe to take two. Therefore the test runs again, in a new process with four.
#[test]
fn subgroups() {
    if std::env::var("LP_NATIVE_VECTOR_WIDTH").is_ok_and(|bits| bits == "64") {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let again = again
            .args(["--exact", "semantics::subgroups", "--nocapture"])
            .env("LP_NATIVE_VECTOR_WIDTH", "128");
        let output = again.output().unwrap();
        let [out, err] =
            [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes));
        assert!(output.status.success() && out.contains("1 passed"), "{out}\n{err}");
        eprint!("{err}");
        return;
    }
    let body = include_str!("semantics/subgroups.wgsl");
    let kernel = kernel_of("subgroups", body, "");
    let (mut compared, mut lacking) = (0, 0);
    for adapter in adapters() {
        // wgpu has no subgroups on OpenGL.
        lacking += usize::from(adapter.context.backend_name() == "gl");
        let device = adapter.context.device().expect("a GPU");
        let info = device.adapter_info();
        let (least, most) = (info.subgroup_min_size, info.subgroup_max_size);
        if !device.features().contains(tilewise::wgpu::Features::SUBGROUP) || least != most {
            eprintln!(
                "skipped: subgroups on {}: sizes {least} to {most}, or no such feature",
                adapter.name()
            );
            continue;
        }
        let mut options = Options::default();
        options.subgroup_size = least;
        let ours = checked("subgroups", &kernel, &call_on(&Context::cpu()), options);
        assert_eq!(
            run("subgroups", body, "", &adapter.context),
            ours,
            "{} with {least}",
            adapter.name()
        );
        compared += 1;
    }
    assert!(
        compared > 0 || lacking == adapters().len(),
        "no adapter has subgroups of a known size"
    );
}
