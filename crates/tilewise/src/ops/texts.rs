//! The texts of the operations, and the kernels that are made of them.

use super::access::Access;
use crate::host::cache::lock;
use crate::kernel::{Call, Edge, Kernel};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};
use tilewise_core::plan::renamed;
use tilewise_core::{Error, Result};

/// A file below `crates/tilewise/src/`, and its text.
pub(super) type File = (&'static str, &'static str);

/// A text in WGSL that serves several operations, or several of their forms.
pub(super) struct Text {
    /// Name of the kernel.
    name: &'static str,
    body: File,
    /// Texts before the body.
    headers: &'static [File],
    /// Names of the inputs.
    inputs: &'static [&'static str],
    outputs: &'static [&'static str],
    by: By,
    writes: Writes,
    /// The kernels made so far.
    kernels: Mutex<Vec<(Form, Arc<Kernel>)>>,
}

/// How a text reads and writes elements.
#[derive(Clone, Copy, PartialEq, Eq)]
enum By {
    /// By `x_get` and `y_put`, four elements of a row at a time.
    Fours,
    /// Each element by itself.
    Ones,
}

/// How a text changes its outputs.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Writes {
    /// It writes all elements, and does not read an input's element after writing the first
    /// output's in its place: the two may be one tensor.
    InPlace,
    /// It writes all elements.
    All,
    /// It writes some elements, and the rest stay.
    Some,
    /// It changes some elements by atomics, and the rest stay.
    Atomics,
}

macro_rules! file {
    ($file:literal) => {
        (concat!("ops/", $file), include_str!($file))
    };
}

macro_rules! texts {
    ($($name:ident $title:literal $body:literal $headers:expr, $inputs:expr => $outputs:expr,
        $by:ident $writes:ident;)*) => {
        $(pub(super) static $name: Text = Text {
            name: $title,
            body: file!($body),
            headers: &$headers,
            inputs: &$inputs,
            outputs: &$outputs,
            by: By::$by,
            writes: Writes::$writes,
            kernels: Mutex::new(Vec::new()),
        };)*

        /// All texts.
        static TEXTS: &[&Text] = &[$(&$name),*];
    };
}

// One line for each: name of the kernel, files of body and headers, inputs and outputs, and how the
// text reaches and changes them.
texts! {
    ELEMENTWISE "elementwise" "elementwise/elementwise.wgsl" [FUNCTIONS], ["a", "b"] => ["y"],
        Fours InPlace;
    SOFTMAX "softmax" "rows/softmax.wgsl" [CAP, SCORES, BLOCKS, ROW],
        ["x", "mask", "sinks", "position"] => ["y"], Fours InPlace;
    NORMALIZE "norm" "rows/normalize.wgsl" [SUM, BLOCKS, TERMS, ROW],
        ["x", "weight", "bias", "residual", "behind"] => ["sum", "y"], Fours InPlace;
    ATTENTION "attention" "attention/attention.wgsl" [CAP, WEIGHTS, SEEN, AHEAD],
        ["q", "k", "values", "mask", "sinks", "position"] => ["y"], Fours All;
    ATTENTION_ON_UNITS "attention" "attention/matrix.wgsl" [CAP, WEIGHTS, SEEN, FETCH],
        ["q", "k", "values", "mask", "sinks", "position"] => ["y"], Fours All;
    JOIN "join" "attention/join.wgsl" [WEIGHTS], ["x", "sinks"] => ["y"], Fours All;
    REDUCE "reduce" "rows/reduce.wgsl" [BLOCKS, ROW], ["x"] => ["y"], Fours All;
    FIRST "arg_max" "order/first.wgsl" [LARGEST, ROW], ["x"] => ["y"], Ones All;
    ROPE "rope" "rows/rope.wgsl" [PAIRS, SUM, ROW],
        ["x", "cosine", "sine", "weight", "position"] => ["y"], Fours InPlace;
    ROPE_INTO "rope" "rows/rope.wgsl" [PAIRS, SUM, ROW],
        ["x", "cosine", "sine", "weight", "position"] => ["y"], Fours Some;
    APPEND "append" "rows/append.wgsl" [], ["x", "position"] => ["y"], Fours Some;
    TOP_K "top_k" "order/top_k.wgsl" [LARGEST, ROW], ["x"] => ["values", "indices"], Ones All;
    CHOOSE "choose" "indexed/choose.wgsl" [ROUTER, FUNCTIONS, LARGEST, ROW, TOTAL],
        ["logits", "bias"] => ["weights", "experts"], Ones All;
    SAMPLE "sample" "order/sample.wgsl" [NOISE, LARGEST, ROW, TOTAL], ["x", "position"] => ["y"],
        Ones All;
    OWNERS "owners" "indexed/owners.wgsl" [], ["indices"] => ["owners"], Ones Atomics;
    SCATTER "scatter" "indexed/scatter.wgsl" [], ["x", "indices", "owners"] => ["y"], Fours Some;
    GATHER "gather" "indexed/gather.wgsl" [], ["x", "indices"] => ["y"], Fours All;
    COMBINE "combine" "indexed/combine.wgsl" [], ["x", "places", "weights"] => ["y"], Fours All;
    TAKE_ALONG "take_along" "indexed/take_along.wgsl" [], ["x", "indices"] => ["y"], Fours All;
    GROUP_SLOTS "group" "order/group.wgsl" [], ["keys"] => ["starts", "slots"], Ones All;
    SLOTS "slots" "order/slots.wgsl" [], ["sorted", "order"] => ["slots"], Ones All;
    HISTOGRAM "histogram" "order/histogram.wgsl" [], ["keys"] => ["y"], Ones Atomics;
    SCAN "scan" "order/scan.wgsl" [], ["x", "base"] => ["y"], Ones All;
    SORT_COUNT "sort_count" "order/sort_count.wgsl" [], ["keys"] => ["counts"], Ones All;
    SORT_MOVE "sort_move" "order/sort_move.wgsl" [], ["keys", "places", "payload"] => ["y"],
        Ones All;
}

/// Kernels that FXC refuses: it wrongly finds that not all invocations meet a barrier.
const BEYOND_FXC: [&str; 1] = ["top_k"];

const FUNCTIONS: File = file!("elementwise/functions.wgsl");
const WEIGHTS: File = file!("attention/weights.wgsl");
const SEEN: File = file!("attention/seen.wgsl");
const AHEAD: File = file!("attention/ahead.wgsl");
const FETCH: File = file!("attention/fetch.wgsl");
const CAP: File = file!("rows/cap.wgsl");
const SCORES: File = file!("rows/scores.wgsl");
const BLOCKS: File = file!("rows/blocks.wgsl");
const PAIRS: File = file!("rows/pairs.wgsl");
const TERMS: File = file!("rows/terms.wgsl");
const ROW: File = file!("rows/row.wgsl");
const TOTAL: File = file!("rows/total.wgsl");
const NOISE: File = file!("order/noise.wgsl");
const ROUTER: File = file!("indexed/router.wgsl");
/// Headers by which reductions differ.
pub(super) const SUM: File = file!("rows/sum.wgsl");
pub(super) const LARGEST: File = file!("order/largest.wgsl");

/// The text with the workgroup's number, with which every body begins. It goes on the first line of
/// the body's file, which keeps the numbers of lines.
const GROUP: &str = include_str!("parts/group.wgsl");

/// All files that kernels take as a whole. Of those in `parts/` they take some functions.
pub(super) fn files() -> impl Iterator<Item = File> {
    // Two texts have one body.
    let texts = TEXTS.iter().filter(|text| !std::ptr::eq(**text, &ROPE_INTO));
    let headers = [
        FUNCTIONS, WEIGHTS, SEEN, AHEAD, FETCH, CAP, SCORES, BLOCKS, TERMS, PAIRS, ROW, TOTAL,
        NOISE, ROUTER, SUM, LARGEST,
    ];
    texts.map(|text| text.body).chain(headers)
}

/// The addition of an operation to a text: a header, and a function of parts/choices.wgsl. The
/// kernel calls the function by its role; the file has `role_name`. An empty role stands for no
/// function.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) header: Option<File>,
    pub(super) role: &'static str,
    pub(super) name: &'static str,
}

impl Function {
    pub(super) const NONE: Function = Function::new("", "");

    /// A function without a header.
    pub(super) const fn new(role: &'static str, name: &'static str) -> Self {
        Function { header: None, role, name }
    }

    /// The function's text.
    fn text(self) -> String {
        let Function { role, name, .. } = self;
        let rest = |text: &str| {
            let rest = text.strip_prefix(role)?.strip_prefix('_')?.strip_prefix(name)?;
            rest.starts_with('(').then(|| format!("fn {role}{rest}"))
        };
        include_str!("parts/choices.wgsl").split("fn ").find_map(rest).unwrap_or_default()
    }
}

/// The properties of function and tensors on which a kernel depends.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Form {
    function: Function,
    /// From where each input is read.
    inputs: [Place; 6],
    /// How each output is written.
    outputs: [Option<Access>; 2],
    /// Whether elements are integers during the computation.
    integers: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// The input is bound by its name.
    Own(Access),
    /// The input is the output, and is read there.
    Output,
    /// The input is absent.
    Absent,
}

/// A kernel and its call.
pub struct Step {
    text: &'static Text,
    form: Form,
    pub call: Call,
}

/// The steps of an operation, of which most have one.
pub(super) type Steps = SmallVec<[Step; 1]>;

impl Text {
    /// The step for these inputs, some of which may be absent, and these outputs, of which the
    /// first ones may be left out. They must be laid out as the text walks through them. If a text
    /// computes in place, an input that is the first given output is read there.
    pub(super) fn step(
        &'static self,
        operation: &str,
        function: Function,
        inputs: &[Option<&Tensor>],
        outputs: &[&Tensor],
    ) -> Result<Step> {
        let out = outputs[0];
        if out.context().0.caps.fxc && BEYOND_FXC.contains(&self.name) {
            return Err(Error::DeviceLimit(format!(
                "{operation}: FXC, which compiles shaders here, does not take its text; DXC does: \
                 wgpu uses DXC if dxcompiler.dll is on the PATH, and its devices then have wgpu's \
                 feature SUBGROUP"
            )));
        }
        let mut call = Call::new(out.context()).edge(Edge::Whole);
        let mut places = [Place::Absent; 6];
        for (at, input) in inputs.iter().enumerate() {
            let Some(input) = input else { continue };
            if self.writes == Writes::InPlace && input.is_same_view(out) {
                places[at] = Place::Output;
                continue;
            }
            for out in outputs {
                apart(operation, self.inputs[at], input, out, self.writes == Writes::InPlace)?;
            }
            call = call.input(input);
            places[at] = Place::Own(self.access(input));
        }
        let reads = matches!(self.writes, Writes::Some | Writes::Atomics);
        for out in outputs {
            call = match reads || places.contains(&Place::Output) {
                true => call.inout(out),
                false => call.output_into(out),
            };
        }
        let first = inputs.iter().flatten().next().copied().unwrap_or(out);
        let integers = !first.dtype().is_float() && !out.dtype().is_float();
        if self.by == By::Fours && !out.dtype().is_float() {
            call = call.dtype("Y", out.dtype());
        }
        let mut accesses = [None; 2];
        for (access, out) in accesses.iter_mut().zip(outputs) {
            *access = Some(self.access(out));
        }
        let form = Form { function, inputs: places, outputs: accesses, integers };
        Ok(Step { text: self, form, call })
    }

    /// Names of the outputs that a form has: the last ones.
    fn written(&self, form: &Form) -> &'static [&'static str] {
        &self.outputs[self.outputs.len() - form.outputs.iter().flatten().count()..]
    }

    fn access(&self, tensor: &Tensor) -> Access {
        match self.by {
            By::Fours => Access::of(tensor),
            By::Ones => Access::One,
        }
    }

    /// The kernel of a form; `text` gives the texts of files.
    fn made_of(&self, form: &Form, text: impl Fn(File) -> String) -> Kernel {
        let Form { function, inputs, outputs, integers } = form;
        let written = self.written(form);
        let own = function.header.iter().chain(self.headers).map(|&file| text(file));
        let mut header = own.collect::<String>() + &function.text();
        let mut body = format!("{} {}", GROUP.trim_end(), text(self.body));
        let mut bound: SmallVec<[(&str, Access); 5]> = SmallVec::new();
        let mut named = |from: &str, to: &str| {
            let [from, to] = [from, to].map(|name| format!("{name}_"));
            header = renamed(&header, &from, &to);
            body = renamed(&body, &from, &to);
        };
        for (&name, place) in self.inputs.iter().zip(inputs) {
            match place {
                Place::Own(access) => bound.push((name, *access)),
                Place::Output => named(name, written[0]),
                Place::Absent => {}
            }
        }
        // The text does not reach an absent tensor, but must be valid: another name stands for it.
        let absent = self.outputs.len() - written.len();
        self.outputs[..absent].iter().for_each(|name| named(name, written[0]));
        let present = bound.first().map_or(written[0], |(name, _)| name);
        for (&name, place) in self.inputs.iter().zip(inputs) {
            if *place == Place::Absent {
                named(name, present);
            }
        }
        let names: SmallVec<[&str; 4]> = bound.iter().map(|(name, _)| *name).collect();
        let mut access = String::new();
        if self.by == By::Fours {
            access += &super::access::types(*integers);
            let outputs = written.iter().zip(outputs.iter().flatten());
            bound.extend(outputs.clone().map(|(name, access)| (*name, *access)));
            for (name, own) in &bound {
                let calls = |function| {
                    let call = format!("{name}_{function}(");
                    [&header, &body].iter().any(|text| text.contains(&call))
                };
                let by_halves = calls("halves");
                if by_halves || calls("get") {
                    access += &own.get(name);
                }
                if by_halves {
                    access += &own.halves(name);
                }
            }
            for (name, own) in outputs {
                if body.contains(&format!("{name}_put(")) {
                    access += &own.put(name);
                }
            }
        }
        let fours = bound.iter().filter(|(_, access)| *access == Access::Fours);
        Kernel::new(self.name)
            .inputs(names)
            .outputs(written.iter().copied())
            .in_fours(fours.map(|(name, _)| *name))
            .header(access + &header)
            .source(body)
            .atomic_outputs(self.writes == Writes::Atomics)
            .ensure_contiguous(false)
            .ours()
    }
}

impl Step {
    /// Names and bytes of the tensors that the step binds.
    pub(super) fn bound(&self) -> impl Iterator<Item = (&'static str, Result<u64>)> {
        let Step { text, form, call } = self;
        let own = text.inputs.iter().zip(&form.inputs);
        let own = own.filter(|(_, place)| matches!(place, Place::Own(_))).map(|(name, _)| *name);
        own.chain(text.written(form).iter().copied()).zip(call.bound())
    }

    /// The kernel, made on the first call.
    pub(super) fn kernel(&self) -> Arc<Kernel> {
        let mut kernels = lock(&self.text.kernels);
        if let Some((_, kernel)) = kernels.iter().find(|(own, _)| *own == self.form) {
            return kernel.clone();
        }
        let kernel = Arc::new(self.made_of(|(_, text)| text.to_owned()));
        kernels.push((self.form, kernel.clone()));
        kernel
    }

    /// The kernel of this step; `text` gives the texts of files.
    pub(super) fn made_of(&self, text: impl Fn(File) -> String) -> Kernel {
        self.text.made_of(&self.form, text)
    }
}

/// `Shape` for an input that overlaps the output.
pub(super) fn apart(
    operation: &str,
    name: &'static str,
    input: &Tensor,
    out: &Tensor,
    in_place: bool,
) -> Result<()> {
    let Some(shared) = out.shares_bytes(input)? else { return Ok(()) };
    let also = if in_place { ", or the very view that is read" } else { "" };
    let how = format!("of {operation} {shared}: give another output, as run() does{also}");
    Err(Error::aliased(name, how))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_listed() {
        let src = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let mut there = Vec::new();
        let folders =
            std::fs::read_dir(src.join("ops")).unwrap().map(|entry| entry.unwrap().path());
        for folder in folders.filter(|path| path.is_dir() && !path.ends_with("parts")) {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|extension| extension == "wgsl") {
                    there.push(path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned());
                }
            }
        }
        let mut listed: Vec<_> = files().map(|(path, _)| path.to_owned()).collect();
        there.sort();
        listed.sort();
        assert_eq!(there, listed);
    }
}
