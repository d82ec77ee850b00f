// What 32 invocations know together, told to a whole workgroup through workgroup memory.
// needs: THREADS
// provides: LANES_FALL SEEKERS lane_numbers lane_said lane_sums lane_told

// Invocations that are lanes.
const SEEKERS: u32 = 32u;
const LANES_FALL: u32 = 0x80000000u;

const_assert THREADS >= SEEKERS;

var<workgroup> lane_numbers: array<u32, 32>;
var<workgroup> lane_said: vec3<u32>;

// The sum of the numbers of the lanes before this one, that of all, and whether any lane falls. Of
// use to lanes alone.
fn lane_sums(number: u32, falls: bool, thread: u32) -> vec3<u32> {
    if thread < 32u {
        lane_numbers[thread] = number | select(0u, LANES_FALL, falls);
    }
    workgroupBarrier();
    var sums = vec3<u32>();
    if thread < 32u {
        for (var i = 0u; i < 32u; i += 1u) { //unroll
            let other = lane_numbers[i];
            sums += vec3<u32>(select(0u, other, i < thread), other, 0u);
            sums.z |= other & LANES_FALL;
        }
    }
    return sums;
}

// What the one lane says that tells.
fn lane_told(own: vec3<u32>, tells: bool, thread: u32) -> vec3<u32> {
    if tells {
        lane_said = own;
    }
    return workgroupUniformLoad(&lane_said);
}
