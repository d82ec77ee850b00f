// Counts what is not zero.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> count: array<u32>;

@compute @workgroup_size(1)
fn main() {
    var i = 0u;
    var found = 0u;
    while (i < arrayLength(&data)) {
        if (data[i] == 0u) {
            i++;
            continue;
        }
        found++;
        i++;
    }
    count[0] = found;
}
