// The same where subgroups have 32 invocations: each of them finds it by itself.
// needs: nothing
// provides: SEEKERS least

const SEEKERS: u32 = 32u;

fn least(own: vec2<u32>, thread: u32) -> vec2<u32> {
    return subgroupMin(own);
}
