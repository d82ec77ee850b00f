// Exponentials of logits.
enable f16;
@group(0) @binding(0) var<storage, read> logits: array<f16>;
@group(0) @binding(1) var<storage, read_write> weights: array<f16>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    weights[id.x] = exp(logits[id.x] - 12.0h);
}
