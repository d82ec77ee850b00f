// Output in f32.

#define C_ARGUMENTS , device float *c_data [[buffer(C_SLOT)]]

using C_Element = float;
