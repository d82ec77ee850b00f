// The body of a grouping's last kernel: what belongs to each row, of the slots in the order of
// their keys. Slots with keys from `groups` on have no place.
let row = group * SIZE + local_index;
if row < count {
    let slot = order[row];
    slots[row * slots_strides[1]] = slot;
    slots[slots_strides[0] + row * slots_strides[1]] = slot / k;
    let place = select(row, 0xffffffffu, sorted[row] >= groups);
    slots[2u * slots_strides[0] + slot * slots_strides[1]] = place;
}
