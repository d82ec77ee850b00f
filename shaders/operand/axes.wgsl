// An operand seen by its axes: k along the summed dimension, x along the other (M for A, N for B).
// needs: params
// provides: X_K_CONTIGUOUS x_base

const X_K_CONTIGUOUS: bool = true; //param

fn x_base(entry: u32) -> u32 {
    return params.x_offset + entry * params.x_batch;
}
