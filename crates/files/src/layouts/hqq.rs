//! HQQ: w = scale · (code - zero), where zeros may lie between codes. `W_q` has the codes as a
//! matrix with a row for each group, `[N · K / group_size, group_size]`. An element of it holds
//! codes of several rows: the first part of the rows lies in the highest bits, and so on. `scale`
//! and `zero` have a number for each group. The shape of W, the size of groups, their axis and the
//! way codes are packed are tensors, too.

use super::affine::{biased, formats};
use super::rows::put;
use super::{Asked, Decoder, Layout, Part, Parts, Read};
use crate::raw::elements;
use crate::stream::Sink;
use std::ops::Range;
use tilewise_core::{QuantFormat, Result};

pub(super) const LAYOUT: Layout = Layout {
    name: "hqq",
    needs: &["W_q", "scale", "zero"],
    may: &[&["shape"], &["group_size"], &["axis"], &["packing"]],
    notes: &[
        "nbits",
        "view_as_float",
        "unpack_view_dtype",
        "compute_dtype",
        "channel_wise",
        "optimize",
        "round_zero",
        "quant_scale",
        "quant_zero",
        "offload_meta",
        "encoded_state_dict",
        "stores_quant_config",
    ],
    modes: &[],
    bits: &[],
    is: |_| true,
    read,
};

/// How codes are packed: its name, bits of a code, bytes of an element, and codes in it.
const PACKINGS: [(&str, u32, usize, usize); 5] = [
    ("8bit_u8", 8, 1, 1),
    ("4bit_u8", 4, 1, 2),
    ("3bit_32", 3, 4, 10),
    ("2bit_u8", 2, 1, 4),
    ("1bit_u8", 1, 1, 8),
];

#[derive(Debug)]
struct Hqq {
    format: QuantFormat,
    k: usize,
    group: usize,
    /// Bits of a code in the file.
    bits: u32,
    /// Bytes of an element, and codes in it.
    element: (usize, usize),
    /// Rows of `W_q`.
    rows: usize,
}

fn read(asked: &Asked<'_>) -> Result<Read> {
    let parts = &asked.parts;
    let shape = parts.need("shape")?.integers().unwrap_or_default();
    let &[n, k] = &shape[..] else {
        return Err(parts.refuse(format!("shape is {shape:?}; [N, K] in I64 is expected")));
    };
    let axis = integer(parts, "axis")?;
    if axis != 1 {
        let text = format!("its axis is {axis}: groups run along N; only axis 1 is read");
        return Err(parts.unread(text));
    }
    let packing = parts.need("packing")?.bytes;
    let own = PACKINGS.into_iter().find(|(name, ..)| name.as_bytes() == packing);
    let Some((_, bits, bytes, codes)) = own else {
        let packing = String::from_utf8_lossy(&packing[..packing.len().min(32)]);
        let names = PACKINGS.map(|(name, ..)| name).join(", ");
        return Err(parts.unread(format!("its packing is {packing:?}; {names} are read")));
    };
    let group = integer(parts, "group_size")?;
    let group = usize::try_from(group).ok().filter(|group| *group > 0).ok_or_else(|| {
        parts.refuse(format!("its group_size is {group}; a number from 1 on is expected"))
    })?;
    let count = elements(&shape).filter(|count| count.is_multiple_of(group)).ok_or_else(|| {
        parts.refuse(format!("the weights of {shape:?} are no whole groups of {group}"))
    })?;
    if !group.is_multiple_of(k.max(1)) && !k.is_multiple_of(group) {
        return Err(parts.unread(format!("groups of {group} end within rows of {k}")));
    }
    let groups = count / group;
    let rows = groups.div_ceil(codes);
    let held = parts.need("W_q")?.bytes.len();
    // Codes of 3 bits are filled up with rows.
    let is_filled = groups.is_multiple_of(codes) || bits == 3;
    if !is_filled || rows.checked_mul(group).and_then(|all| all.checked_mul(bytes)) != Some(held) {
        let text = format!("{held} bytes for {groups} groups of {group} codes of {bits} bits");
        return Err(parts.refuse(format!("W_q has {text}")));
    }
    for leaf in ["scale", "zero"] {
        let part = parts.need(leaf)?;
        if !part.is_float() || elements(part.shape()) != Some(groups) {
            return Err(parts.refuse(format!("{leaf} of {groups} floats is expected")));
        }
    }
    // There are no codes of 1 bit.
    let formats = formats(bits.max(2)).collect::<Vec<_>>();
    let format = asked.format(bits, &formats, k, group)?;
    let hqq = Hqq { format, k, group, bits, element: (bytes, codes), rows };
    Ok(Read { format, shape: vec![n, k], factor: None, decoder: Box::new(hqq) })
}

/// The integer that a tensor is.
fn integer(parts: &Parts<'_>, leaf: &str) -> Result<i64> {
    let part = parts.need(leaf)?;
    let number = match (part.kind(), part.bytes) {
        ("I32", &[a, b, c, d]) => Some(i64::from(i32::from_le_bytes([a, b, c, d]))),
        ("I64", bytes) => bytes.try_into().ok().map(i64::from_le_bytes),
        _ => None,
    };
    number.ok_or_else(|| parts.refuse(format!("{leaf} of one I32 is expected")))
}

impl Hqq {
    /// The codes of a row. `out` has zeros.
    fn codes(&self, packed: &[u8], row: usize, out: &mut [u8]) {
        let Hqq { k, group, bits, element: (bytes, codes), .. } = *self;
        let mut column = 0;
        while column < k {
            let (own, first) = ((row * k + column) / group, (row * k + column) % group);
            let (line, shift) = (own % self.rows, (codes - 1 - own / self.rows) as u32 * bits);
            let count = (group - first).min(k - column);
            let from = &packed[(line * group + first) * bytes..][..count * bytes];
            for (i, element) in from.chunks_exact(bytes).enumerate() {
                let element =
                    element.iter().rev().fold(0u32, |all, &byte| all << 8 | u32::from(byte));
                put(out, column + i, bits.max(2), element >> shift & ((1 << bits) - 1));
            }
            column += count;
        }
    }
}

impl Decoder for Hqq {
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()> {
        let [packed, scales, zeros] =
            [parts.need("W_q")?, parts.need("scale")?, parts.need("zero")?];
        let codes = |rows: Range<usize>, out: &mut [u8]| {
            out.fill(0);
            let length = out.len() / rows.len();
            for (row, out) in rows.zip(out.chunks_exact_mut(length)) {
                self.codes(packed.bytes, row, out);
            }
        };
        let number =
            |part: &Part<'_>, row, column| part.number((row * self.k + column) / self.group);
        biased(self.format, self.k, rows, sink, codes, |row, column| {
            let scale = number(&scales, row, column);
            (scale, -(scale * number(&zeros, row, column)))
        })
    }
}
