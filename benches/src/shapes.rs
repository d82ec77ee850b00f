//! Shapes worth measuring, in named groups, and any other by its name ([`GRAMMAR`]).

mod experts;
mod groups;
mod parts;

pub(crate) use experts::shuffled;
pub use experts::{Experts, Sharing};
pub use groups::{DEFAULT, GROUPS, Group};

use groups::QUICK;
pub(crate) use parts::{Part, Place};
use tilewise::{DType, Precision, QuantFormat};
use tilewise_core::Format;

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
    /// Type of all three matrices; of A and C if B is quantized.
    pub dtype: DType,
    /// Format of B, if B is quantized.
    pub quantized: Option<QuantFormat>,
    /// Products of these sizes, one beside the other.
    pub batch: usize,
    /// How the product is shared among groups; none if it is not grouped.
    pub experts: Option<Experts>,
    /// Whether the rows of A are taken by index.
    pub gathered: bool,
    /// Whether the product is multiplied by silu of a gate.
    pub gated: bool,
    /// Which operands are prepared: a name of [`PREPARED`], or none.
    pub prepared: &'static str,
    /// How exact the product must be. If its name does not say it, there is none: the product is
    /// f32 unless the run permits less.
    pub precision: Option<Precision>,
}

/// Which operands are prepared: A and B, or B alone.
pub const PREPARED: [&str; 2] = ["prepared", "prepared-b"];

/// How shapes are named.
pub const GRAMMAR: &str = "MxNxK[:layout][:dtype][:format][:xBATCH][:experts][:gathered][:gated]\
                           [:prepared][:precision]";

/// Names for rows of A by index, and for a gate.
const EXTRAS: [&str; 2] = ["gathered", "gated"];

/// Names of layouts.
const LAYOUTS: [&str; 4] = ["NN", "NT", "TN", "TT"];

/// Types of elements.
const DTYPES: [DType; 3] = [DType::F32, DType::F16, DType::BF16];

/// The name of the precision f32 in a shape's name, in which `f32` is a type.
const F32_SUMS: &str = "f32-sums";

impl std::str::FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut fields = text.split(':');
        let sizes: Option<Vec<usize>> =
            fields.next().unwrap_or("").split('x').map(|size| size.parse().ok()).collect();
        let mnk = sizes.and_then(|sizes| <[usize; 3]>::try_from(sizes).ok());
        let mnk = mnk.ok_or_else(|| format!("{text:?}: wanted {GRAMMAR}"))?;
        let (mut layouts, mut dtypes, mut formats, mut batches) = (None, None, None, None);
        let (mut prepareds, mut precisions, mut experts) = (None, None, None);
        let mut extras = [false; 2];
        for field in fields {
            if let Some(at) = EXTRAS.iter().position(|extra| *extra == field) {
                if std::mem::replace(&mut extras[at], true) {
                    return Err(format!("{text:?}: {field:?} is said twice"));
                }
                continue;
            }
            if let Ok(shared) = field.parse::<Experts>() {
                if experts.replace(shared).is_some() {
                    return Err(format!("{text:?}: {field:?} is a second number of experts"));
                }
                continue;
            }
            let layout = LAYOUTS.into_iter().find(|layout| layout.eq_ignore_ascii_case(field));
            let dtype = DTYPES.into_iter().find(|dtype| dtype.name() == field);
            let format = field.parse::<QuantFormat>().ok();
            let batch = field.strip_prefix('x').and_then(|batch| batch.parse().ok());
            let prepared = PREPARED.into_iter().find(|prepared| *prepared == field);
            let precision = match field {
                F32_SUMS => Some(Precision::F32),
                _ => field.parse().ok(),
            };
            // Here `f32` always stands for the type.
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
        let (quantized, precision, [gathered, gated]) = (formats, precisions, extras);
        let shape = Shape {
            name,
            group: "",
            mnk,
            layout,
            dtype,
            quantized,
            batch,
            experts,
            gathered,
            gated,
            prepared,
            precision,
        };
        if let Some(why) = shape.misfit() {
            return Err(format!("{text:?}: {why}"));
        }
        if let Some(format) = formats {
            if !shape.transposed()[1] {
                return Err(format!(
                    "{text:?}: quantized weights are stored along K, as in NT and TT"
                ));
            }
            format.sizes(mnk[1], mnk[2]).map_err(|error| format!("{text:?}: {error}"))?;
        }
        let elements = |rows: usize, cols: usize| {
            rows.checked_mul(cols)?.checked_mul(shape.entries())?.checked_mul(8)
        };
        let [m, n, k] = mnk;
        match (elements(m, k), elements(k, n), elements(m, n)) {
            (Some(1..), Some(1..), Some(1..)) => Ok(shape),
            (Some(_), Some(_), Some(_)) => Err(format!("{text:?}: nothing to measure")),
            _ => Err(format!("{text:?}: more elements than this machine can count")),
        }
    }
}

/// The error for an unknown part of a shape's name. It lists the names of the kind in which the
/// nearest name is.
fn unknown_field(field: &str) -> String {
    /// Most formats to list in the message.
    const SHOWN: usize = 4;
    let mut formats: Vec<_> = QuantFormat::all().map(QuantFormat::name).collect();
    formats.sort_by(|a, b| distance(field, a).total_cmp(&distance(field, b)));
    let permissions = Precision::ALL[1..].iter().map(|precision| precision.name());
    let kinds = [
        ("layouts", LAYOUTS.to_vec()),
        ("dtypes", DTYPES.map(DType::name).to_vec()),
        ("formats of quantized weights", formats),
        ("kinds of preparation", PREPARED.to_vec()),
        ("extras", EXTRAS.to_vec()),
        ("precisions", std::iter::once(F32_SUMS).chain(permissions).collect()),
    ];
    if !field.is_empty() && field.chars().all(|letter| letter == 'x' || letter.is_ascii_digit()) {
        return format!("{field:?} is no batch: x8, from x1 up");
    }
    let near = |names: &[&str]| {
        names.iter().map(|name| distance(field, name)).min_by(f64::total_cmp).unwrap_or(1.0)
    };
    let (kind, names) =
        kinds.into_iter().min_by(|(_, a), (_, b)| near(a).total_cmp(&near(b))).unwrap_or_default();
    let more = if names.len() > SHOWN + 4 { "; FORMATS.md lists all" } else { "" };
    let shown = if more.is_empty() { &names[..] } else { &names[..SHOWN] };
    format!("{field:?} is no field of a shape; the nearest {kind} are {}{more}", shown.join(", "))
}

/// How far two names are apart: the letters to change, add or leave out, divided by the longer
/// length.
fn distance(one: &str, other: &str) -> f64 {
    let (one, other) = (one.to_lowercase(), other.to_lowercase());
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &wanted) in other.iter().enumerate() {
            let changed = diagonal + usize::from(letter != wanted);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[other.len()] as f64 / one.chars().count().max(other.len()).max(1) as f64
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

/// The shapes that `--quick` keeps.
pub fn quick(mut shapes: Vec<Shape>) -> Vec<Shape> {
    shapes.retain(|shape| QUICK.contains(&shape.name.as_str()));
    shapes
}

/// A group's contents, in words; empty if no group has the name.
pub fn about(group: &str) -> &'static str {
    GROUPS.iter().find(|known| known.name == group).map_or("", |known| known.about)
}

/// The properties that tell shapes apart: batch and sizes, layout, dtype, format of quantized
/// weights, prepared operands, extras, precision, experts.
pub type Key<'a> = ([usize; 4], [&'a str; 6], String);

impl Shape {
    /// The properties that tell the shape apart, however it is written.
    pub fn key(&self) -> Key<'_> {
        let [m, n, k] = self.mnk;
        let [layout, dtype, weights] = [self.layout, self.dtype.name(), self.weights()];
        let words = [layout, dtype, weights, self.prepared, self.extras(), self.precision()];
        ([self.batch, m, n, k], words, self.experts())
    }

    /// Why there is no such product, or why this program does not measure it.
    fn misfit(&self) -> Option<String> {
        let Shape { experts, batch, prepared, quantized, gathered, gated, .. } = *self;
        let sharing = experts.map(|experts| experts.sharing);
        let listed = sharing == Some(Sharing::Halves);
        let one_a =
            matches!(sharing, None | Some(Sharing::Even | Sharing::Zipf | Sharing::Indexed));
        let whole_b = listed || sharing == Some(Sharing::AlongK);
        let why = if experts.is_some() && (batch > 1 || prepared == PREPARED[0]) {
            "experts have no batch, and their rows are not prepared"
        } else if whole_b && (quantized.is_some() || !prepared.is_empty()) {
            "ranges of K, and products of a list, are of dense matrices"
        } else if gathered && (batch > 1 || !one_a || prepared == PREPARED[0]) {
            "rows by index are those of one matrix, which is not prepared"
        } else if gathered && self.transposed()[0] {
            "rows by index lie one after the other, as in NN and NT"
        } else if listed && gated {
            "products of a list have no gate"
        } else {
            return experts.and_then(|experts| experts.misfit(self.mnk));
        };
        Some(why.to_owned())
    }

    /// Rows of A by index, and a gate, as its name says them; empty without either.
    pub fn extras(&self) -> &'static str {
        match (self.gathered, self.gated) {
            (true, true) => "gathered:gated",
            (true, false) => "gathered",
            (false, true) => "gated",
            (false, false) => "",
        }
    }

    /// How the product is shared among groups, as its name says it; empty if it is not grouped.
    pub fn experts(&self) -> String {
        self.experts.map_or(String::new(), |experts| experts.to_string())
    }

    /// The numbers of its groups; empty if it is not grouped, and for a list.
    pub fn numbers(&self) -> Vec<u32> {
        self.experts.map_or(Vec::new(), |experts| experts.numbers(self.mnk))
    }

    /// The sizes of the products of all groups; without groups, those of one entry of the batch.
    fn sizes(&self) -> Vec<[usize; 3]> {
        match self.experts {
            Some(_) => self.parts(&self.numbers()).iter().map(|part| part.mnk).collect(),
            None => vec![self.mnk],
        }
    }

    /// The number of groups, or of entries of the batch.
    fn entries(&self) -> usize {
        self.experts.map_or(self.batch, |experts| experts.count)
    }

    /// The name of the shape's precision; empty for f32 and for a shape that names none.
    pub fn precision(&self) -> &'static str {
        self.precision.filter(|&own| own != Precision::F32).map_or("", Precision::name)
    }

    /// The name of the format of quantized weights; empty for dense ones.
    pub fn weights(&self) -> &'static str {
        self.quantized.map_or("", QuantFormat::name)
    }

    /// How B is stored.
    fn b_format(&self) -> Format {
        self.quantized.map_or(Format::Dense(self.dtype), Format::Quantized)
    }

    /// Floating-point operations. Only rows that count are included.
    pub fn flops(&self) -> f64 {
        let sizes = self.sizes().into_iter();
        let each = sizes.map(|mnk| mnk.map(|size| size as f64).iter().product::<f64>());
        2.0 * self.batch as f64 * each.sum::<f64>()
    }

    /// Bytes that must move: the rows of A that count, their indices, B, the gate, and C once. A
    /// quantized B counts with all planes; experts count if they have rows.
    pub fn bytes(&self) -> f64 {
        let element = self.dtype.bytes() as f64;
        let (indices, outputs) = (f64::from(self.gathered) * 4.0, 1.0 + f64::from(self.gated));
        // After this many rows, all experts have been named.
        let named = match self.experts {
            Some(Experts { count, sharing: Sharing::Indexed }) => count,
            _ => usize::MAX,
        };
        let each = self.sizes().into_iter().enumerate().map(|(i, [m, n, k])| {
            let b = if m == 0 || i >= named { 0.0 } else { self.b_bytes([n, k]) };
            let [m, n, k] = [m, n, k].map(|size| size as f64);
            m * (indices + element * (k + outputs * n)) + b
        });
        self.batch as f64 * each.sum::<f64>()
    }

    /// Bytes of a matrix of B.
    pub(crate) fn b_bytes(&self, sides: [usize; 2]) -> f64 {
        let [n, k] = sides.map(|size| size as f64);
        k * n * self.b_format().element_bytes()
    }

    /// Whether A, or B, is stored transposed.
    pub fn transposed(&self) -> [bool; 2] {
        [0, 1].map(|at| self.layout.as_bytes()[at] == b'T')
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

    /// The work is that of the rows that count, in every form.
    #[test]
    fn work_is_that_of_rows_that_count() {
        let [m, n, k] = [10.0, 4.0, 6.0];
        for (form, flops, elements) in [
            ("e3", m * n * k, m * k + 3.0 * k * n + m * n),
            // Ten of the 64 experts have rows.
            ("e64", m * n * k, m * k + 10.0 * k * n + m * n),
            ("indexed64", m * n * k, m * k + 10.0 * k * n + m * n),
            ("indexed3", m * n * k, m * k + 3.0 * k * n + m * n),
            ("masked3", 3.0 * m * n * k, 3.0 * (m * k + k * n + m * n)),
            ("masked3-2", 3.0 * 2.0 * n * k, 3.0 * (2.0 * k + k * n + 2.0 * n)),
            ("masked3-0", 0.0, 0.0),
            // Each range of K writes its entry; an empty range writes zeros.
            ("TN:ragged-k9", m * n * k, m * k + k * n + 9.0 * m * n),
            ("list2", m * n * k + 5.0 * 2.0 * 3.0, 124.0 + 15.0 + 6.0 + 10.0),
            ("gated", m * n * k, m * k + k * n + 2.0 * m * n),
            ("x2:gated", 2.0 * m * n * k, 2.0 * (m * k + k * n + 2.0 * m * n)),
            // Indices are as long as two elements.
            ("gathered:e3", m * n * k, 2.0 * m + m * k + 3.0 * k * n + m * n),
            ("gathered:gated", m * n * k, 2.0 * m + m * k + k * n + 2.0 * m * n),
        ] {
            let shape: Shape = format!("10x4x6:f16:{form}").parse().unwrap();
            assert_eq!((shape.flops(), shape.bytes()), (2.0 * flops, 2.0 * elements), "{form}");
            assert_ne!(shape.key(), "10x4x6:f16".parse::<Shape>().unwrap().key(), "{form}");
        }
        let other: Shape = "10x4x6:f16:gated:masked3".parse().unwrap();
        assert_ne!(other.key(), "10x4x6:f16:masked3".parse::<Shape>().unwrap().key());
    }

    #[test]
    fn weights_may_be_quantized() {
        let shape: Shape = "1x8x64:f16:affine-4bit-g64-f16:x3".parse().unwrap();
        assert_eq!(
            (shape.layout, shape.weights(), shape.flops()),
            ("NT", "affine-4bit-g64-f16", 3.0 * 1024.0)
        );
        // A weight takes half a byte, and 64 of them share a scale and a bias.
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
        // This name asks for f32 although the run permits less.
        let strict: Shape = "1x8x64:f16:q8_0:f32-sums".parse().unwrap();
        assert_eq!(strict.precision, Some(Precision::F32));
        assert_eq!(strict.key(), "1x8x64:f16:q8_0".parse::<Shape>().unwrap().key());
        for (wrong, word) in [
            ("1x8x64:NT:affine-3bit", "formats of quantized weights are affine-3bit-g"),
            ("1x8x64:NT:q4k", "formats of quantized weights are q4_k, "),
            ("1x8x64:NT:affine", "; FORMATS.md lists all"),
            ("1x8x64:tz", "layouts are NN, NT, TN, TT"),
            ("1x8x64:fp16", "dtypes are f32, f16, bf16"),
            ("1x8x64:8x", "\"8x\" is no batch: x8, from x1 up"),
            ("1x8x64:prepared-c", "preparation are prepared, prepared-b"),
            ("1x8x64:f32-sum", "precisions are f32-sums, split-f32, "),
            ("1x8x64:f32-sums:f16-sums", "is a second precision"),
            ("1x8x64:NN:mxfp4", "along K"),
            ("1x8x65:NT:mxfp4", "multiple of 32"),
            ("1x8x64:NT:mxfp4:q8_0", "is a second format"),
            ("1x8x64:f16-sums:split-f32", "is a second precision"),
            ("1x8x64:gatherd", "extras are gathered, gated"),
            ("1x8x64:gated:gated", "is said twice"),
            ("4x8x64:masked4-5", "5 rows count of the 4 of an entry"),
            ("4x8x64:list4", "cannot be halved 3 times"),
            ("4x8x64:NT:q8_0:ragged-k2", "are of dense matrices"),
            ("4x8x64:list2:prepared-b", "are of dense matrices"),
            ("4x8x64:list2:gated", "have no gate"),
            ("4x8x64:masked2:gathered", "are those of one matrix"),
            ("4x8x64:TN:gathered", "as in NN and NT"),
            ("4x8x64:e2:x2", "experts have no batch"),
            ("4x8x64:e2:masked2", "is a second number of experts"),
            ("1x8x64:int4-activations", ", int8-activations"),
        ] {
            let said = wrong.parse::<Shape>().unwrap_err();
            assert!(said.contains(word) && said.len() < 220, "{said}");
        }
    }
}
