// The body of histograms: an invocation has SHARE keys. Where bins are FEW, a workgroup counts by
// itself first. What the output holds is added to.
var<workgroup> own: array<atomic<u32>, BINS>;

let group = workgroup_id.y * num_workgroups.x + workgroup_id.x;
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
        var rest = i;
        var at = 0u;
        for (var axis = keys_ndim; axis > 0u; axis--) {
            at += rest % keys_shape[axis - 1u] * keys_strides[axis - 1u];
            rest /= keys_shape[axis - 1u];
        }
        let key = keys[at];
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
