// What the first 32 invocations of a workgroup, its lanes, tell each other by way of workgroup
// memory.
// needs: THREADS
// provides: lane_number lane_numbers lane_said lanes_put lanes_taken lanes_told

const_assert THREADS >= 32u;

var<workgroup> lane_numbers: array<u32, 32>;
var<workgroup> lane_said: vec4<u32>;

// Each lane has a number, which others may look at from here on.
fn lanes_put(number: u32, lane: u32) {
    if lane < 32u {
        lane_numbers[lane] = number;
    }
    workgroupBarrier();
}

// The number of lane i.
fn lane_number(i: u32, own: u32) -> u32 {
    return lane_numbers[i];
}

// Nobody looks at them from here on.
fn lanes_taken() {
    workgroupBarrier();
}

// What the one lane says that speaks.
fn lanes_told(own: vec3<u32>, speaks: bool) -> vec3<u32> {
    if speaks {
        lane_said = vec4<u32>(own, own.x);
    }
    return workgroupUniformLoad(&lane_said).xyz;
}
