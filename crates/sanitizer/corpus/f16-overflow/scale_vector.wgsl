//@ option: f16-overflow
//@ bind 0: f16 values 1,2,3,4, 100,200,300,400
//@ bind 1: f16 out 8
// Undoes a scale of 1/256.
enable f16;
@group(0) @binding(0) var<storage, read> scaled: array<vec4<f16>>;
@group(0) @binding(1) var<storage, read_write> restored: array<vec4<f16>>;

@compute @workgroup_size(2)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    restored[id.x] = scaled[id.x] * 256.0h; //~ f16-overflow
}
