// The first half writes squares, the second half negates them.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> result: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid < 32u) {
        result[lid] = data[lid] * data[lid];
    }
    storageBarrier();
    if (lid >= 32u) {
        result[lid] = -result[lid - 32u];
    }
}
