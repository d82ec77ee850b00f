//@ bind 0: u32 random 64
//@ bind 1: u32 out 64
// Inclusive scan, from one buffer to the other and back.
@group(0) @binding(0) var<storage, read> data: array<u32>;
@group(0) @binding(1) var<storage, read_write> scanned: array<u32>;
var<workgroup> ping: array<u32, 64>;
var<workgroup> pong: array<u32, 64>;

@compute @workgroup_size(64)
fn main(@builtin(local_invocation_index) lid: u32) {
    ping[lid] = data[lid];
    workgroupBarrier();
    var from_ping = true;
    for (var offset = 1u; offset < 64u; offset *= 2u) {
        let source = select(lid, lid - offset, lid >= offset);
        let weight = select(0u, 1u, lid >= offset);
        if (from_ping) {
            pong[lid] = ping[lid] + weight * ping[source]; //~ race
            workgroupBarrier();
        } else {
            ping[lid] = pong[lid] + weight * pong[source]; //~ also
        }
        from_ping = !from_ping;
    }
    scanned[lid] = ping[lid];
}
