// What 32 invocations know together where they are subgroups: each of these finds it by itself, and
// takes no workgroup memory, of which a tile may leave none.
// needs: THREADS
// provides: SEEKERS lane_sums lane_told

// Invocations that are lanes.
const SEEKERS: u32 = THREADS;

// The sum of the numbers of the lanes before this one, that of all, and whether any lane falls.
fn lane_sums(number: u32, falls: bool, thread: u32) -> vec3<u32> {
    let before = subgroupExclusiveAdd(number);
    return vec3<u32>(before, subgroupAdd(number), u32(subgroupAny(falls)));
}

// What the one lane says that tells.
fn lane_told(own: vec3<u32>, tells: bool, thread: u32) -> vec3<u32> {
    return subgroupMax(select(vec3<u32>(), own, tells));
}
