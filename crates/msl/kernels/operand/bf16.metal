// Operand in bf16.

#define X_ARGUMENTS , device const bfloat *x_data [[buffer(X_SLOT)]]
#define X_VALUES x_data

using X_Format = Dense<bfloat, X_WIDTH>;
