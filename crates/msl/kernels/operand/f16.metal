// Operand in f16.

#define X_ARGUMENTS , device const half *x_data [[buffer(X_SLOT)]]
#define X_VALUES x_data

using X_Format = Dense<half, X_WIDTH>;
