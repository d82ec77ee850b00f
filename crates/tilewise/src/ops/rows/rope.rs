//! Rotary position embeddings.

use super::norm::normed;
use super::{BLOCK, Rows, group_size, in_blocks};
use crate::ops::host::math::sum_of;
use crate::ops::host::{self, Loop, Row};
use crate::ops::layout::{Axes, Sizes, broadcast, float, part_of};
use crate::ops::op::{Op, Output, only, sealed::Lower};
use crate::ops::position::{Position, Room};
use crate::ops::texts::{ROPE, ROPE_INTO, Steps};
use crate::tensor::Tensor;
use smallvec::smallvec;
use std::ops::Range;
use tilewise_core::{Error, Result};

/// The operation of [`rope`].
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct Rope {
    x: Tensor,
    cos: Tensor,
    sin: Tensor,
    interleaved: bool,
    position: Option<Position>,
    room: Option<Room>,
    /// Weight and eps of the norm of each row before it is turned.
    norm: Option<(Tensor, f32)>,
    /// The number that is added to the weights.
    offset: f32,
}

/// Rotary position embedding of `x` \[…, T, D\]: turns each pair of elements of a row by the angle
/// whose cosine and sine are given, \[T, D/2\] or anything that is broadcast to \[…, T, D/2\]. A
/// pair is elements i and i + D/2, as in Llama; if [`interleaved`](Op::interleaved), 2i and 2i + 1,
/// as in GPT-J.
///
/// With ε = 2⁻²³ the error is at most 2·ε·(|a·cos| + |b·sin|), apart from the output's rounding.
///
/// ```
/// use tilewise::{Context, Tensor, ops};
///
/// # fn main() -> tilewise::Result<()> {
/// let ctx = Context::new()?;
/// let x = Tensor::upload(&ctx, &[1.0f32, 2.0, 3.0, 4.0], &[1, 4])?;
/// let cos = Tensor::upload(&ctx, &[0.0f32, 1.0], &[1, 2])?;
/// let sin = Tensor::upload(&ctx, &[1.0f32, 0.0], &[1, 2])?;
/// let rope = ops::rope(&x, &cos, &sin);
/// assert_eq!(rope.run()?.read_blocking::<f32>()?, [-3.0, 2.0, 1.0, 4.0]);
/// assert_eq!(rope.interleaved().run()?.read_blocking::<f32>()?, [-2.0, 1.0, 3.0, 4.0]);
/// # Ok(())
/// # }
/// ```
pub fn rope(x: &Tensor, cos: &Tensor, sin: &Tensor) -> Op<Rope> {
    let [x, cos, sin] = [x, cos, sin].map(Tensor::clone);
    Op::new(Rope {
        x,
        cos,
        sin,
        interleaved: false,
        position: None,
        room: None,
        norm: None,
        offset: 0.0,
    })
}

impl Op<Rope> {
    /// Takes neighbours as pairs.
    pub fn interleaved(mut self) -> Self {
        self.kind.interleaved = true;
        self
    }

    /// Turns row t of `x` by row position + t of the tables, which are \[rows, D/2\] with a row for
    /// each position. A row that a tensor places beyond the tables is turned by their last row.
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
    /// let cos = Tensor::upload(&ctx, &[1.0f32, 0.0, -1.0], &[3, 1])?;
    /// let sin = Tensor::upload(&ctx, &[0.0f32, 1.0, 0.0], &[3, 1])?;
    /// let position = Tensor::upload(&ctx, &[1u32], &[1])?;
    /// let rope = ops::rope(&x, &cos, &sin);
    /// assert_eq!(rope.clone().at(&position).run()?.read_blocking::<f32>()?, [-2.0, 1.0]);
    /// assert_eq!(rope.at(2).run()?.read_blocking::<f32>()?, [-1.0, -2.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn at(mut self, position: impl Into<Position>) -> Self {
        self.kind.position = Some(position.into());
        self
    }

    /// Writes row t to row position + t of an output \[…, room, D\], a cache of keys, as
    /// [`append`](crate::ops::append()) does. The position, also in the tables, is 0 unless
    /// [`at`](Self::at) gives it.
    ///
    /// ```
    /// use tilewise::{Context, DType, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let keys = Tensor::zeros(&ctx, DType::F32, &[3, 2])?;
    /// let x = Tensor::upload(&ctx, &[1.0f32, 2.0], &[1, 2])?;
    /// let cos = Tensor::upload(&ctx, &[1.0f32, 0.0, -1.0], &[3, 1])?;
    /// let sin = Tensor::upload(&ctx, &[0.0f32, 1.0, 0.0], &[3, 1])?;
    /// ops::rope(&x, &cos, &sin).at(1).into_rows(3).run_into(&keys)?;
    /// assert_eq!(keys.read_blocking::<f32>()?, [0.0, 0.0, -2.0, 1.0, 0.0, 0.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_rows(mut self, room: usize) -> Self {
        self.kind.room = Some(Room::new(room));
        self.kind.position.get_or_insert(0.into());
        self
    }

    /// Normalizes each row before it is turned, as [`rms_norm`](crate::ops::rms_norm()) does:
    /// queries and keys of Qwen 3 and Gemma 3. `weight` is a vector \[D\].
    ///
    /// ```
    /// use tilewise::{Context, Tensor, ops};
    ///
    /// # fn main() -> tilewise::Result<()> {
    /// let ctx = Context::new()?;
    /// let x = Tensor::upload(&ctx, &[3.0f32, -3.0], &[1, 2])?;
    /// let weight = Tensor::upload(&ctx, &[1.0f32, 4.0], &[2])?;
    /// let cos = Tensor::upload(&ctx, &[0.0f32], &[1, 1])?;
    /// let sin = Tensor::upload(&ctx, &[1.0f32], &[1, 1])?;
    /// let y = ops::rope(&x, &cos, &sin).rms_norm(&weight, 0.0).run()?.read_blocking::<f32>()?;
    /// assert!((y[0] - 4.0).abs() < 1e-5 && (y[1] - 1.0).abs() < 1e-5);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The error is at most (D/4 + 22)·ε·(|a·cos| + |b·sin|) then, where a and b are the normalized
    /// elements.
    pub fn rms_norm(mut self, weight: &Tensor, eps: f32) -> Self {
        self.kind.norm = Some((weight.clone(), eps));
        self
    }

    /// Adds a number to the weights of [`rms_norm`](Self::rms_norm), which is wanted then: 1 for
    /// the files of Gemma.
    pub fn weight_offset(mut self, offset: f32) -> Self {
        self.kind.offset = offset;
        self
    }
}

impl Rope {
    /// Shape of the cosines that are used: one for each pair.
    fn pairs(&self) -> Sizes {
        let mut pairs = Sizes::from(self.x.shape());
        if let Some(last) = pairs.last_mut() {
            *last /= 2;
        }
        pairs
    }

    /// `x` or the output as rows of the first and of the second elements of pairs, or of both;
    /// `of` is its place among the strides of `rows`.
    fn as_pairs<const N: usize>(&self, rows: &Rows<N>, tensor: &Tensor, of: usize) -> Tensor {
        let half = rows.length();
        let (mut shape, mut strides) = (rows.axes.shape.clone(), rows.axes.strides[of].clone());
        let step = strides.last().copied().unwrap_or_default();
        if self.interleaved {
            shape.pop();
            shape.push(2 * half);
        } else {
            shape.insert(shape.len() - 1, 2);
            strides.insert(strides.len() - 1, half * step);
        }
        tensor.laid_out(&shape, &strides)
    }
}

impl Rope {
    /// The rows of pairs: of x, of both tables unless a position says their rows, of the position,
    /// and of the output unless it has room.
    fn rows(&self, out: &Tensor) -> Result<Rows<5>> {
        let Rope { x, cos, sin, position, room, .. } = self;
        let (shape, rank) = (self.pairs(), x.shape().len());
        let table = |table| match position {
            Some(_) => smallvec![0; rank],
            None => broadcast(table, &shape).unwrap_or_default(),
        };
        let of_out = if room.is_some() { smallvec![0; rank] } else { out.strides().into() };
        let of_position = match position {
            Some(position) => position.strides("rope", x)?,
            None => smallvec![0; rank],
        };
        let strides = [x.strides().into(), table(cos), table(sin), of_position, of_out];
        Rows::new("rope", Axes { shape: shape.clone(), strides }, rank - 1)
    }

    fn on_host(&self, out: &Tensor) -> Result<()> {
        let Rope { ref x, ref cos, ref sin, interleaved, ref position, room, ref norm, offset } =
            *self;
        if x.elem_count() == 0 {
            return Ok(());
        }
        let (rows, tokens) = (self.rows(out)?, x.shape()[x.shape().len() - 2]);
        let (half, at) = (rows.length(), position.clone().unwrap_or(0.into()));
        let tensor = at.tensor().map(|tensor| rows.view_of(tensor, 3, 1));
        let placed = at.on_host(tensor.as_ref(), u32::MAX as usize)?;
        let norm = match norm {
            Some((weight, eps)) => {
                let mut weight = host::floats(weight)?;
                weight.iter_mut().for_each(|weight| *weight += offset);
                Some((weight, *eps))
            }
            None => None,
        };
        let moves = room.map(|room| placed.moves(rows.count as usize, tokens, room.rows));
        let out = match room {
            Some(_) => Rows::of("rope", out, 2 * half)?.view(out, 0),
            None => rows.view_of(out, 4, 2 * half),
        };
        let own = |table, of| position.is_none().then(|| rows.view(table, of));
        let (x, own_cos, own_sin) = (rows.view_of(x, 0, 2 * half), own(cos, 1), own(sin, 2));
        let tables = [cos, sin];
        let mut each = Loop::new([Some(&x), own_cos.as_ref(), own_sin.as_ref()], [&out]);
        if position.is_some() {
            each = each.beside(&tables);
        }
        if let Some(moves) = &moves {
            each = each.moving(moves);
        }
        let last = cos.shape().first().map_or(0, |rows| rows.saturating_sub(1));
        each.run(|Row { number, inputs: [x, mut c, mut s], outs: [y], others, scratch, .. }| {
            let [of_cos, of_sin, normed, _] = scratch;
            if let [cos, sin] = others {
                let row = (placed.of(number) + number % tokens).min(last);
                (c, s) = (cos.row(row, of_cos), sin.row(row, of_sin));
            }
            let mut x = x;
            if let Some((weight, eps)) = &norm {
                let factor = 1.0 / (sum_of(x, |x| x * x) / x.len() as f32 + eps).sqrt();
                normed.clear();
                normed.extend(x.iter().zip(weight).map(|(x, weight)| x * (factor * weight)));
                x = normed;
            }
            if interleaved {
                let pairs = x.as_chunks::<2>().0.iter().zip(c.iter().zip(s));
                for (y, (&[a, b], (c, s))) in y.as_chunks_mut::<2>().0.iter_mut().zip(pairs) {
                    *y = [a * c - b * s, b * c + a * s];
                }
                return;
            }
            let ((a, b), (p, q)) = (x.split_at(half), y.split_at_mut(half));
            let turns = a.iter().zip(b).zip(c.iter().zip(s));
            for ((p, q), ((a, b), (c, s))) in p.iter_mut().zip(q).zip(turns) {
                (*p, *q) = (a * c - b * s, b * c + a * s);
            }
        })
    }
}

impl Lower for Rope {
    fn name(&self) -> &'static str {
        "rope"
    }

    fn first(&self) -> &Tensor {
        &self.x
    }

    fn outputs(&self) -> Result<[Output; 1]> {
        let Rope { x, position, room, norm, offset, .. } = self;
        float("rope", "x", x)?;
        let rank = x.shape().len();
        if rank < 2 || !x.shape()[rank - 1].is_multiple_of(2) {
            return Err(Error::Shape(format!(
                "rope: x has shape {:?}, wanted [..., T, D] with an even D",
                x.shape()
            )));
        }
        let mut pairs = self.pairs();
        if let Some(position) = position {
            position.strides("rope", x)?;
            let rows = self.cos.shape().first().copied().unwrap_or_default();
            pairs = smallvec![rows, pairs[rank - 1]];
            position.fits("rope", x, pairs[0], "the tables")?;
        }
        for (name, table) in [("cos", &self.cos), ("sin", &self.sin)] {
            float("rope", name, table)?;
            x.context().same(table.context(), name)?;
            if broadcast(table, &pairs).is_none()
                || position.is_some() && table.shape() != &pairs[..]
            {
                return Err(Error::Shape(format!(
                    "rope: {name} has shape {:?}, wanted {:?} for x of shape {:?}",
                    table.shape(),
                    &pairs[pairs.len() - 2..],
                    x.shape()
                )));
            }
        }
        match norm {
            Some((weight, eps)) => {
                normed("rope", x, &[("weight", Some(weight))], *offset, *eps)?;
            }
            None if *offset != 0.0 => {
                return Err(Error::Misuse("rope: weight_offset wants rms_norm".into()));
            }
            None => {}
        }
        let shape = match room {
            Some(room) => room.shape(x),
            None => x.shape().into(),
        };
        if let (Some(position), Some(room)) = (position, room) {
            position.fits("rope", x, room.rows, "the output")?;
        }
        only(shape, x.dtype())
    }

    fn steps(&self, [out]: [&Tensor; 1]) -> Result<Steps> {
        let Rope { x, cos, sin, interleaved, position, room, norm, offset } = self;
        if x.elem_count() == 0 {
            return Ok(Steps::new());
        }
        let (at, rows) = (position.clone().unwrap_or(0.into()), self.rows(out)?);
        let tables = [(cos, 1), (sin, 2)].map(|(table, of)| match position {
            Some(_) => table.clone(),
            None => rows.view(table, of),
        });
        let out = match room {
            Some(_) => self.as_pairs(&Rows::of("rope", out, rows.length())?, out, 0),
            None => self.as_pairs(&rows, out, 4),
        };
        let [x, cos, sin] = [&self.as_pairs(&rows, x, 0), &tables[0], &tables[1]];
        let tensor = at.tensor().map(|tensor| rows.view(tensor, 3));
        let half = rows.length();
        let weight = norm.as_ref().map(|(weight, _)| {
            let (step, own) = (weight.strides()[0], if *interleaved { [1, 2] } else { [half, 1] });
            weight.laid_out(&[2, half], &own.map(|elements| elements * step))
        });
        let inputs = [Some(x), Some(cos), Some(sin), weight.as_ref(), tensor.as_ref()];
        let text = if room.is_some() { &ROPE_INTO } else { &ROPE };
        let mut step = text.step("rope", at.function(), &inputs, &[&out])?;
        let caps = &x.context().0.caps;
        let blocks = half.div_ceil(BLOCK);
        let lanes = match norm {
            // A power of two, so that rows begin with workgroups.
            Some(_) => blocks.next_power_of_two().min(group_size(caps) as usize),
            None => blocks,
        };
        let eps = norm.as_ref().map_or(0.0, |(_, eps)| *eps);
        let call = in_blocks("rope", step.call, rows.count, lanes * BLOCK, caps)?
            .constant("NORMED", norm.is_some())
            .constant("ACROSS", false)
            .value("lanes", lanes as u32)
            .value("offset", *offset)
            .value("eps", eps)
            .constant("INTERLEAVED", *interleaved)
            .constant("PLACED", position.is_some())
            .constant("INTO_ROWS", room.is_some())
            .value("table_rows", self.cos.shape().first().map_or(1, |&rows| rows as u32));
        step.call = room.unwrap_or_default().values(call, &at, &self.x);
        Ok(smallvec![step])
    }

    fn host(&self, [out]: [&Tensor; 1]) -> Option<Result<()>> {
        Some(self.on_host(out))
    }

    fn part(&self, axis: usize, range: Range<usize>) -> Result<Option<Self>> {
        let Rope { x, cos, sin, position, room, .. } = self;
        let rank = x.shape().len();
        if axis + 1 == rank {
            return Ok(None);
        }
        if let (Some(room), true) = (room, axis + 2 == rank) {
            return Ok(Some(Rope { room: Some(room.part(&range)), ..self.clone() }));
        }
        // The axis behind the output's is that of the operand's rows.
        let axis = axis.min(rank - 2);
        let part = |tensor: &Tensor| match position {
            Some(_) => Ok(tensor.clone()),
            None => part_of(tensor, rank, axis, &range),
        };
        let [cos, sin] = [part(cos)?, part(sin)?];
        let x = part_of(x, rank, axis, &range)?;
        let position = position.as_ref().map(|position| position.part(rank, axis, &range));
        let position = position.transpose()?;
        Ok(Some(Rope { x, cos, sin, position, ..self.clone() }))
    }

    fn entries(&self) -> usize {
        self.room.as_ref().map_or(1, |_| self.x.shape()[self.x.shape().len() - 2])
    }
}
