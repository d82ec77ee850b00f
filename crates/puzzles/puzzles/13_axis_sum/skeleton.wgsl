var<workgroup> tile: array<f32, GROUP>;

let column = local_id.x;
let row = workgroup_id.y;
// FILL ME IN (about twelve lines)
