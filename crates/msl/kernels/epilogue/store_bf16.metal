// Output in bf16.

#define C_ARGUMENTS , device bfloat *c_data [[buffer(C_SLOT)]]

using C_Element = bfloat;
