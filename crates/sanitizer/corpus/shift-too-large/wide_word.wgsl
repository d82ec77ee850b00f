//@ bind 0: u64 values 1,255,4096,99
//@ bind 1: u32 values 0,63,64,8
//@ bind 2: u64 out 4
// Fields of 64-bit words.
@group(0) @binding(0) var<storage, read> words: array<u64>;
@group(0) @binding(1) var<storage, read> offsets: array<u32>;
@group(0) @binding(2) var<storage, read_write> fields: array<u64>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    fields[id.x] = words[id.x] >> offsets[id.x]; //~ shift-too-large
}
