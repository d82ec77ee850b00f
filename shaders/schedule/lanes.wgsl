// Which of 32 numbers in a row is the first that, with all before it, passes a place. Each lane has
// one of them: invocations that lie 32 apart have the same. Through workgroup memory.
// needs: THREADS
// provides: LANE_FALLS lane_beyond lane_numbers

const LANE_FALLS: u32 = 0x80000000u;

const_assert THREADS >= 32u;

var<workgroup> lane_numbers: array<u32, 32>;

// The lane, 32 if it is none; the sum of the numbers before it; and whether any lane falls.
fn lane_beyond(place: u32, number: u32, falls: bool, thread: u32) -> vec3<u32> {
    if thread < 32u {
        lane_numbers[thread] = number | select(0u, LANE_FALLS, falls);
    }
    var numbers = workgroupUniformLoad(&lane_numbers);
    var beyond = vec3<u32>();
    for (var i = 0u; i < 32u; i += 1u) { //unroll
        let sum = beyond.y + (numbers[i] & ~LANE_FALLS);
        if beyond.x == i && sum <= place {
            beyond = vec3<u32>(i + 1u, sum, beyond.z);
        }
        beyond.z |= numbers[i] & LANE_FALLS;
    }
    return beyond;
}
