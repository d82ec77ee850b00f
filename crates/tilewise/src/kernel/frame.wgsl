// The function around the body of a custom kernel. A text has the third and the fourth block only
// if it needs them.

@compute @workgroup_size(SIZE)
fn main(ARGUMENTS) {

let grid = tilewise_call.grid;

if any(global_id >= grid) { return; }

}
