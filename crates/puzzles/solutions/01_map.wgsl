out[global_id.x] = a[global_id.x] + 10.0;
