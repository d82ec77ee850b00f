//@ bind 0: u32 values 1,2,3,4,5,6,7,8
//@ bind 1: u32 counting 16
//@ bind 2: u32 out 16
// Looks digits up in a table of eight.
@group(0) @binding(0) var<uniform> table: array<vec4<u32>, 2>;
@group(0) @binding(1) var<storage, read> digits: array<u32>;
@group(0) @binding(2) var<storage, read_write> codes: array<u32>;

@compute @workgroup_size(16)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let digit = digits[id.x];
    codes[id.x] = table[digit / 4u][digit % 4u]; //~ out-of-bounds
}
