//@ bind 0: u32 random 32
//@ bind 1: u32 out 32
// Inclusive scan that keeps every level.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> scanned: array<u32>;
var<workgroup> levels: array<array<u32, 32>, 5>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    var sum = data[lid];
    for (var level = 0u; level < 5u; level++) {
        let distance = 1u << level;
        levels[level][lid] = sum;
        if (lid < distance) {
            continue;
        }
        workgroupBarrier(); //~ divergent-barrier
        sum += levels[level][lid - distance];
    }
    scanned[lid] = sum;
}
