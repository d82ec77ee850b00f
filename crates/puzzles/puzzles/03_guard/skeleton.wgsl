let i = global_id.x;
// FILL ME IN (about three lines)
