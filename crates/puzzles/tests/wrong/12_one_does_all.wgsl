if local_id.x == 0u {
    var sum = 0.0;
    for (var i = global_id.x; i < min(global_id.x + GROUP, SIZE); i++) {
        sum += a[i];
    }
    out[workgroup_id.x] = sum;
}
