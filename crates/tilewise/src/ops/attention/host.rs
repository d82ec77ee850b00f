//! Attention on the host: a loop over the keys of each row.

use super::Attention;
use crate::ops::host::math::{capped, exp};
use crate::ops::host::{Loop, Reader, Row};
use crate::ops::position::FAR;
use crate::tensor::Tensor;
use std::ops::Range;
use tilewise_core::lanes::{self, dot};
use tilewise_core::{DType, Result};

/// Keys whose scores are kept at a time.
const BLOCK: usize = 64;

/// The most rows of a unit that decode keys and values for themselves.
const FEW: usize = 8;

/// Marks of weights.wgsl: a score that does not count, and one that is NaN or +∞.
const ABSENT: f32 = f32::MIN;
const BAD: f32 = f32::MAX;
const MOST: f32 = 3e38;

/// The numbers of a row.
struct Numbers {
    scale: f32,
    cap: Option<f32>,
    /// The row's first key is key `first` of the readers.
    first: usize,
}

/// The largest score of the keys so far, and the sum of their weights.
struct Sums {
    top: f32,
    total: f32,
}

impl Attention {
    pub(super) fn on_host(&self, out: &Tensor) -> Result<()> {
        let sizes = self.sizes()?;
        let position = self.causal.as_ref().or(self.lengths.as_ref());
        let position = position.cloned().unwrap_or(FAR.into());
        let views = self.views(&sizes, &position, out)?;
        let placed = position.on_host(views.position.as_ref(), FAR)?;
        let (causal, window) = (self.causal.is_some(), self.window.unwrap_or(usize::MAX));
        let seen = |row: usize| {
            let (unit, token) = (row / views.rows, row % views.rows / sizes.heads);
            let place = placed.of(unit);
            let (begin, end) = match causal {
                true => ((place + token + 1).saturating_sub(window), place + token + 1),
                false => (0, place),
            };
            begin..end.min(sizes.keys)
        };
        let most = (0..views.units * views.rows).map(|row| seen(row).end).max().unwrap_or(0);
        let [k, v] = [&views.k, &views.v].map(|own| decoded(own, most, views.rows));
        let ((k, k_rows), (v, v_rows)) = (k?, v?);
        let scale = self.scale.unwrap_or((sizes.width as f32).sqrt().recip());
        let (cap, rows) = (self.softcap, views.rows);

        let (inputs, others) =
            ([Some(&views.q), views.mask.as_ref(), views.sinks.as_ref()], [&k, &v]);
        let each = Loop::new(inputs, [&views.out]).beside(&others);
        let work = most * (sizes.width + sizes.v_width) / 2;
        each.cost(work).run(
            |Row { number, inputs: [q, mask, sink], outs: [y], others, scratch, .. }| {
                let [k, v] = others else { return };
                let unit = number / rows;
                let sums = Sums { top: ABSENT, total: 0.0 };
                let mut sums =
                    sink.first().map_or(sums, |&sink| Sums { top: marked(sink), total: 1.0 });
                let numbers = Numbers { scale, cap, first: unit * k_rows };
                y.fill(0.0);
                let Range { start, end } = seen(number);
                for begin in (start..end).step_by(BLOCK) {
                    let keys = begin..end.min(begin + BLOCK);
                    let mut scores = [0.0; BLOCK];
                    let scores = &mut scores[..keys.len()];
                    numbers.scores(k, q, mask, keys.clone(), scores, &mut scratch[0]);
                    let factor = sums.weigh(scores);
                    if factor != 1.0 {
                        y.iter_mut().for_each(|y| *y *= factor);
                    }
                    add(v, unit * v_rows + begin, scores, y, scratch);
                }
                if sums.top > MOST {
                    return y.fill(f32::NAN);
                }
                let factor = 1.0 / sums.total.max(0.5);
                y.iter_mut().for_each(|y| *y *= factor);
            },
        )
    }
}

impl Numbers {
    /// The marked scores of some keys.
    fn scores(
        &self,
        k: &Reader<'_>,
        q: &[f32],
        mask: &[f32],
        keys: Range<usize>,
        scores: &mut [f32],
        buffer: &mut Vec<f32>,
    ) {
        for (score, key) in scores.iter_mut().zip(keys.clone()) {
            let row = k.row(self.first + key, buffer);
            *score = self.scale
                * lanes::widest(
                    #[inline(always)]
                    || dot(q, row),
                );
        }
        if let Some(cap) = self.cap {
            scores.iter_mut().for_each(|score| *score = capped(*score, cap));
        }
        if !mask.is_empty() {
            scores.iter_mut().zip(&mask[keys]).for_each(|(score, mask)| *score += mask);
        }
        scores.iter_mut().for_each(|score| *score = marked(*score));
    }
}

impl Sums {
    /// Makes weights of scores, and counts them. Gives the factor of what was summed before.
    fn weigh(&mut self, scores: &mut [f32]) -> f32 {
        let top = scores.iter().fold(self.top, |top, &score| if score > top { score } else { top });
        let factor = exp(self.top - top);
        for score in scores.iter_mut() {
            let weight = exp(*score - top);
            *score = if *score == ABSENT { 0.0 } else { weight };
        }
        self.total = self.total * factor + scores.iter().sum::<f32>();
        self.top = top;
        factor
    }
}

/// Adds weighted values, four at a time.
fn add(v: &Reader<'_>, first: usize, weights: &[f32], y: &mut [f32], scratch: &mut [Vec<f32>; 4]) {
    let (fours, rest) = weights.as_chunks::<4>();
    for (at, &[a, b, c, d]) in fours.iter().enumerate() {
        let mut number = first + 4 * at;
        let [a_row, b_row, c_row, d_row] = scratch.each_mut().map(|buffer| {
            number += 1;
            v.row(number - 1, buffer)
        });
        let rows = a_row.iter().zip(b_row).zip(c_row.iter().zip(d_row));
        for (y, ((av, bv), (cv, dv))) in y.iter_mut().zip(rows) {
            *y += (a * av + b * bv) + (c * cv + d * dv);
        }
    }
    for (at, weight) in rest.iter().enumerate() {
        let row = v.row(first + 4 * fours.len() + at, &mut scratch[0]);
        y.iter_mut().zip(row).for_each(|(y, v)| *y += weight * v);
    }
}

/// A score with its mark, if it has one.
fn marked(score: f32) -> f32 {
    match score {
        _ if score.is_finite() => score.clamp(-MOST, MOST),
        f32::NEG_INFINITY => ABSENT,
        _ => BAD,
    }
}

/// Keys or values of which `most` are seen, and their number. If many rows read them, they are f32
/// that lie one after the other.
fn decoded(of: &Tensor, most: usize, rows: usize) -> Result<(Tensor, usize)> {
    let (axis, keys) = (of.shape().len() - 2, of.shape()[of.shape().len() - 2]);
    let is_plain = of.dtype() == DType::F32 && of.strides()[axis + 1] == 1;
    if is_plain || rows <= FEW || most == 0 {
        return Ok((of.clone(), keys));
    }
    let own = of.narrow(axis, 0, most)?;
    let copy = Tensor::zeros(of.context(), DType::F32, own.shape())?;
    let each = Loop::new([Some(&own)], [&copy]);
    each.run(|Row { inputs: [x], outs: [y], .. }| y.copy_from_slice(x))?;
    Ok((copy, most))
}
