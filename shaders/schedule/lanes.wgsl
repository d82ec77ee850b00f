// Lanes, the first 32 invocations of a workgroup, tell each other numbers by way of workgroup
// memory.
// needs: THREADS
// provides: lane_before lane_numbers lane_said lane_told

const_assert THREADS >= 32u;

var<workgroup> lane_numbers: array<u32, 32>;
var<workgroup> lane_said: array<u32, 3>;

// For a lane, the sum of the numbers of those before it, or the largest.
fn lane_before(number: u32, adds: bool, lane: u32) -> u32 {
    if lane < 32u {
        lane_numbers[lane] = number;
    }
    workgroupBarrier();
    var all = 0u;
    if lane < 32u {
        for (var i = 0u; i < 31u; i += 1u) { //unroll
            let other = select(0u, lane_numbers[i], i < lane);
            all = select(max(all, other), all + other, adds);
        }
    }
    workgroupBarrier();
    return all;
}

// The message of the one lane that speaks, for all invocations.
fn lane_told(own: vec3<u32>, speaks: bool) -> vec3<u32> {
    if speaks {
        lane_said = array<u32, 3>(own.x, own.y, own.z);
    }
    let said = workgroupUniformLoad(&lane_said);
    return vec3<u32>(said[0], said[1], said[2]);
}
