// What the 32 lanes of a subgroup know together. Each subgroup finds it by itself, and takes no
// workgroup memory, of which a tile may leave none.
// needs: THREADS
// provides: IN_LANES lane_sums lane_told

// All invocations are lanes.
const IN_LANES: u32 = THREADS;

// The sum of the numbers of the lanes before this one, the sum of all, and whether any falls, if
// it is not 0.
fn lane_sums(number: u32, falls: bool, thread: u32) -> vec3<u32> {
    let before = subgroupExclusiveAdd(number);
    return vec3<u32>(before, subgroupAdd(number), u32(subgroupAny(falls)));
}

// What the one lane says that speaks.
fn lane_told(own: vec3<u32>, speaks: bool) -> vec3<u32> {
    return subgroupMax(select(vec3<u32>(), own, speaks));
}
