// The body of a grouping by one workgroup. A slot's rank is its key and then its number, MOST of
// these to a key: before a slot come those of lower rank, and before a group those of keys below
// it. Keys from `groups` on count as `groups`. Ranks lie in fours, which end with ranks above all.
var<workgroup> ranks: array<vec4<u32>, MOST / 4u>;

let fours = (count + 3u) / 4u;
for (var i = local_index; i < fours; i += SIZE) {
    var four = vec4(0xffffffffu);
    for (var j = 0u; j < min(4u, count - 4u * i); j++) {
        let slot = 4u * i + j;
        let key = keys[slot / k * keys_strides[0] + slot % k * keys_strides[1]];
        four[j] = min(key, groups) * MOST + slot;
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
    for (var other = 0u; other < fours; other++) {
        before += vec4<u32>(ranks[other] < vec4(rank));
    }
    let place = before.x + before.y + before.z + before.w;
    if i < count {
        slots[place * slots_strides[1]] = i;
        slots[slots_strides[0] + place * slots_strides[1]] = i / k;
        slots[2u * slots_strides[0] + i * slots_strides[1]] = place;
    } else {
        starts[(i - count) * starts_strides[0]] = place;
    }
}
