let i = global_id.x;
out[i] = a[i] + b[i];
