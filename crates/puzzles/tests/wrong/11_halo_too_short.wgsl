// The block of `a` that this workgroup multiplies, and the CONV - 1 numbers behind it that its last
// threads look at.
var<workgroup> tile: array<f32, GROUP + CONV>;
var<workgroup> kernel: array<f32, CONV>;

let i = global_id.x;
let local = local_id.x;

// The first read of every thread: its own number, or 0 beyond the end.
var own = 0.0;
if i < SIZE {
    own = a[i];
}
tile[local] = own;

// The second: the first CONV threads fetch `b`, the next CONV what lies behind the block.
if local < CONV {
    kernel[local] = b[local];
} else if local < 2u * CONV - 2u {
    let behind = local - CONV;
    let j = workgroup_id.x * GROUP + GROUP + behind;
    var number = 0.0;
    if j < SIZE {
        number = a[j];
    }
    tile[GROUP + behind] = number;
}
workgroupBarrier();

if i < SIZE {
    var sum = 0.0;
    for (var j = 0u; j < CONV; j++) {
        sum += tile[local + j] * kernel[j];
    }
    out[i] = sum;
}
