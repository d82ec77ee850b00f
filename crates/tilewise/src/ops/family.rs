//! The texts of the operations, and the kernels that they become.

use super::access;
use crate::cache::lock;
use crate::kernel::{Call, Edge, Kernel};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};
use tilewise_core::{Error, Result};

/// A file below `crates/tilewise/src/`, and its text.
pub(super) type File = (&'static str, &'static str);

/// A text in WGSL that serves several operations or several of their forms.
pub(super) struct Family {
    /// Name of the kernel.
    name: &'static str,
    body: File,
    /// The text before the body, if there is one.
    header: File,
    /// Names of the inputs. The output is `y`.
    inputs: &'static [&'static str],
    /// The kernels made so far.
    kernels: Mutex<Vec<(Form, Arc<Kernel>)>>,
}

macro_rules! file {
    ($file:literal) => {
        (concat!("ops/", $file), include_str!($file))
    };
}

macro_rules! families {
    ($($name:ident $title:literal $body:literal $header:expr, $inputs:expr;)*) => {
        $(pub(super) static $name: Family = Family {
            name: $title,
            body: file!($body),
            header: $header,
            inputs: &$inputs,
            kernels: Mutex::new(Vec::new()),
        };)*

        /// All families.
        static FAMILIES: &[&Family] = &[$(&$name),*];
    };
}

const NONE: File = ("", "");

/// The number of the workgroup, which every body begins with, on the first line of its file.
const GROUP: &str = "let group = workgroup_id.y * num_workgroups.x + workgroup_id.x; ";

// A line each: name of the kernel, files of body and header, inputs.
families! {
    ELEMENTWISE "elementwise" "elementwise.wgsl" file!("functions.wgsl"), ["a", "b"];
    SOFTMAX "softmax" "softmax.wgsl" file!("online.wgsl"), ["x", "mask"];
    NORMALIZE "norm" "normalize.wgsl" NONE, ["x", "weight", "bias"];
    REDUCE "reduce" "reduce.wgsl" NONE, ["x"];
    ROPE "rope" "rope.wgsl" NONE, ["x", "cosine", "sine"];
}

/// A text that names its own inputs and outputs: it walks through them as it likes.
pub(super) struct Text {
    /// Name of the kernel.
    name: &'static str,
    body: File,
    header: File,
    /// Names of the inputs; the last may be absent.
    inputs: &'static [&'static str],
    outputs: &'static [&'static str],
    holds: Holds,
    /// The kernels made so far.
    kernels: Mutex<Vec<(Variant, Arc<Kernel>)>>,
}

/// What becomes of elements of outputs that the text does not write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    /// There are none.
    Nothing,
    /// They stay.
    Rest,
    /// They stay, and the others are changed by atomics.
    Atomics,
}

/// On what the kernel of a [`Text`] depends.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Variant {
    /// Stands after the header.
    function: &'static str,
    /// How `x` is read and `y` written, if by blocks of four.
    access: Option<access::Form>,
    /// How many inputs there are.
    inputs: usize,
}

macro_rules! texts {
    ($($name:ident $title:literal $body:literal $header:expr, $inputs:expr => $outputs:expr,
        $holds:ident;)*) => {
        $(pub(super) static $name: Text = Text {
            name: $title,
            body: file!($body),
            header: $header,
            inputs: &$inputs,
            outputs: &$outputs,
            holds: Holds::$holds,
            kernels: Mutex::new(Vec::new()),
        };)*

        /// All of them.
        static TEXTS: &[&Text] = &[$(&$name),*];
    };
}

// A line each: name of the kernel, files of body and header, inputs, outputs.
texts! {
    TOP_K "top_k" "top_k.wgsl" LARGEST, ["x"] => ["values", "indices"], Nothing;
    OWNERS "owners" "owners.wgsl" NONE, ["indices"] => ["owners"], Atomics;
    SCATTER "scatter" "scatter.wgsl" NONE, ["x", "indices", "owners"] => ["y"], Rest;
    HISTOGRAM "histogram" "histogram.wgsl" NONE, ["keys"] => ["y"], Atomics;
    SCAN "scan" "scan.wgsl" NONE, ["x", "base"] => ["y"], Nothing;
    SORT_COUNT "sort_count" "sort_count.wgsl" NONE, ["keys"] => ["counts"], Nothing;
    SORT_MOVE "sort_move" "sort_move.wgsl" NONE, ["keys", "places", "payload"] => ["y"], Nothing;
}

/// Headers that operations of one family differ by.
pub(super) const SUM: File = file!("sum.wgsl");
pub(super) const LARGEST: File = file!("largest.wgsl");

/// Every file.
pub(super) fn files() -> impl Iterator<Item = File> {
    let own = FAMILIES.iter().flat_map(|family| [family.body, family.header]);
    own.chain(TEXTS.iter().map(|text| text.body))
        .chain([SUM, LARGEST])
        .filter(|(path, _)| !path.is_empty())
}

/// A function that a family applies: a header, and a text after it that no other function has.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) header: File,
    pub(super) text: &'static str,
}

impl Function {
    pub(super) const NONE: Function = Function { header: NONE, text: "" };
}

/// On what of tensors the text of a kernel depends.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Form {
    function: Function,
    /// Where each input is read.
    places: [Place; 4],
    access: access::Form,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// It is bound by its name.
    Own,
    /// It is the output.
    Output,
    /// There is none.
    Absent,
}

/// A kernel and its call.
pub struct Step {
    of: Of,
    pub call: Call,
}

/// The text of a step.
enum Of {
    Family(&'static Family, Form),
    Text(&'static Text, Variant),
}

/// Few steps make an operation.
pub(super) type Steps = SmallVec<[Step; 1]>;

impl Family {
    /// The call of the kernel for these inputs, absent ones among them, and this output. Tensors
    /// are laid out as the text walks through them. An input that is the output is read there.
    pub(super) fn step(
        &'static self,
        operation: &str,
        function: Function,
        inputs: &[Option<&Tensor>],
        out: &Tensor,
    ) -> Result<Step> {
        let mut call = Call::new(out.context()).edge(Edge::Whole);
        let mut places = [Place::Absent; 4];
        for (at, input) in inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            places[at] = if input.is_same_view(out) {
                Place::Output
            } else {
                apart(operation, self.inputs[at], input, out)?;
                call = call.input(input);
                Place::Own
            };
        }
        call = match places.contains(&Place::Output) {
            true => call.inout(out),
            false => call.output_into(out),
        };
        let first = inputs.iter().flatten().next().copied().unwrap_or(out);
        let access = access::Form::new(!first.dtype().is_float(), out);
        if access.names_its_type() {
            call = call.dtype("Y", out.dtype());
        }
        Ok(Step { of: Of::Family(self, Form { function, places, access }), call })
    }
}

impl Text {
    /// The call of the kernel for these tensors, which are found to be apart. `function` stands
    /// after the header.
    pub(super) fn step(
        &'static self,
        operation: &str,
        function: &'static str,
        inputs: &[&Tensor],
        outputs: &[&Tensor],
    ) -> Result<Step> {
        let mut call = Call::new(outputs[0].context()).edge(Edge::Whole);
        for (input, name) in inputs.iter().zip(self.inputs) {
            for out in outputs {
                apart(operation, name, input, out)?;
            }
            call = call.input(input);
        }
        for out in outputs {
            call = match self.holds {
                Holds::Nothing => call.output_into(out),
                Holds::Rest | Holds::Atomics => call.inout(out),
            };
        }
        let variant = Variant { function, access: None, inputs: inputs.len() };
        Ok(Step { of: Of::Text(self, variant), call })
    }

    /// As [`step`](Self::step), for a text that reads `x`, the first input, and writes the output
    /// by blocks of four.
    pub(super) fn step_in_blocks(
        &'static self,
        operation: &str,
        inputs: &[&Tensor],
        out: &Tensor,
    ) -> Result<Step> {
        let Step { call, .. } = self.step(operation, "", inputs, &[out])?;
        let access = access::Form::new(!inputs[0].dtype().is_float(), out);
        let call = if access.names_its_type() { call.dtype("Y", out.dtype()) } else { call };
        let variant = Variant { function: "", access: Some(access), inputs: inputs.len() };
        Ok(Step { of: Of::Text(self, variant), call })
    }

    /// The kernel of these texts of files.
    fn made_of(&self, variant: Variant, text: impl Fn(File) -> String) -> Kernel {
        let mut header = String::new();
        if let Some(access) = variant.access {
            header += access.types();
            header += &access.get("x");
            header += &access.put();
        }
        if self.header != NONE {
            header += &text(self.header);
        }
        header += variant.function;
        let mut body = text(self.body);
        // Strides of an absent input are read, and not used.
        for absent in &self.inputs[variant.inputs..] {
            body = renamed(&body, absent, self.inputs[0]);
        }
        Kernel::new(self.name)
            .inputs(self.inputs[..variant.inputs].iter().copied())
            .outputs(self.outputs.iter().copied())
            .header(header)
            .source(body)
            .atomic_outputs(self.holds == Holds::Atomics)
            .ensure_contiguous(false)
    }
}

/// The kernel of a form, made when it is met for the first time.
fn kept<F: Copy + PartialEq>(
    kernels: &Mutex<Vec<(F, Arc<Kernel>)>>,
    form: F,
    make: impl FnOnce() -> Kernel,
) -> Arc<Kernel> {
    let mut kernels = lock(kernels);
    if let Some((_, kernel)) = kernels.iter().find(|(own, _)| *own == form) {
        return kernel.clone();
    }
    let kernel = Arc::new(make());
    kernels.push((form, kernel.clone()));
    kernel
}

impl Step {
    /// The same, where the text writes parts of rows that begin anywhere.
    pub(super) fn in_parts(mut self) -> Self {
        if let Of::Family(_, form) = &mut self.of {
            form.access = form.access.in_parts();
        }
        self
    }

    /// The kernel, made when it is met for the first time.
    pub(super) fn kernel(&self) -> Arc<Kernel> {
        let make = || self.made_of(|(_, text)| text.to_owned());
        match self.of {
            Of::Family(family, form) => kept(&family.kernels, form, make),
            Of::Text(text, variant) => kept(&text.kernels, variant, make),
        }
    }

    /// The kernel of these texts of files.
    pub(super) fn made_of(&self, text: impl Fn(File) -> String) -> Kernel {
        match self.of {
            Of::Family(family, form) => family.made_of(form, text),
            Of::Text(own, variant) => own.made_of(variant, text),
        }
    }
}

impl Family {
    /// The kernel of these texts of files.
    fn made_of(&self, form: Form, text: impl Fn(File) -> String) -> Kernel {
        let Form { function, places, access } = form;
        let (family, names) = (self, self.inputs);
        let mut header = String::new();
        let mut body = format!("{GROUP}{}", text(family.body));
        let mut own: SmallVec<[&str; 4]> = SmallVec::new();
        for (&name, place) in names.iter().zip(places) {
            match place {
                Place::Own => own.push(name),
                Place::Output => body = renamed(&body, name, "y"),
                Place::Absent => {}
            }
        }
        // The text reads nothing of an absent input, and must be valid.
        let present = own.first().copied().unwrap_or("y");
        for (&name, place) in names.iter().zip(places) {
            if place == Place::Absent {
                body = renamed(&body, name, present);
            }
        }
        header += access.types();
        for &name in &own {
            header += &access.get(name);
        }
        if body.contains("y_get(") {
            header += &access.get_of_output();
        }
        if body.contains("y_put(") {
            header += &access.put();
        }
        for file in [family.header, function.header] {
            if file != NONE {
                header += &text(file);
            }
        }
        header += function.text;
        Kernel::new(family.name)
            .inputs(own.iter().copied())
            .outputs(["y"])
            .header(header)
            .source(body)
            .ensure_contiguous(false)
    }
}

/// `Misuse` for an input that lies partly in the output.
pub(super) fn apart(operation: &str, name: &str, input: &Tensor, out: &Tensor) -> Result<()> {
    if !input.storage().shares(out.storage()) {
        return Ok(());
    }
    let (of_input, of_out) = (input.span()?, out.span()?);
    if of_input.is_empty() || of_input.end <= of_out.start || of_out.end <= of_input.start {
        return Ok(());
    }
    Err(Error::Misuse(format!(
        "{operation}: the output has the bytes {of_out:?} of its buffer, and {name} the bytes \
         {of_input:?}, in whole words; run() makes another tensor, and elementwise functions, \
         softmax, norms and rope may write to the view that they read"
    )))
}

/// `text` with `from` as a prefix of identifiers replaced: `x_get` by `y_get`.
fn renamed(text: &str, from: &str, to: &str) -> String {
    let prefix = format!("{from}_");
    let mut out = String::with_capacity(text.len());
    let (mut rest, mut inside) = (text, false);
    while let Some(c) = rest.chars().next() {
        if !inside && rest.starts_with(&prefix) {
            out += to;
            rest = &rest[from.len()..];
            inside = true;
            continue;
        }
        out.push(c);
        inside = c.is_alphanumeric() || c == '_';
        rest = &rest[c.len_utf8()..];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_replaced_as_prefixes_alone() {
        let text = "x_get(max_x + x_shape[0]) * x * mask_get(x_)";
        assert_eq!(renamed(text, "x", "y"), "y_get(max_x + y_shape[0]) * x * mask_get(y_)");
    }

    #[test]
    fn every_file_is_listed() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/ops");
        let mut there: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".wgsl"))
            .map(|name| format!("ops/{name}"))
            .collect();
        let mut listed: Vec<_> = files().map(|(path, _)| path.to_owned()).collect();
        there.sort();
        listed.sort();
        assert_eq!(there, listed);
    }
}
