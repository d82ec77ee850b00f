//@ grid: 4,1,1
//@ bind 0: u32 random 128
//@ bind 1: u32 zero 4
//@ bind 2: u32 zero 2
// Each workgroup counts its odd numbers; the last to finish adds the counts up.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> counts: array<u32>;
@group(0) @binding(2) var<storage, read_write> state: array<atomic<u32>, 2>;
var<workgroup> odd: atomic<u32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32, @builtin(workgroup_id) group: vec3<u32>) {
    if (lid == 0u) {
        atomicStore(&odd, 0u);
    }
    workgroupBarrier();
    atomicAdd(&odd, data[group.x * 32u + lid] & 1u);
    workgroupBarrier();
    if (lid == 0u) {
        counts[group.x] = atomicLoad(&odd); //~ race
        if (atomicAdd(&state[0], 1u) == 3u) {
            for (var i = 0u; i < 4u; i++) {
                atomicAdd(&state[1], counts[i]); //~ race
            }
        }
    }
}
