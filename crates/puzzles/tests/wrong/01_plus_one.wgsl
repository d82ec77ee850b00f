out[global_id.x] = a[global_id.x] + 1.0;
