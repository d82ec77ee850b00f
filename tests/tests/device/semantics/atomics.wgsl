var<workgroup> cells: array<atomic<u32>, 8>;
var<workgroup> signed: array<atomic<i32>, 2>;
let lane = local_index;
let x = u[global_id.x];
if (lane < 8u) {
    atomicStore(&cells[lane], select(0u, 0xFFFFFFFFu, lane == 2u || lane == 4u));
}
if (lane < 2u) {
    atomicStore(&signed[lane], 0);
}
workgroupBarrier();
atomicAdd(&cells[0], x);
atomicSub(&cells[1], x);
atomicMin(&cells[2], x);
atomicMax(&cells[3], x);
atomicAnd(&cells[4], x | 0xFFFFu);
atomicOr(&cells[5], x & 0x0F0F0F0Fu);
atomicXor(&cells[6], x);
atomicMin(&signed[0], bitcast<i32>(x));
atomicMax(&signed[1], bitcast<i32>(x));
// Only one invocation wins: the cell ends with its number, and one winner is counted.
let won = atomicCompareExchangeWeak(&cells[7], 0u, 1u);
workgroupBarrier();
put(0u, atomicLoad(&cells[lane % 8u]));
put(1u, bitcast<u32>(atomicLoad(&signed[lane % 2u])));
workgroupBarrier();
if (lane == 0u) {
    atomicStore(&cells[0], 0u);
}
workgroupBarrier();
if (won.exchanged) {
    atomicAdd(&cells[0], 1u);
}
let before = atomicExchange(&cells[1], 9u);
workgroupBarrier();
put(2u, min(atomicLoad(&cells[0]), 1u) + u32(before == 0u) * 0u);
put(3u, atomicLoad(&cells[1]));
