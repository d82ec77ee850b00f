// Activations, in f32. The arguments of tanh and exp are kept where neither overflows; beyond, the
// result is x or vanishes in f32.
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
        default: {
            return x;
        }
    }
}
