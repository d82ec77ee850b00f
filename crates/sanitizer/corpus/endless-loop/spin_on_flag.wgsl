//@ max-iterations: 1000
//@ bind 0: u32 random 32
//@ bind 1: u32 zero 1
//@ bind 2: u32 zero 32
// Waits for the first invocation to raise a flag.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> flag: atomic<u32>;
@group(0) @binding(2) var<storage, read_write> copy: array<u32>;

@compute @workgroup_size(32)
fn main(@builtin(local_invocation_index) lid: u32) {
    if (lid == 0u) {
        atomicStore(&flag, 2u);
    }
    loop { //~ endless-loop
        if (atomicLoad(&flag) == 1u) {
            break;
        }
    }
    copy[lid] = data[lid];
}
