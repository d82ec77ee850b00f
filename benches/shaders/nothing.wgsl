// The least that a dispatch can run: only the calls around it are measured.

@compute @workgroup_size(1)
fn main() {}
