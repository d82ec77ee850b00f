// A histogram of values from 0 to 64 in bins of eight.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> bins: array<atomic<u32>>;

@compute @workgroup_size(65)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let bin = min(data[id.x] / 8u, 7u);
    atomicAdd(&bins[bin], 1u);
}
