// The 32 lanes of a subgroup tell each other numbers. All subgroups do so by themselves. They take
// no workgroup memory, of which a tile may leave none.
// needs: nothing
// provides: lane_before lane_told

// The sum of the numbers of the lanes before this one, or the largest.
fn lane_before(number: u32, adds: bool, lane: u32) -> u32 {
    if adds {
        return subgroupExclusiveAdd(number);
    }
    // The largest of one lane, then of two, of four and so on.
    var largest = select(0u, subgroupShuffleUp(number, 1u), lane > 0u);
    for (var i = 0u; i < 5u; i += 1u) {
        let reach = 1u << i;
        let other = subgroupShuffleUp(largest, reach);
        largest = max(largest, select(0u, other, lane > reach));
    }
    return largest;
}

// The message of the one lane that speaks, for all.
fn lane_told(own: vec3<u32>, speaks: bool) -> vec3<u32> {
    return subgroupMax(select(vec3<u32>(), own, speaks));
}
