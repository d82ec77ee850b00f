//! Functions of the epilogue.

/// Function applied after the bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Activation {
    /// The identity.
    #[default]
    None,
    /// max(x, 0).
    Relu,
    /// x/2 · (1 + tanh(√(2/π)·(x + 0.044715·x³))), the tanh form of Hendrycks and Gimpel, "Gaussian
    /// Error Linear Units" (2016).
    Gelu,
    /// x / (1 + e^(−x)), also called swish.
    Silu,
    /// x·Φ(x), the form of GELU with erf, which is PyTorch's default. erf is wrong by 1.5e-7 at
    /// most.
    GeluErf,
}

impl Activation {
    /// The function, in f32.
    pub fn apply(self, x: f32) -> f32 {
        match self {
            Activation::None => x,
            // Written so that NaN stays NaN.
            Activation::Relu if x < 0.0 => 0.0,
            Activation::Relu => x,
            // Kernels give zero, too: far below zero both functions vanish, and the formulas would
            // meet infinity times zero.
            Activation::Gelu if x < -10.0 => 0.0,
            Activation::Silu if x < -87.0 => 0.0,
            Activation::Gelu => 0.5 * x * (1.0 + (0.797_884_6 * (x + 0.044715 * x * x * x)).tanh()),
            Activation::Silu => x / (1.0 + (-x).exp()),
            Activation::GeluErf if x < -12.0 => 0.0,
            Activation::GeluErf if x > 6.0 => x,
            // M. Abramowitz, I. A. Stegun, "Handbook of Mathematical Functions", 7.1.26.
            Activation::GeluErf => {
                let z = x.abs() * std::f32::consts::FRAC_1_SQRT_2;
                let t = 1.0 / (1.0 + 0.327_591_1 * z);
                let inner = 1.421_413_7 + t * (-1.453_152 + t * 1.061_405_4);
                let inner = 0.254_829_6 + t * (-0.284_496_74 + t * inner);
                let tail = 0.5 * t * inner * (-z * z).exp();
                if x < 0.0 { x * tail } else { x - x * tail }
            }
        }
    }

    /// Every activation, in the order of declaration.
    pub const ALL: [Activation; 5] = [
        Activation::None,
        Activation::Relu,
        Activation::Gelu,
        Activation::Silu,
        Activation::GeluErf,
    ];

    /// Lower-case name, as the command line writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Activation::None => "none",
            Activation::Relu => "relu",
            Activation::Gelu => "gelu",
            Activation::Silu => "silu",
            Activation::GeluErf => "gelu_erf",
        }
    }
}
