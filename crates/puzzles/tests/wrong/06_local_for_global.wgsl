let i = local_id.x;
if i < SIZE {
    out[i] = a[i] + 10.0;
}
