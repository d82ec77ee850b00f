// The first element of an entry of each operand, in a batch of several dimensions. Each dimension
// has its own stride, which is 0 if all its indices share one entry of the operand.
// needs: params
// provides: a_base b_base bias_base c_base nested residual_base

fn nested(entry: u32, strides: vec4<u32>) -> u32 {
    let outer = entry / params.nest.w;
    let outermost = outer / params.nest.z;
    let at = vec4<u32>(
        outermost / params.nest.y,
        outermost % params.nest.y,
        outer % params.nest.z,
        entry % params.nest.w,
    ) * strides;
    return at.x + at.y + at.z + at.w;
}

fn a_base(entry: u32) -> u32 {
    return params.a_offset + nested(entry, params.a_nest);
}

fn b_base(entry: u32) -> u32 {
    return params.b_offset + nested(entry, params.b_nest);
}

fn c_base(entry: u32) -> u32 {
    return params.c_offset + nested(entry, params.c_nest);
}

fn bias_base(entry: u32) -> u32 {
    return params.bias_offset + nested(entry, params.bias_nest);
}

fn residual_base(entry: u32) -> u32 {
    return params.residual_offset + nested(entry, params.residual_nest);
}
