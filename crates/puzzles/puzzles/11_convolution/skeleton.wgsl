var<workgroup> tile: array<f32, GROUP + CONV>;
var<workgroup> kernel: array<f32, CONV>;

let i = global_id.x;
let local = local_id.x;
// FILL ME IN (about twenty lines)
