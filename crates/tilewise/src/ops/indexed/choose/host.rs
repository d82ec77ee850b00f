//! A router's choice on the host, as choose.wgsl and router.wgsl make it.

use super::Choose;
use crate::ops::host::math::{exp, number, ordered};
use crate::ops::host::{self, Loop, Row};
use crate::tensor::Tensor;
use tilewise_core::Result;

/// The orders of −∞, 0 and +∞; that of NaN is above them.
const NONE: u32 = 0x0080_0000;
const ZERO: u32 = 0x8000_0000;
const INFINITE: u32 = 0xff80_0000;

/// How experts are chosen and weighed.
#[derive(Clone, Copy)]
struct Rules {
    k: usize,
    groups: [usize; 2],
    softmax: bool,
    normalize: bool,
    scale: f32,
}

/// The logits of a token, with the bias of experts.
struct Token<'a> {
    rules: Rules,
    logits: &'a [f32],
    bias: Option<&'a [f32]>,
    /// The order of the largest logit and the sum of exponentials, if they are needed.
    top: u32,
    divisor: f32,
}

impl Choose {
    pub(super) fn on_host(&self, [weights, experts]: [&Tensor; 2]) -> Result<()> {
        let Choose { ref logits, ref bias, k, groups, softmax, normalize, scale } = *self;
        let rules = Rules { k, groups, softmax, normalize, scale };
        let bias = bias.as_ref().map(host::floats).transpose()?;
        let of_all = softmax && (bias.is_some() || !normalize);
        let each = Loop::new([Some(logits)], [weights, experts]);
        each.run(|Row { inputs: [logits], outs: [weights, experts], .. }| {
            let bias = bias.as_deref();
            let mut token = Token { rules, logits, bias, top: 0, divisor: 1.0 };
            if of_all {
                token.top = most(logits.iter().copied());
                let sum = logits.iter().map(|&logit| token.score(logit, token.top)).sum::<f32>();
                token.divisor = sum.max(1.0);
            }
            let chosen = token.chosen();
            for (expert, own) in experts.iter_mut().zip(&chosen) {
                *expert = f32::from_bits(*own);
            }
            token.weigh(&chosen, weights);
        })
    }
}

impl Token<'_> {
    /// The score of a logit before any division. For a softmax it is relative to the largest logit,
    /// and for a sigmoid, too, if that is negative.
    fn score(&self, logit: f32, largest: u32) -> f32 {
        if self.rules.softmax {
            return exponential(logit, largest);
        }
        if largest > NONE && largest < ZERO {
            return exponential(logit, largest) / (1.0 + exp(logit.min(0.0)));
        }
        let score = 1.0 / (1.0 + exp(-logit.clamp(-87.0, 87.0)));
        if logit < -87.0 { 0.0 } else { score }
    }

    /// The key by which an expert is ranked.
    fn key(&self, i: usize) -> u32 {
        let (logit, order) = (self.logits[i], ordered(self.logits[i]));
        let Some(bias) = self.bias else { return order };
        let is_bad = if self.rules.softmax { self.top >= INFINITE } else { order > INFINITE };
        let sum = self.score(logit, self.top) / self.divisor + bias[i];
        if is_bad { u32::MAX } else { ordered(sum) }
    }

    /// The chosen experts, the best one first.
    fn chosen(&self) -> Vec<u32> {
        let mut keys: Vec<u32> = (0..self.logits.len()).map(|i| self.key(i)).collect();
        let [groups, some] = self.rules.groups;
        if some < groups {
            let size = keys.len() / groups;
            let of_groups: Vec<u32> = keys.chunks(size).map(|own| self.group_key(own)).collect();
            for &group in &ranked(&of_groups)[some..] {
                keys[group as usize * size..][..size].fill(1);
            }
        }
        let mut chosen = ranked(&keys);
        chosen.truncate(self.rules.k);
        chosen
    }

    /// The key by which a group of experts is ranked: their largest key, or, with a bias, the order
    /// of the sum of the two largest.
    fn group_key(&self, keys: &[u32]) -> u32 {
        let (mut first, mut second) = (0, 0);
        for &key in keys {
            second = second.max(first.min(key));
            first = first.max(key);
        }
        match second {
            _ if self.bias.is_none() || first >= INFINITE => first,
            NONE => NONE,
            _ => ordered(number(first) + number(second)),
        }
    }

    /// The weights of the chosen experts.
    fn weigh(&self, chosen: &[u32], weights: &mut [f32]) {
        let Rules { softmax, normalize, scale, .. } = self.rules;
        let logits = || chosen.iter().map(|&expert| self.logits[expert as usize]);
        let largest = most(logits());
        let relative = if normalize { largest } else { self.top };
        for (weight, logit) in weights.iter_mut().zip(logits()) {
            *weight = self.score(logit, relative);
        }
        let sum = weights.iter().sum::<f32>();
        let divisor = match (normalize, softmax) {
            (false, _) => self.divisor,
            (true, true) => sum.max(1.0),
            (true, false) => sum,
        };
        let is_bad = match softmax {
            true => self.top.max(largest) >= INFINITE,
            false => normalize && (largest > INFINITE || sum == 0.0),
        };
        if is_bad {
            return weights.fill(f32::NAN);
        }
        weights.iter_mut().for_each(|weight| *weight = *weight / divisor * scale);
    }
}

/// The numbers of keys, from the largest key down; of equal keys the first comes first.
fn ranked(keys: &[u32]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    order.sort_by_key(|&i| !keys[i as usize]);
    order
}

/// The order of the largest number.
fn most(numbers: impl Iterator<Item = f32>) -> u32 {
    numbers.map(ordered).max().unwrap_or(0)
}

/// e^(logit − largest); 0 for −∞.
fn exponential(logit: f32, largest: u32) -> f32 {
    if ordered(logit) == NONE { 0.0 } else { exp(logit - number(largest)) }
}
