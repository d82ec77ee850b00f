//! Functions by which a text reads and writes floats of every type as f32: `a_load(i)`,
//! `out_store(i, x)`, and those of two and four elements.

use super::names::OWN;
use std::collections::HashSet;
use std::fmt::Write;
use tilewise_core::DType;

/// What follows a tensor's name in the names of its functions.
pub(super) const LOADS: [&str; 3] = ["_load", "_load2", "_load4"];
pub(super) const STORES: [&str; 3] = ["_store", "_store2", "_store4"];

/// What 16-bit floats are converted by.
pub(super) const HALVES: &str = include_str!("halves.wgsl");

/// The first function of a tensor that a text mentions.
pub(super) fn mentioned<'a>(words: &HashSet<&'a str>, name: &str) -> Option<&'a str> {
    let names = LOADS.iter().chain(&STORES).map(|suffix| format!("{name}{suffix}"));
    names.filter_map(|name| words.get(name.as_str()).copied()).next()
}

/// A tensor that functions reach.
pub(super) struct Reached<'a> {
    pub(super) name: &'a str,
    pub(super) dtype: DType,
    /// Whether it may be written.
    pub(super) output: bool,
    /// Whether single elements of 16 bits are stored, by invocations that may share a word.
    pub(super) atomic: bool,
}

impl<'a> Reached<'a> {
    pub(super) fn new(
        words: &HashSet<&str>,
        name: &'a str,
        dtype: DType,
        output: bool,
    ) -> Reached<'a> {
        let single = output && words.contains(format!("{name}{}", STORES[0]).as_str());
        Reached { name, dtype, output, atomic: single && dtype != DType::F32 }
    }

    /// The type of its array.
    pub(super) fn element(&self) -> &'static str {
        match (self.dtype, self.atomic) {
            (DType::F32, _) => "f32",
            (_, true) => "atomic<u32>",
            (_, false) => "u32",
        }
    }

    /// The functions. An index counts elements from the view's first, which lies `offset` elements
    /// after what is bound: an even number for outputs of 16 bits.
    pub(super) fn functions(&self) -> String {
        let (name, dtype) = (self.name, self.dtype);
        let at = format!("let at = i + {OWN}call.{name}_offset;");
        let mut text = String::new();
        if dtype == DType::F32 {
            let _ = writeln!(text, "fn {name}_load(i: u32) -> f32 {{ {at} return {name}[at]; }}");
            let _ = writeln!(
                text,
                "fn {name}_load2(i: u32) -> vec2<f32> {{ {at} return vec2<f32>({name}[at], \
                 {name}[at + 1u]); }}"
            );
        } else {
            let word = |at: &str| match self.atomic {
                true => format!("atomicLoad(&{name}[{at}])"),
                false => format!("{name}[{at}]"),
            };
            let (first, second) = (word("at / 2u"), word("at / 2u + 1u"));
            let _ = writeln!(
                text,
                "fn {name}_load(i: u32) -> f32 {{ {at} return {OWN}widen_{dtype}({first})[at % \
                 2u]; }}\n\
                 fn {name}_load2(i: u32) -> vec2<f32> {{ {at} var word = {first};\n\
                 if at % 2u == 1u {{ word = (word >> 16u) | ({second} << 16u); }}\n\
                 return {OWN}widen_{dtype}(word); }}"
            );
        }
        let _ = writeln!(
            text,
            "fn {name}_load4(i: u32) -> vec4<f32> {{ return vec4<f32>({name}_load2(i), \
             {name}_load2(i + 2u)); }}"
        );
        if self.output {
            text += &self.stores(&at);
        }
        text
    }

    fn stores(&self, at: &str) -> String {
        let (name, dtype) = (self.name, self.dtype);
        let mut text = String::new();
        if dtype == DType::F32 {
            let _ = writeln!(
                text,
                "fn {name}_store(i: u32, x: f32) {{ {at} {name}[at] = x; }}\n\
                 fn {name}_store2(i: u32, x: vec2<f32>) {{ {at} {name}[at] = x.x; {name}[at + 1u] \
                 = x.y; }}"
            );
        } else if self.atomic {
            // Nobody else changes this half, so that it is as it was loaded; the other half may
            // change at any time, and is left alone.
            let _ = writeln!(
                text,
                "fn {name}_store(i: u32, x: f32) {{ {at} let own = 0xffffu << (at % 2u * 16u);\n\
                 let put = {OWN}narrow_{dtype}(vec2<f32>(x, x)) & own;\n\
                 let was = atomicLoad(&{name}[at / 2u]) & own;\n\
                 atomicXor(&{name}[at / 2u], was ^ put); }}\n\
                 fn {name}_store2(i: u32, x: vec2<f32>) {{ {at} atomicStore(&{name}[at / 2u], \
                 {OWN}narrow_{dtype}(x)); }}"
            );
        } else {
            let _ = writeln!(
                text,
                "fn {name}_store2(i: u32, x: vec2<f32>) {{ {at} {name}[at / 2u] = \
                 {OWN}narrow_{dtype}(x); }}"
            );
        }
        let _ = writeln!(
            text,
            "fn {name}_store4(i: u32, x: vec4<f32>) {{ {name}_store2(i, x.xy); {name}_store2(i + \
             2u, x.zw); }}"
        );
        text
    }
}
