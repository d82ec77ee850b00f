// Positions of keys in a sorted list.
@group(0) @binding(0) var<storage, read> list: array<u32>;
@group(0) @binding(1) var<storage, read> keys: array<u32>;
@group(0) @binding(2) var<storage, read_write> positions: array<u32>;

@compute @workgroup_size(4)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let key = keys[id.x];
    var low = 0u;
    var high = arrayLength(&list);
    while (low < high) {
        let middle = (low + high) / 2u;
        if (list[middle] < key) {
            low = middle + 1u;
        } else {
            high = middle;
        }
    }
    positions[id.x] = low;
}
