let i = global_id.x;
if i == 0u {
    out[0] = 0.0;
}
storageBarrier();
if i < SIZE {
    out[0] += a[i] * b[i];
}
