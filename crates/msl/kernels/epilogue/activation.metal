// Activations, in f32. The arguments of tanh and exp are kept where neither overflows; beyond, the
// result is x or vanishes in f32.
// needs: INLINE
// provides: activation
// constants: ACTIVATION

INLINE float activation(float x) {
    switch (ACTIVATION) {
    case 1: // relu; NaN stays NaN, but for Metal's fast arithmetic, which knows none
        return x < 0 ? 0.0f : x;
    case 2: { // gelu, tanh form
        const float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x);
        return x < -10 ? 0.0f : 0.5f * x * (1.0f + tanh(clamp(inner, -15.0f, 15.0f)));
    }
    case 3: // silu
        return x < -87 ? 0.0f : x / (1.0f + exp(-clamp(x, -87.0f, 87.0f)));
    default:
        return x;
    }
}
