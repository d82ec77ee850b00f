//! Functions by which texts read and write four elements of a row: `x_get(at, i, step, count)` and
//! `y_put(at, i, step, count, v)`. The row begins at `at`, and `step` is the distance between its
//! elements. They take `count` elements (1 to 4) from the i-th on; i is a multiple of 4. Elements
//! beyond `count` are read as 0, and not written.

use crate::tensor::Tensor;
use tilewise_core::DType;

/// The properties of a tensor on which its functions depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Floats in rows that begin and end between blocks of four in memory: `count` is always 4.
    Fours,
    F32,
    /// 16-bit floats in rows that begin and end between words.
    Words,
    /// 16-bit floats. A word may hold the last element of one row and the first of another.
    Halves,
    Integers,
    /// The text has no such functions.
    One,
}

impl Access {
    /// The access to a tensor that is laid out in rows along its last axis.
    pub(super) fn of(tensor: &Tensor) -> Self {
        let (shape, strides) = (tensor.shape(), tensor.strides());
        match tensor.dtype() {
            DType::I32 | DType::U32 => Access::Integers,
            dtype if in_blocks(4, shape, strides) && starts_a_block(tensor, dtype) => Access::Fours,
            DType::F32 => Access::F32,
            DType::F16 | DType::BF16 if in_blocks(2, shape, strides) => Access::Words,
            DType::F16 | DType::BF16 => Access::Halves,
        }
    }

    pub(super) fn get(self, name: &str) -> String {
        let body = match self {
            Access::Fours => format!("return {name}_load4(at + i);"),
            Access::Integers => four(|at| format!("E({name}[{at}])")),
            _ => format!(
                "if step == 1u && count == 4u {{ return {name}_load4(at + i); }}\n{}",
                four(|at| format!("{name}_load({at})"))
            ),
        };
        format!("fn {name}_get(at: u32, i: u32, step: u32, count: u32) -> V {{\n{body}\n}}\n")
    }

    pub(super) fn put(self) -> String {
        let body = match self {
            Access::Fours => "y_store4(at + i, v);".to_owned(),
            Access::Words => "if count == 4u { y_store4(at + i, v); }\n\
                 if count == 2u { y_store2(at + i, v.xy); }"
                .to_owned(),
            Access::Integers => each(|at, x| format!("y[{at}] = Y({x});")),
            Access::F32 => format!(
                "if step == 1u && count == 4u {{ y_store4(at + i, v); return; }}\n{}",
                each(|at, x| format!("y_store({at}, {x});"))
            ),
            Access::Halves | Access::One => format!(
                "if step == 1u && count == 4u && (at + i) % 2u == 0u {{ y_store4(at + i, v); \
                 return; }}\n{}",
                each(|at, x| format!("y_store({at}, {x});"))
            ),
        };
        format!("fn y_put(at: u32, i: u32, step: u32, count: u32, v: V) {{\n{body}\n}}\n")
    }
}

/// The text of the place of the k-th of four elements.
fn place(k: &str) -> String {
    format!("at + (i + {k}) * step")
}

/// The text that reads four elements at once. It reads the last one in place of those beyond
/// `count`, and makes these 0. FXC takes too long to compile a loop that indexes a vector.
fn four(load: impl Fn(&str) -> String) -> String {
    let loads = ["0u", "min(1u, last)", "min(2u, last)", "last"].map(|k| load(&place(k)));
    format!(
        "let last = count - 1u;\nreturn select(V(), V({}), vec4(0u, 1u, 2u, 3u) < vec4(count));",
        loads.join(", ")
    )
}

/// The text that writes `count` elements, one by one.
fn each(store: impl Fn(&str, &str) -> String) -> String {
    let one = |(k, x): (usize, char)| {
        let store = store(&place(&format!("{k}u")), &format!("v.{x}"));
        format!("if {k}u < count {{ {store} }}\n")
    };
    "xyzw".chars().enumerate().map(one).collect()
}

/// The types E of an element and V of four, during the computation: integers if all tensors are
/// integers, otherwise floats.
pub(super) fn types(integers: bool) -> &'static str {
    match integers {
        true => "alias E = u32;\nalias V = vec4<u32>;\n",
        false => "alias E = f32;\nalias V = vec4<f32>;\n",
    }
}

/// Whether rows begin and end between blocks of `size` elements, counted from the first element.
fn in_blocks(size: usize, shape: &[usize], strides: &[usize]) -> bool {
    let (Some((length, outer)), Some((step, starts))) = (shape.split_last(), strides.split_last())
    else {
        return false;
    };
    let whole = |(&stride, &rows): (&usize, &usize)| stride.is_multiple_of(size) || rows == 1;
    *step == 1 && length.is_multiple_of(size) && starts.iter().zip(outer).all(whole)
}

/// Whether the first element begins a block of four in memory, and there is one.
fn starts_a_block(tensor: &Tensor, dtype: DType) -> bool {
    let first = tensor.place().map_or(0, |(_, first)| first);
    tensor.elem_count() > 0 && first.is_multiple_of(4 * dtype.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_in_whole_words() {
        let in_words = |shape: &[usize], strides: &[usize]| in_blocks(2, shape, strides);
        assert!(in_words(&[6], &[1]) && in_words(&[3, 4], &[6, 1]) && in_words(&[1, 4], &[5, 1]));
        assert!(!in_words(&[5], &[1]) && !in_words(&[3, 4], &[5, 1]) && !in_words(&[4], &[2]));
        assert!(!in_words(&[], &[]) && !in_blocks(4, &[2, 6], &[8, 1]));
    }
}
