// What the 32 lanes of a subgroup tell each other. All subgroups do so, and take no workgroup
// memory, of which a tile may leave none.
// needs: nothing
// provides: lane_number lanes_put lanes_taken lanes_told

// Each lane has a number, which others may look at from here on.
fn lanes_put(number: u32, lane: u32) {}

// The number of lane i.
fn lane_number(i: u32, own: u32) -> u32 {
    return subgroupShuffle(own, i);
}

// Nobody looks at them from here on.
fn lanes_taken() {}

// What the one lane says that speaks.
fn lanes_told(own: vec3<u32>, speaks: bool) -> vec3<u32> {
    return subgroupMax(select(vec3<u32>(), own, speaks));
}
