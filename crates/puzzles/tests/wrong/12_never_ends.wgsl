var sum = 0.0;
for (var i = global_id.x; i % GROUP < GROUP; i++) {
    sum += a[min(i, SIZE - 1u)];
}
out[workgroup_id.x] = sum;
