// The function around the body of a custom kernel. generate.rs puts text for the words in capitals.
@compute @workgroup_size(SIZE)
fn main(ARGUMENTS) {
PRELUDE
BODY
}
