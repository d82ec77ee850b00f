// Functions of the C library that kernels use; kernels must not see their names.
#include <math.h>

extern "C" {
float tilewise_exp(float a) { return expf(a); }
float tilewise_exp2(float a) { return exp2f(a); }
float tilewise_log(float a) { return logf(a); }
float tilewise_log2(float a) { return log2f(a); }
float tilewise_tanh(float a) { return tanhf(a); }
float tilewise_sin(float a) { return sinf(a); }
float tilewise_cos(float a) { return cosf(a); }
float tilewise_pow(float a, float b) { return powf(a, b); }
}
