// Only arithmetic, which measures how fast the compiled form itself runs.
@group(0) @binding(0) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var state = id.x;
    var sum = 0.0;
    for (var i = 0u; i < 256u; i += 1u) {
        state = state * 1664525u + 1013904223u;
        sum = sum * 0.5 + f32(state >> 8u);
    }
    out[id.x] = state ^ bitcast<u32>(sum);
}
