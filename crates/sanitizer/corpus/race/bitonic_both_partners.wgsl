//@ bind 0: u32 random 32
//@ bind 1: u32 out 32
// Sorts 32 keys with a bitonic network.
@group(0) @binding(0) var<storage, read> unsorted: array<u32>;
@group(0) @binding(1) var<storage, read_write> sorted: array<u32>;
var<workgroup> keys: array<u32, 32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    keys[lid] = unsorted[lid];
    workgroupBarrier();
    for (var run = 2u; run <= 32u; run *= 2u) {
        for (var gap = run / 2u; gap > 0u; gap /= 2u) {
            let partner = lid ^ gap;
            if (partner < 32u) {
                let mine = keys[lid]; //~ also
                let other = keys[partner]; //~ also
                let ascending = (lid & run) == 0u;
                if ((mine > other) == ascending) {
                    keys[lid] = other; //~ race
                    keys[partner] = mine; //~ race
                }
            }
            workgroupBarrier();
        }
    }
    sorted[lid] = keys[lid];
}
