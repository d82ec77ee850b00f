let column = global_id.x;
let row = global_id.y;
// FILL ME IN (about three lines)
