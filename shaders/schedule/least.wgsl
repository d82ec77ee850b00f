// The least of numbers that the invocations of a workgroup have, through workgroup memory.
// needs: THREADS
// provides: SEEKERS leasts least least_all

const SEEKERS: u32 = THREADS;

var<workgroup> leasts: array<atomic<u32>, 2>;
var<workgroup> least_all: vec2<u32>;

fn least(own: vec2<u32>, thread: u32) -> vec2<u32> {
    if thread < 2u {
        atomicStore(&leasts[thread], 0xffffffffu);
    }
    workgroupBarrier();
    for (var i = 0u; i < 2u; i += 1u) {
        if own[i] < 0xffffffffu {
            atomicMin(&leasts[i], own[i]);
        }
    }
    workgroupBarrier();
    if thread == 0u {
        least_all = vec2<u32>(atomicLoad(&leasts[0]), atomicLoad(&leasts[1]));
    }
    return workgroupUniformLoad(&least_all);
}
