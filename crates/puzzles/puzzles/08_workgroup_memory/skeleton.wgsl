var<workgroup> tile: array<f32, GROUP>;

let i = global_id.x;
let local = local_id.x;
if i < SIZE {
    tile[local] = a[i];
}
workgroupBarrier();
// FILL ME IN (about three lines)
