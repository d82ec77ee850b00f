//! Loops over rows in host memory: operations on the CPU executor, in place of their texts.
//!
//! The rows of a loop are cut into pieces by their lengths alone. So every number of threads gives
//! the same bits.

pub(super) mod math;
mod pieces;
mod view;

pub(super) use view::Reader;

use super::layout::{Axes, Sizes};
use crate::host::memory;
use crate::tensor::Tensor;
use crate::tensor::lock::{Locks, Words};
use pieces::{Cut, Part};
use tilewise_core::{DType, Result};
use view::{Layout, decode, encode, store};

/// Elements of a piece, which one thread computes.
const PIECE: usize = 16 << 10;

/// A loop over rows. Inputs and outputs have the same axes, apart from the length of the last one,
/// along which rows lie.
///
/// Floats of any type are f32 in the loop, and integers are f32 of the same bits.
pub(super) struct Loop<'t, const I: usize, const O: usize> {
    inputs: [Option<&'t Tensor>; I],
    outs: [&'t Tensor; O],
    others: &'t [&'t Tensor],
    /// Elements that are as much work as a row.
    cost: usize,
    /// The most elements of a row that are given at a time.
    most: usize,
    moves: Option<&'t [[usize; 2]]>,
}

/// A row, or a part of a long one.
pub(super) struct Row<'r, const I: usize, const O: usize> {
    /// The number of the row, and the place of the part in it.
    pub(super) number: usize,
    pub(super) first: usize,
    /// The elements of the inputs. An absent input has none.
    pub(super) inputs: [&'r [f32]; I],
    /// The elements of the outputs, all of which are to be written.
    pub(super) outs: [&'r mut [f32]; O],
    /// The operands that are [`beside`](Loop::beside).
    pub(super) others: &'r [Reader<'r>],
    /// Memory that the loop may use.
    pub(super) scratch: &'r mut [Vec<f32>; 4],
}

/// Where an input is read.
#[derive(Clone, Copy)]
enum Source {
    Absent,
    /// In the reader of this number.
    Own(usize),
    /// In the output of this number, which is written afterwards.
    Output(usize),
}

/// How an output is written.
struct Target<'t> {
    out: &'t Tensor,
    /// The memory that the loop writes.
    layout: Layout,
    /// The memory, unless it is the output's own.
    apart: Option<Vec<u32>>,
}

impl<'t, const I: usize, const O: usize> Loop<'t, I, O> {
    /// A loop over all rows of the outputs.
    pub(super) fn new(inputs: [Option<&'t Tensor>; I], outs: [&'t Tensor; O]) -> Self {
        let length = |view: &&Tensor| view.shape().last().copied().unwrap_or(1);
        let cost = inputs.iter().flatten().chain(&outs).map(length).max().unwrap_or(1);
        Loop { inputs, outs, others: &[], cost, most: usize::MAX, moves: None }
    }

    /// Adds operands whose rows are read in any order.
    pub(super) fn beside(mut self, others: &'t [&'t Tensor]) -> Self {
        self.others = others;
        self
    }

    /// Says that a row is as much work as so many elements.
    pub(super) fn cost(mut self, elements: usize) -> Self {
        self.cost = elements;
        self
    }

    /// Lets rows be given in parts of so many elements. A loop's elements then depend only on those
    /// of their place.
    pub(super) fn in_parts(mut self, most: usize) -> Self {
        self.most = most;
        self.cost = self.cost.min(most);
        self
    }

    /// Only the named rows are read and written: `[from, to]` is a row of the inputs, and the row
    /// of the output that it becomes. None is written twice.
    pub(super) fn moving(mut self, moves: &'t [[usize; 2]]) -> Self {
        self.moves = Some(moves);
        self
    }

    /// Calls `work` for each row.
    ///
    /// # Errors
    /// [`OutOfMemory`](tilewise_core::Error).
    pub(super) fn run(self, work: impl Fn(Row<'_, I, O>) + Send + Sync) -> Result<()> {
        let threads = self.outs[0].context().threads()?;
        let cut = self.cut();
        let mut targets = Vec::with_capacity(O);
        for at in 0..O {
            targets.push(self.target(at, &cut)?);
        }
        let mut read: Vec<&Tensor> = self.others.to_vec();
        let sources = self.inputs.map(|input| self.source(input, &targets, &mut read));

        let written = targets.iter().filter(|target| target.apart.is_none());
        let mut locks = Locks::of(
            read.iter().map(|tensor| tensor.storage()),
            written.map(|target| target.out.storage()),
        )?;
        let mut words = locks.words();
        let reader =
            |&tensor: &&'t Tensor| Reader::new(words.read(tensor.storage()), Layout::of(tensor));
        let readers: Vec<Reader<'_>> = read.iter().map(reader).collect();
        let mut lines = [(0, DType::U32); O];
        let mut parts = Vec::with_capacity(O);
        for (line, target) in lines.iter_mut().zip(&mut targets) {
            *line = (target.layout.length, target.layout.dtype);
            parts.push(target.parts(&cut, &mut words).into_iter());
        }
        let next = |_| std::array::from_fn(|at| parts[at].next().unwrap_or_default());
        let mut pieces: Vec<[Part<'_>; O]> = (0..cut.pieces()).map(next).collect();
        let others = &readers[..self.others.len()];
        let call = Call { cut: &cut, sources, readers: &readers, others, lines };
        threads.each_of(&mut pieces, |number, piece| {
            let mut buffers = Buffers::new();
            for (at, unit) in cut.units(number).enumerate() {
                buffers.call(&call, unit, piece.each_mut().map(|part| (part, at)), &work);
            }
        });
        drop((pieces, parts, readers));
        drop(locks);
        targets.iter().try_for_each(|target| target.keep(&cut))
    }

    fn cut(&self) -> Cut<'t> {
        let shape = self.outs[0].shape();
        let (outer, length) =
            shape.split_last().map_or((1, 1), |(&length, outer)| (outer.iter().product(), length));
        Cut {
            rows: self.moves.map_or(outer, <[_]>::len),
            moves: self.moves,
            parts: length.div_ceil(self.most).max(1),
            span: self.most,
            per_piece: (PIECE / self.cost.max(1)).max(1),
        }
    }

    /// How an output is written: where it lies if its rows have no gaps, and nothing else in its
    /// storage is read or written.
    fn target(&self, at: usize, cut: &Cut<'_>) -> Result<Target<'t>> {
        let (out, layout) = (self.outs[at], Layout::of(self.outs[at]));
        let is_apart = |other: &Tensor| !other.storage().shares(out.storage());
        let mut others = self.outs.iter().enumerate().filter(|(own, _)| *own != at);
        let mut inputs = self.inputs.iter().flatten();
        let is_direct = layout.step == 1
            && others.all(|(_, other)| is_apart(other))
            && self.others.iter().all(|other| is_apart(other))
            && inputs.all(|input| is_apart(input) || self.is_in_place(input, out));
        if is_direct {
            return Ok(Target { out, layout, apart: None });
        }
        let apart = Some(memory::filled(cut.rows * layout.length, 0)?);
        Ok(Target { out, layout: Layout::packed(cut.rows, layout.length), apart })
    }

    fn is_in_place(&self, input: &Tensor, out: &Tensor) -> bool {
        self.moves.is_none() && input.is_same_view(out)
    }

    /// Where an input is read. What is not read in an output is added to `read`.
    fn source(
        &self,
        input: Option<&'t Tensor>,
        targets: &[Target<'_>],
        read: &mut Vec<&'t Tensor>,
    ) -> Source {
        let Some(input) = input else { return Source::Absent };
        let same =
            |target: &Target<'_>| target.apart.is_none() && self.is_in_place(input, target.out);
        targets.iter().position(same).map_or_else(
            || {
                read.push(input);
                Source::Own(read.len() - 1)
            },
            Source::Output,
        )
    }
}

impl Target<'_> {
    /// The memory of each piece.
    fn parts<'b>(&'b mut self, cut: &Cut<'_>, words: &mut Words<'b>) -> Vec<Part<'b>> {
        let Target { out, layout, apart } = self;
        let is_flat = apart.is_some() || cut.moves.is_none() && out.is_contiguous();
        let words =
            apart.as_mut().map_or_else(|| words.written(out.storage()), |own| own.as_mut_slice());
        let bytes = bytemuck::cast_slice_mut(words);
        match is_flat {
            true => cut.flat(bytes, layout),
            false => cut.apart(bytes, layout, |unit| cut.row(unit)[1]),
        }
    }

    /// Writes what was kept apart to the output.
    fn keep(&self, cut: &Cut<'_>) -> Result<()> {
        let Some(apart) = &self.apart else { return Ok(()) };
        let layout = Layout::of(self.out);
        let mut words = self.out.storage().host_mut()?;
        let rows = bytemuck::cast_slice(apart).chunks(layout.length.max(1));
        for (row, made) in rows.enumerate() {
            let place = layout.place(cut.moves.map_or(row, |moves| moves[row][1]));
            store(&mut words, layout.dtype, place, layout.step.max(1), made);
        }
        Ok(())
    }
}

/// The memory of a thread for elements that are not read or written where they lie.
struct Buffers<const I: usize, const O: usize> {
    read: [Vec<f32>; I],
    made: [Vec<f32>; O],
    scratch: [Vec<f32>; 4],
}

impl<const I: usize, const O: usize> Buffers<I, O> {
    fn new() -> Self {
        Buffers {
            read: [const { Vec::new() }; I],
            made: [const { Vec::new() }; O],
            scratch: [const { Vec::new() }; 4],
        }
    }

    /// Calls `work` for a unit. The outputs' elements lie in parts, each with the unit's number.
    fn call(
        &mut self,
        at: &Call<'_, I, O>,
        unit: usize,
        parts: [(&mut Part<'_>, usize); O],
        work: &impl Fn(Row<'_, I, O>),
    ) {
        let mut lines = at.lines.iter();
        let mut lines = parts.map(|(part, own)| {
            let (length, dtype) = lines.next().copied().unwrap_or((0, DType::U32));
            let bytes = at.cut.range(length, unit).len() * dtype.bytes() as usize;
            (part.unit(own, bytes), dtype)
        });
        let [number, _] = at.cut.row(unit);
        let mut sources = at.sources.iter();
        let inputs = self.read.each_mut().map(|buffer| match sources.next() {
            None | Some(Source::Absent) => &[],
            Some(&Source::Own(reader)) => {
                let reader = &at.readers[reader];
                reader.part(number, at.cut.range(reader.length(), unit), buffer)
            }
            Some(&Source::Output(out)) => {
                let (line, dtype) = &lines[out];
                buffer.resize(line.len() / dtype.bytes() as usize, 0.0);
                decode(line, *dtype, buffer);
                &buffer[..]
            }
        });
        let mut made = self.made.iter_mut();
        let outs = lines.each_mut().map(|(line, dtype)| match (dtype.bytes(), made.next()) {
            (2, Some(buffer)) => {
                buffer.resize(line.len() / 2, 0.0);
                &mut buffer[..]
            }
            _ => bytemuck::cast_slice_mut(line),
        });
        let scratch = &mut self.scratch;
        let first = at.cut.range(usize::MAX, unit).start;
        work(Row { number, first, inputs, outs, others: at.others, scratch });
        for ((line, dtype), made) in lines.iter_mut().zip(&self.made) {
            if dtype.bytes() == 2 {
                encode(made, *dtype, line);
            }
        }
    }
}

/// The operands and the outputs that all units of a loop share.
struct Call<'r, const I: usize, const O: usize> {
    cut: &'r Cut<'r>,
    sources: [Source; I],
    readers: &'r [Reader<'r>],
    others: &'r [Reader<'r>],
    /// Length and type of the outputs' rows.
    lines: [(usize, DType); O],
}

/// All elements of a tensor, row-major: floats as f32, and integers as f32 of the same bits.
///
/// # Errors
/// [`OutOfMemory`](tilewise_core::Error).
pub(super) fn floats(tensor: &Tensor) -> Result<Vec<f32>> {
    let mut all = memory::room(tensor.elem_count())?;
    let words = tensor.storage().host()?;
    let (reader, mut buffer) = (Reader::new(&words, Layout::of(tensor)), Vec::new());
    for row in 0..tensor.elem_count().checked_div(reader.length()).unwrap_or(0) {
        all.extend_from_slice(reader.row(row, &mut buffer));
    }
    Ok(all)
}

/// All elements of a tensor of integers, row-major.
///
/// # Errors
/// [`OutOfMemory`](tilewise_core::Error).
pub(super) fn words(tensor: &Tensor) -> Result<Vec<u32>> {
    Ok(floats(tensor)?.into_iter().map(f32::to_bits).collect())
}

/// Calls `work` for the elements of two tensors that are broadcast to the output, in parts of any
/// length. `strides` are those of the tensors in the output's shape.
pub(super) fn elements(
    inputs: [Option<&Tensor>; 2],
    strides: [Sizes; 2],
    out: &Tensor,
    work: impl Fn([&[f32]; 2], &mut [f32]) + Send + Sync,
) -> Result<()> {
    // Rows lie along the axis on which elements of the output are nearest to each other.
    let mut order: Sizes = (0..out.shape().len()).collect();
    order.sort_by_key(|&axis| std::cmp::Reverse(out.strides()[axis]));
    let sorted = |sizes: &[usize]| order.iter().map(|&axis| sizes[axis]).collect::<Sizes>();
    let [a, b] = strides.each_ref().map(|strides| sorted(strides));
    let axes = Axes { shape: sorted(out.shape()), strides: [a, b, sorted(out.strides())] };
    let axes = axes.of_entries();
    let view = |tensor: &Tensor, of: usize| tensor.laid_out(&axes.shape, &axes.strides[of]);
    let [a, b] = inputs;
    let views = [a.map(|a| view(a, 0)), b.map(|b| view(b, 1))];
    let (views, out) = (views.each_ref().map(Option::as_ref), view(out, 2));
    Loop::new(views, [&out])
        .in_parts(PIECE)
        .run(|Row { inputs, outs: [out], .. }| work(inputs, out))
}
