let i = global_id.x;
if i < SIZE {
    var sum = a[i];
    if i >= 1u {
        sum += a[i - 1u];
    }
    if i >= 2u {
        sum += a[i - 2u];
    }
    out[i] = sum;
}
