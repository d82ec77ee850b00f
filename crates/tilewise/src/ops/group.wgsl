// The body of a grouping by one workgroup: before a slot come those with a smaller key, and those
// with the same key and a smaller number. Keys from `groups` on count as `groups`.
var<workgroup> own: array<u32, MOST>;

for (var slot = local_index; slot < count; slot += SIZE) {
    let key = keys[slot / k * keys_strides[0] + slot % k * keys_strides[1]];
    own[slot] = min(key, groups);
}
workgroupBarrier();
for (var slot = local_index; slot < count; slot += SIZE) {
    let key = own[slot];
    var place = 0u;
    for (var other = 0u; other < count; other++) {
        place += u32(own[other] < key || own[other] == key && other < slot);
    }
    slots[place * slots_strides[1]] = slot;
    slots[slots_strides[0] + place * slots_strides[1]] = slot / k;
    slots[2u * slots_strides[0] + slot * slots_strides[1]] = place;
}
for (var first = local_index; first <= groups; first += SIZE) {
    var start = 0u;
    for (var other = 0u; other < count; other++) {
        start += u32(own[other] < first);
    }
    starts[first * starts_strides[0]] = start;
}
