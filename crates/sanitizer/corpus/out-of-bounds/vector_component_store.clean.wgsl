// Builds a one-hot vector for each label.
@group(0) @binding(0) var<storage, read> labels: array<u32>;
@group(0) @binding(1) var<storage, read_write> codes: array<u32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var hot = vec4<u32>();
    hot[labels[id.x] / 2u] = 1u;
    codes[id.x] = pack4xU8(hot);
}
