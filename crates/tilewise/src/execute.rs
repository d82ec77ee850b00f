//! The CPU executor: the same problems on the host, for machines without a GPU and for comparison.
//!
//! A product becomes tiles of C, each computed by one thread from start to end: its sums
//! (tile.rs), the epilogue, and its elements of C (output.rs). Which tiles there are depends on the
//! problem alone, so every number of threads gives the same bits.

mod output;
pub(crate) mod source;
mod tile;

use crate::host::memory;
use crate::host::threads::Threads;
use crate::tensor::lock::Locks;
use crate::tensor::storage::{Buffers, Bundle, Storage};
use output::Output;
use source::Source;
use std::ops::Range;
use tile::Factor;
use tilewise_core::kernel::Role;
use tilewise_core::{
    Activation, Axis, Dimension, Epilogue, Error, Gathered, Operand, Problem, Result, Segment,
    convert,
};

/// Runs a problem that the planner has accepted: every element lies inside its storage.
pub(crate) fn run(bundle: &Bundle<'_>, threads: &Threads) -> Result<()> {
    let Bundle { problem, buffers, .. } = bundle;
    let c = storage(buffers, Role::C)?;
    let (residual, bias) = (problem.epilogue.residual, problem.epilogue.bias);
    let wanted = [
        (Role::A, Some(problem.a)),
        (Role::B, Some(problem.b)),
        (Role::Bias, bias.map(|bias| bias.operand)),
        (Role::Residual, residual),
    ];
    let numbers = problem.grouping.operands().next().filter(|(_, count)| *count > 0);
    let mut roles = Vec::new();
    for (role, operand) in wanted {
        roles.extend(operand.into_iter().flat_map(|own| source::roles(role, own.format)));
    }
    roles.extend(problem.gathered.map(|_| Role::RowIndex));
    roles.extend(numbers.map(|(role, _)| role));
    let mut read = Vec::with_capacity(roles.len());
    for role in roles {
        read.push((role, storage(buffers, role)?));
    }
    // An operand may lie in the storage of C, which is locked to be written: it is copied.
    let is_shared = |(_, storage): &(Role, &Storage)| storage.shares(c);
    let copy = match read.iter().any(is_shared) {
        true => memory::copied(&c.host()?)?,
        false => Vec::new(),
    };
    let apart = read.iter().filter(|own| !is_shared(own)).map(|(_, storage)| *storage);
    let mut locks = Locks::of(apart, std::iter::once(c))?;
    let mut locked = locks.words();
    let output = Output::new(locked.written(c), &problem.c)?;
    let words = |role| match read.iter().find(|(own, _)| *own == role) {
        Some(own) if is_shared(own) => &copy[..],
        Some((_, storage)) => locked.read(storage),
        None => &[],
    };
    let numbers = numbers.map_or(&[][..], |(role, _)| words(role));
    let indices = problem.gathered.map(|own| indices(words(Role::RowIndex), own, problem.m));
    let source = |role, format| {
        let planes: Vec<_> = source::roles(role, format).map(words).collect();
        Source::new(format, &planes)
    };
    let [a, b, bias, residual] = wanted.map(|(role, own)| own.map(|own| source(role, own.format)));
    let (Some(a), Some(b)) = (a, b) else {
        return Err(Error::Unsupported("a product without operands".into()));
    };
    let operands = Operands { a, b, bias, residual, indices: indices.as_deref() };
    if problem.grouping.traits().listed {
        for one in problem.listed(numbers) {
            compute(&one, &operands, numbers, output, threads);
        }
    } else {
        compute(problem, &operands, numbers, output, threads);
    }
    Ok(())
}

/// The operands that a product reads.
struct Operands<'a> {
    a: Source<'a>,
    b: Source<'a>,
    bias: Option<Source<'a>>,
    residual: Option<Source<'a>>,
    /// Rows of the matrix that has those of A, if they are named.
    indices: Option<&'a [u32]>,
}

/// A share of a product: rows and columns of an entry of C.
struct Tile {
    segment: usize,
    rows: Range<usize>,
    cols: Range<usize>,
}

/// Computes a product that is no list.
fn compute(
    problem: &Problem,
    operands: &Operands<'_>,
    numbers: &[u32],
    output: Output<'_>,
    threads: &Threads,
) {
    let segments = problem.grouping.segments([problem.m, problem.k], problem.batch, numbers);
    let mut tiles = Vec::new();
    for (number, segment) in segments.iter().enumerate() {
        let rows = segment.rows.start as usize..segment.rows.end as usize;
        let [high, wide] =
            tile::sizes(rows.len(), problem.n as usize, &operands.b, problem.b.transposed);
        for first in rows.clone().step_by(high) {
            for col in (0..problem.n as usize).step_by(wide) {
                tiles.push(Tile {
                    segment: number,
                    rows: first..rows.end.min(first + high),
                    cols: col..(problem.n as usize).min(col + wide),
                });
            }
        }
    }
    threads.each(tiles.len(), |at| {
        let Tile { segment, rows, cols } = &tiles[at];
        let segment = &segments[*segment];
        let mut sums = vec![0f32; rows.len() * cols.len()];
        let first = |operand: &Operand, entry| problem.entry(operand, entry).offset;
        let part = problem.range(Dimension::K, segment.k.clone());
        let indices = operands.indices.zip(problem.gathered.map(|own| own.rows));
        let factor = |source, operand, entry, indices| Factor {
            source,
            operand,
            first: first(&operand, entry),
            indices,
        };
        let a = factor(&operands.a, part.a, segment.entry, indices);
        let b = factor(&operands.b, part.b, segment.group, None);
        tile::sums(&a, &b, [rows.clone(), cols.clone()], part.k as usize, &mut sums);
        let mut other = vec![0f32; cols.len()];
        let c = first(&problem.c, segment.entry);
        let per = problem.epilogue.columns() as usize;
        for (row, sums) in rows.clone().zip(sums.chunks_exact_mut(cols.len())) {
            let at = (c + row as u64 * problem.c.ld) as usize + cols.start / per;
            // SAFETY: tiles have no element in common, rows of C are contiguous, and the planner
            // has refused a C whose elements share places or lie beyond its storage. Tiles begin
            // and end between pairs of columns.
            let c = unsafe { output.row(at, cols.len() / per) };
            let place = [row as u64, cols.start as u64];
            let load = |out: &mut [f32]| convert::decode_into(output.dtype, c, out);
            end(problem, operands, segment, place, load, [sums, &mut other]);
            convert::encode_into(output.dtype, &sums[..cols.len() / per], c);
        }
    });
}

/// The epilogue of a part of a row, in place: of pairs of columns, in the first half. `load` gives
/// what C holds; `other` has room for as many numbers.
fn end(
    problem: &Problem,
    operands: &Operands<'_>,
    segment: &Segment,
    [row, col]: [u64; 2],
    load: impl FnOnce(&mut [f32]),
    [sums, other]: [&mut [f32]; 2],
) {
    let Epilogue { alpha, beta, bias, activation, residual, gated } = problem.epilogue;
    let first = |operand: &Operand, entry| problem.entry(operand, entry).offset;
    if alpha != 1.0 {
        sums.iter_mut().for_each(|y| *y *= alpha);
    }
    if beta != 0.0 {
        load(other);
        sums.iter_mut().zip(&*other).for_each(|(y, old)| *y += beta * old);
    }
    if let Some((own, source)) = bias.zip(operands.bias.as_ref()) {
        let (first, ld) = (first(&own.operand, segment.group), own.operand.ld);
        match own.axis {
            Axis::N => source.read_apart(first + col * ld, ld, other),
            Axis::M => {
                source.read(first + row * ld, &mut other[..1]);
                other.fill(other[0]);
            }
        }
        sums.iter_mut().zip(&*other).for_each(|(y, bias)| *y += bias);
    }
    let Some((own, source)) = residual.zip(operands.residual.as_ref()) else {
        return if gated { pair(activation, sums, other) } else { activate(activation, sums) };
    };
    let first = first(&own, segment.entry);
    match own.transposed {
        true => source.read_apart(first + col * own.ld + row, own.ld, other),
        false => source.read(first + row * own.ld + col, other),
    }
    if gated {
        activate(activation, other);
        sums.iter_mut().zip(&*other).for_each(|(y, gate)| *y *= gate);
    } else {
        activate(activation, sums);
        sums.iter_mut().zip(&*other).for_each(|(y, residual)| *y += residual);
    }
}

/// Multiplies each odd column by the function of the even one before it. The first half of `sums`
/// gets the products.
fn pair(activation: Activation, sums: &mut [f32], gates: &mut [f32]) {
    let gates = &mut gates[..sums.len() / 2];
    for (gate, pair) in gates.iter_mut().zip(sums.as_chunks::<2>().0) {
        *gate = pair[0];
    }
    activate(activation, gates);
    for (own, gate) in gates.iter().enumerate() {
        sums[own] = sums[2 * own + 1] * gate;
    }
}

fn activate(activation: Activation, numbers: &mut [f32]) {
    if activation != Activation::None {
        numbers.iter_mut().for_each(|x| *x = activation.apply(*x));
    }
}

/// The row indices of A.
fn indices(words: &[u32], Gathered { offset, step, .. }: Gathered, rows: u64) -> Vec<u32> {
    (0..rows).map(|row| words[(offset + row * step) as usize]).collect()
}

/// The storage of an operand.
pub(crate) fn storage<'a>(buffers: &Buffers<'a>, role: Role) -> Result<&'a Storage> {
    let found = buffers[role as usize].map(|bound| bound.storage);
    found.ok_or_else(|| Error::Unsupported(format!("{} is missing", role.name())))
}
