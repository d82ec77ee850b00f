// Matrix unit: 8×8 matrices of f32.
// needs: nothing
// provides: A_Matrix B_Matrix C_Matrix Element SIZE Sum VECTOR

alias Element = f32;
alias Sum = f32;
alias A_Matrix = coop_mat8x8<f32, A>;
alias B_Matrix = coop_mat8x8<f32, B>;
alias C_Matrix = coop_mat8x8<f32, C>;

const SIZE: u32 = 8u;
// Elements in 16 bytes.
const VECTOR: u32 = 4u;
