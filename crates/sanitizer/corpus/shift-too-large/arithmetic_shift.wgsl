//@ bind 0: i32 values -1000,77,-5,123456
//@ bind 1: u32 values 3,0,40,8
//@ bind 2: i32 out 4
// Requantises with a shift per channel.
@group(0) @binding(0) var<storage, read> sums: array<i32>;
@group(0) @binding(1) var<storage, read> shifts: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<i32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let shift = shifts[id.x];
    result[id.x] = sums[id.x] >> shift; //~ shift-too-large
}
