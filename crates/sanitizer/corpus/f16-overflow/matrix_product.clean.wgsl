// Transforms points.
enable f16;
@group(0) @binding(0) var<storage, read> transform: mat2x2<f16>;
@group(0) @binding(1) var<storage, read> points: array<vec2<f16>>;
@group(0) @binding(2) var<storage, read_write> moved: array<vec2<f16>>;

@compute @workgroup_size(2)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    moved[id.x] = transform * (points[id.x] * 0.5h);
}
