// The body of a grouping's last kernel. From the slots in the order of their keys it makes the slot
// and the token of each row, and the place of each slot. Slots with keys from `groups` on have no
// place.
let row = group * SIZE + local_index;
if row < count {
    let slot = order[row];
    slots[row * slots_strides[1]] = slot;
    slots[slots_strides[0] + row * slots_strides[1]] = slot / k;
    let place = select(row, 0xffffffffu, sorted[row] >= groups);
    slots[2u * slots_strides[0] + slot * slots_strides[1]] = place;
}
