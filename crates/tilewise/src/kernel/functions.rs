//! Functions by which a text reads and writes floats of every type as f32: `a_load(i)`,
//! `out_store(i, x)`, and their variants for two and four elements. `a_row(i)` says where a row
//! begins.

use super::names::OWN;
use std::collections::HashSet;
use std::fmt::Write;
use tilewise_core::DType;

/// The suffixes of the names of a tensor's functions.
pub(super) const LOADS: [&str; 3] = ["_load", "_load2", "_load4"];
pub(super) const STORES: [&str; 3] = ["_store", "_store2", "_store4"];
/// The suffix of the name of the function that finds rows.
pub(super) const ROW: &str = "_row";

/// The conversions of 16-bit floats.
pub(super) const HALVES: &str = include_str!("halves.wgsl");

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
    /// `$` stands for the prefix of generated names, which no tensor's name may have.
    pub(super) fn functions(&self) -> String {
        if let Some(fours) = self.fours {
            return self.of_fours(fours).replace('$', OWN);
        }
        let mut text = if self.dtype == DType::F32 { self.of_f32() } else { self.of_halves() };
        let name = self.name;
        let _ = writeln!(
            text,
            "fn {name}_load4($i: u32) -> vec4<f32> {{ return vec4<f32>({name}_load2($i), \
             {name}_load2($i + 2u)); }}"
        );
        if self.output {
            let _ = writeln!(
                text,
                "fn {name}_store4($i: u32, $x: vec4<f32>) {{ {name}_store2($i, $x.xy); \
                 {name}_store2($i + 2u, $x.zw); }}"
            );
        }
        text.replace('$', OWN)
    }

    fn of_fours(&self, fours: Fours) -> String {
        let (name, dtype, element) = (self.name, self.dtype, self.element());
        let at = format!("{name}[($i + $call.{name}_offset) / 4u]");
        let (load, store) = match fours {
            Fours::Floats => (format!("return vec4<f32>({at});"), format!("{element}($x)")),
            Fours::Words => (
                format!(
                    "let $words = {at};\n\
                     return vec4<f32>($widen_{dtype}($words.x), $widen_{dtype}($words.y));"
                ),
                format!("vec2<u32>($narrow_{dtype}($x.xy), $narrow_{dtype}($x.zw))"),
            ),
        };
        let mut text = format!("fn {name}_load4($i: u32) -> vec4<f32> {{ {load} }}\n");
        if self.output {
            let _ =
                writeln!(text, "fn {name}_store4($i: u32, $x: vec4<f32>) {{ {at} = {store}; }}");
        }
        text
    }

    fn of_f32(&self) -> String {
        let name = self.name;
        let at = format!("let $at = $i + $call.{name}_offset;");
        let mut text = format!(
            "fn {name}_load($i: u32) -> f32 {{ {at} return {name}[$at]; }}\n\
             fn {name}_load2($i: u32) -> vec2<f32> {{ {at} return vec2<f32>({name}[$at], \
             {name}[$at + 1u]); }}\n"
        );
        if self.output {
            let _ = writeln!(
                text,
                "fn {name}_store($i: u32, $x: f32) {{ {at} {name}[$at] = $x; }}\n\
                 fn {name}_store2($i: u32, $x: vec2<f32>) {{ {at} {name}[$at] = $x.x; \
                 {name}[$at + 1u] = $x.y; }}"
            );
        }
        text
    }

    fn of_halves(&self) -> String {
        let (name, dtype) = (self.name, self.dtype);
        let at = format!("let $at = $i + $call.{name}_offset;");
        let (open, close) = if self.atomic { ("atomicLoad(&", ")") } else { ("", "") };
        let mut text = format!(
            "fn {name}_load($i: u32) -> f32 {{ {at}\n\
             return $widen_{dtype}({open}{name}[$at / 2u]{close})[$at % 2u]; }}\n\
             fn {name}_load2($i: u32) -> vec2<f32> {{ {at}\n\
             var $word = {open}{name}[$at / 2u]{close};\n\
             if $at % 2u == 1u {{\n\
             $word = ($word >> 16u) | ({open}{name}[$at / 2u + 1u]{close} << 16u);\n\
             }}\n\
             return $widen_{dtype}($word); }}\n"
        );
        if self.atomic {
            // Nobody else changes this half, so it is as it was loaded. The other half may change
            // at any time, and is left alone.
            let _ = writeln!(
                text,
                "fn {name}_store($i: u32, $x: f32) {{ {at} let $own = 0xffffu << ($at % 2u * \
                 16u);\n\
                 let $put = $narrow_{dtype}(vec2<f32>($x, $x)) & $own;\n\
                 let $was = atomicLoad(&{name}[$at / 2u]) & $own;\n\
                 atomicXor(&{name}[$at / 2u], $was ^ $put); }}\n\
                 fn {name}_store2($i: u32, $x: vec2<f32>) {{ {at}\n\
                 atomicStore(&{name}[$at / 2u], $narrow_{dtype}($x)); }}"
            );
        } else if self.output {
            let _ = writeln!(
                text,
                "fn {name}_store2($i: u32, $x: vec2<f32>) {{ {at}\n\
                 {name}[$at / 2u] = $narrow_{dtype}($x); }}"
            );
        }
        text
    }
}

/// The text of the function that finds the first element of row i, in elements from the view's
/// first. Rows lie along the last axis, and i counts them in row-major order.
pub(super) fn row(name: &str, ndim: usize) -> String {
    let mut text = format!("fn {name}{ROW}($i: u32) -> u32 {{\nvar $at = 0u;\nvar $rest = $i;\n");
    for axis in (1..ndim.saturating_sub(1)).rev() {
        let _ = writeln!(
            text,
            "$at += $rest % $call.{name}_shape_{axis} * $call.{name}_strides_{axis};\n\
             $rest /= $call.{name}_shape_{axis};"
        );
    }
    if ndim > 1 {
        let _ = writeln!(text, "$at += $rest * $call.{name}_strides_0;");
    }
    text += "return $at;\n}\n";
    text.replace('$', OWN)
}
