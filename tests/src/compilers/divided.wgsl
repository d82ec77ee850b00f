@group(0) @binding(0) var<storage, read_write> a: array<u32>;
var<workgroup> w: array<u32, 64>;
@compute @workgroup_size(64) fn main(@builtin(local_invocation_index) i: u32) {
    for (var j = 0u; j < a[i]; j++) {
        w[i] = j;
        workgroupBarrier();
        a[i] += w[63u - i];
    }
}
