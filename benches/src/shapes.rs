//! Shapes worth measuring, in named groups, and any other as
//! `MxNxK[:layout][:dtype][:format][:xBATCH][:prepared][:precision]`.

mod groups;

use groups::QUICK;
pub use groups::{DEFAULT, GROUPS, Group};
use tilewise::tilewise_core::{Format, Operand, Problem};
use tilewise::{DType, Precision, QuantFormat};

/// A product to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its name in tables and records.
    pub name: String,
    /// Name of the group that it was taken from; empty for a shape named by itself.
    pub group: &'static str,
    /// Rows, columns and summed dimension.
    pub mnk: [usize; 3],
    /// `NN`, `NT`, `TN` or `TT`.
    pub layout: &'static str,
    /// Type of all three matrices; of A and C where B is quantized.
    pub dtype: DType,
    /// Format of B, where it is quantized.
    pub quantized: Option<QuantFormat>,
    /// Products of these sizes, one beside the other.
    pub batch: usize,
    /// Which operands are prepared: a name of [`PREPARED`], or none.
    pub prepared: &'static str,
    /// How exact it must be; none if its name does not say it, and then it is f32 unless the run
    /// permits less.
    pub precision: Option<Precision>,
}

/// Which operands are prepared: A and B, or B alone.
pub const PREPARED: [&str; 2] = ["prepared", "prepared-b"];

impl std::str::FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut fields = text.split(':');
        let sizes: Option<Vec<usize>> =
            fields.next().unwrap_or("").split('x').map(|size| size.parse().ok()).collect();
        let mnk = sizes.and_then(|sizes| <[usize; 3]>::try_from(sizes).ok());
        let mnk = mnk.ok_or_else(|| {
            format!(
                "{text:?}: wanted MxNxK[:layout][:dtype][:format][:xBATCH][:prepared][:precision]"
            )
        })?;
        let (mut layouts, mut dtypes, mut formats, mut batches) = (None, None, None, None);
        let (mut prepareds, mut precisions) = (None, None);
        for field in fields {
            let layout = ["NN", "NT", "TN", "TT"]
                .into_iter()
                .find(|layout| layout.eq_ignore_ascii_case(field));
            let dtype = [DType::F32, DType::F16, DType::BF16]
                .into_iter()
                .find(|dtype| dtype.name() == field);
            let format = field.parse::<QuantFormat>().ok();
            let batch = field.strip_prefix('x').and_then(|batch| batch.parse().ok());
            let prepared = PREPARED.into_iter().find(|prepared| *prepared == field);
            let precision = field.parse::<Precision>().ok();
            // A type's name stands for the type: f32.
            let before = match (layout, dtype, format, batch, prepared, precision) {
                (Some(layout), ..) => layouts.replace(layout).map(|_| "layout"),
                (_, Some(dtype), ..) => dtypes.replace(dtype).map(|_| "dtype"),
                (_, _, Some(format), ..) => formats.replace(format).map(|_| "format"),
                (.., Some(batch), _, _) => batches.replace(batch).map(|_| "batch"),
                (.., Some(prepared), _) => {
                    prepareds.replace(prepared).map(|_| "kind of preparation")
                }
                (.., Some(precision)) => precisions.replace(precision).map(|_| "precision"),
                _ => return Err(format!("{text:?}: {}", unknown_field(field))),
            };
            if let Some(what) = before {
                return Err(format!("{text:?}: {field:?} is a second {what}"));
            }
        }
        let layout = layouts.unwrap_or(if formats.is_some() { "NT" } else { "NN" });
        let (dtype, batch) = (dtypes.unwrap_or(DType::F32), batches.unwrap_or(1));
        let (name, prepared) = (text.to_owned(), prepareds.unwrap_or_default());
        let (quantized, precision) = (formats, precisions);
        let shape =
            Shape { name, group: "", mnk, layout, dtype, quantized, batch, prepared, precision };
        if let Some(format) = formats {
            if !shape.transposed()[1] {
                return Err(format!(
                    "{text:?}: quantized weights are stored along K, as in NT and TT"
                ));
            }
            format.sizes(mnk[1], mnk[2]).map_err(|error| format!("{text:?}: {error}"))?;
        }
        let elements = |rows: usize, cols: usize| {
            rows.checked_mul(cols)?.checked_mul(shape.batch)?.checked_mul(8)
        };
        let [m, n, k] = mnk;
        match (elements(m, k), elements(k, n), elements(m, n)) {
            (Some(1..), Some(1..), Some(1..)) => Ok(shape),
            (Some(_), Some(_), Some(_)) => Err(format!("{text:?}: nothing to measure")),
            _ => Err(format!("{text:?}: more elements than this machine can count")),
        }
    }
}

/// An error: a part of a shape's name is not known.
fn unknown_field(field: &str) -> String {
    let formats: Vec<_> = QuantFormat::all().map(QuantFormat::name).collect();
    let precisions = Precision::ALL.map(Precision::name);
    format!(
        "{field:?} is neither a layout (NN, NT, TN, TT), nor a dtype (f32, f16, bf16), nor a \
         format of quantized weights ({}), nor a batch (x8), nor what is prepared ({}), nor a \
         precision ({})",
        formats.join(", "),
        PREPARED.join(", "),
        precisions[1..].join(", ")
    )
}

/// The shapes of a list of group names and single shapes.
///
/// # Errors
/// A text that says which item is neither.
pub fn parse(list: &[impl AsRef<str>]) -> Result<Vec<Shape>, String> {
    let mut shapes = Vec::new();
    for item in list.iter().map(AsRef::as_ref) {
        match GROUPS.iter().find(|group| group.name == item) {
            Some(group) => {
                for member in (group.members)() {
                    shapes.push(Shape { group: group.name, ..member.parse()? });
                }
            }
            None if item.contains('x') => shapes.push(item.parse()?),
            None => {
                let names: Vec<_> = GROUPS.iter().map(|group| group.name).collect();
                return Err(format!(
                    "{item:?} is no shape and no group; groups: {}",
                    names.join(", ")
                ));
            }
        }
    }
    Ok(shapes)
}

/// Those of `shapes` that `--quick` keeps.
pub fn quick(mut shapes: Vec<Shape>) -> Vec<Shape> {
    shapes.retain(|shape| QUICK.contains(&shape.name.as_str()));
    shapes
}

/// What a group holds; empty for a name that is no group's.
pub fn about(group: &str) -> &'static str {
    GROUPS.iter().find(|known| known.name == group).map_or("", |known| known.about)
}

/// What tells shapes apart: batch and sizes, layout, dtype, format of quantized weights, prepared
/// operands, precision.
pub type Key<'a> = ([usize; 4], [&'a str; 5]);

impl Shape {
    /// What tells it apart, however it is written.
    pub fn key(&self) -> Key<'_> {
        let [m, n, k] = self.mnk;
        let words =
            [self.layout, self.dtype.name(), self.weights(), self.prepared, self.precision()];
        ([self.batch, m, n, k], words)
    }

    /// The name of its precision; empty if it has none of its own.
    pub fn precision(&self) -> &'static str {
        self.precision.map_or("", Precision::name)
    }

    /// The format's name of quantized weights; empty for dense ones.
    pub fn weights(&self) -> &'static str {
        self.quantized.map_or("", QuantFormat::name)
    }

    /// How B is stored.
    fn b_format(&self) -> Format {
        self.quantized.map_or(Format::Dense(self.dtype), Format::Quantized)
    }

    /// Floating-point operations.
    pub fn flops(&self) -> f64 {
        2.0 * self.batch as f64 * self.mnk.iter().map(|&size| size as f64).product::<f64>()
    }

    /// Bytes that must move: A, B and C once, of a quantized B all planes.
    pub fn bytes(&self) -> f64 {
        let [m, n, k] = self.mnk.map(|size| size as f64);
        self.batch as f64 * ((m * k + m * n) * self.dtype.bytes() as f64 + self.b_bytes())
    }

    /// Bytes of one entry of B.
    pub(crate) fn b_bytes(&self) -> f64 {
        let [_, n, k] = self.mnk.map(|size| size as f64);
        k * n * self.b_format().element_bytes()
    }

    /// Whether A, or B, is stored transposed.
    pub fn transposed(&self) -> [bool; 2] {
        [0, 1].map(|at| self.layout.as_bytes()[at] == b'T')
    }

    /// The product, of packed operands.
    pub fn problem(&self) -> Problem {
        let [m, n, k] = self.mnk.map(|size| size as u64);
        let batch = self.batch as u64;
        let dense = Format::Dense(self.dtype);
        let packed = |format, rows, cols, transposed| match transposed {
            true => Operand::packed(format, batch, cols, rows).t(),
            false => Operand::packed(format, batch, rows, cols),
        };
        let [a, b] = self.transposed();
        let (a, b, c) =
            (packed(dense, m, k, a), packed(self.b_format(), k, n, b), packed(dense, m, n, false));
        Problem { batch, a, b, c, ..Problem::dense(self.dtype, m, n, k) }
    }
}

#[cfg(test)]
mod tests {
    use super::groups::owned;
    use super::*;
    use std::collections::HashSet;

    fn named(names: &[&str]) -> Vec<Shape> {
        parse(names).unwrap()
    }

    #[test]
    fn every_named_shape_parses() {
        for group in GROUPS {
            let names: HashSet<String> = (group.members)().into_iter().collect();
            assert_eq!(
                named(&[group.name]).len(),
                names.len(),
                "{} names a shape twice",
                group.name
            );
        }
        let kept: HashSet<String> =
            quick(named(&DEFAULT)).into_iter().map(|shape| shape.name).collect();
        assert_eq!(kept, owned(QUICK).into_iter().collect());
    }

    #[test]
    fn fields_stand_in_any_order() {
        let shape: Shape = "4x5x6:tn:x7:bf16".parse().unwrap();
        assert_eq!(
            (shape.mnk, shape.layout, shape.dtype, shape.batch),
            ([4, 5, 6], "TN", DType::BF16, 7)
        );
        assert_eq!((shape.flops(), shape.bytes()), (2.0 * 840.0, 7.0 * 2.0 * (24.0 + 30.0 + 20.0)));
        for wrong in [
            "4x5",
            "4x5x0",
            "4x5x6:zz",
            "4x5x6:x0",
            "4x5x6:i32",
            "4x5xsix",
            "4294967296x4294967296x1",
            "4x5x6:",
        ] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
        }
        for (twice, what) in [("NT:nt", "layout"), ("f16:f32", "dtype"), ("x1:f16:x1", "batch")] {
            let said = format!("4x5x6:{twice}").parse::<Shape>().unwrap_err();
            assert!(said.ends_with(&format!("is a second {what}")), "{said}");
        }
    }

    #[test]
    fn weights_may_be_quantized() {
        let shape: Shape = "1x8x64:f16:affine-4bit-g64-f16:x3".parse().unwrap();
        assert_eq!(
            (shape.layout, shape.weights(), shape.flops()),
            ("NT", "affine-4bit-g64-f16", 3.0 * 1024.0)
        );
        // Half a byte each, and a scale and a bias for 64 of them.
        assert_eq!(shape.bytes(), 3.0 * (2.0 * (64.0 + 8.0) + 8.0 * (32.0 + 4.0)));
        assert_ne!(shape.key(), "1x8x64:NT:f16:x3".parse::<Shape>().unwrap().key());
        for weights in ["f16", "mxfp4"] {
            let [plain, prepared] = ["", ":prepared-b"].map(|end| format!("1x8x64:{weights}{end}"));
            let [plain, prepared]: [Shape; 2] = [plain, prepared].map(|name| name.parse().unwrap());
            assert!(prepared.prepared == "prepared-b" && prepared.key() != plain.key());
        }
        let fewer: Shape = "1x8x64:f16:q8_0:int8-activations".parse().unwrap();
        assert_eq!((fewer.precision, fewer.dtype), (Some(Precision::Int8Activations), DType::F16));
        assert_ne!(fewer.key(), "1x8x64:f16:q8_0".parse::<Shape>().unwrap().key());
        for (wrong, word) in [
            ("1x8x64:NT:affine-3bit", "affine-4bit-g64-f16, "),
            ("1x8x64:NN:mxfp4", "along K"),
            ("1x8x65:NT:mxfp4", "multiple of 32"),
            ("1x8x64:NT:mxfp4:q8_0", "is a second format"),
            ("1x8x64:f16-sums:split-f32", "is a second precision"),
            ("1x8x64:int4-activations", "int8-activations)"),
        ] {
            let said = wrong.parse::<Shape>().unwrap_err();
            assert!(said.contains(word), "{said}");
        }
    }
}
