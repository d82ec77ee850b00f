// The first element of an entry of each operand: entries have one stride.
// needs: params
// offers: a_base b_base bias_base c_base residual_base

fn a_base(entry: u32) -> u32 {
    return params.a_offset + entry * params.a_batch;
}

fn b_base(entry: u32) -> u32 {
    return params.b_offset + entry * params.b_batch;
}

fn c_base(entry: u32) -> u32 {
    return params.c_offset + entry * params.c_batch;
}

fn bias_base(entry: u32) -> u32 {
    return params.bias_offset + entry * params.bias_batch;
}

fn residual_base(entry: u32) -> u32 {
    return params.residual_offset + entry * params.residual_batch;
}
