var<workgroup> tile: array<f32, GROUP>;

let i = global_id.x;
let local = local_id.x;
if i < SIZE {
    tile[local] = a[i];
}
if i < SIZE {
    var sum = tile[local];
    if local >= 1u {
        sum += tile[local - 1u];
    }
    if local >= 2u {
        sum += tile[local - 2u];
    }
    out[i] = sum;
}
