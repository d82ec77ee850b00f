var<workgroup> tile: array<f32, GROUP>;

let i = global_id.x;
let local = local_id.x;
// A place without a product holds 0, so that the tree below needs no guards.
var product = 0.0;
if i < SIZE {
    product = a[i] * b[i];
}
tile[local] = product;
workgroupBarrier();

// The upper half of what is left is added to the lower half until one number is left. The bound of
// the loop is the same for all threads, so all of them meet at its barrier.
for (var half = GROUP / 2u; half > 0u; half /= 2u) {
    if local < half {
        tile[local] += tile[local + half];
        workgroupBarrier();
    }
}
if local == 0u {
    out[0] = tile[0];
}
