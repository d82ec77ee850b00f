// Operand in f32.

#define X_ARGUMENTS , device const float *x_data [[buffer(X_SLOT)]]
#define X_VALUES x_data

using X_Format = Dense<float, X_WIDTH>;
