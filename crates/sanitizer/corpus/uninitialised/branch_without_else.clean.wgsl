// Signs.
@group(0) @binding(0) var<storage, read> data: array<i32>;
@group(0) @binding(1) var<storage, read_write> signs: array<i32>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let x = data[id.x];
    var result: i32;
    if (x > 0) {
        result = 1;
    } else if (x < 0) {
        result = -1;
    } else {
        result = 0;
    }
    signs[id.x] = result;
}
