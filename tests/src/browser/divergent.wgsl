// A barrier in a loop: the number of rounds is uniform, but no compiler can see that.
var sum = 0.0;
for (var i = local_index; i < 3u + local_index; i += 1u) {
    workgroupBarrier();
    sum += a[i - local_index];
}
out[global_id.x] = sum + a[global_id.x];
