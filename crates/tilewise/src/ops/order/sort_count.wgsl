// The body of a sort's first kernel: it counts the keys of each digit in a block of TURNS · SIZE
// keys. The counts of one digit lie side by side. Keys beyond `most` count as `most`.
var<workgroup> own: array<atomic<u32>, 256>;

let block = group;
for (var digit = local_index; digit < 256u; digit += SIZE) {
    atomicStore(&own[digit], 0u);
}
workgroupBarrier();
for (var turn = 0u; turn < TURNS; turn++) {
    let i = (block * TURNS + turn) * SIZE + local_index;
    if block < blocks && i < count {
        atomicAdd(&own[(min(keys[i * keys_strides[0]], most) >> shift) & mask], 1u);
    }
}
workgroupBarrier();
for (var digit = local_index; block < blocks && digit < 256u; digit += SIZE) {
    counts[digit * blocks + block] = atomicLoad(&own[digit]);
}
