// Activations, in f32. The arguments of tanh and exp are clamped so that neither overflows; beyond,
// the result is x or vanishes in f32.
// needs: INLINE
// provides: activation
// constants: ACTIVATION

INLINE float activation(float x) {
    switch (ACTIVATION) {
    case 1: // relu; NaN stays NaN, except in Metal's fast arithmetic, which knows none
        return x < 0 ? 0.0f : x;
    case 2: { // gelu, tanh form
        const float inner = 0.7978845608028654f * (x + 0.044715f * x * x * x);
        return x < -10 ? 0.0f : 0.5f * x * (1.0f + tanh(clamp(inner, -15.0f, 15.0f)));
    }
    case 3: // silu
        return x < -87 ? 0.0f : x / (1.0f + exp(-clamp(x, -87.0f, 87.0f)));
    case 4: { // gelu, erf form, whose complement is a polynomial times exp
        const float z = min(abs(x) * 0.7071067811865476f, 9.0f);
        const float t = 1.0f / (1.0f + 0.3275911f * z);
        const float higher = 1.421413741f + t * (-1.453152027f + t * 1.061405429f);
        const float sum = 0.254829592f + t * (-0.284496736f + t * higher);
        const float tail = x * (0.5f * t * sum * exp(-z * z));
        const float y = x < 0 ? tail : x - tail;
        return x < -12 ? 0.0f : x > 6 ? x : y;
    }
    default:
        return x;
    }
}
