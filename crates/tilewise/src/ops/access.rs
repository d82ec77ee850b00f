//! How texts read and write four elements of a row: `x_get(at, i, step, count)` and
//! `y_put(at, i, step, count, v)`. `count` elements from the i-th on count; `at` is where the row
//! begins, `step` the distance between its elements. Beyond `count` elements are read as 0.

use crate::tensor::Tensor;
use tilewise_core::DType;

/// The properties of the tensors on which the functions depend.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Form {
    /// Whether inputs are integers.
    integers: bool,
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Output {
    F32,
    /// 16-bit floats, of which a word may hold the last of one row and the first of another.
    Halves,
    /// 16-bit floats by whole words.
    Words,
    Integers,
}

impl Form {
    /// For an output that is laid out in rows along its last axis.
    pub(super) fn new(integers: bool, out: &Tensor) -> Self {
        let output = match out.dtype() {
            DType::F32 => Output::F32,
            DType::I32 | DType::U32 => Output::Integers,
            DType::F16 | DType::BF16 if in_words(out.shape(), out.strides()) => Output::Words,
            DType::F16 | DType::BF16 => Output::Halves,
        };
        Form { integers, output }
    }

    /// The same, where parts of rows begin anywhere.
    pub(super) fn in_parts(self) -> Self {
        let output = if self.output == Output::Words { Output::Halves } else { self.output };
        Form { output, ..self }
    }

    /// Whether the functions mention the output's type, `Y`.
    pub(super) fn names_its_type(self) -> bool {
        self.output == Output::Integers
    }

    /// The type of an element while it is computed with, and of four: integers stay such where all
    /// tensors are.
    pub(super) fn types(self) -> &'static str {
        match self.integers && self.output == Output::Integers {
            true => "alias E = u32;\nalias V = vec4<u32>;\n",
            false => "alias E = f32;\nalias V = vec4<f32>;\n",
        }
    }

    pub(super) fn get(self, name: &str) -> String {
        if self.integers { integers(name) } else { floats(name) }
    }

    pub(super) fn get_of_output(self) -> String {
        if self.output == Output::Integers { integers("y") } else { floats("y") }
    }

    pub(super) fn put(self) -> String {
        let each = "for (var k = 0u; k < count; k++) {";
        let body = match self.output {
            Output::F32 => format!(
                "if step == 1u && count == 4u {{ y_store4(at + i, v); return; }}\n\
                 {each} y_store(at + (i + k) * step, v[k]); }}"
            ),
            Output::Halves => format!(
                "if step == 1u && count == 4u && (at + i) % 2u == 0u {{ y_store4(at + i, v); \
                 return; }}\n{each} y_store(at + (i + k) * step, v[k]); }}"
            ),
            Output::Words => "if count == 4u { y_store4(at + i, v); }\n\
                 if count == 2u { y_store2(at + i, v.xy); }"
                .to_owned(),
            Output::Integers => format!("{each} y[at + (i + k) * step] = Y(v[k]); }}"),
        };
        format!("fn y_put(at: u32, i: u32, step: u32, count: u32, v: V) {{\n{body}\n}}\n")
    }
}

fn floats(name: &str) -> String {
    format!(
        "fn {name}_get(at: u32, i: u32, step: u32, count: u32) -> V {{\n\
         if step == 1u && count == 4u {{ return {name}_load4(at + i); }}\n\
         var v = V();\n\
         for (var k = 0u; k < count; k++) {{ v[k] = {name}_load(at + (i + k) * step); }}\n\
         return v;\n}}\n"
    )
}

fn integers(name: &str) -> String {
    format!(
        "fn {name}_get(at: u32, i: u32, step: u32, count: u32) -> V {{\n\
         var v = V();\n\
         for (var k = 0u; k < count; k++) {{ v[k] = E({name}[at + (i + k) * step]); }}\n\
         return v;\n}}\n"
    )
}

/// Whether rows of 16-bit elements begin and end between words.
fn in_words(shape: &[usize], strides: &[usize]) -> bool {
    let (Some((length, outer)), Some((step, starts))) = (shape.split_last(), strides.split_last())
    else {
        return false;
    };
    let even = |(&stride, &size): (&usize, &usize)| stride.is_multiple_of(2) || size == 1;
    *step == 1 && length.is_multiple_of(2) && starts.iter().zip(outer).all(even)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_whole_words() {
        assert!(in_words(&[6], &[1]) && in_words(&[3, 4], &[6, 1]) && in_words(&[1, 4], &[5, 1]));
        assert!(!in_words(&[5], &[1]) && !in_words(&[3, 4], &[5, 1]) && !in_words(&[4], &[2]));
        assert!(!in_words(&[], &[]));
    }
}
