//! Functions by which a text reads and writes floats of every type as f32: `a_load(i)`,
//! `out_store(i, x)`, and their variants for two and four elements. `a_row(i)` says where a row
//! begins.

use super::blocks;
use std::collections::HashSet;
use tilewise_core::DType;

/// The suffixes of the names of a tensor's functions.
pub(super) const LOADS: [&str; 3] = ["_load", "_load2", "_load4"];
pub(super) const STORES: [&str; 3] = ["_store", "_store2", "_store4"];
/// The suffix of the name of the function that finds rows.
pub(super) const ROW: &str = "_row";

/// The conversions of 16-bit floats.
pub(super) const HALVES: &str = include_str!("halves.wgsl");

const PAIRS: &str = include_str!("pairs.wgsl");

/// The first function of a tensor that a text mentions.
pub(super) fn mentioned<'a>(words: &HashSet<&'a str>, name: &str) -> Option<&'a str> {
    let names = LOADS.iter().chain(&STORES).map(|suffix| format!("{name}{suffix}"));
    names.filter_map(|name| words.get(name.as_str()).copied()).next()
}

/// A tensor that a text reaches by functions.
pub(super) struct Reached<'a> {
    pub(super) name: &'a str,
    pub(super) dtype: DType,
    /// Whether it may be written.
    pub(super) output: bool,
    /// Whether single elements of 16 bits are stored: invocations may share a word then.
    pub(super) atomic: bool,
    pub(super) fours: Option<Fours>,
}

/// The binding of a tensor that is read and written four elements at a time. Its memory begins and
/// ends between blocks of four.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fours {
    /// Vectors of f32 or f16.
    Floats,
    /// Words of two 16-bit floats.
    Words,
}

impl Fours {
    /// The binding for elements of this type. If the device has f16, its conversions are faster
    /// than those of [`HALVES`].
    pub(super) fn of(dtype: DType, f16: bool) -> Self {
        match dtype {
            DType::BF16 => Fours::Words,
            DType::F16 if !f16 => Fours::Words,
            _ => Fours::Floats,
        }
    }
}

impl<'a> Reached<'a> {
    pub(super) fn new(
        words: &HashSet<&str>,
        name: &'a str,
        dtype: DType,
        output: bool,
        fours: Option<Fours>,
    ) -> Reached<'a> {
        let single = output && words.contains(format!("{name}{}", STORES[0]).as_str());
        Reached { name, dtype, output, atomic: single && dtype != DType::F32, fours }
    }

    /// Whether the conversions of [`HALVES`] are called.
    pub(super) fn converts(&self) -> bool {
        self.dtype != DType::F32 && self.fours != Some(Fours::Floats)
    }

    /// The element type of the bound array.
    pub(super) fn element(&self) -> &'static str {
        match (self.fours, self.dtype) {
            (Some(Fours::Floats), DType::F16) => "vec4<f16>",
            (Some(Fours::Floats), _) => "vec4<f32>",
            (Some(Fours::Words), _) => "vec2<u32>",
            (None, DType::F32) => "f32",
            (None, _) if self.atomic => "atomic<u32>",
            (None, _) => "u32",
        }
    }

    /// The text of the functions. An index counts elements from the view's first, which lies
    /// `offset` elements behind the start of the binding: an even number for outputs of 16 bits.
    pub(super) fn functions(&self) -> String {
        let texts: &[&str] = match (self.fours, self.dtype) {
            (Some(Fours::Floats), _) => &[include_str!("fours.wgsl")],
            (Some(Fours::Words), _) => &[include_str!("half_fours.wgsl")],
            (None, DType::F32) => &[include_str!("f32.wgsl"), PAIRS],
            (None, _) if self.atomic => &[include_str!("half_atomic.wgsl"), PAIRS],
            (None, _) => &[include_str!("half.wgsl"), PAIRS],
        };
        let mut functions = String::new();
        for text in texts {
            let [loads, stores] = blocks(text);
            functions += loads;
            functions += if self.output { stores } else { "" };
        }
        let functions = functions.replace("ELEMENT", self.element());
        functions.replace("DTYPE", self.dtype.name()).replace("NAME", self.name)
    }
}

/// The text of the function that finds the first element of a row.
pub(super) fn row(name: &str, ndim: usize) -> String {
    let [begin, middle, first, end] = blocks(include_str!("row.wgsl"));
    let mut text = begin.to_owned();
    for axis in (1..ndim.saturating_sub(1)).rev() {
        text += &middle.replace("AXIS", &axis.to_string());
    }
    text += if ndim > 1 { first } else { "" };
    (text + end).replace("NAME", name)
}
