//! The texts of the operations, and the kernels that they become.

use crate::cache::lock;
use crate::kernel::{Call, Edge, Kernel};
use crate::tensor::Tensor;
use smallvec::SmallVec;
use std::sync::{Arc, Mutex};
use tilewise_core::{DType, Error, Result};

/// A text in WGSL that serves several operations or several of their forms.
pub(super) struct Family {
    /// Name of the kernel.
    pub name: &'static str,
    /// File of the body below `crates/tilewise/src/ops/`, and its text.
    pub file: (&'static str, &'static str),
    /// What stands before the body.
    header: &'static str,
    /// Names of the inputs. The output is `y`.
    inputs: &'static [&'static str],
    /// The kernels made so far, by function and by where the inputs lie.
    kernels: Mutex<Vec<(Key, Arc<Kernel>)>>,
}

/// Which of a family's functions, and two bits for each input.
type Key = (u16, u16);

macro_rules! family {
    ($name:literal, $file:literal, $header:literal, $inputs:expr) => {
        Family {
            name: $name,
            file: ($file, include_str!($file)),
            header: include_str!($header),
            inputs: &$inputs,
            kernels: Mutex::new(Vec::new()),
        }
    };
}

pub(super) static SOFTMAX: Family =
    family!("softmax", "softmax.wgsl", "online.wgsl", ["x", "mask"]);

/// All families.
pub(super) static FAMILIES: [&Family; 1] = [&SOFTMAX];

/// A function that a family applies: its number in the family's table, and its text.
#[derive(Clone, Copy)]
#[allow(dead_code)]
pub(super) struct Function {
    pub number: u16,
    pub text: &'static str,
}

/// A kernel and its call.
pub struct Step {
    pub kernel: Arc<Kernel>,
    pub call: Call,
}

/// Few steps make an operation.
pub(super) type Steps = SmallVec<[Step; 1]>;

impl Family {
    /// The call of the kernel for these inputs, absent ones among them, and this output. Tensors
    /// are laid out as the text walks through them. An input that is the output is read there.
    pub(super) fn step(
        &'static self,
        function: Option<Function>,
        inputs: &[Option<&Tensor>],
        out: &Tensor,
    ) -> Result<Step> {
        let mut call = Call::new(out.context()).edge(Edge::Whole);
        let (mut places, mut in_place) = (0, false);
        for (at, input) in inputs.iter().enumerate() {
            let place = match input {
                None => ABSENT,
                Some(input) if input.is_same_view(out) => OUTPUT,
                Some(input) => {
                    self.apart(self.inputs[at], input, out)?;
                    call = call.input(input);
                    OWN
                }
            };
            in_place |= place == OUTPUT;
            places |= place << (2 * at);
        }
        call = if in_place { call.inout(out) } else { call.output_into(out) };
        if out.dtype() != DType::BF16 {
            call = call.dtype("T", out.dtype());
        }
        let key = (function.map_or(0, |function| function.number), places);
        let mut kernels = lock(&self.kernels);
        let known = kernels.iter().find(|(known, _)| *known == key);
        let kernel = match known {
            Some((_, kernel)) => kernel.clone(),
            None => {
                let kernel = Arc::new(self.kernel(function, places));
                kernels.push((key, kernel.clone()));
                kernel
            }
        };
        Ok(Step { kernel, call })
    }

    fn kernel(&self, function: Option<Function>, places: u16) -> Kernel {
        let mut header = self.header.to_owned();
        let mut body = self.file.1.to_owned();
        let mut own: SmallVec<[&str; 4]> = SmallVec::new();
        for (at, &name) in self.inputs.iter().enumerate() {
            match places >> (2 * at) & 3 {
                OWN => own.push(name),
                // The text reads nothing of an absent input, and must be valid.
                _ => body = renamed(&body, name, "y"),
            }
        }
        for name in own.iter().chain([&"y"]) {
            header += &format!("fn {name}_load(i: u32) -> f32 {{ return f32({name}[i]); }}\n");
        }
        header += "fn y_store(i: u32, value: f32) { y[i] = T(value); }\n";
        if let Some(function) = function {
            header += function.text;
        }
        Kernel::new(self.name)
            .inputs(own.iter().copied())
            .outputs(["y"])
            .header(header)
            .source(body)
            .ensure_contiguous(false)
    }

    /// `Misuse` for an input that lies partly in the output.
    fn apart(&self, name: &str, input: &Tensor, out: &Tensor) -> Result<()> {
        if !input.storage().shares(out.storage()) {
            return Ok(());
        }
        let (of_input, of_out) = (input.span()?, out.span()?);
        if of_input.is_empty() || of_input.end <= of_out.start || of_out.end <= of_input.start {
            return Ok(());
        }
        Err(Error::Misuse(format!(
            "{}: the output has the bytes {of_out:?} of its buffer, and {name} the bytes \
             {of_input:?}, in whole words; run() makes another tensor, and the output may be the \
             same view as the input where both have one shape, dtype and strides",
            self.name
        )))
    }
}

const OWN: u16 = 0;
const OUTPUT: u16 = 1;
const ABSENT: u16 = 2;

/// `text` with `from` as a prefix of identifiers replaced: `x_load` by `y_load`.
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
        let text = "x_load(max_x + x_shape[0]) * x * mask_load(x_)";
        assert_eq!(renamed(text, "x", "y"), "y_load(max_x + y_shape[0]) * x * mask_load(y_)");
    }
}
