// Operand in f32.
// needs: Dense
// provides: X_ARGUMENTS X_Format X_VALUES x_data
// constants: X_SLOT X_WIDTH

#define X_ARGUMENTS , device const float *x_data [[buffer(X_SLOT)]]
#define X_VALUES x_data

using X_Format = Dense<float, X_WIDTH>;
