//! Operations on matrices that devices have and this version of naga refuses. Kernels do without
//! them, and some miss their aims because of it (benches/README.md). The second test fails when
//! naga takes one of them: then the file named beside it can use it.

use naga::front::wgsl::parse_str;
use naga::valid::{Capabilities, ValidationFlags, Validator};

/// Whether naga takes a compute shader with this body, which has matrices of f16 and of sums.
fn is_taken(body: &str) -> bool {
    let text = format!(
        "enable f16;
        enable wgpu_cooperative_matrix;
        var<workgroup> panel: array<f16, 256>;
        @group(0) @binding(0) var<storage, read_write> words: array<u32>;
        @compute @workgroup_size(32)
        fn main(@builtin(local_invocation_index) lane: u32) {{
            var a = coopLoadT<coop_mat16x16<f16, A>>(&panel[0], 16u);
            var c = coop_mat16x16<f32, C>();
            {body}
        }}"
    );
    let Ok(module) = parse_str(&text) else { return false };
    Validator::new(ValidationFlags::all(), Capabilities::all()).validate(&module).is_ok()
}

#[test]
fn taken() {
    for body in [
        "let b: coop_mat16x16<f16, B> = coopLoadT<coop_mat16x16<f16, B>>(&panel[0], 16u);
        c = coopMultiplyAdd(a, b, c);",
        "a = a + a;",
        "words[lane] = pack2x16float(unpack2x16float(words[lane]));",
    ] {
        assert!(is_taken(body), "{body}");
    }
}

#[test]
fn refused() {
    for (body, why) in [
        ("let b = coop_mat16x16<bf16, B>();", "bf16 is packed as f16 (mainloop/scale.wgsl)"),
        ("a[0] = f16(1.0);", "decoded weights pass through workgroup memory (mainloop/coop.wgsl)"),
        ("a = coop_mat16x16<f16, A>(f16(1.0));", "the same"),
        (
            "let b: coop_mat16x16<f16, B> = coopLoadT<coop_mat16x16<f16, B>>(&words[0], 8u);",
            "decoded weights are stored as f16, by way of f32",
        ),
        ("a = a * a;", "scales meet weights before they are matrices"),
        ("let b: coop_mat16x16<f16, B> = a;", "sums cannot be multiplied again"),
        ("words[lane] = u32(c[0]);", "sums pass through workgroup memory (mainloop/coop.wgsl)"),
        ("let b = coop_mat16x16<i32, B>();", "codes are multiplied as f16"),
        (
            "let pair: vec2<f16> = bitcast<vec2<f16>>(words[lane]);",
            "words become f16 by way of f32 (operand/f16x8.wgsl)",
        ),
    ] {
        assert!(!is_taken(body), "naga takes this now: {body} ({why})");
    }
}
