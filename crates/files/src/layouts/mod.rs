//! Foreign layouts of quantized weights: a file and a row of [`ALL`] for each. A layout becomes a
//! format of ours when it is read.
//!
//! A row has the names of its tensors, a test of their types, and a function that checks all that
//! is said of them and gives a [`Decoder`]. What `config.json` says comes from a parser for each
//! `quant_method` ([`crate::config`]). No other file knows a layout by its name.

mod affine;
mod awq;
mod awq_gemv;
mod bitsandbytes;
mod compressed;
mod fp8;
pub(crate) mod gguf;
mod gpt_oss;
mod gptq;
mod grid;
mod hqq;
mod int8;
mod model_opt;
mod packed;
mod parts;
mod planes;
mod rows;
mod unread;

pub(crate) use parts::{Part, Parts};
pub(crate) use unread::{codes, unread};

use crate::claims::{Expected, contradiction};
use crate::config::{self, Said};
use crate::identify::joined;
use crate::opening::Opened;
use crate::raw::{Element, Raw};
use crate::stream::Sink;
use grid::Grid;
use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use tilewise_core::{DType, QuantFormat, Result};

/// Every layout. If several fit the tensors of a prefix, the first is taken.
pub(crate) static ALL: [&Layout; 15] = [
    &gptq::LAYOUT,
    &awq_gemv::GEMV,
    &awq_gemv::FAST,
    &awq::LAYOUT,
    &bitsandbytes::NF4,
    &bitsandbytes::FP4,
    &bitsandbytes::INT8,
    &hqq::LAYOUT,
    &gpt_oss::LAYOUT,
    &gpt_oss::ORIGINAL,
    &model_opt::LAYOUT,
    &compressed::LAYOUT,
    &int8::LAYOUT,
    &fp8::LAYOUT,
    &fp8::EXPERTS,
];

/// How another program stores a quantized matrix.
pub(crate) struct Layout {
    /// Its name, as [`TensorView::stored`](crate::TensorView::stored) gives it.
    pub(crate) name: &'static str,
    /// The tensors of a matrix, by what follows its prefix: after a dot, unless it begins with an
    /// underscore or is empty. The first holds the codes.
    pub(crate) needs: &'static [&'static str],
    /// Tensors that change the weights if they are there: of each list, one.
    pub(crate) may: &'static [&'static [&'static str]],
    /// Tensors that say something of it.
    pub(crate) notes: &'static [&'static str],
    /// Names by which the caller may ask for it: [`Expected::mode`].
    pub(crate) modes: &'static [&'static str],
    /// Bits that a code may have, if the caller may ask for it.
    pub(crate) bits: &'static [u32],
    /// Whether tensors with these names are of this layout, by their types and shapes.
    pub(crate) is: fn(&Parts<'_>) -> bool,
    /// Checks the tensors against the config and the caller's arguments.
    pub(crate) read: fn(&Asked<'_>) -> Result<Read>,
}

impl fmt::Debug for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// A matrix to be read: its tensors, its config, and the caller's arguments.
pub(crate) struct Asked<'a> {
    pub(crate) prefix: &'a str,
    pub(crate) parts: Parts<'a>,
    /// The words of a file beside the tensors.
    pub(crate) said: Option<&'a Said>,
    pub(crate) expected: &'a Expected,
}

impl Asked<'_> {
    /// The first of `formats` that holds codes of `bits` bits whose groups have `group` columns of
    /// `k`, if that is expected.
    fn format(
        &self,
        bits: u32,
        formats: &[QuantFormat],
        k: usize,
        group: usize,
    ) -> Result<QuantFormat> {
        // A group becomes as many blocks as fill it, with the same scale.
        let fits = |format: &&QuantFormat| {
            let block = format.block() as usize;
            k > 0 && k.is_multiple_of(block) && (group >= k || group.is_multiple_of(block))
        };
        let fitting = formats.iter().filter(fits).copied().collect::<Vec<_>>();
        let Some(first) = fitting.first() else {
            let blocks = formats.iter().map(|format| format.block()).collect::<BTreeSet<_>>();
            let blocks = blocks.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
            return Err(self.parts.unread(format!(
                "groups of {group} and K = {k} are not whole blocks of {blocks}"
            )));
        };
        // Bits and groups that are expected are those of the file. Ours may be other ones.
        let Expected { bits: own_bits, group: own_group, mode, .. } = self.expected;
        let is_own = own_bits.is_none_or(|own| own == bits)
            && own_group.is_none_or(|own| own as usize == group);
        let mode = mode.clone().filter(|mode| of_mode(mode).is_none());
        let rest = Expected { bits: None, group: None, mode, ..self.expected.clone() };
        let admitted = fitting.iter().find(|format| is_own && rest.admits(**format));
        admitted.copied().ok_or_else(|| contradiction(self.expected, *first))
    }

    /// Fails if the config says that the matrix is stored in another way.
    fn agrees(&self, bits: u32, columns: usize, k: usize, has_zeros: bool) -> Result<()> {
        self.is_read()?;
        let Some(said) = self.said else { return Ok(()) };
        let (leaf, codes) = self.parts.iter().next().unzip();
        let stored = config::Stored {
            bits,
            columns,
            k,
            has_zeros,
            has_order: self.parts.get("weight_g_idx").is_some(),
            is_packed: leaf == Some("weight_packed"),
            is_float: !codes.is_some_and(|codes| matches!(codes.kind(), "I8" | "I32")),
        };
        said.agrees(self.prefix, &stored)
            .map_err(|why| self.parts.contradiction(format!("{} says {why}", said.file)))
    }

    /// Fails if the config says that the matrix is stored in a way that is not read.
    fn is_read(&self) -> Result<()> {
        let Some(said) = self.said else { return Ok(()) };
        let Some(what) = said.unread(self.prefix) else { return Ok(()) };
        Err(self.parts.unread(format!("{} says {what}, which is not read", said.file)))
    }

    /// Which weights of W share a scale.
    fn grid(&self, w: &[usize], scales: &Part<'_>) -> Result<Grid> {
        let said = self.said.map(|said| said.blocks(self.prefix)).unwrap_or_default();
        let mut all: Vec<Option<[usize; 2]>> = said.into_iter().map(Some).collect();
        if all.is_empty() {
            all.push(None);
        }
        let shape = scales.shape();
        let mut grids: Vec<Grid> =
            all.into_iter().filter_map(|said| Grid::of(w, shape, said)).collect();
        grids.dedup();
        match &grids[..] {
            [only] => Ok(only.clone()),
            [] => Err(self.parts.refuse(format!("no blocks of {w:?} have scales {shape:?}"))),
            _ => Err(self.parts.unread(format!(
                "the config has several schemes, and blocks of {w:?} in two of them have scales \
                 {shape:?}"
            ))),
        }
    }

    /// Bits of a code, as the caller gives them. Without a caller's, each number that the config
    /// allows.
    fn bits(&self) -> Vec<u32> {
        let said = || self.said.map(|said| said.bits(self.prefix)).unwrap_or_default();
        let own = self.expected.bits.filter(|bits| (1..=8).contains(bits));
        own.map_or_else(|| said().into_iter().collect(), |own| vec![own])
    }
}

/// ComfyUI's note on a matrix: JSON in bytes.
const COMFY: &[&str] = &["comfy_quant"];

/// Fails if ComfyUI's note says that scales or weights lie in another order than their names tell,
/// as in its nvfp4 and in rotated int8.
fn is_plain(parts: &Parts<'_>) -> Result<()> {
    let Some(note) = parts.get(COMFY[0]) else { return Ok(()) };
    let note: serde_json::Value = serde_json::from_slice(note.bytes).unwrap_or_default();
    match note.get("format").and_then(serde_json::Value::as_str) {
        Some("float8_e4m3fn" | "float8_e5m2") => Ok(()),
        Some(other) => Err(parts.unread(format!("ComfyUI's format {other:?} is not read"))),
        None => Err(parts.unread("comfy_quant is no JSON with a format")),
    }
}

/// A matrix whose tensors have been checked.
pub(crate) struct Read {
    /// The format of ours that holds it.
    pub(crate) format: QuantFormat,
    /// `[N, K]`, and what lies before them.
    pub(crate) shape: Vec<usize>,
    /// The number that all weights are multiplied with.
    pub(crate) factor: Option<f32>,
    pub(crate) decoder: Box<dyn Decoder>,
}

/// Gives the weights of a matrix in a format of ours.
pub(crate) trait Decoder: fmt::Debug + Send + Sync {
    /// The order of columns: see [`TensorView::order`](crate::TensorView::order).
    fn order(&self, _: &Parts<'_>) -> Result<Option<Vec<u32>>> {
        Ok(None)
    }

    /// The planes of some rows, at least one, in chunks.
    fn stream(&self, parts: &Parts<'_>, rows: Range<usize>, sink: &mut Sink<'_>) -> Result<()>;
}

/// The tensors of a matrix in a foreign layout.
#[derive(Clone, Debug)]
pub(crate) struct Foreign {
    pub(crate) layout: &'static Layout,
    pub(crate) prefix: String,
    /// Numbers of tensors, by what follows the prefix.
    pub(crate) tensors: Vec<(&'static str, usize)>,
    /// A tensor that scales the weights or X by its name, and is none of the layout's.
    pub(crate) strange: Option<usize>,
}

impl Foreign {
    /// The matrix whose codes this tensor holds, if it is one of this layout. `find` gives a
    /// tensor by its name.
    pub(crate) fn find(
        layout: &'static Layout,
        codes: &Raw,
        find: impl Fn(&str) -> Option<usize>,
        opened: &Opened,
    ) -> Option<Self> {
        let prefix = prefix(&codes.name, layout.needs[0])?;
        let of = |leaf: &&'static str| Some((*leaf, find(&name(prefix, leaf))?));
        let mut tensors = layout.needs.iter().map(of).collect::<Option<Vec<_>>>()?;
        tensors.extend(layout.may.iter().copied().flatten().chain(layout.notes).filter_map(of));
        let found = Foreign { layout, prefix: prefix.to_owned(), tensors, strange: None };
        (layout.is)(&found.parts(opened)).then_some(found)
    }

    /// Whether a tensor of this name scales the weights or X, if it is no part of the layout.
    pub(crate) fn is_scaled_by(&self, name: &str) -> bool {
        let base = self.base();
        let Some(leaf) = name.strip_prefix(base) else { return false };
        // Names of experts go on after an underscore.
        let joins = [".", "_"].into_iter().filter(|join| *join == "." || self.is_expert());
        let leaf = if base.is_empty() {
            Some(leaf)
        } else {
            joins.into_iter().find_map(|join| leaf.strip_prefix(join))
        };
        leaf.is_some_and(|leaf| {
            // Other modules may lie within this one.
            let first = leaf.split_once('.').map_or("weight", |(first, _)| first);
            (first.starts_with("weight") || first.ends_with("quantizer")) && is_scale(leaf)
        })
    }

    /// The start of the names of its scales.
    pub(crate) fn base(&self) -> &str {
        let of_expert = self.prefix.strip_suffix("_weight").filter(|_| self.is_expert());
        of_expert.unwrap_or(&self.prefix)
    }

    fn is_expert(&self) -> bool {
        let first = self.layout.needs[0];
        first.is_empty() || first.starts_with('_')
    }

    /// Its tensors.
    pub(crate) fn parts<'a>(&'a self, opened: &'a Opened) -> Parts<'a> {
        Parts { opened, tensors: &self.tensors }
    }

    /// Gives the planes of some rows.
    pub(crate) fn stream(
        &self,
        decoder: &dyn Decoder,
        opened: &Opened,
        rows: Range<usize>,
        sink: &mut Sink<'_>,
    ) -> Result<()> {
        // Without rows, there may be any number of columns: the bytes of a row could overflow.
        if rows.is_empty() { Ok(()) } else { decoder.stream(&self.parts(opened), rows, sink) }
    }

    /// The names of tensors that would change the weights, and are not there.
    pub(crate) fn absent(&self) -> impl Iterator<Item = String> {
        let is_there = |leaf: &&str| self.tensors.iter().any(|(own, _)| own == leaf);
        let absent = self.layout.may.iter().filter(move |one| !one.iter().any(is_there));
        absent.copied().flatten().map(|leaf| name(&self.prefix, leaf))
    }
}

/// The part of a tensor's name before `leaf`, if that ends it.
fn prefix<'a>(tensor: &'a str, leaf: &str) -> Option<&'a str> {
    let prefix = tensor.strip_suffix(leaf)?;
    if leaf.is_empty() || leaf.starts_with('_') || prefix.is_empty() {
        return Some(prefix);
    }
    prefix.strip_suffix('.')
}

/// The name of the tensor `leaf` of a matrix.
pub(crate) fn name(prefix: &str, leaf: &str) -> String {
    if leaf.is_empty() || leaf.starts_with('_') {
        format!("{prefix}{leaf}")
    } else {
        joined(prefix, leaf)
    }
}

/// Whether a tensor scales weights or X, by the end of its name. Scales that serve to quantize X,
/// results, and the cache of keys and values do not.
pub(crate) fn is_scale(name: &str) -> bool {
    const OF_OTHERS: [&str; 6] = ["input", "output", "activation", "act_", "_act", "cache"];
    let name = &*name.to_ascii_lowercase();
    let is = |part: &&str| name.contains(part);
    let is_cached = matches!(name, "q_scale" | "k_scale" | "v_scale");
    ["pre_quant", "smooth"].iter().any(is)
        || ["scal", "amax"].iter().any(is) && !OF_OTHERS.iter().any(is) && !is_cached
}

/// The names of tensors of all layouts, by what follows the prefix.
pub(crate) fn leaves() -> impl Iterator<Item = &'static str> {
    let of = |layout: &'static Layout| {
        layout.needs.iter().chain(layout.may.iter().copied().flatten()).copied()
    };
    ALL.into_iter().flat_map(of)
}

/// Whether a tensor is named as a part of a foreign matrix, and no other tensor has the name.
pub(crate) fn is_part(name: &str) -> bool {
    let is_own = |leaf: &&str| {
        !matches!(*leaf, "" | "weight" | "scale" | "zero" | "shape" | "axis")
            && !leaf.starts_with('_')
    };
    leaves().filter(is_own).any(|leaf| prefix(name, leaf).is_some())
}

/// Whether a tensor is named as a part of a foreign matrix, and holds words.
pub(crate) fn is_coded(raw: &Raw) -> bool {
    matches!(raw.element, Element::Dense(DType::I32 | DType::U32)) && is_part(&raw.name)
}

/// The layout that the caller calls by this mode.
pub(crate) fn of_mode(mode: &str) -> Option<&'static Layout> {
    let is_own = |own: &&str| own.eq_ignore_ascii_case(mode);
    ALL.into_iter().find(|layout| layout.modes.iter().any(is_own))
}

/// The modes of all layouts.
pub(crate) fn modes() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().flat_map(|layout| layout.modes).copied()
}
