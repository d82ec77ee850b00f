// Smallest and largest of a block.
struct Bounds {
    low: f32,
    high: f32,
}
@group(0) @binding(0) var<storage, read> data: array<f32>;
@group(0) @binding(1) var<storage, read_write> result: array<f32>;

fn widen(bounds: ptr<function, Bounds>, x: f32) {
    (*bounds).low = min((*bounds).low, x);
    (*bounds).high = max((*bounds).high, x);
}

@compute @workgroup_size(1)
fn main() {
    var bounds: Bounds;
    bounds.low = data[0];
    bounds.high = data[0];
    for (var i = 1u; i < 64u; i++) {
        widen(&bounds, data[i]);
    }
    result[0] = bounds.low;
    result[1] = bounds.high;
}
