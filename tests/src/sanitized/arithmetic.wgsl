// The functions stand before this text. Its last comment is replaced by the work on each pair.
@group(0) @binding(0) var<storage, read> pairs: array<vec2<u32>>;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if id.x >= arrayLength(&pairs) {
        return;
    }
    let x = pairs[id.x].x;
    let y = pairs[id.x].y;
    let at = id.x * 13u;
    // BODY
}
