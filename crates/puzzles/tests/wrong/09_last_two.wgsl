var<workgroup> tile: array<f32, GROUP>;

let i = global_id.x;
let local = local_id.x;
tile[local] = a[i];
workgroupBarrier();
var sum = tile[local];
if local >= 1u {
    sum += tile[local - 1u];
}
out[i] = sum;
