var<workgroup> tile: array<f32, GROUP>;

let i = global_id.x;
let local = local_id.x;
var number = 0.0;
if i < SIZE {
    number = a[i];
}
tile[local] = number;
workgroupBarrier();

// Pairs, then pairs of pairs: after the step `reach`, the last place of every 2 * reach places
// holds their sum.
for (var reach = 1u; reach < GROUP; reach *= 2u) {
    if (local + 1u) % (2u * reach) == 0u {
        tile[local] += tile[local - reach];
    }
}
if local == GROUP - 1u {
    out[workgroup_id.x] = tile[local];
}
