//! Attention: softmax(Q·Kᵀ)·V without the scores in memory.

mod host;
mod plan;
mod views;

use super::elementwise::{copy::FILL, each};
use super::layout::{Sizes, broadcast, float, part_of};
use super::op::{Op, Output, only, sealed::Lower};
use super::position::{FAR, Position};
use super::texts::{ATTENTION, ATTENTION_ON_UNITS, Function, JOIN, Steps, apart};
use crate::kernel::Constant;
use crate::tensor::Tensor;
use plan::{Plan, size};
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};

/// The operation of [`attention`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Attention {
    q: Tensor,
    k: Tensor,
    v: Tensor,
    scale: Option<f32>,
    softcap: Option<f32>,
    mask: Option<Tensor>,
    sinks: Option<Tensor>,
    causal: Option<Position>,
    lengths: Option<Position>,
    window: Option<usize>,
    /// Units and rows of the call of which this is a part.
    whole: Option<[usize; 2]>,
}

/// softmax(Q·Kᵀ/√d)·V, for a prompt or for one query, without the scores in memory.
///
/// ```
/// use tilewise::{Context, DType, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let q = Tensor::upload(&ctx, &[1.0f32; 8], &[2, 1, 4])?; // two heads, one query
/// let keys = Tensor::upload(&ctx, &[0.5f32; 12], &[1, 3, 4])?; // one head, room for three
/// let values = Tensor::upload(&ctx, &[1.0f32, 3.0, 9.0], &[1, 3, 1])?;
/// let position = Tensor::upload(&ctx, &[1u32], &[1])?; // one key before the query
/// let y = ops::attention(&q, &keys, &values).causal(&position).run()?;
/// assert_eq!(y.read_blocking::<f32>()?, [2.0; 2]);
/// # Ok(())
/// # }
/// ```
///
/// `q` is \[…, heads, T, d\], `k` \[…, heads of keys, S, d\], `v` \[…, heads of keys, S, e\], and
/// the output \[…, heads, T, e\]. The first axes are equal. Without heads the tensors are
/// \[T, d\], \[S, d\], \[S, e\]. The heads of queries are a multiple of the heads of keys, and
/// neighbours share one.
/// Each tensor is f32, f16 or bf16, with any strides: a cache \[batch, S, heads, d\] is given as
/// `cache.transpose(1, 2)`, which copies nothing. d and e are at most 512 (four times the
/// invocations of a workgroup, if the device permits fewer than 128).
///
/// With few queries and many keys, workgroups share out the keys, and a second kernel joins their
/// results. The order of all sums is fixed: the same shapes on the same device give the same bits.
/// A text depends on d, e, types and options, on how T and S are shared out, but not on lengths or
/// positions.
///
/// A query that sees no key gives zeros. A row with +∞ or NaN among its scores gives NaN, and a
/// score of −∞ does not count. Keys and values that no query of the call sees may hold anything.
/// Values that some query sees must be finite.
///
/// The arithmetic is f32. An element of the output is off by at most
/// (2·δ + (32 + 5·r + 2·n)·ε)·Σ p·|v|, apart from the rounding to its type. Here n is the number of
/// keys that a row sees, p are its weights, r is the distance between its largest and its smallest
/// score (at most 104), ε = 2⁻²³, and δ is the largest error of a score s:
/// (d/64 + 8)·ε·scale·Σ|q·k| + ε·|s|, and 12·ε·c more with a soft cap c. Results below 2⁻¹²⁶ may
/// be 0. A [sink](Op::sinks) counts as a score.
///
/// If q, k and v are f16, d and e at most 128, and 32 queries or more share a head of keys, the
/// device's matrix units multiply, if it has some. Weights are then rounded to f16, which adds
/// 2⁻¹¹·Σ p·|v| + 2⁻³⁶·Σ |v| to the bound; r is 11 at least, d/2 replaces d/64, and 2·ε·|s|
/// replaces ε·|s|. A score beyond ±2·10³⁸ may count as infinite there.
pub fn attention(q: &Tensor, k: &Tensor, v: &Tensor) -> Op<Attention> {
    Op::new(Attention {
        q: q.clone(),
        k: k.clone(),
        v: v.clone(),
        scale: None,
        softcap: None,
        mask: None,
        sinks: None,
        causal: None,
        lengths: None,
        window: None,
        whole: None,
    })
}

impl Op<Attention> {
    /// Multiplies the products of queries and keys by this factor, 1/√d by default.
    pub fn scale(mut self, scale: f32) -> Self {
        self.kind.scale = Some(scale);
        self
    }

    /// Bounds the scaled scores: s becomes c·tanh(s/c), before the mask is added, as in Gemma 2.
    pub fn softcap(mut self, c: f32) -> Self {
        self.kind.softcap = Some(c);
        self
    }

    /// Adds a mask to the scores: 0 for scores that count, −∞ for others. It is broadcast to
    /// \[…, heads, T, S\] as numpy does.
    pub fn mask(mut self, mask: &Tensor) -> Self {
        self.kind.mask = Some(mask.clone());
        self
    }

    /// Adds a score to each row that counts in the sum of weights only, as in GPT-OSS. `sinks` is
    /// broadcast to \[…, heads, T, 1\]: give \[heads, 1, 1\] if each head has one.
    pub fn sinks(mut self, sinks: &Tensor) -> Self {
        self.kind.sinks = Some(sinks.clone());
        self
    }

    /// Query i sees keys up to the place `position` + i only. The position is the number of keys
    /// before the first query, 0 without a cache: a number, or u32 on the device, one or one for
    /// each sequence (see [`Position`]). Keys behind the last query's are not read, so a cache may
    /// have room.
    pub fn causal(mut self, position: impl Into<Position>) -> Self {
        self.kind.causal = Some(position.into());
        self
    }

    /// All queries see the first `lengths` keys only: a number, or u32 on the device, one or one
    /// for each sequence (see [`Position`]). With [`causal`](Self::causal), the
    /// position says it already.
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 1.0, 1.0, 5.0], &[2, 1, 2, 1])?; // two sequences
    /// let lengths = Tensor::upload(&ctx, &[2u32, 1], &[2])?;
    /// let y = ops::attention(&x, &x, &x).lengths(&lengths).run()?;
    /// assert_eq!(y.read_blocking::<f32>()?, [1.0; 4]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lengths(mut self, lengths: impl Into<Position>) -> Self {
        self.kind.lengths = Some(lengths.into());
        self
    }

    /// With [`causal`](Self::causal), a query sees the last `keys` keys only, its own among them.
    pub fn window(mut self, keys: usize) -> Self {
        self.kind.window = Some(keys);
        self
    }
}

/// The numbers of a call.
struct Numbers {
    /// Heads of queries for each head of keys.
    heads: usize,
    /// Queries of a head.
    queries: usize,
    keys: usize,
    /// Elements of a key.
    width: usize,
    /// Elements of a value.
    v_width: usize,
    /// Whether all three operands are f16.
    halves: bool,
}

impl Attention {
    /// The numbers of the call, once the operands are found to fit.
    fn sizes(&self) -> Result<Numbers> {
        let Attention { q, k, v, .. } = self;
        for (name, tensor) in [("q", q), ("k", k), ("v", v)] {
            float("attention", name, tensor)?;
            q.context().same(tensor.context(), name)?;
        }
        let shapes = [q, k, v].map(|tensor| tensor.shape());
        let fits = || {
            let [q, k, v] = shapes;
            let rank = q.len();
            if rank < 2 || k.len() != rank || v.len() != rank {
                return None;
            }
            let lead = rank.saturating_sub(3);
            let heads = |shape: &[usize]| if rank > 2 { shape[lead] } else { 1 };
            let equal = q[..lead] == k[..lead]
                && k[..rank - 1] == v[..rank - 1]
                && q[rank - 1] == k[rank - 1];
            let shared = heads(k) > 0 && heads(q).is_multiple_of(heads(k)) || heads(q) == 0;
            (equal && shared).then(|| Numbers {
                heads: heads(q) / heads(k).max(1),
                queries: q[rank - 2],
                keys: k[rank - 2],
                width: k[rank - 1],
                v_width: v[rank - 1],
                halves: [&self.q, &self.k, &self.v].iter().all(|of| of.dtype() == DType::F16),
            })
        };
        let sizes = fits().ok_or_else(|| {
            let [q, k, v] = shapes;
            Error::Shape(format!(
                "attention: q has shape {q:?}, k {k:?}, v {v:?}, wanted [..., heads, T, d], \
                 [..., heads of keys, S, d], [..., heads of keys, S, e]"
            ))
        })?;
        let most = 4 * size(&q.context().0.caps) as usize;
        for (name, width) in [("keys", sizes.width), ("values", sizes.v_width)] {
            if width > most || name == "keys" && width == 0 {
                return Err(Error::Shape(format!(
                    "attention: a head of {width} elements of {name}, wanted 1 to {most}"
                )));
            }
        }
        Ok(sizes)
    }

    /// Checks what is beside the three operands.
    fn check(&self) -> Result<()> {
        let Attention { q, k, mask, sinks, causal, lengths, window, softcap, .. } = self;
        let rank = q.shape().len();
        let mut scores = Sizes::from(q.shape());
        scores[rank - 1] = k.shape()[rank - 2];
        let mut one_each = scores.clone();
        one_each[rank - 1] = 1;
        for (what, other, shape) in [("mask", mask, &scores), ("sinks", sinks, &one_each)] {
            let Some(other) = other else { continue };
            float("attention", &format!("the {what}"), other)?;
            q.context().same(other.context(), what)?;
            if broadcast(other, shape).is_none() {
                return Err(Error::Shape(format!(
                    "attention: the {what} has shape {:?}, wanted {shape:?}, or 1 in place of a \
                     number",
                    other.shape()
                )));
            }
        }
        for position in [causal, lengths].into_iter().flatten() {
            position.strides("attention", k)?;
        }
        if causal.is_some() && lengths.is_some() {
            return Err(Error::Misuse(
                "attention: causal and lengths: the position of causal says how many keys there are"
                    .into(),
            ));
        }
        if window.is_some_and(|keys| keys == 0 || causal.is_none()) {
            return Err(Error::Misuse(
                "attention: window() wants causal(), and a key at least".into(),
            ));
        }
        match softcap {
            Some(c) if !(c.is_finite() && *c > 0.0) => {
                Err(Error::Misuse(format!("attention: softcap is {c}, wanted a number above 0")))
            }
            _ => Ok(()),
        }
    }
}

impl Lower for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn first(&self) -> &Tensor {
        &self.q
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Attention { q, k, v, .. } = self;
        let sizes = self.sizes()?;
        self.check()?;
        let mut shape = Sizes::from(q.shape());
        shape.pop();
        shape.push(sizes.v_width);
        let same = q.dtype() == k.dtype() && q.dtype() == v.dtype();
        only(shape, if same { q.dtype() } else { DType::F32 })
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let name = "attention";
        let Attention { q, k, v, mask, sinks, window, softcap, .. } = self;
        let (sizes, caps) = (self.sizes()?, &q.context().0.caps);
        if sizes.keys == 0 {
            return each(name, FILL, &[], out, Constant::F32(0.0));
        }
        let position = self.causal.as_ref().or(self.lengths.as_ref());
        let position = position.cloned().unwrap_or(FAR.into());
        let inputs = [Some(q), Some(k), Some(v), mask.as_ref(), sinks.as_ref(), position.tensor()];
        for (at, input) in ["q", "k", "values", "mask", "sinks", "position"].into_iter().zip(inputs)
        {
            if let Some(input) = input {
                apart(name, at, input, out, false)?;
            }
        }

        let views = self.views(&sizes, &position, out)?;
        let shares = [views.units, views.rows];
        let plan = Plan::new(&sizes, shares, self.whole.unwrap_or(shares), caps)?;
        let rows = views.units * views.rows;
        let parts = plan.room(rows, q)?;
        // Sinks count once: if there are parts, the last kernel has them.
        let (to, sinks) = match &parts {
            Some(parts) => (parts, None),
            None => (&views.out, views.sinks.as_ref()),
        };
        let inputs = [
            Some(&views.q),
            Some(&views.k),
            Some(&views.v),
            views.mask.as_ref(),
            sinks,
            views.position.as_ref(),
        ];
        let text = if plan.on_units { &ATTENTION_ON_UNITS } else { &ATTENTION };
        let mut step = text.step(name, position.function(), &inputs, &[to])?;
        step.call = plan
            .dispatch(step.call, caps)
            .constant("CAUSAL", self.causal.is_some())
            .constant("CAPPED", softcap.is_some())
            .constant("MASKED", mask.is_some())
            .constant("SINKS", sinks.is_some())
            .constant("PLACED", position.tensor().is_some())
            .value("scale", self.scale.unwrap_or((sizes.width as f32).sqrt().recip()))
            .value("softcap", softcap.unwrap_or(1.0))
            .value("window", window.and_then(|keys| u32::try_from(keys).ok()).unwrap_or(u32::MAX))
            .value("heads", sizes.heads as u32)
            .value("units", views.units as u32)
            .value("rows", views.rows as u32)
            .value("before", position.before(FAR));
        let mut steps: Steps = smallvec![step];
        if let Some(parts) = &parts {
            let inputs = [Some(parts), views.sinks.as_ref()];
            let mut step = JOIN.step(name, Function::NONE, &inputs, &[&views.out])?;
            let call = step.call.constant("SINKS", views.sinks.is_some());
            step.call = plan.dispatch_join(call, rows as u32, caps);
            steps.push(step);
        }
        Ok(steps)
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let rank = self.q.shape().len();
        let Numbers { heads, queries, .. } = self.sizes()?;
        let of_keys = match (rank - 1 - axis, rank) {
            (0, _) => return Ok(None),
            (1, _) => 0..self.k.shape()[rank - 2],
            (2, _) => range.start / heads..range.end.div_ceil(heads),
            _ => range.clone(),
        };
        let part = |tensor: &Tensor| part_of(tensor, rank, axis, &range);
        let keys = |tensor: &Tensor| tensor.narrow(axis, of_keys.start, of_keys.len());
        let place = |position: &Position, tokens: bool| match rank - 1 - axis {
            1 if tokens => position.part(rank, axis, &range),
            1 => Ok(position.clone()),
            _ => position.part(rank, axis, &of_keys),
        };
        let units = self.k.shape()[..rank - 2].iter().product();
        Ok(Some(Attention {
            whole: self.whole.or(Some([units, queries * heads])),
            q: part(&self.q)?,
            k: keys(&self.k)?,
            v: keys(&self.v)?,
            mask: self.mask.as_ref().map(part).transpose()?,
            sinks: self.sinks.as_ref().map(part).transpose()?,
            causal: self.causal.as_ref().map(|p| place(p, true)).transpose()?,
            lengths: self.lengths.as_ref().map(|p| place(p, false)).transpose()?,
            ..*self
        }))
    }

    /// Heads that share a head of keys stay together while there are others.
    fn granule(&self, axis: usize) -> usize {
        let [q, k] = [&self.q, &self.k].map(|tensor| tensor.shape());
        if axis + 3 == q.len() && k[axis] > 1 { q[axis] / k[axis] } else { 1 }
    }
}
