// The body of a grouping by one workgroup. A slot's rank is key · MOST + its number. Before a slot
// come the slots of lower rank, and before a group the slots of lower keys. Keys from `groups` on
// count as `groups`. Ranks lie in vectors of four, and four vectors are loaded at a time; ranks
// behind the last slot are above all others.
var<workgroup> ranks: array<vec4<u32>, MOST / 4u>;

let fours = (count + 15u) / 16u * 4u;
for (var i = local_index; i < fours; i += SIZE) {
    let slot = 4u * i + vec4(0u, 1u, 2u, 3u);
    let there = min(slot, vec4(count - 1u));
    let at = there / k * keys_strides[0] + there % k * keys_strides[1];
    let key = vec4(keys[at.x], keys[at.y], keys[at.z], keys[at.w]);
    ranks[i] = select(vec4(0xffffffffu), min(key, vec4(groups)) * MOST + slot, slot < vec4(count));
}
workgroupBarrier();
// First the slots, and then the groups' starts and the end of the last group.
for (var i = local_index; i <= count + groups; i += SIZE) {
    var rank = (i - count) * MOST;
    if i < count {
        rank = ranks[i / 4u][i % 4u];
    }
    var before = vec4<u32>();
    for (var other = 0u; other < fours; other += 4u) {
        before += vec4<u32>(ranks[other] < vec4(rank));
        before += vec4<u32>(ranks[other + 1u] < vec4(rank));
        before += vec4<u32>(ranks[other + 2u] < vec4(rank));
        before += vec4<u32>(ranks[other + 3u] < vec4(rank));
    }
    let place = before.x + before.y + before.z + before.w;
    if i < count {
        slots[place * slots_strides[1]] = i;
        slots[slots_strides[0] + place * slots_strides[1]] = i / k;
        let own = select(place, 0xffffffffu, rank >= groups * MOST);
        slots[2u * slots_strides[0] + i * slots_strides[1]] = own;
    } else {
        starts[(i - count) * starts_strides[0]] = place;
    }
}
