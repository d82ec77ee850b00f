//! Matrices of GPTQ and AWQ, as affine formats with f32 biases: w = scale · (code - zero), so the
//! bias is -scale · zero. Scales of 16 bits times zeros of 9 are exact in f32.

use crate::claims::Expected;
use crate::config::{self, Method};
use crate::gptq::Order;
use crate::raw::{Element, Raw};
use crate::stream::{CHUNK, Chunk, Sink};
use crate::{awq, gptq};
use half::{bf16, f16};
use std::ops::Range;
use tilewise_core::{DType, Error, QuantFormat, Result};

/// A matrix whose shapes and types have been checked.
#[derive(Clone, Debug)]
pub(crate) struct Import {
    pub(crate) method: Method,
    pub(crate) bits: u32,
    pub(crate) n: usize,
    pub(crate) k: usize,
    /// Elements that share a scale in the file; the last group may have fewer.
    pub(crate) group: usize,
    pub(crate) groups: usize,
    /// Added to each stored zero: 1 in the first version of GPTQ, else 0.
    pub(crate) short: u32,
    pub(crate) format: QuantFormat,
}

/// Codes in a word of AWQ, and thus rows.
pub(crate) const EIGHT: usize = 8;

/// The tensors of the file.
#[derive(Clone, Copy)]
pub(crate) struct Raws<'a> {
    pub(crate) qweight: &'a Raw,
    pub(crate) qzeros: &'a Raw,
    pub(crate) scales: &'a Raw,
    pub(crate) g_idx: Option<&'a Raw>,
}

/// The bytes of the tensors.
#[derive(Clone, Copy)]
pub(crate) struct Data<'a> {
    pub(crate) qweight: &'a [u8],
    pub(crate) qzeros: &'a [u8],
    pub(crate) scales: &'a [u8],
    pub(crate) scale_type: DType,
}

/// Finds out how the tensors are laid out: by their shapes, the file that says something of all
/// matrices, and the method and size of groups that the caller expects.
pub(crate) fn import(raws: Raws<'_>, said: &config::Import, expected: &Expected) -> Result<Import> {
    let file = &said.file;
    let shown = [Some(raws.qweight), Some(raws.qzeros), Some(raws.scales), raws.g_idx];
    let shown: Vec<String> = shown.into_iter().flatten().map(Raw::to_string).collect();
    let refuse = |why: String| Error::file(format!("{why}: {}", shown.join(", ")));
    let contradiction =
        |why: String| Error::file(format!("contradiction: {why}: {}", shown.join(", ")));
    let is_words = |raw: &Raw| matches!(raw.element, Element::Dense(DType::I32 | DType::U32));
    let is_scale = matches!(raws.scales.element, Element::Dense(dtype) if dtype.is_float());
    if !is_words(raws.qweight)
        || !is_words(raws.qzeros)
        || !is_scale
        || !raws.g_idx.is_none_or(is_words)
    {
        return Err(refuse(
            "qweight, qzeros and g_idx of I32 and scales of F16, BF16 or F32 are expected".into(),
        ));
    }
    let (&[rows, columns], &[zero_rows, zero_columns], &[groups, n]) =
        (&raws.qweight.shape[..], &raws.qzeros.shape[..], &raws.scales.shape[..])
    else {
        return Err(refuse("qweight, qzeros and scales of two dimensions are expected".into()));
    };
    if [rows, columns, zero_columns, groups, n].contains(&0) || zero_rows != groups {
        return Err(refuse(format!("{groups} groups of {n} columns and {zero_rows} of zeros")));
    }
    if let Some(other) = &said.other {
        return Err(refuse(format!("{file} says quant_method {other:?}; gptq and awq are read")));
    }
    // Codes of AWQ share words along N, those of GPTQ along K.
    let method = if columns == n { Method::Gptq } else { Method::Awq };
    if let Some(said) = said.method.filter(|&said| said != method) {
        return Err(contradiction(format!(
            "{file} says {said}, but the shapes are those of {method}"
        )));
    }
    if let Some((expected, _)) = expected.method().filter(|&(expected, _)| expected != method) {
        return Err(contradiction(format!(
            "the arguments say {expected}, but the shapes are those of {method}"
        )));
    }
    if method == Method::Awq && raws.g_idx.is_some() {
        return Err(refuse("g_idx belongs to GPTQ; the shapes are AWQ's".into()));
    }
    let (bits, k) = match method {
        Method::Gptq => gptq::shape(rows, n, zero_columns).map_err(refuse)?,
        Method::Awq => awq::shape(rows, columns, n, zero_columns).map_err(refuse)?,
    };
    if let Some(said) = said.bits.filter(|&said| said != u64::from(bits)) {
        return Err(contradiction(format!("{file} says {said} bits, but the shapes have {bits}")));
    }
    // A group larger than K is all of K.
    let within = |group: u64| usize::try_from(group).map_or(k, |group| group.min(k));
    let (group, by) = match (said.group.map(within), expected.group.map(u64::from).map(within)) {
        (Some(said), Some(expected)) if said != expected => {
            let text =
                format!("the arguments say groups of {expected}, but {file} says groups of {said}");
            return Err(contradiction(text));
        }
        (Some(said), _) => (said, format!("{file} says")),
        (None, Some(expected)) => (expected, "the arguments say".to_owned()),
        (None, None) if k.is_multiple_of(groups) => (k / groups, "the shapes say".to_owned()),
        (None, None) => {
            return Err(refuse(format!(
                "K = {k} is no multiple of the {groups} groups: name the group's size"
            )));
        }
    };
    let counted = if group == 0 { 0 } else { k.div_ceil(group) };
    if counted != groups {
        let text = format!("{by} groups of {group}: K = {k} has {counted} of them");
        return Err(contradiction(format!("{text}, but the file has {groups}")));
    }
    if raws.g_idx.is_some_and(|raw| raw.shape != [k]) {
        return Err(refuse(format!("g_idx of [{k}] is expected")));
    }
    // A group becomes as many blocks as fill it, with the same scale.
    let fits = |block: &u32| {
        k > 0 && group.is_multiple_of(*block as usize) && k.is_multiple_of(*block as usize)
    };
    let format = [128, 64, 32]
        .into_iter()
        .filter(fits)
        .find_map(|block| QuantFormat::affine(bits, block, DType::F32).ok());
    let Some(format) = format else {
        return Err(refuse(format!(
            "groups of {group} and K = {k} are not whole blocks of 32, 64 or 128"
        )));
    };
    let short = u32::from(method == Method::Gptq && !second_version(said, expected)?);
    Ok(Import { method, bits, n, k, group, groups, short, format })
}

/// Whether zeros are stored as GPTQ's second version stores them. The shapes are the same.
fn second_version(said: &config::Import, expected: &Expected) -> Result<bool> {
    let name = |second| if second { "gptq_v2" } else { "gptq" };
    match (said.method.map(|_| said.second_version), expected.method()) {
        (Some(said_so), Some((_, second))) if said_so != second => Err(Error::file(format!(
            "contradiction: the arguments say {}, but {} says {}",
            name(second),
            said.file,
            name(said_so)
        ))),
        (Some(second), _) | (None, Some((_, second))) => Ok(second),
        (None, None) => Err(Error::Misuse(
            "it may be GPTQ's first version, whose zeros are stored less 1, or the second, and no \
             config.json tells: name the mode, gptq or gptq_v2"
                .into(),
        )),
    }
}

impl Import {
    /// Gives the planes of some rows, a few of them at a time: codes, scales and biases. AWQ takes
    /// eights of rows ([`EIGHT`]).
    pub(crate) fn stream(
        &self,
        data: Data<'_>,
        order: Option<&Order>,
        wanted: Range<usize>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        let block = self.format.block() as usize;
        let (codes_row, numbers_row) = (self.k / 8 * self.bits as usize, self.k / block * 4);
        // Rows of W run across those of the file: so few at a time stay in the processor's caches.
        let rows = (CHUNK / 4 / codes_row).max(1).next_multiple_of(EIGHT).min(wanted.len());
        let mut codes = room(rows, codes_row)?;
        let (mut scales, mut biases) = (room(rows, numbers_row)?, room(rows, numbers_row)?);
        for first in wanted.clone().step_by(rows.max(1)) {
            let range = first..(first + rows).min(wanted.end);
            let codes = &mut codes[..range.len() * codes_row];
            match (self.method, order) {
                (Method::Gptq, None) => gptq::transpose(data.qweight, self.n, range.clone(), codes),
                (Method::Gptq, Some(order)) => {
                    gptq::gather(
                        data.qweight,
                        self.n,
                        self.bits,
                        &order.columns,
                        range.clone(),
                        codes,
                    );
                }
                (Method::Awq, _) => awq::transpose(data.qweight, self.n, range.clone(), codes),
            }
            let numbers = range.len() * numbers_row;
            self.numbers(data, range, &mut scales[..numbers], &mut biases[..numbers]);
            let planes = [
                (codes_row, &*codes),
                (numbers_row, &scales[..numbers]),
                (numbers_row, &biases[..numbers]),
            ];
            for (plane, (row, bytes)) in planes.into_iter().enumerate() {
                let offset = (first - wanted.start) as u64 * row as u64;
                sink(Chunk { plane, offset, bytes })?;
            }
        }
        Ok(())
    }

    /// Scales and biases of some rows.
    fn numbers(&self, data: Data<'_>, rows: Range<usize>, scales: &mut [u8], biases: &mut [u8]) {
        let block = self.format.block() as usize;
        let blocks = self.k / block;
        for j in 0..blocks {
            let group = j * block / self.group;
            for (i, n) in rows.clone().enumerate() {
                let at = group * self.n + n;
                let scale = number(data.scales, at, data.scale_type);
                let zero = match self.method {
                    Method::Gptq => gptq::zero(data.qzeros, at, self.bits) + self.short,
                    Method::Awq => awq::zero(data.qzeros, at),
                };
                let to = (i * blocks + j) * 4;
                scales[to..to + 4].copy_from_slice(&scale.to_le_bytes());
                biases[to..to + 4].copy_from_slice(&(-(scale * zero as f32)).to_le_bytes());
            }
        }
    }
}

/// Zeros for some rows, if there is memory.
fn room(rows: usize, row: usize) -> Result<Vec<u8>> {
    let mut room = Vec::new();
    let bytes = rows.saturating_mul(row);
    room.try_reserve_exact(bytes)
        .map_err(|why| Error::OutOfMemory(format!("{bytes} bytes: {why}")))?;
    room.resize(bytes, 0);
    Ok(room)
}

/// A word of a tensor.
pub(crate) fn word(bytes: &[u8], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&bytes[4 * at..4 * at + 4]);
    u32::from_le_bytes(word)
}

/// A number of a tensor.
fn number(bytes: &[u8], at: usize, dtype: DType) -> f32 {
    let half = || [bytes[2 * at], bytes[2 * at + 1]];
    match dtype {
        DType::F16 => f16::from_le_bytes(half()).to_f32(),
        DType::BF16 => bf16::from_le_bytes(half()).to_f32(),
        _ => f32::from_bits(word(bytes, at)),
    }
}
