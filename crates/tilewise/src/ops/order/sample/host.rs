//! Sampling on the host, with the noise of noise.wgsl.

use super::Sample;
use crate::ops::host::math::{exp, largest, number, ordered};
use crate::ops::host::{Loop, Row};
use crate::ops::rows::singly;
use crate::tensor::Tensor;
use tilewise_core::Result;

/// The number of logits among which the bound of `top_p` is looked for first.
const FEW: usize = 1024;

/// The options by which logits are kept.
#[derive(Clone, Copy)]
struct Kept {
    temperature: f32,
    k: usize,
    p: f32,
    min_p: f32,
}

impl Sample {
    pub(super) fn on_host(&self, out: &Tensor) -> Result<()> {
        let Sample { ref logits, temperature, k, p, min_p, seed, ref counter, .. } = *self;
        let (kept, out) = (Kept { temperature, k, p, min_p }, singly(out));
        let rows = self.rows(&out)?;
        let tensor = counter.tensor().map(|tensor| rows.view_of(tensor, 1, 1));
        let placed = counter.on_host(tensor.as_ref(), u32::MAX as usize)?;
        let (x, y) = (rows.view(logits, 0), rows.view_of(&out, 2, 1));
        let seeds = [seed as u32, (seed >> 32) as u32].map(mixed);
        Loop::new([Some(&x)], [&y]).run(|Row { number: row, inputs: [x], outs: [y], .. }| {
            let least = kept.least(x);
            let counter = placed.of(row) as u32;
            let low = mixed(mixed(seeds[0].wrapping_add(counter)).wrapping_add(row as u32));
            let high = mixed(mixed(seeds[1] ^ counter).wrapping_add(row as u32));
            let mut best = (0, u32::MAX);
            for (i, &logit) in (0u32..).zip(x) {
                if ordered(logit) < least {
                    continue;
                }
                let noise = gumbel(mixed(mixed(i ^ low).wrapping_add(high)));
                let score = ordered(logit + temperature * noise);
                if score > best.0 {
                    best = (score, i);
                }
            }
            y[0] = f32::from_bits(best.1);
        })
    }
}

impl Kept {
    /// The order of the smallest logit that is kept.
    fn least(self, x: &[f32]) -> u32 {
        let Kept { temperature, k, p, min_p } = self;
        let is_nan = x.iter().fold(false, |any, x| any | x.is_nan());
        let top = if is_nan { u32::MAX } else { ordered(largest(x, |x| x)) };
        let mut least = 0;
        if k < x.len() {
            let mut orders: Vec<u32> = x.iter().map(|&x| !ordered(x)).collect();
            least = !*orders.select_nth_unstable(k - 1).1;
        }
        let most = number(top);
        if p < 1.0 {
            // Beside an infinite logit the others weigh nothing.
            least = if most.is_finite() { self.bound(x, most, least) } else { top };
        }
        if min_p > 0.0 {
            let spread = -temperature * min_p.ln();
            least = least.max(ordered(most - spread));
        }
        least
    }

    /// The order of the last logit that `top_p` keeps of those from an order on.
    fn bound(self, x: &[f32], most: f32, least: u32) -> u32 {
        let sharpness = self.temperature.recip().min(f32::MAX);
        let weight = |order: u32| f64::from(exp((number(order) - most) * sharpness));
        let mut orders: Vec<u32> = x.iter().map(|&x| ordered(x)).collect();
        orders.retain(|&order| order >= least);
        let wanted = f64::from(self.p) * orders.iter().map(|&order| weight(order)).sum::<f64>();
        let (mut done, mut sum, mut few) = (0, 0.0, FEW);
        while done < orders.len() {
            let rest = &mut orders[done..];
            if few < rest.len() {
                rest.select_nth_unstable_by_key(few, |&order| !order);
            }
            let count = few.min(rest.len());
            rest[..count].sort_unstable_by_key(|&order| !order);
            for &order in &rest[..count] {
                sum += weight(order);
                if sum >= wanted {
                    return order;
                }
            }
            (done, few) = (done + count, 8 * few);
        }
        least
    }
}

/// A permutation of the numbers of 32 bits, without any order.
fn mixed(key: u32) -> u32 {
    let n = (key ^ (key >> 16)).wrapping_mul(0x7feb_352d);
    let n = (n ^ (n >> 15)).wrapping_mul(0x846c_a68b);
    n ^ (n >> 16)
}

/// A number of the Gumbel distribution from 32 random bits.
fn gumbel(bits: u32) -> f32 {
    let u = ((bits as f32 + 0.5) / 4_294_967_296.0).min(0.999_999_94);
    let inner = if u < 0.0078125 { u * (1.0 + 0.5 * u) } else { -(1.0 - u).ln() };
    -inner.ln()
}
