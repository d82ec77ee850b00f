// Rotates as many numbers as there are.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> rotated: array<f32>;
var<workgroup> tile: array<f32, 64>;

fn fetch(lid: u32) {
    if (lid >= arrayLength(&data)) {
        return;
    }
    tile[lid] = data[lid];
}

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    let n = arrayLength(&data);
    fetch(lid);
    workgroupBarrier();
    if (lid < n) {
        rotated[lid] = tile[(lid + 1u) % n];
    }
}
