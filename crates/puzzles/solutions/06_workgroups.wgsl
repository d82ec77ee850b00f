// This is workgroup_id.x * GROUP + local_id.x.
let i = global_id.x;
if i < SIZE {
    out[i] = a[i] + 10.0;
}
