// The body of histograms: an invocation has SHARE keys. If bins are FEW, a workgroup first counts
// by itself. Counts are added to what the output holds.
var<workgroup> own: array<atomic<u32>, BINS>;

let bins = y_shape[0];
if FEW {
    for (var key = local_index; key < bins; key += SIZE) {
        atomicStore(&own[key], 0u);
    }
}
workgroupBarrier();
for (var turn = 0u; turn < SHARE; turn++) {
    let i = (group * SHARE + turn) * SIZE + local_index;
    if i < count {
        let key = keys[keys_row(i)];
        if key < bins {
            if FEW {
                atomicAdd(&own[key], 1u);
            } else {
                atomicAdd(&y[key * y_strides[0]], 1u);
            }
        }
    }
}
workgroupBarrier();
if FEW {
    for (var key = local_index; key < bins; key += SIZE) {
        let counted = atomicLoad(&own[key]);
        if counted > 0u {
            atomicAdd(&y[key * y_strides[0]], counted);
        }
    }
}
