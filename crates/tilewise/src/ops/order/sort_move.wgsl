// The body of a sort's last kernels: keys, or their payload, move to their places. A block takes
// one key for each invocation in each turn. In a turn, every digit has a bit for each invocation
// whose key has it. The rank of a key among equal digits is the number of bits below its own.
const WORDS = (SIZE + 31u) / 32u;
var<workgroup> present: array<atomic<u32>, 256u * WORDS>;
var<workgroup> next: array<u32, 256>;

let block = group;
for (var digit = local_index; block < blocks && digit < 256u; digit += SIZE) {
    next[digit] = places[digit * blocks + block];
}
for (var at = local_index; at < 256u * WORDS; at += SIZE) {
    atomicStore(&present[at], 0u);
}
workgroupBarrier();
let word = local_index / 32u;
let bit = 1u << (local_index % 32u);
for (var turn = 0u; turn < TURNS; turn++) {
    let i = (block * TURNS + turn) * SIZE + local_index;
    let there = block < blocks && i < count;
    var key = 0u;
    if there {
        key = keys[i * keys_strides[0]];
    }
    let digit = (min(key, most) >> shift) & mask;
    if there {
        atomicOr(&present[digit * WORDS + word], bit);
    }
    workgroupBarrier();
    var rank = 0u;
    var all = 0u;
    for (var w = 0u; w < WORDS; w++) {
        let bits = atomicLoad(&present[digit * WORDS + w]);
        all += countOneBits(bits);
        if w <= word {
            rank += countOneBits(select(bits, bits & (bit - 1u), w == word));
        }
    }
    var place = rank;
    if there {
        place += next[digit];
    }
    workgroupBarrier();
    if there {
        y[place * y_strides[0]] = moved(key, i, i * payload_strides[0]);
        atomicStore(&present[digit * WORDS + word], 0u);
        if rank == 0u {
            next[digit] += all;
        }
    }
    workgroupBarrier();
}
