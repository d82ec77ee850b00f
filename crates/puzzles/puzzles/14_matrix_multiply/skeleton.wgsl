var<workgroup> a_tile: array<array<f32, GROUP>, GROUP>;
var<workgroup> b_tile: array<array<f32, GROUP>, GROUP>;

let column = global_id.x;
let row = global_id.y;
let x = local_id.x;
let y = local_id.y;
// FILL ME IN (about twenty lines)
