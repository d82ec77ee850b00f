var<workgroup> tile: array<f32, GROUP>;

let i = global_id.x;
let local = local_id.x;
tile[local] = a[i];
workgroupBarrier();
out[i] = tile[local - 2u] + tile[local - 1u] + tile[local];
