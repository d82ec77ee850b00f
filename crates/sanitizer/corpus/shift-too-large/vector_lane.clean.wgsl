// Unpacks four fields of each word, of a width of its own.
@group(0) @binding(0) var<storage, read> words: array<u32>;
@group(0) @binding(1) var<storage, read> widths: array<u32>;
@group(0) @binding(2) var<storage, read_write> fields: array<vec4<u32>>;

@compute @workgroup_size(8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let width = min(widths[id.x], 8u);
    let positions = width * vec4<u32>(0u, 1u, 2u, 3u);
    let mask = (1u << width) - 1u;
    fields[id.x] = (vec4<u32>(words[id.x]) >> positions) & vec4<u32>(mask);
}
