//@ grid: 3,1,1
//@ bind 0: u32 random 96
//@ bind 1: u32 zero 8
// Local histograms, added to the global one at the end.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> histogram: array<u32>;
var<workgroup> bins: array<atomic<u32>, 8>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32, @builtin(global_invocation_id) id: vec3<u32>) {
    if (lid < 8u) {
        atomicStore(&bins[lid], 0u);
    }
    workgroupBarrier();
    atomicAdd(&bins[data[id.x] % 8u], 1u);
    workgroupBarrier();
    if (lid < 8u) {
        let count = atomicLoad(&bins[lid]);
        histogram[lid] = histogram[lid] + count; //~ race
    }
}
