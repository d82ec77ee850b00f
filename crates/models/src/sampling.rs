//! How tokens are drawn.

/// How a token is drawn from its logits. By default it is the most likely one.
///
/// ```
/// use tilewise_models::Sampling;
///
/// let sampling = Sampling { temperature: 0.8, top_k: 40, ..Sampling::default() };
/// assert_eq!((sampling.top_p, sampling.min_p, sampling.seed), (1.0, 0.0, 0));
/// ```
///
/// The fields apply in their order, on the device, by [`ops::sample`](tilewise::ops::sample()). A
/// draw depends on the seed, on the number of tokens before the pass, and on the logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits. At 0 the token is the most likely one, whatever the other fields are.
    pub temperature: f32,
    /// Keeps this number of the most likely tokens.
    pub top_k: usize,
    /// Keeps the fewest of the most likely tokens whose probabilities add up to this.
    pub top_p: f32,
    /// Keeps tokens whose probability is this share of the largest one, or more.
    pub min_p: f32,
    /// Equal seeds give equal texts on a device.
    pub seed: u64,
}

impl Default for Sampling {
    fn default() -> Self {
        Sampling { temperature: 0.0, top_k: usize::MAX, top_p: 1.0, min_p: 0.0, seed: 0 }
    }
}
