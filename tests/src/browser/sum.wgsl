// The sum of the numbers of a workgroup, by halves.
var<workgroup> part: array<f32, 64>;
part[local_index] = a[global_id.x];
workgroupBarrier();
for (var step = 32u; step > 0u; step /= 2u) {
    if local_index < step { part[local_index] += part[local_index + step]; }
    workgroupBarrier();
}
if local_index == 0u { out[workgroup_id.x] = part[0]; }
