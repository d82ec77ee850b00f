//! compressed-tensors, which llm-compressor and vLLM write: `weight_packed` and `weight_scale`.
//!
//! - `pack-quantized`: codes of 1 to 8 bits in words along K, I32 `[N, K · bits / 32]`. Before
//!   version 0.20, no code lay in two words: those of 3 bits were 10 to a word. Asymmetric weights
//!   have `weight_zero_point`: codes in words along N, `[N · bits / 32, G]`. All codes are
//!   signed, and stored plus 2^(bits - 1). `weight_shape` is `[N, K]`. With act-order,
//!   `weight_g_idx` `[K]` is the group of each column.
//! - `nvfp4-pack-quantized`: nvfp4, whose factor is the reciprocal of `weight_global_scale`.
//! - `mxfp4-pack-quantized`: mxfp4.

use super::affine::{Affine, Numbers};
use super::gptq::order;
use super::grid::Grid;
use super::rows::{code_from, put};
use super::{Asked, Decoder, Layout, Part, Parts, Read, planes};
use crate::raw::Element;
use crate::stream::Sink;
use std::ops::Range;
use tilewise_core::{DType, Error, QuantFormat, Result};

pub(super) const LAYOUT: Layout = Layout {
    name: "compressed-tensors",
    needs: &["weight_packed", "weight_scale"],
    may: &[&["weight_zero_point"], &["weight_g_idx"], &["weight_global_scale"], &["weight_shape"]],
    notes: &[],
    modes: &[],
    bits: &[],
    is: |parts| parts.get("weight_packed").is_some_and(|codes| codes.shape().len() > 1),
    read,
};

fn read(asked: &Asked<'_>) -> Result<Read> {
    let parts = &asked.parts;
    asked.is_read()?;
    let (codes, scales) = (parts.need("weight_packed")?, parts.need("weight_scale")?);
    match (codes.kind(), scales.kind()) {
        ("I32", _) => packed(asked),
        ("U8", "F8_E4M3") => nvfp4(asked),
        ("U8", "U8" | "F8_E8M0") => planes::read(asked, QuantFormat::MXFP4, None),
        _ => Err(parts.unread("codes and scales of compressed-tensors in types that are not read")),
    }
}

fn nvfp4(asked: &Asked<'_>) -> Result<Read> {
    let factor = 1.0 / asked.parts.need("weight_global_scale")?.factor()?;
    if !factor.is_finite() {
        return Err(asked.parts.refuse("weight_global_scale has no reciprocal"));
    }
    planes::read(asked, QuantFormat::NVFP4, Some(factor))
}

/// How codes lie in words.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Words {
    pub(super) bits: u32,
    /// Whether bits of each word are left over, so that no code lies in two words.
    pub(super) is_whole: bool,
}

impl Words {
    /// The ways in which these tensors may hold codes. Bits that are left over are 0.
    fn of(bits: u32, codes: &Part<'_>) -> impl Iterator<Item = Words> + use<> {
        /// Words that are looked at.
        const LOOK: usize = 1024;
        let used = 32 / bits * bits;
        let mut words = 0..(codes.bytes.len() / 4).min(LOOK);
        let is_whole = used < 32 && words.all(|at| codes.word(at) >> used == 0);
        let ways = [Some(false), is_whole.then_some(true)].into_iter().flatten();
        ways.map(move |is_whole| Words { bits, is_whole })
    }

    /// Words that hold some codes.
    fn count(self, codes: usize) -> usize {
        match self.is_whole {
            true => codes.div_ceil(32 / self.bits as usize),
            false => (codes as u128 * u128::from(self.bits)).div_ceil(32) as usize,
        }
    }

    fn code(self, byte: impl Fn(usize) -> u8, at: usize) -> u32 {
        let (bits, per) = (self.bits as usize, 32 / self.bits as usize);
        let first = if self.is_whole { at / per * 32 + at % per * bits } else { at * bits };
        code_from(byte, first, self.bits)
    }
}

/// Codes in words along K.
#[derive(Debug)]
struct Packed {
    affine: Affine,
    words: Words,
    grid: Grid,
    zeros: Option<Zeros>,
    /// Bytes of a row of codes.
    row: usize,
}

/// The error of bits that nothing tells.
fn open(what: &str) -> Error {
    Error::Misuse(format!("neither {what} nor a config.json tells the bits of codes: name them"))
}

fn packed(asked: &Asked<'_>) -> Result<Read> {
    let parts = &asked.parts;
    let codes = parts.need("weight_packed")?;
    let Some((&words, rows)) = codes.shape().split_last() else {
        return Err(parts.refuse("codes of two dimensions are expected"));
    };
    let shape = match parts.get("weight_shape") {
        Some(part) => {
            let shape = part.integers().ok_or_else(|| {
                parts.refuse("weight_shape of I64 with the extents of W is expected")
            })?;
            if shape.split_last().is_none_or(|(_, own)| own != rows) {
                return Err(parts.refuse(format!("weight_shape says {shape:?}")));
            }
            shape
        }
        None => {
            let [bits] = asked.bits()[..] else { return Err(open("weight_shape")) };
            if Words::of(bits, &codes).count() > 1 {
                return Err(parts.unread("only weight_shape could tell how codes lie in words"));
            }
            [rows, &[words.saturating_mul(32) / bits as usize]].concat()
        }
    };
    let k = shape.last().copied().unwrap_or(0);
    let of = |bits: u32| Words::of(bits, &codes).filter(|way| way.count(k) == words);
    let mut ways: Vec<Words> = asked.bits().into_iter().flat_map(of).collect();
    let is_said = !ways.is_empty();
    if !is_said {
        ways.extend((1..=8).flat_map(of));
    }
    ways.dedup();
    let [way] = ways[..] else {
        let text = format!("K = {k} in rows of {words} words");
        return Err(match ways.is_empty() {
            true => parts.refuse(format!("{text} is no number of bits")),
            false if is_said => parts.unread(format!("{text} may be packed in several ways")),
            false => open("K"),
        });
    };
    let bits = way.bits;
    let (grid, scales) = self::scales(asked, &shape)?;
    if let Some(g_idx) = parts.get("weight_g_idx")
        && (!g_idx.is_words() || g_idx.shape() != [k])
    {
        return Err(parts.refuse(format!("weight_g_idx of I32 [{k}] is expected")));
    }
    let zeros = Zeros::of(asked, &shape, &grid, way)?;
    let numbers = Numbers { scales, has_zeros: zeros.is_some() };
    asked.agrees(bits, grid.columns, k, zeros.is_some())?;
    let affine = Affine::new(asked, bits, k, grid.columns, numbers)?;
    let (format, row) = (affine.format, words.saturating_mul(4));
    let decoder = Box::new(Packed { affine, words: way, grid, zeros, row });
    Ok(Read { format, shape, factor: None, decoder })
}

impl Decoder for Packed {
    fn order(&self, parts: &Parts<'_>) -> Result<Option<Vec<u32>>> {
        let Some(g_idx) = parts.get("weight_g_idx") else { return Ok(None) };
        // The package fills it with -1 before it has an order.
        if g_idx.bytes.iter().all(|&byte| byte == 0xff) {
            return Ok(None);
        }
        let Affine { k, group, .. } = self.affine;
        order(g_idx.bytes, k, group, k.div_ceil(group)).map_err(|why| g_idx.bad(0, why))
    }

    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let codes = parts.need("weight_packed")?.bytes;
        let order = self.order(parts)?;
        let bits = self.affine.bits;
        let own = |rows: Range<usize>, out: &mut [u8]| {
            let length = out.len() / rows.len();
            for (row, out) in rows.zip(out.chunks_exact_mut(length)) {
                let from = &codes[row * self.row..][..self.row];
                if order.is_none() && !self.words.is_whole {
                    out.copy_from_slice(&from[..length]);
                    continue;
                }
                out.fill(0);
                for to in 0..self.affine.k {
                    let column = order.as_ref().map_or(to, |order| order[to] as usize);
                    put(out, to, bits, self.words.code(|byte| from[byte], column));
                }
            }
        };
        let number = number(parts, &self.affine, &self.grid, self.zeros.as_ref())?;
        self.affine.stream(rows, sink, own, number)
    }
}

/// The grid of `weight_scale`, and its type.
pub(super) fn scales(asked: &Asked<'_>, shape: &[usize]) -> Result<(Grid, DType)> {
    let scales = asked.parts.need("weight_scale")?;
    let grid = asked.grid(shape, &scales)?;
    match &scales.raw.element {
        Element::Dense(dtype) if dtype.is_float() => Ok((grid, *dtype)),
        _ => Err(asked.parts.unread(format!("scales in {} are not read", scales.kind()))),
    }
}

/// How zeros are stored.
#[derive(Debug)]
pub(super) enum Zeros {
    /// A byte for each scale.
    Bytes,
    /// In words along N: rows and words in a column of a matrix, and groups.
    Words { n: usize, down: usize, across: usize, words: Words },
}

impl Zeros {
    /// The zeros of a matrix, if it has any.
    pub(super) fn of(
        asked: &Asked<'_>,
        shape: &[usize],
        grid: &Grid,
        words: Words,
    ) -> Result<Option<Self>> {
        let (parts, [stack @ .., n, k]) = (&asked.parts, shape) else { return Ok(None) };
        let Some(zeros) = parts.get("weight_zero_point") else { return Ok(None) };
        let (bits, down, across) = (words.bits, words.count(*n), k.div_ceil(grid.columns));
        if zeros.kind() == "I8" && zeros.shape() == parts.need("weight_scale")?.shape() {
            let most = 1 << (bits - 1);
            let is_code = |byte: &u8| (-most..most).contains(&i32::from(*byte as i8));
            if let Some(at) = zeros.bytes.iter().position(|byte| !is_code(byte)) {
                let zero = zeros.bytes[at] as i8;
                return Err(parts.refuse(format!("zero {at} is {zero}, no code of {bits} bits")));
            }
            return Ok(Some(Zeros::Bytes));
        }
        if zeros.kind() == "I32"
            && grid.is_by_row()
            && zeros.shape() == [stack, &[down, across]].concat()
        {
            return Ok(Some(Zeros::Words { n: *n, down, across, words }));
        }
        Err(parts.refuse(format!(
            "zeros of I8 like weight_scale, or of I32 {:?}, are expected",
            [stack, &[down, across]].concat()
        )))
    }
}

/// The scale and the zero, plus 2^(bits - 1), of a row and group.
pub(super) fn number<'a>(
    parts: &Parts<'a>,
    affine: &'a Affine,
    grid: &'a Grid,
    zeros: Option<&'a Zeros>,
) -> Result<impl Fn(usize, usize) -> (f32, i32) + 'a> {
    let (scales, points) = (parts.need("weight_scale")?, parts.get("weight_zero_point"));
    let middle = 1 << (affine.bits - 1);
    Ok(move |row: usize, group: usize| {
        let at = grid.at(row, group * affine.group);
        let zero = match (zeros, points) {
            (Some(Zeros::Bytes), Some(points)) => middle + i32::from(points.bytes[at] as i8),
            (Some(Zeros::Words { n, down, across, words }), Some(points)) => {
                let number = |word| row / n * down * across + word * across + group;
                let byte = |byte: usize| points.bytes[4 * number(byte / 4) + byte % 4];
                words.code(byte, row % n) as i32
            }
            _ => middle,
        };
        (scales.number(at), zero)
    })
}
