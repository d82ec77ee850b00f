// Output in f16.

#define C_ARGUMENTS , device half *c_data [[buffer(C_SLOT)]]

using C_Element = half;
