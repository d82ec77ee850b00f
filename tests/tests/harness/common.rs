//! Short kernels, and numbers to and from bytes.

use tilewise_tests::harness::{Failure, Kernel, Kind, Lanes, Launch, Mode, Output, available};

/// The built-in arguments that kernels here may use.
pub(crate) const BUILTINS: &str = "uint3 workgroup [[threadgroup_position_in_grid]], uint \
                                   thread_index [[thread_index_in_threadgroup]], uint simdgroup \
                                   [[simdgroup_index_in_threadgroup]], uint lane \
                                   [[thread_index_in_simdgroup]]";

/// A kernel with these arguments and this body, whose first line is line 6 of the text.
pub(crate) fn text(arguments: &str, body: &str) -> String {
    format!(
        "#include <metal_stdlib>\n\
         #include <metal_simdgroup>\n\
         #include <metal_simdgroup_matrix>\n\
         using namespace metal;\n\
         kernel void test({arguments}, {BUILTINS}) {{\n\
         {body}\n\
         }}\n"
    )
}

pub(crate) fn floats(values: impl IntoIterator<Item = f32>) -> Vec<u8> {
    values.into_iter().flat_map(f32::to_ne_bytes).collect()
}

pub(crate) fn to_floats(bytes: &[u8]) -> Vec<f32> {
    bytes.chunks_exact(4).map(|it| f32::from_ne_bytes(it.try_into().unwrap())).collect()
}

pub(crate) fn shorts(values: impl IntoIterator<Item = u16>) -> Vec<u8> {
    values.into_iter().flat_map(u16::to_ne_bytes).collect()
}

pub(crate) fn to_shorts(bytes: &[u8]) -> Vec<u16> {
    bytes.chunks_exact(2).map(|it| u16::from_ne_bytes(it.try_into().unwrap())).collect()
}

/// Launches of one threadgroup of `threads`, with buffers in slots 0, 1, ...
pub(crate) fn launch(threads: u32, buffers: Vec<Vec<u8>>) -> Launch {
    Launch { threads, buffers: (0..).zip(buffers).collect(), ..Launch::default() }
}

/// The output of `launch`, in every mode and with both kinds of lanes, at some seeds. All outputs
/// must agree.
pub(crate) fn everywhere(text: &str, launch: &Launch) -> Option<Output> {
    let mut outputs: Vec<Output> = Vec::new();
    for mode in [Mode::Plain, Mode::Races, Mode::Memory].into_iter().filter(|&it| available(it)) {
        let kernel = Kernel::compile(text, mode).unwrap_or_else(|it| panic!("{it}"));
        for lanes in [Lanes::Fibers, Lanes::Threads] {
            for seed in 0..4 {
                let output = kernel.run(&Launch { lanes, seed, ..launch.clone() });
                outputs.push(
                    output.unwrap_or_else(|it| panic!("{mode:?}, {lanes:?}, seed {seed}: {it}")),
                );
                assert_eq!(
                    outputs[0],
                    outputs[outputs.len() - 1],
                    "{mode:?}, {lanes:?}, seed {seed}"
                );
            }
        }
    }
    outputs.pop()
}

/// Asserts that `launch` fails in this way with both kinds of lanes, with every word of `words` in
/// the report.
pub(crate) fn fails(text: &str, mode: Mode, launch: &Launch, kind: Kind, words: &[&str]) {
    if !available(mode) {
        return;
    }
    let kernel = Kernel::compile(text, mode).unwrap_or_else(|it| panic!("{it}"));
    for lanes in [Lanes::Fibers, Lanes::Threads] {
        let Failure { kind: found, report } =
            kernel.run(&Launch { lanes, ..launch.clone() }).expect_err("a failure");
        assert_eq!(found, kind, "{lanes:?}: {report}");
        for word in words {
            assert!(report.contains(word), "{lanes:?}, no {word}: {report}");
        }
    }
}
