//@ bind 0: u32 values 3
//@ bind 1: u32 random 64
//@ bind 2: u32 out 64
// Multiplies the larger numbers by a factor held by the workgroup.
@group(0) @binding(0) var<storage, read> factors: array<u32>;
@group(0) @binding(1) var<storage, read> data: array<u32>;
@group(0) @binding(2) var<storage, read_write> result: array<u32>;
var<workgroup> factor: u32;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid == 0u) {
        factor = factors[0];
    }
    var x = data[lid];
    if (lid >= 16u) {
        x *= workgroupUniformLoad(&factor); //~ divergent-barrier
    }
    result[lid] = x;
}
