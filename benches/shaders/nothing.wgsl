// The least that a dispatch can run: what is measured is the calls around it.

@compute @workgroup_size(1)
fn main() {}
