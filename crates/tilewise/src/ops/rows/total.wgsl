// The header of texts that add numbers of all invocations of a row.
var<workgroup> sums: array<f32, SIZE>;

// The sum over all invocations of a row; each of them gets it.
fn total(part: f32, index: u32) -> f32 {
    let lane = lane_of(index, LANES);
    sums[index] = part;
    workgroupBarrier();
    for (var span = LANES / 2u; span > 0u; span /= 2u) {
        if lane < span {
            sums[index] += sums[index + span];
        }
        workgroupBarrier();
    }
    let all = sums[index - lane];
    workgroupBarrier();
    return all;
}
