// Matrix unit: 16×16 matrices of f16, sums in f32.
// needs: nothing
// provides: A_Matrix B_Matrix C_Matrix Element SIZE Sum VECTOR

alias Element = f16;
alias Sum = f32;
alias A_Matrix = coop_mat16x16<f16, A>;
alias B_Matrix = coop_mat16x16<f16, B>;
alias C_Matrix = coop_mat16x16<f32, C>;

const SIZE: u32 = 16u;
// Elements in 16 bytes.
const VECTOR: u32 = 8u;
