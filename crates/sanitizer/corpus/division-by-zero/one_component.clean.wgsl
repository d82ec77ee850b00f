// Quotas per channel.
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> quotas: array<vec4<u32>>;

@compute @workgroup_size(2)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let weight = weights[id.x];
    quotas[id.x] = vec4<u32>(1000u) / max(weight, vec4<u32>(1u));
}
