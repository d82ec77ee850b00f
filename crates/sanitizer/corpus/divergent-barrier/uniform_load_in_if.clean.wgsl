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
    let shared_factor = workgroupUniformLoad(&factor);
    if (lid >= 16u) {
        x *= shared_factor;
    }
    result[lid] = x;
}
