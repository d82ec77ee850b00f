let i = global_id.x;
out[i] = a[i] + 10.0;
