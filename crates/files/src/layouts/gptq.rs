//! GPTQ: codes of 2, 3, 4 or 8 bits in words along K, `qweight` `[K · bits / 32, N]`; `scales` `[G,
//! N]`; zeros in words along N, `qzeros` `[G, N · bits / 32]`; and, for columns in any order,
//! `g_idx` `[K]`, the group of each. Codes of 3 bits may lie in two words.
//!
//! The first version stores a zero less 1. Adding the 1 gives up to 16 for 4 bits, as in AutoGPTQ.

use super::affine::Affine;
use super::packed::{NEEDS, Shapes, affine, number, said};
use super::rows::{code, word};
use super::{Asked, Decoder, Layout, Part, Parts, Read, awq_gemv};
use crate::config;
use crate::stream::Sink;
use std::ops::Range;
use tilewise_core::{Error, Result};

pub(super) const LAYOUT: Layout = Layout {
    name: "gptq",
    needs: NEEDS,
    may: &[&["g_idx"]],
    notes: &[],
    modes: &["gptq", "gptq_v2"],
    bits: &[2, 3, 4, 8],
    // Codes of AWQ share words along N, those of GPTQ along K.
    is: |parts| {
        let columns = |leaf| parts.get(leaf).map(|part| part.shape().get(1).copied());
        let is_gptq = parts.get("g_idx").is_some() || columns("qweight") == columns("scales");
        is_gptq && ![awq_gemv::GEMV, awq_gemv::FAST].iter().any(|other| (other.is)(parts))
    },
    read,
};

#[derive(Debug)]
struct Gptq {
    affine: Affine,
    n: usize,
    /// Added to each stored zero: 1 in the first version, else 0.
    short: u32,
    /// Every stored zero, and why, if that is said.
    same: Option<(u32, String)>,
}

fn read(asked: &Asked<'_>) -> Result<Read> {
    let parts = &asked.parts;
    let shapes = Shapes::of(parts)?;
    if shapes.columns != shapes.n {
        return Err(parts.refuse("g_idx belongs to GPTQ; the shapes are AWQ's"));
    }
    let said = said(asked, &LAYOUT)?;
    let (bits, k) = shape(parts, &shapes)?;
    if parts.get("g_idx").is_some_and(|part| part.shape() != [k]) {
        return Err(parts.refuse(format!("g_idx of [{k}] is expected")));
    }
    let affine = affine(asked, said, &shapes, (bits, k))?;
    if said.is_some_and(|said| said.is_ordered) && shapes.groups > 1 {
        let file = asked.said.map_or("", |said| &said.file);
        let missing = || parts.refuse(format!("{file} says desc_act, but g_idx is missing"));
        parts.get("g_idx").ok_or_else(missing)?;
    }
    let (is_second, same) = second_version(asked, said, bits)?;
    let (format, n) = (affine.format, shapes.n);
    let decoder = Box::new(Gptq { affine, n, short: u32::from(!is_second), same });
    // The first ones lie together; all are compared when they are read.
    decoder.compare(parts, 0..n.min(64), 1)?;
    Ok(Read { format, shape: vec![n, k], factor: None, decoder })
}

/// Bits of a code, and K.
fn shape(parts: &Parts<'_>, shapes: &Shapes) -> Result<(u32, usize)> {
    let Shapes { rows, zero_columns, n, .. } = *shapes;
    let bits = zero_columns as u128 * 32 / n as u128;
    let is_whole = n as u128 * bits == zero_columns as u128 * 32;
    if !is_whole || !matches!(bits, 2 | 3 | 4 | 8) {
        let text = format!("N = {n} with {zero_columns} words of zeros is no GPTQ");
        return Err(parts.refuse(format!("{text} of 2, 3, 4 or 8 bits")));
    }
    let bits = bits as u32;
    if bits == 3 && !rows.is_multiple_of(3) {
        return Err(parts.refuse(format!("{rows} words of codes of 3 bits; 3 words hold 32")));
    }
    let most = u32::MAX;
    let k = columns(rows, bits)
        .ok_or_else(|| parts.unread(format!("K = {rows} · 32 / {bits}; at most {most} is read")))?;
    Ok((bits, k))
}

/// K, if `g_idx` and the order of columns, which have numbers of 32 bits, can name every column.
fn columns(rows: usize, bits: u32) -> Option<usize> {
    let k = rows as u128 * 32 / u128::from(bits);
    u32::try_from(k).ok().map(|k| k as usize)
}

/// Whether zeros are stored as the second version stores them, whose shapes are those of the first;
/// and the stored zero, if all are said to be the same.
fn second_version(
    asked: &Asked<'_>,
    said: Option<&config::Packed>,
    bits: u32,
) -> Result<(bool, Option<(u32, String)>)> {
    let mode = asked.expected.mode.as_deref().unwrap_or_default().to_ascii_lowercase();
    let Some(said) = said.filter(|_| !mode.starts_with("gptq")) else {
        return match &*mode {
            "gptq" => Ok((false, None)),
            "gptq_v2" => Ok((true, None)),
            _ => Err(Error::Misuse(
                "it may be GPTQ's first version, whose zeros are stored less 1, or the second, \
                 and no config.json tells: name the mode, gptq or gptq_v2"
                    .into(),
            )),
        };
    };
    let same = said.is_symmetric.then(|| {
        let middle = 1 << (bits - 1);
        let (stored, says) =
            if said.second_version { (middle, "gptq_v2") } else { (middle - 1, "gptq") };
        let file = asked.said.map_or("", |said| &said.file);
        let text = format!(
            "{file} says sym and {says}, so zeros are {middle} and stored as {stored}: name the \
             mode, gptq (stored less 1) or gptq_v2 (stored as they are), or change \
             checkpoint_format in {file}"
        );
        (stored, text)
    });
    Ok((said.second_version, same))
}

impl Gptq {
    /// Fails if zeros of these rows and the first groups do not fit the config.
    fn compare(&self, parts: &Parts<'_>, rows: Range<usize>, groups: usize) -> Result<()> {
        let (Some((stored, why)), zeros) = (&self.same, parts.need("qzeros")?) else {
            return Ok(());
        };
        let mut all = (0..groups).flat_map(|group| rows.clone().map(move |row| (row, group)));
        let of = |(row, group)| zero(&zeros, group * self.n + row, self.affine.bits);
        match all.find(|at| of(*at) != *stored) {
            None => Ok(()),
            Some((row, group)) => {
                let found = of((row, group));
                let text = format!("that of row {row} and group {group} is stored as {found}");
                Err(parts.contradiction(format!("{text}, but {why}")))
            }
        }
    }

    fn order(&self, g_idx: Part<'_>) -> Result<Option<Vec<u32>>> {
        let Affine { k, group, .. } = self.affine;
        order(g_idx.bytes, k, group, k.div_ceil(group)).map_err(|why| g_idx.bad(0, why))
    }
}

impl Decoder for Gptq {
    fn order(&self, parts: &Parts<'_>) -> Result<Option<Vec<u32>>> {
        parts.get("g_idx").map_or(Ok(None), |g_idx| self.order(g_idx))
    }

    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let (codes, zeros) = (parts.need("qweight")?.bytes, parts.need("qzeros")?);
        let groups = self.affine.k.div_ceil(self.affine.group);
        self.compare(parts, rows.clone(), groups)?;
        let (order, n, bits) = (Decoder::order(self, parts)?, self.n, self.affine.bits);
        let own = |rows: Range<usize>, out: &mut [u8]| match &order {
            None => transpose(codes, n, rows, out),
            Some(order) => gather(codes, n, bits, order, rows, out),
        };
        let number = number(parts, n, |at| zero(&zeros, at, bits) + self.short)?;
        self.affine.stream(rows, sink, own, number)
    }
}

/// The stored zero of a group and column.
fn zero(qzeros: &Part<'_>, at: usize, bits: u32) -> u32 {
    // Rows of N are whole words.
    code(|byte| qzeros.bytes[byte], at, bits)
}

/// Sorts the columns by their groups. `None` if they are sorted already.
pub(super) fn order(
    g_idx: &[u8],
    k: usize,
    group: usize,
    groups: usize,
) -> Result<Option<Vec<u32>>, String> {
    if (0..k).all(|column| word(g_idx, column) as usize == column / group) {
        return Ok(None);
    }
    if u32::try_from(k).is_err() {
        return Err(format!("K = {k}; an order has at most {} columns", u32::MAX));
    }
    let mut next: Vec<usize> = (0..groups).map(|i| i * group).collect();
    let end = |i: usize| ((i + 1) * group).min(k);
    let mut columns = vec![0; k];
    for column in 0..k {
        let own = word(g_idx, column) as usize;
        if own >= groups {
            return Err(format!("g_idx of column {column} is {}, of {groups} groups", own as i32));
        }
        if next[own] == end(own) {
            let size = end(own) - own * group;
            return Err(format!(
                "g_idx: group {own} has more than its {size} columns, at column {column}"
            ));
        }
        columns[next[own]] = column as u32;
        next[own] += 1;
    }
    Ok(Some(columns))
}

/// The codes of some columns of the file as rows: words along K stay words along K.
fn transpose(qweight: &[u8], n: usize, rows: Range<usize>, out: &mut [u8]) {
    const TILE: usize = 16;
    let words = out.len() / 4 / rows.len();
    for first in (0..words).step_by(TILE) {
        let tile = first..(first + TILE).min(words);
        for (i, row) in rows.clone().enumerate() {
            for w in tile.clone() {
                let to = 4 * (i * words + w);
                let from = 4 * (w * n + row);
                out[to..to + 4].copy_from_slice(&qweight[from..from + 4]);
            }
        }
    }
}

/// Like [`transpose`], with the columns of W in this `order`.
fn gather(qweight: &[u8], n: usize, bits: u32, order: &[u32], rows: Range<usize>, out: &mut [u8]) {
    let (bits, words) = (bits as usize, out.len() / 4 / rows.len());
    // Codes that are not stored yet, and their bits.
    let (mut made, mut held) = (vec![0u64; rows.len()], 0);
    let mut stored = 0;
    for &column in order {
        let (line, shift) = (column as usize * bits / 32, column as usize * bits % 32);
        let is_cut = shift + bits > 32;
        for (made, row) in made.iter_mut().zip(rows.clone()) {
            let high = if is_cut { word(qweight, (line + 1) * n + row) } else { 0 };
            let both = u64::from(high) << 32 | u64::from(word(qweight, line * n + row));
            *made |= (both >> shift & ((1 << bits) - 1)) << held;
        }
        held += bits;
        if held >= 32 {
            for (i, made) in made.iter_mut().enumerate() {
                let to = 4 * (i * words + stored);
                out[to..to + 4].copy_from_slice(&(*made as u32).to_le_bytes());
                *made >>= 32;
            }
            (held, stored) = (held - 32, stored + 1);
        }
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn columns_have_numbers_of_32_bits() {
        let most = (1 << 29) - 1;
        assert_eq!(super::columns(most, 4), Some(8 * most));
        assert_eq!(super::columns(most + 1, 4), None);
        assert_eq!(super::columns(3 * (1 << 27), 3), None);
    }
}
