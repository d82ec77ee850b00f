var<workgroup> tile: array<f32, GROUP>;

let i = global_id.x;
if i < SIZE {
    out[i] = tile[local_id.x] + 10.0;
}
