//@ bind 0: u32 counting 32
//@ bind 1: u32 zero 32
// Scales a ramp in place by the number of set bits.
@group(0) @binding(0) var<storage, read> masks: array<u32>;
@group(0) @binding(1) var<storage, read_write> ramp: array<u32>;

@compute @workgroup_size(32)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    var value = 60u * id.x;
    let bits = countOneBits(masks[id.x]);
    value /= bits; //~ division-by-zero
    ramp[id.x] = value;
}
