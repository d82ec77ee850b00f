//! Generating a module from a body: the signature, the bindings, and whatever else the body
//! mentions.

use super::blocks;
use super::built_in::{BUILT_IN, BuiltIn};
use super::call::{Call, Constant, Edge, Template};
use super::definition::Kernel;
use super::functions::{self, Fours, HALVES, Reached};
use super::limits;
use super::names::{self, Names};
use super::output::{Slot, beside_output};
use super::text::Text;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::fmt::Write;
use std::ops::Range;
use tilewise_core::{DType, Error, Result};
use tilewise_shaders::tokens::Token;

/// The functions that a whole workgroup or subgroup must reach at once.
const BARRIERS: [&str; 5] = [
    "workgroupBarrier",
    "storageBarrier",
    "textureBarrier",
    "subgroupBarrier",
    "workgroupUniformLoad",
];

/// The type that texts on matrix units have.
const MATRIX: &str = "coop_mat16x16";

/// A tensor that is bound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Binding {
    pub(super) slot: Slot,
    pub(super) read_only: bool,
    /// Whether only functions reach the tensor: it may then begin behind the start of the binding.
    pub(super) by_functions: bool,
    /// Whether the tensor is stored by halves of words.
    pub(super) by_halves: bool,
    /// Bytes of an element of the bound array.
    pub(super) element_bytes: u64,
}

/// The layout of a tensor in its binding.
pub(super) struct Layout<'a> {
    pub(super) shape: &'a [usize],
    pub(super) strides: &'a [usize],
    /// Elements between the start of the binding and the first element.
    pub(super) offset: u64,
}

/// A word of the uniform buffer.
#[derive(Clone, Copy, Debug)]
pub(super) enum Word {
    /// The size of a tensor along an axis.
    Size(Slot, usize),
    /// The stride of a tensor along an axis.
    Stride(Slot, usize),
    /// Elements between the start of a tensor's binding and its first element.
    Offset(Slot),
    /// A value of the call, by its place among the values.
    Value(usize),
}

/// Binding of the uniform buffer, which holds the grid and then the `words`; tensors follow from 1.
pub(super) const UNIFORM: u32 = 0;

/// A generated module, and its bindings.
#[derive(Debug, Default)]
pub(super) struct Generated {
    pub(super) text: String,
    /// The parts of the text that are the user's own: their names and their bytes.
    pub(super) parts: Vec<(String, Range<usize>)>,
    /// Whether the module needs the uniform buffer.
    pub(super) has_uniform: bool,
    /// The words of the uniform buffer after the grid.
    pub(super) words: Vec<Word>,
    /// Whether the module uses half precision.
    pub(super) f16: bool,
    /// The first use of subgroups, with its place.
    pub(super) subgroups: Option<String>,
    /// The tensors that are bound from 1 on.
    pub(super) storage: Vec<Binding>,
}

impl Generated {
    /// Bytes of the uniform buffer.
    pub(super) fn uniform_len(&self) -> u64 {
        4 * (3 + self.words.len() as u64).next_multiple_of(4)
    }

    /// The binding of a tensor, if the text mentions it.
    pub(super) fn binding(&self, slot: Slot) -> Option<u32> {
        let place = self.storage.iter().position(|binding| binding.slot == slot)?;
        Some(UNIFORM + 1 + place as u32)
    }

    /// Contents of the uniform buffer.
    pub(super) fn uniform<'a>(
        &self,
        call: &Call,
        layout: impl Fn(Slot) -> Layout<'a>,
    ) -> Result<SmallVec<[u32; 32]>> {
        let mut words: SmallVec<[u32; 32]> = call.grid.unwrap_or_default().into_iter().collect();
        for &word in &self.words {
            let (slot, number) = match word {
                Word::Size(slot, axis) => (slot, layout(slot).shape[axis] as u64),
                Word::Stride(slot, axis) => (slot, layout(slot).strides[axis] as u64),
                Word::Offset(slot) => (slot, layout(slot).offset),
                Word::Value(at) => {
                    words.push(call.values[at].1.bits());
                    continue;
                }
            };
            words.push(u32::try_from(number).map_err(|_| {
                let Layout { shape, strides, .. } = layout(slot);
                Error::Shape(format!(
                    "overflow: shape {shape:?} with strides {strides:?}: kernels count in 32 bits"
                ))
            })?);
        }
        words.resize(words.len().next_multiple_of(4), 0);
        Ok(words)
    }
}

/// Generates the module of a kernel for a call. The call must have as many tensors as the kernel
/// has names.
pub(super) fn generate(kernel: &Kernel, call: &Call, names: &Names<'_>) -> Result<Generated> {
    let (header, body) = (Text::new(&kernel.header), Text::new(&kernel.source));
    for (part, text) in [("header", &header), ("body", &body)] {
        limits::readable(kernel, part, text)?;
    }
    let (in_body, in_header) = (body.words(), header.words());
    let everywhere: HashSet<&str> = in_body.union(&in_header).copied().collect();
    let clipped =
        call.edge == Edge::Clip && clippable(kernel, call, [("header", &header), ("body", &body)])?;
    let (derived, fields) = (String::new(), String::new());
    let mut module = Module { kernel, clipped, in_body, everywhere, f16: false, derived, fields };
    let mut generated = Generated::default();

    let declarations = module.storage(call, &mut generated)? + &module.templates(call)?;
    module.values(call, &mut generated);
    generated.has_uniform = module.needs_grid() || !generated.words.is_empty();
    let [x, y, z] = call.workgroup;
    let [open, grid, clip, close] = blocks(include_str!("frame.wgsl"));
    let mut head =
        open.replace("SIZE", &format!("{x}, {y}, {z}")).replace("ARGUMENTS", &module.arguments());
    head += if module.needs_grid() { grid } else { "" };
    head += if module.clipped { clip } else { "" };
    head += &module.derived;

    let texts = [("header", &header), ("body", &body)];
    generated.subgroups = texts.into_iter().find_map(|(part, text)| {
        let Token { text, line, column, .. } = text.first(|word| word.contains("subgroup"))?;
        Some(format!("{} ({part}):{line}:{column} has `{text}`", kernel.name))
    });
    let (directives, header) = header.split(&header.directives());
    let (hoisted, body) = body.split(&body.module_declarations());
    names.allow("header", &Text::new(&header))?;
    names.allow("body", &Text::new(&hoisted))?;
    generated.f16 = module.needs_f16(call);
    if generated.f16 {
        generated.text += "enable f16;\n";
    }
    if kernel.ours && module.everywhere.contains(MATRIX) {
        // Matrices ask for uniform control flow; naga files its doubts under derivatives.
        generated.text += "enable wgpu_cooperative_matrix;\n";
        generated.text += "diagnostic(off, derivative_uniformity);\n";
    }
    generated.add("header", kernel, &directives);
    if generated.has_uniform {
        let [uniform] = blocks(include_str!("uniform.wgsl"));
        generated.text += &uniform.replace("FIELDS", &module.fields);
    }
    generated.text += &declarations;
    generated.add("header", kernel, &header);
    generated.add("body", kernel, &hoisted);
    generated.text += &head;
    generated.add("body", kernel, &body);
    generated.text += close;
    if kernel.ours && call.context.0.caps.unrolls() {
        generated.text = tilewise_shaders::unroll(&generated.text).map_err(Error::Misuse)?;
        // The user's texts are no longer at these places.
        generated.parts.clear();
    }
    Ok(generated)
}

impl Generated {
    /// Adds the user's text, or a part of it that keeps its lines.
    fn add(&mut self, part: &str, kernel: &Kernel, text: &str) {
        if text.trim().is_empty() {
            return;
        }
        let start = self.text.len();
        self.text += text;
        self.parts.push((format!("{} ({part})", kernel.name), start..self.text.len()));
        self.text += "\n";
    }
}

/// Whether invocations beyond the grid are to end before the body. A text with barriers, which they
/// would never reach, is not clipped; it is an error, `Misuse`, if there are such invocations.
fn clippable(kernel: &Kernel, call: &Call, texts: [(&str, &Text<'_>); 2]) -> Result<bool> {
    for (part, text) in texts {
        for barrier in BARRIERS {
            if let Some(Token { line, column, .. }) = text.first(|word| word == barrier) {
                if call.is_aligned() {
                    return Ok(false);
                }
                return Err(Error::Misuse(format!(
                    "{} ({part}):{line}:{column}: not all invocations reach this {barrier}, \
                     because Edge::Clip ends those beyond the grid \
                     first; use Edge::Whole, and guard what is read and written by `grid`, or a \
                      grid that is a multiple of the workgroup",
                    kernel.name
                )));
            }
        }
    }
    Ok(true)
}

/// A module in the making.
struct Module<'a> {
    kernel: &'a Kernel,
    /// Whether invocations beyond the grid end before the body.
    clipped: bool,
    /// Words of the body; `everywhere` are those of body and header.
    in_body: HashSet<&'a str>,
    everywhere: HashSet<&'a str>,
    /// Whether a tensor that is bound holds f16.
    f16: bool,
    /// Statements that declare the shapes, strides and numbers of dimensions of tensors.
    derived: String,
    /// Members of the uniform buffer after the grid.
    fields: String,
}

impl Module<'_> {
    /// Declares the tensors that are mentioned, and what derives from them.
    fn storage(&mut self, call: &Call, generated: &mut Generated) -> Result<String> {
        let Kernel { inputs, outputs, .. } = self.kernel;
        let inputs = inputs
            .iter()
            .zip(&call.inputs)
            .map(|(name, tensor)| (name, tensor.dtype(), tensor.shape().len()));
        let outputs = outputs
            .iter()
            .zip(&call.outputs)
            .map(|(name, output)| (name, output.dtype(), output.shape().len()));
        let inputs = inputs.enumerate().map(|(i, operand)| (Slot::Input(i), operand));
        let outputs = outputs.enumerate().map(|(i, operand)| (Slot::Output(i), operand));
        let mut text = String::new();
        for (slot, (name, dtype, ndim)) in inputs.chain(outputs) {
            let lies_so = self.kernel.fours.iter().any(|own| own == name);
            let fours = lies_so.then(|| Fours::of(dtype, call.context.0.caps.f16));
            let reached = self.reached(name, dtype, matches!(slot, Slot::Output(_)), fours)?;
            let direct = self.everywhere.contains(name.as_str());
            if direct || reached.is_some() {
                let (read_only, element) = match (slot, &reached) {
                    (Slot::Output(_), _) if self.kernel.atomic => {
                        (false, self.atomic(name, dtype)?)
                    }
                    (Slot::Output(_), Some(reached)) => (false, reached.element()),
                    (Slot::Output(_), None) => (false, element(dtype)),
                    (Slot::Input(i), reached) => (
                        !beside_output(call, &call.inputs[i]),
                        reached.as_ref().map_or(element(dtype), Reached::element),
                    ),
                };
                self.f16 |= element.contains("f16");
                let by_halves = reached.as_ref().is_some_and(|reached| reached.atomic);
                generated.storage.push(Binding {
                    slot,
                    read_only,
                    by_functions: !direct,
                    by_halves,
                    element_bytes: if fours.is_some() { 4 * dtype.bytes() } else { 4 },
                });
                let access = if read_only { "read" } else { "read_write" };
                let binding = generated.storage.len();
                let _ = writeln!(
                    text,
                    "@group(0) @binding({binding}) var<storage, {access}> {name}: array<{element}>;"
                );
            }
            if let Some(reached) = reached {
                if reached.converts() && !text.contains(HALVES) {
                    text += HALVES;
                }
                let _ = writeln!(self.fields, "    {name}_offset: u32,");
                generated.words.push(Word::Offset(slot));
                text += &reached.functions();
            }
            self.derive(slot, name, ndim, generated);
            if self.finds_rows(name) {
                text += &functions::row(name, ndim);
            }
        }
        Ok(text)
    }

    /// The tensor as functions reach it, if the text mentions some of its functions.
    fn reached<'n>(
        &self,
        name: &'n str,
        dtype: DType,
        output: bool,
        fours: Option<Fours>,
    ) -> Result<Option<Reached<'n>>> {
        let Some(function) = functions::mentioned(&self.everywhere, name) else { return Ok(None) };
        let kernel = &self.kernel.name;
        if matches!(dtype, DType::I32 | DType::U32) {
            return Err(Error::Unsupported(format!(
                "kernel {kernel}: {name} is {dtype}, and {function} is for f32, f16 and bf16; \
                 {name}[i] is for all types"
            )));
        }
        if dtype != DType::F32 && self.everywhere.contains(name) {
            return Err(Error::Unsupported(format!(
                "kernel {kernel}: {name} is {dtype}, and the text has {name} itself beside \
                 {function}; to functions it is words of two elements: use one of the two"
            )));
        }
        Ok(Some(Reached::new(&self.everywhere, name, dtype, output, fours)))
    }

    fn atomic(&self, name: &str, dtype: DType) -> Result<&'static str> {
        match dtype {
            DType::I32 => Ok("atomic<i32>"),
            DType::U32 => Ok("atomic<u32>"),
            _ => Err(Error::Unsupported(format!(
                "kernel {}: the output {name:?} is {dtype}, and atomics are i32 or u32",
                self.kernel.name
            ))),
        }
    }

    /// Whether the text asks where rows of a tensor begin.
    fn finds_rows(&self, name: &str) -> bool {
        self.everywhere.contains(format!("{name}{}", functions::ROW).as_str())
    }

    /// Declares `a_shape`, `a_strides` and `a_ndim`, if the body mentions them, and the members of
    /// the uniform buffer for `a_row`. A tensor without dimensions has the shape \[1\].
    fn derive(&mut self, slot: Slot, name: &str, ndim: usize, generated: &mut Generated) {
        for (suffix, is_stride) in [("_shape", false), ("_strides", true)] {
            let derived = format!("{name}{suffix}");
            let mentioned = self.in_body.contains(derived.as_str());
            if !mentioned && !self.finds_rows(name) {
                continue;
            }
            let mut elements = Vec::new();
            for axis in 0..ndim {
                let _ = writeln!(self.fields, "    {derived}_{axis}: u32,");
                let word =
                    if is_stride { Word::Stride(slot, axis) } else { Word::Size(slot, axis) };
                generated.words.push(word);
                elements.push(format!("{}call.{derived}_{axis}", names::OWN));
            }
            if !mentioned {
                continue;
            }
            if ndim == 0 {
                elements.push("1u".into());
            }
            let (len, elements) = (elements.len(), elements.join(", "));
            let _ = writeln!(self.derived, "let {derived} = array<u32, {len}>({elements});");
        }
        let derived = format!("{name}_ndim");
        if self.in_body.contains(derived.as_str()) {
            let _ = writeln!(self.derived, "const {derived} = {ndim}u;");
        }
    }

    /// Declares the values that are mentioned.
    fn values(&mut self, call: &Call, generated: &mut Generated) {
        for (at, (name, value)) in call.values.iter().enumerate() {
            if !self.in_body.contains(name.as_str()) {
                continue;
            }
            let (kind, test) = match value {
                Constant::U32(_) => ("u32", ""),
                Constant::I32(_) => ("i32", ""),
                Constant::F32(_) => ("f32", ""),
                // A buffer cannot hold a bool.
                Constant::Bool(_) => ("u32", " != 0u"),
            };
            let own = names::OWN;
            let _ = writeln!(self.fields, "    value_{at}: {kind},");
            let _ = writeln!(self.derived, "let {name} = {own}call.value_{at}{test};");
            generated.words.push(Word::Value(at));
        }
    }

    /// Declarations of the templates that are mentioned.
    fn templates(&self, call: &Call) -> Result<String> {
        let mut text = String::new();
        for (name, template) in &call.templates {
            let line = match template {
                Template::DType(DType::BF16) => {
                    let kernel = &self.kernel.name;
                    return Err(Error::Unsupported(format!(
                        "kernel {kernel}: {name} = bf16: WGSL has no such type"
                    )));
                }
                Template::Constant(Constant::F32(value)) if !value.is_finite() => {
                    let kernel = &self.kernel.name;
                    return Err(Error::Misuse(format!(
                        "kernel {kernel}: {name} = {value}: WGSL has no such literal"
                    )));
                }
                Template::DType(dtype) => format!("alias {name} = {dtype};\n"),
                Template::Constant(Constant::U32(value)) => {
                    format!("const {name}: u32 = {value}u;\n")
                }
                // The literal has no suffix: 2147483648i, before the sign of the smallest number,
                // would be too large.
                Template::Constant(Constant::I32(value)) => {
                    format!("const {name}: i32 = {value};\n")
                }
                Template::Constant(Constant::F32(value)) => {
                    format!("const {name}: f32 = {value:?}f;\n")
                }
                Template::Constant(Constant::Bool(value)) => {
                    format!("const {name}: bool = {value};\n")
                }
            };
            if self.everywhere.contains(name.as_str()) {
                text += &line;
            }
        }
        Ok(text)
    }

    fn arguments(&self) -> String {
        let used =
            |b: &&BuiltIn| self.in_body.contains(b.name) || self.clipped && b.name == "global_id";
        let argument = |b: &BuiltIn| format!("@builtin({}) {}: {}", b.attribute, b.name, b.kind);
        BUILT_IN.iter().filter(used).map(argument).collect::<Vec<_>>().join(", ")
    }

    fn needs_grid(&self) -> bool {
        self.clipped || self.in_body.contains("grid")
    }

    fn needs_f16(&self, call: &Call) -> bool {
        let template = |(name, template): &(String, Template)| {
            matches!(template, Template::DType(DType::F16))
                && self.everywhere.contains(name.as_str())
        };
        self.f16 || call.templates.iter().any(template) || self.everywhere.contains("f16")
    }
}

/// The element type of a bound array. bf16, which WGSL does not have, is bound as words of two.
pub(super) fn element(dtype: DType) -> &'static str {
    match dtype {
        DType::BF16 => "u32",
        other => other.name(),
    }
}
