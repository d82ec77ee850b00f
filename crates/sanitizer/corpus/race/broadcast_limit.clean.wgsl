// Clamps to a limit that one invocation fetches for all.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read> limits: array<u32>;
@group(0) @binding(2) var<storage, read_write> clamped: array<u32>;
var<workgroup> limit: u32;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid == 0u) {
        limit = limits[0];
    }
    workgroupBarrier();
    clamped[lid] = min(data[lid], limit);
}
