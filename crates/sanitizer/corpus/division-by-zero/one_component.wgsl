//@ bind 0: u32 values 4,2,1,8, 3,5,0,2
//@ bind 1: u32 out 8
// Quotas per channel.
@group(0) @binding(0) var<storage, read> weights: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> quotas: array<vec4<u32>>;

@compute @workgroup_size(2)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let weight = weights[id.x];
    quotas[id.x] = vec4<u32>(1000u) / weight; //~ division-by-zero
}
