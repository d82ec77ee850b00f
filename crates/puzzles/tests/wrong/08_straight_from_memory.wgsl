let i = global_id.x;
if i < SIZE {
    out[i] = a[i] + 10.0;
}
