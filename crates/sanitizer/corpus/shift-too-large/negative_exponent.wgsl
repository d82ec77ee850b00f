//@ bind 0: i32 values 3,0,-2,5
//@ bind 1: u32 out 4
// Powers of two.
@group(0) @binding(0) var<storage, read> exponents: array<i32>;
@group(0) @binding(1) var<storage, read_write> powers: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let exponent = exponents[id.x];
    powers[id.x] = 1u << u32(exponent); //~ shift-too-large
}
