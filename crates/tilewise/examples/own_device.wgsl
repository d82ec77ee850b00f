// The kernels of own_device.rs, before and after the product.

const CLASSES = 10u;

@group(0) @binding(0) var<storage, read> pixels: array<u32>; // four bytes to a word
@group(0) @binding(1) var<storage, read_write> x: array<f32>;

@compute @workgroup_size(64)
fn unpack(@builtin(global_invocation_id) id: vec3u) {
    if id.x < arrayLength(&x) {
        x[id.x] = f32(extractBits(pixels[id.x / 4], 8 * (id.x % 4), 8u));
    }
}

@group(0) @binding(0) var<storage, read> scores: array<f32>;
@group(0) @binding(1) var<storage, read_write> classes: array<u32>;

@compute @workgroup_size(64)
fn classify(@builtin(global_invocation_id) id: vec3u) {
    if id.x >= arrayLength(&classes) {
        return;
    }
    var best = 0u;
    for (var label = 1u; label < CLASSES; label++) {
        if scores[id.x * CLASSES + label] > scores[id.x * CLASSES + best] {
            best = label;
        }
    }
    classes[id.x] = best;
}
