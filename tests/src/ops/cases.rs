//! The cases of ready operations.

mod append;
mod attention;
mod choose;
mod combine;
mod elementwise;
mod gather;
mod group;
mod index;
mod norm;
mod reduce;
mod rope;
mod sample;
mod softmax;

use super::{AnyOp, Case, Given, Half, Lies, Wanted};
use crate::generators::Rng;
use tilewise::{DType, Tensor, ops};

/// Half the distance from 1 to the next f32.
const U: f64 = DType::F32.unit_roundoff();

/// A distance between neighbours of f32, relative.
const ULP: f64 = 2.0 * U;

/// Shapes of rows: with one, few and many elements; one row, many rows, and none.
const ROWS: [&[usize]; 16] = [
    &[1],
    &[2],
    &[3, 3],
    &[5, 31],
    &[2, 2, 33],
    &[3, 257],
    &[2, 1000],
    &[300, 2],
    &[1, 4099],
    &[2, 3, 1, 5],
    &[0, 7],
    &[7, 0],
    &[2, 1, 2, 1, 2, 1, 2, 9],
    &[1, 100_000],
    &[5, 12],
    &[4, 16],
];

const FLOATS: [DType; 3] = DType::FLOATS;

const LIES: [Lies; 4] = [Lies::Packed, Lies::Within, Lies::Transposed, Lies::TransposedWithin];

/// All cases.
pub fn all() -> Vec<Case> {
    FAMILIES.iter().flat_map(|(_, cases)| cases()).collect()
}

/// A function that makes cases.
pub(super) type Cases = fn() -> Vec<Case>;

/// The cases of each family, by its name.
pub const FAMILIES: &[(&str, Cases)] = &[
    ("softmax", softmax::cases),
    ("attention", attention::cases),
    ("elementwise", elementwise::cases),
    ("norm", norm::cases),
    ("reduce", reduce::cases),
    ("rope", rope::cases),
    ("append", append::cases),
    ("top_k", index::top_k),
    ("choose", choose::cases),
    ("sample", sample::cases),
    ("gather", gather::cases),
    ("scatter", index::scatter),
    ("combine", combine::combine),
    ("group", group::cases),
    ("take_along", combine::take_along),
    ("histogram", index::histogram),
    ("scan", index::scan),
    ("sort", index::sort),
];

/// Cases of several workgroups, or of rows that are too long to be kept. They have as few elements
/// as that permits.
pub fn in_parts() -> Vec<Case> {
    let families: [Cases; 8] = [
        softmax::in_parts,
        attention::in_parts,
        attention::on_units,
        norm::in_parts,
        reduce::in_parts,
        index::in_parts,
        sample::in_parts,
        rope::in_parts,
    ];
    families.iter().flat_map(|cases| cases()).collect()
}

/// Cases that only devices run.
pub fn large() -> Vec<Case> {
    index::large()
}

/// The cases of at most `most` elements.
pub fn small(most: usize) -> Vec<Case> {
    let count = |case: &Case| case.inputs.iter().map(|given| given.values.len()).max();
    all().into_iter().filter(|case| count(case).unwrap_or(0) <= most).collect()
}

/// Random numbers about 0, in no order.
fn numbers(rng: &mut Rng, shape: &[usize], spread: f64) -> Vec<f64> {
    (0..shape.iter().product()).map(|_| spread * f64::from(rng.number())).collect()
}

/// The rows along the last axis.
fn rows<'a>(shape: &[usize], values: &'a [f64]) -> impl Iterator<Item = &'a [f64]> {
    values.chunks(shape.last().copied().unwrap_or(1).max(1))
}

fn boxed<K: ops::Operation + 'static>(op: ops::Op<K>) -> Box<dyn AnyOp> {
    Box::new(op)
}

/// A shape, the types of input and output, and where they lie.
type Turn = (&'static [usize], DType, DType, Lies, Lies);

/// Each shape, with types and places that take turns.
fn turns(shapes: &[&'static [usize]]) -> Vec<Turn> {
    let lies = [Lies::Packed, Lies::Within, Lies::Transposed, Lies::TransposedWithin];
    let mut turns = Vec::new();
    for (at, &shape) in shapes.iter().enumerate() {
        for (of, dtype) in FLOATS.into_iter().enumerate() {
            let turn = at + of;
            turns.push((shape, dtype, FLOATS[turn % 3], lies[turn % 4], lies[turn / 2 % 4]));
        }
        turns.push((shape, DType::F32, DType::F32, Lies::Packed, Lies::Packed));
    }
    turns
}

/// The elements of a tensor as those of a larger shape, by numpy's rules, row-major.
fn broadcast(values: &[f64], from: &[usize], to: &[usize]) -> Vec<f64> {
    let place = |at: usize| {
        let (mut rest, mut place, mut step) = (at, 0, 1);
        for (axis, &size) in to.iter().enumerate().rev() {
            let index = rest % size;
            rest /= size;
            if let Some(own) = (axis + from.len()).checked_sub(to.len()) {
                place += if from[own] > 1 { index * step } else { 0 };
                step *= from[own];
            }
        }
        place
    };
    (0..to.iter().product()).map(|at| values[place(at)]).collect()
}

/// A position: the first one, and the shape of the tensor whose elements count up from it by three.
/// It is a number if there is no shape.
type At = (usize, Option<&'static [usize]>);

/// The tensor of a position, and the position for each entry of an operand of this shape.
fn placed((first, of): At, operand: &[usize]) -> (Option<Given>, Vec<usize>) {
    let lead = &operand[..operand.len() - 2];
    let own = of.unwrap_or_default();
    let all: Vec<_> = (0..own.iter().product()).map(|i| (first + 3 * i) as f64).collect();
    let entries = match all.len() {
        1 => vec![all[0]; lead.iter().product()],
        _ => broadcast(&all, &[own, &vec![1; lead.len() - own.len()]].concat(), lead),
    };
    let tensor = of.map(|of| Given::new(DType::U32, Lies::TransposedWithin, of, all));
    (tensor, entries.into_iter().map(|entry| entry as usize).collect())
}

/// The position for a call: the tensor, which is the last operand, or the number.
fn position((first, of): At, given: &[Tensor]) -> ops::Position {
    match given.last().filter(|_| of.is_some()) {
        Some(tensor) => tensor.into(),
        None => first.into(),
    }
}
