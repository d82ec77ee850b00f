let i = global_id.x;
// FILL ME IN (one line)
