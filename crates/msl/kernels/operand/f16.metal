// Operand in f16.
// needs: Dense
// provides: X_ARGUMENTS X_Format X_VALUES x_data
// constants: X_SLOT X_WIDTH

#define X_ARGUMENTS , device const half *x_data [[buffer(X_SLOT)]]
#define X_VALUES x_data

using X_Format = Dense<half, X_WIDTH>;
