//! GGUF, versions 2 and 3: metadata, then a table of tensors, then their bytes.
//!
//! Among the crates that read GGUF, none is both light and safe with bad files: ggus stops the
//! process at types that it does not know, gguf-rs allocates what a length says, gguf-rs-lib copies
//! all tensors.

mod cursor;
mod grids;
mod recode;
mod types;
mod value;

pub(crate) use recode::Recoding;
pub(crate) use types::{is_sized, read as read_types};
pub use value::{Value, ValueArray};

use crate::error::bad;
use crate::raw::{Raw, elements};
use crate::signature::{self, GGUF, Kind as FileKind};
use cursor::Cursor;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use tilewise_core::Result;
use types::Type;
use value::Kind;

/// Tensors and entries of metadata, each. Real files have thousands.
const MOST: u64 = 1 << 20;
/// Dimensions of a tensor, in ggml.
const MOST_DIMENSIONS: u32 = 4;
/// Bytes of a key, in the specification. Names of tensors are shorter.
const MOST_NAME: u64 = 65_535;
/// The multiple at which tensors begin, if the metadata says nothing.
const ALIGNMENT: u64 = 32;

/// The header of a file.
#[derive(Debug)]
pub(crate) struct Gguf {
    pub(crate) version: u32,
    entries: Vec<(String, Place)>,
    /// In the file's order.
    pub(crate) tensors: Vec<Raw>,
}

/// Where a value of the metadata lies.
#[derive(Clone, Copy, Debug)]
struct Place {
    kind: Kind,
    at: usize,
}

/// A row of the table of tensors.
struct Row {
    name: String,
    shape: Vec<usize>,
    kind: Type,
    offset: u64,
    /// Where the row begins.
    at: usize,
}

impl Gguf {
    /// Reads and checks all but the tensors' bytes.
    pub(crate) fn read(file: usize, name: &str, bytes: &[u8]) -> Result<Gguf> {
        Self::read_bytes(file, bytes)
            .map_err(|why| signature::or_foreign(name, bytes, FileKind::Gguf, bad(name, why)))
    }

    fn read_bytes(file: usize, bytes: &[u8]) -> Result<Gguf, String> {
        let mut cursor = Cursor::new(bytes, 0);
        if cursor.take(4)? != GGUF {
            return Err("no GGUF file: it does not begin with \"GGUF\"".into());
        }
        let version = cursor.u32()?;
        match version {
            2 | 3 => {}
            _ if matches!(version.swap_bytes(), 1..=3) => {
                return Err("big-endian; only little-endian is read: gguf-convert-endian of the \
                            package gguf swaps the bytes"
                    .into());
            }
            1 => {
                return Err(format!(
                    "version 1 at byte 4; versions 2 and 3 are read: {}",
                    signature::OLD
                ));
            }
            _ => return Err(format!("version {version} at byte 4; versions 2 and 3 are read")),
        }
        let tensors = cursor.count("tensors", MOST)?;
        let entries = cursor.count("entries of metadata", MOST)?;
        let entries = read_entries(&mut cursor, entries)?;
        let mut gguf = Gguf { version, entries, tensors: Vec::new() };
        let alignment = gguf.alignment(bytes)?;
        let rows = read_rows(&mut cursor, tensors)?;
        let start = (cursor.at() as u64).next_multiple_of(alignment);
        gguf.tensors = place(file, rows, start, alignment, bytes.len() as u64)?;
        Ok(gguf)
    }

    /// A value of the metadata. `bytes` are the file's.
    pub(crate) fn value<'a>(&self, key: &str, bytes: &'a [u8]) -> Option<Value<'a>> {
        let (_, place) = self.entries.iter().find(|(own, _)| own == key)?;
        place.kind.read(&mut Cursor::new(bytes, place.at), 0).ok()
    }

    /// All metadata, in the file's order.
    pub(crate) fn values<'a>(
        &'a self,
        bytes: &'a [u8],
    ) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        let read = |place: &Place| place.kind.read(&mut Cursor::new(bytes, place.at), 0).ok();
        self.entries.iter().filter_map(move |(key, place)| Some((&**key, read(place)?)))
    }

    fn alignment(&self, bytes: &[u8]) -> Result<u64, String> {
        match self.value("general.alignment", bytes) {
            None => Ok(ALIGNMENT),
            Some(Value::U32(alignment)) if alignment.is_power_of_two() => Ok(u64::from(alignment)),
            Some(other) => {
                Err(format!("general.alignment is {other}; a power of two of type u32 is expected"))
            }
        }
    }
}

fn read_entries(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<(String, Place)>, String> {
    let mut entries: Vec<(String, Place)> = Vec::new();
    let mut known = HashMap::new();
    for _ in 0..count {
        let begin = cursor.at();
        let key = cursor.name("key", MOST_NAME)?;
        let kind = Kind::read_number(cursor)?;
        let at = cursor.at();
        kind.read(cursor, 0).map_err(|why| format!("value of {key:?}: {why}"))?;
        match known.entry(key.clone()) {
            Entry::Occupied(first) => {
                return Err(format!(
                    "key {key:?} at byte {begin} is there already, at byte {}",
                    first.get()
                ));
            }
            Entry::Vacant(free) => free.insert(begin),
        };
        entries.push((key, Place { kind, at }));
    }
    Ok(entries)
}

fn read_rows(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<Row>, String> {
    let mut rows = Vec::new();
    let mut known = HashMap::new();
    for _ in 0..count {
        let at = cursor.at();
        let name = cursor.name("name of a tensor", MOST_NAME)?;
        let dimensions = cursor.u32()?;
        if dimensions > MOST_DIMENSIONS {
            let text = format!(
                "tensor {name:?} at byte {at}: {dimensions} dimensions; at most {MOST_DIMENSIONS}"
            );
            return Err(text);
        }
        let mut shape = Vec::new();
        for _ in 0..dimensions {
            let dimension = cursor.u64()?;
            let text = || format!("tensor {name:?} at byte {at}: a dimension of {dimension}");
            shape.push(usize::try_from(dimension).map_err(|_| text())?);
        }
        // The file has the fastest dimension first.
        shape.reverse();
        let kind = Type(cursor.u32()?);
        let offset = cursor.u64()?;
        match known.entry(name.clone()) {
            Entry::Occupied(first) => {
                return Err(format!(
                    "tensor {name:?} at byte {at} is there already, at byte {}",
                    first.get()
                ));
            }
            Entry::Vacant(free) => free.insert(at),
        };
        rows.push(Row { name, shape, kind, offset, at });
    }
    Ok(rows)
}

/// Finds the bytes of the tensors, and checks that they are aligned, in the file, and apart.
fn place(
    file: usize,
    rows: Vec<Row>,
    start: u64,
    alignment: u64,
    length: u64,
) -> Result<Vec<Raw>, String> {
    let mut spans: Vec<Option<(u64, u64)>> = Vec::new();
    for row in &rows {
        let Row { name, shape, kind, offset, at } = row;
        let shown = format!("tensor {name:?} at byte {at}, {} {shape:?}", kind.name());
        if !offset.is_multiple_of(alignment) {
            return Err(format!(
                "{shown}: its offset {offset} is no multiple of the alignment {alignment}"
            ));
        }
        let count = elements(shape)
            .ok_or_else(|| format!("{shown}: the product of its dimensions overflows"))?
            as u64;
        let Some((block, block_bytes)) = kind.block() else {
            spans.push(None);
            continue;
        };
        let k = shape.last().map_or(1, |&k| k as u64);
        if !k.is_multiple_of(block) {
            return Err(format!(
                "{shown}: K = {k} is no multiple of {block}, the block of {}",
                kind.name()
            ));
        }
        let begin = start.checked_add(*offset);
        let end =
            (count / block).checked_mul(block_bytes).and_then(|bytes| begin?.checked_add(bytes));
        match (begin, end) {
            (Some(begin), Some(end)) if end <= length => spans.push(Some((begin, end))),
            _ => {
                let needed = u128::from(count / block) * u128::from(block_bytes);
                return Err(format!(
                    "truncated: {shown}: {needed} bytes at offset {offset} from byte {start}; the \
                     file has {length} bytes"
                ));
            }
        }
    }
    apart(&rows, &spans)?;
    let mut starts: Vec<u64> = rows.iter().map(|row| start.saturating_add(row.offset)).collect();
    starts.sort_unstable();
    let tensor = |(row, span): (Row, Option<(u64, u64)>)| {
        let (begin, end) = span.unwrap_or_else(|| {
            // The size of its type is not known: the tensor ends where the next begins.
            let begin = start.saturating_add(row.offset).min(length);
            let next = starts.get(starts.partition_point(|&other| other <= begin));
            (begin, next.map_or(length, |&next| next.min(length)))
        });
        let bytes = begin as usize..end as usize;
        Raw { name: row.name, element: row.kind.element(), shape: row.shape, file, bytes }
    };
    Ok(rows.into_iter().zip(spans).map(tensor).collect())
}

/// Fails if two tensors share a byte.
fn apart(rows: &[Row], spans: &[Option<(u64, u64)>]) -> Result<(), String> {
    let mut order: Vec<(u64, u64, &str)> = rows
        .iter()
        .zip(spans)
        .filter_map(|(row, span)| span.map(|(begin, end)| (begin, end, &*row.name)))
        .collect();
    order.retain(|(begin, end, _)| begin < end);
    order.sort_unstable();
    for pair in order.windows(2) {
        let [(_, end, first), (begin, _, second)] = pair else { continue };
        if begin < end {
            return Err(format!(
                "tensor {second:?} at byte {begin} overlaps tensor {first:?}, which ends at byte \
                 {end}"
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
