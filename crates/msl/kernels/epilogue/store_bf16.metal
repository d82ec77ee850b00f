// Output in bf16.
// needs: nothing
// provides: C_ARGUMENTS C_Element c_data
// constants: C_SLOT

#define C_ARGUMENTS , device bfloat *c_data [[buffer(C_SLOT)]]

using C_Element = bfloat;
