let i = workgroup_id.x * GROUP + local_id.x;
out[i] = a[i] + 10.0;
