var<workgroup> tile: array<f32, GROUP>;

let i = global_id.x;
let local = local_id.x;
if i < SIZE {
    tile[local] = a[i];
}
// Every thread of the workgroup comes by here, also those that have no number.
workgroupBarrier();
if i < SIZE {
    out[i] = tile[local] + 10.0;
}
