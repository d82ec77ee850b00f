// A blur over two neighbours, with signed positions.
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> blurred: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = i32(id.x);
    var sum = 0.0;
    for (var d = -1; d <= 1; d++) {
        let j = clamp(i + d, 0, 63);
        sum += data[j];
    }
    blurred[i] = sum / 3.0;
}
