// The same where subgroups have 32 invocations: each of them finds it by itself, and takes no
// workgroup memory, of which a tile may leave none.
// needs: nothing
// provides: lane_beyond

// The lane, 32 if it is none; the sum of the numbers before it; and whether any lane falls.
fn lane_beyond(place: u32, number: u32, falls: bool, thread: u32) -> vec3<u32> {
    let sum = subgroupInclusiveAdd(number);
    let is_before = sum <= place;
    return vec3<u32>(
        subgroupAdd(u32(is_before)),
        subgroupMax(select(0u, sum, is_before)),
        u32(subgroupAny(falls)),
    );
}
