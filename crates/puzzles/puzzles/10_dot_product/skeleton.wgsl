var<workgroup> tile: array<f32, GROUP>;

let i = global_id.x;
let local = local_id.x;
// FILL ME IN (about ten lines)
