let group = workgroup_id.y * num_workgroups.x + workgroup_id.x;
