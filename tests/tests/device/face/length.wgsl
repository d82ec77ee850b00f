@group(0) @binding(0) var<storage, read> counted: array<u32>;
@group(0) @binding(1) var<storage, read_write> length: array<u32>;

@compute @workgroup_size(1)
fn main() {
    length[0] = arrayLength(&counted);
}
