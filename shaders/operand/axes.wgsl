// An operand seen by its axes: k along the summed dimension, x along the other (M for A, N for B).
// needs: nothing
// provides: X_K_CONTIGUOUS

const X_K_CONTIGUOUS: bool = true; //param
