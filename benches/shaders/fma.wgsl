// Measures the ceiling of f32 arithmetic: each invocation has sixteen independent chains of fused
// multiply-adds, which count as two operations. A round has four steps, so the loop costs little.

const STEPS: u32 = 512u;

@group(0) @binding(0) var<storage, read> source: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read_write> target_data: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let n = arrayLength(&source);
    let x = source[id.x % n];
    let y = source[(id.x + 1u) % n];
    var a = x;
    var b = y;
    var c = x + y;
    var d = x - y;
    for (var i = 0u; i < STEPS; i += 1u) {
        a = fma(a, x, vec4<f32>(0.25));
        b = fma(b, x, vec4<f32>(0.25));
        c = fma(c, x, vec4<f32>(0.25));
        d = fma(d, x, vec4<f32>(0.25));
        a = fma(a, x, vec4<f32>(0.25));
        b = fma(b, x, vec4<f32>(0.25));
        c = fma(c, x, vec4<f32>(0.25));
        d = fma(d, x, vec4<f32>(0.25));
        a = fma(a, x, vec4<f32>(0.25));
        b = fma(b, x, vec4<f32>(0.25));
        c = fma(c, x, vec4<f32>(0.25));
        d = fma(d, x, vec4<f32>(0.25));
        a = fma(a, x, vec4<f32>(0.25));
        b = fma(b, x, vec4<f32>(0.25));
        c = fma(c, x, vec4<f32>(0.25));
        d = fma(d, x, vec4<f32>(0.25));
    }
    target_data[id.x % n] = a + b + c + d;
}
