//@ immediates: u32 values 64
//@ bind 0: f32 random 60
//@ bind 1: f32 zero 60
// Copies as many numbers as the caller says.
var<immediate> length: u32;
@group(0) @binding(0) var<storage, read> from_buffer: array<f32>;
@group(0) @binding(1) var<storage, read_write> to_buffer: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x < length) {
        let x = from_buffer[id.x]; //~ out-of-bounds
        to_buffer[id.x] = x; //~ out-of-bounds
    }
}
