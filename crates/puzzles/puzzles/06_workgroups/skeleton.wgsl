let local = local_id.x;
let workgroup = workgroup_id.x;
// FILL ME IN (about four lines)
