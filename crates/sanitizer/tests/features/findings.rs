//! Tests of findings, and of runs that stop at the first.

use super::shader;
use tilewise_sanitizer::{Buffer, Launch, Options};

#[test]
fn a_matrix_past_the_end_is_found() {
    let shader = shader(
        "enable wgpu_cooperative_matrix;
         @group(0) @binding(0) var<storage, read_write> out: array<f32>;
         @compute @workgroup_size(32) fn main() {
             let value = coop_mat8x8<f32, C>();
             let to = &out[8];
             coopStoreT(value, to, 8u);
         }",
    );
    let report = Launch::new(&shader).bind(0, 0, Buffer::new([0; 256])).run().unwrap();
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].message, "a cooperative matrix reaches beyond `out`");
    assert_eq!(report.findings[0].occurrences, 8);
}

/// Findings of one invocation over 16 bytes of `o`, by name.
fn found(declaration: &str, body: &str, bytes: usize) -> Vec<(&'static str, String)> {
    let shader = shader(&format!(
        "{declaration}
         @compute @workgroup_size(1) fn main() {{ {body} }}"
    ));
    let report = Launch::new(&shader).bind(0, 0, Buffer::new(vec![0; bytes])).run().unwrap();
    report.findings.iter().map(|finding| (finding.kind.name(), finding.message.clone())).collect()
}

#[test]
fn constant_indices_past_the_end() {
    let words = "@group(0) @binding(0) var<storage, read_write> o: array<u32>;";
    let message = |text: &str| vec![("out-of-bounds", text.to_owned())];
    for body in
        ["o[9] = 7u;", "let n = o[9];", "let p = &o[9]; *p = 1u;", "const I = 9; o[I] += 1u;"]
    {
        assert_eq!(
            found(words, body, 16)[0],
            message("index 9 is out of bounds of `o`")[0],
            "{body}"
        );
    }
    assert!(found(words, "o[3] = 7u;", 16).is_empty());
    let rows = "struct Row { m: mat2x2<f32>, n: u32 } @group(0) @binding(0) var<storage, \
                read_write> o: array<Row>;";
    assert_eq!(found(rows, "o[1].m[1].y = 1.0;", 24), message("index 1 is out of bounds of `o`"));
    // Some bytes of the element exist, but not all of them.
    assert_eq!(found(rows, "o[1].m[0].x = 1.0;", 36), message("index 1 is out of bounds of `o`"));
    let tail = "struct Tail { a: vec2u, o: array<atomic<u32>> } @group(0) @binding(0) var<storage, \
                read_write> t: Tail;";
    assert_eq!(
        found(tail, "atomicAdd(&t.o[2], 1u);", 16),
        message("index 2 is out of bounds of `t.o`")
    );
    let sized = "override N: u32 = 2u; var<workgroup> t: array<u32, N>;
                 @group(0) @binding(0) var<storage, read_write> o: array<u32>;";
    assert_eq!(
        found(sized, "t[5] = 1u; o[0] = 1u;", 4),
        message("index 5 is out of bounds of `t`")
    );
    // Executed without checks, nothing is read or written out of bounds.
    let text = shader(&format!(
        "{words} @compute @workgroup_size(1) fn main() {{ o[0] = o[7] + 3u; o[9] = 1u; }}"
    ));
    let report = Launch::new(&text)
        .bind(0, 0, Buffer::new([9; 8]))
        .options(Options::execute())
        .run()
        .unwrap();
    assert_eq!(report.buffers[&(0, 0)], [3, 0, 0, 0, 9, 9, 9, 9]);
}

#[test]
fn an_endless_loop_stops_the_run() {
    let shader = shader(
        "@group(0) @binding(0) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(64) fn main(@builtin(workgroup_id) w: vec3u, \
             @builtin(local_invocation_index) i: u32) {
             while w.x % 8u == 5u { if o[10000] == 1u { break; } }
             o[w.x * 64u + i] = i;
         }",
    );
    let run = |parallel| {
        let mut options = Options::default();
        (options.parallel, options.max_iterations) = (parallel, 10_000);
        let buffer = Buffer::new(vec![0; 256 * 512]).must_write();
        Launch::new(&shader).grid([512, 1, 1]).bind(0, 0, buffer).options(options).run().unwrap()
    };
    for report in [run(true), run(false), run(true)] {
        assert_eq!(report.findings.len(), 1, "{}", report.render(&shader, false));
        assert_eq!(report.findings[0].kind.name(), "endless-loop");
        assert_eq!(report.findings[0].labels[0].place.unwrap().workgroup, [5, 0, 0]);
        assert_eq!(report.counters.invocations, 6 * 64);
    }
}

#[test]
fn parts_of_variables() {
    let o = "@group(0) @binding(0) var<storage, read_write> o: array<f32>;";
    let clean = "var v: vec3<f32>; v.x = 1.0; v.y = 2.0; o[0] = length(v.xy); o[1] = v.y;";
    assert!(found(o, clean, 8).is_empty());
    let wrong = "var v: vec3<f32>; v.x = 1.0; v.y = 2.0; o[0] = length(v.xz); o[1] = length(v);";
    assert_eq!(found(o, wrong, 8).len(), 2);
}

#[test]
fn atomics_that_fail_write_nothing() {
    let shader = shader(
        "@group(0) @binding(0) var<storage, read_write> o: array<atomic<u32>>;
         @compute @workgroup_size(2) fn main(@builtin(local_invocation_index) i: u32) {
             _ = atomicCompareExchangeWeak(&o[i], i, 7u);
         }",
    );
    let report = Launch::new(&shader).bind(0, 0, Buffer::new([0; 8]).must_write()).run().unwrap();
    assert_eq!(report.findings.len(), 1);
    assert_eq!(report.findings[0].labels[0].text, "nobody writes `o[1]`");
    assert_eq!(report.counters.atomics.total, 2);
}

#[test]
fn uniform_loads_of_different_places() {
    let shader = shader(
        "var<workgroup> tile: array<u32, 4>;
         @group(0) @binding(0) var<storage, read_write> o: array<u32>;
         @compute @workgroup_size(4) fn main(@builtin(local_invocation_index) i: u32) {
             tile[i] = i;
             o[i] = workgroupUniformLoad(&tile[i / 4u]) + workgroupUniformLoad(&tile[i]);
         }",
    );
    let report = Launch::new(&shader).bind(0, 0, Buffer::output(16)).run().unwrap();
    assert_eq!(report.findings.len(), 1, "{}", report.render(&shader, false));
    assert_eq!(report.findings[0].kind.name(), "divergent-barrier");
}
