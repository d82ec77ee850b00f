// Activations, in f32. The arguments of tanh and exp are clamped so that neither overflows; beyond,
// the result is x or vanishes in f32.
// needs: nothing
// provides: ACTIVATION activation

const ACTIVATION: u32 = 0u; //param

fn activation(x: vec4<f32>) -> vec4<f32> {
    switch ACTIVATION {
        case 1u: { // relu; written so that NaN stays NaN
            return select(x, vec4<f32>(), x < vec4<f32>());
        }
        case 2u: { // gelu, tanh form
            let inner = 0.7978845608028654 * (x + 0.044715 * x * x * x);
            let y = 0.5 * x * (1.0 + tanh(clamp(inner, vec4<f32>(-15.0), vec4<f32>(15.0))));
            return select(y, vec4<f32>(), x < vec4<f32>(-10.0));
        }
        case 3u: { // silu
            let y = x / (1.0 + exp(-clamp(x, vec4<f32>(-87.0), vec4<f32>(87.0))));
            return select(y, vec4<f32>(), x < vec4<f32>(-87.0));
        }
        case 4u: { // gelu, erf form, whose complement is a polynomial times exp
            let z = min(abs(x) * 0.7071067811865476, vec4<f32>(9.0));
            let t = 1.0 / (1.0 + 0.3275911 * z);
            let higher = 1.421413741 + t * (-1.453152027 + t * 1.061405429);
            let sum = 0.254829592 + t * (-0.284496736 + t * higher);
            let tail = x * (0.5 * t * sum * exp(-z * z));
            let y = select(x - tail, tail, x < vec4<f32>());
            return select(select(y, vec4<f32>(), x < vec4<f32>(-12.0)), x, x > vec4<f32>(6.0));
        }
        default: {
            return x;
        }
    }
}
