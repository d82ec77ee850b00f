// What 32 invocations of a workgroup, its lanes, know together, by way of workgroup memory.
// needs: THREADS
// provides: IN_LANES LANES_FALL lane_numbers lane_said lane_sums lane_told

// The first invocations are lanes, so many.
const IN_LANES: u32 = 32u;
const LANES_FALL: u32 = 0x80000000u;

const_assert THREADS >= IN_LANES;

var<workgroup> lane_numbers: array<u32, IN_LANES>;
var<workgroup> lane_said: vec4<u32>;

// For a lane: the sum of the numbers of those before it, the sum of all, and whether any falls, if
// it is not 0.
fn lane_sums(number: u32, falls: bool, thread: u32) -> vec3<u32> {
    if thread < IN_LANES {
        lane_numbers[thread] = select(number, LANES_FALL, falls);
    }
    workgroupBarrier();
    var sums = vec3<u32>();
    if thread < IN_LANES {
        for (var i = 0u; i < IN_LANES; i += 1u) { //unroll
            let other = lane_numbers[i];
            sums += vec3<u32>(select(0u, other, i < thread), other, 0u);
            sums.z |= other & LANES_FALL;
        }
    }
    return sums;
}

// What the one lane says that speaks.
fn lane_told(own: vec3<u32>, speaks: bool) -> vec3<u32> {
    if speaks {
        lane_said = vec4<u32>(own, 0u);
    }
    return workgroupUniformLoad(&lane_said).xyz;
}
