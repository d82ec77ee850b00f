// The body of a grouping by one workgroup. A slot's rank is its key and then its number, MOST of
// these to a key: before a slot come those of lower rank, and before a group those of keys below
// it. Keys from `groups` on count as `groups`. Ranks lie in fours, and four fours are loaded at a
// time: the last ones are above all.
var<workgroup> ranks: array<vec4<u32>, MOST / 4u>;

let fours = (count + 15u) / 16u * 4u;
for (var i = local_index; i < fours; i += SIZE) {
    var four = vec4(0xffffffffu);
    for (var j = 0u; j < 4u; j++) {
        let slot = 4u * i + j;
        if slot < count {
            let key = keys[slot / k * keys_strides[0] + slot % k * keys_strides[1]];
            four[j] = min(key, groups) * MOST + slot;
        }
    }
    ranks[i] = four;
}
workgroupBarrier();
// The slots, and then the groups' starts and the last one's end.
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
