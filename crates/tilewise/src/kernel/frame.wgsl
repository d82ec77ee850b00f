// The function around the body of a custom kernel. The third and the fourth block stand only where
// they are needed.

@compute @workgroup_size(SIZE)
fn main(ARGUMENTS) {

let grid = tilewise_call.grid;

if any(global_id >= grid) { return; }

}
