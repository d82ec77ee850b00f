//! Shapes by name.

use burn::tensor::FloatDType;

/// Types by their names, with the relative error of rounding to them.
const DTYPES: [(&str, FloatDType, f64, usize); 3] = [
    ("f32", FloatDType::F32, 1.0 / (1 << 24) as f64, 4),
    ("f16", FloatDType::F16, 1.0 / (1 << 11) as f64, 2),
    ("bf16", FloatDType::BF16, 1.0 / (1 << 8) as f64, 2),
];

/// A dense product: `MxNxK[:layout][:dtype][:xBATCH]`.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Its name in records.
    pub name: String,
    /// Rows, columns and summed dimension.
    pub mnk: [usize; 3],
    /// The number of such products.
    pub batch: usize,
    /// `NN`, `NT`, `TN` or `TT`.
    pub layout: &'static str,
    /// Name of the type of all three matrices.
    pub dtype_name: &'static str,
    /// The type.
    pub dtype: FloatDType,
    /// Its unit roundoff.
    pub roundoff: f64,
    /// Bytes of an element.
    pub element: usize,
}

impl std::str::FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut fields = text.split(':');
        let sizes = fields
            .next()
            .unwrap_or_default()
            .split('x')
            .map(str::parse)
            .collect::<Result<Vec<usize>, _>>();
        let mnk = sizes
            .ok()
            .and_then(|sizes| <[usize; 3]>::try_from(sizes).ok())
            .filter(|mnk| !mnk.contains(&0));
        let mnk = mnk.ok_or_else(|| format!("{text:?}: wanted MxNxK[:layout][:dtype][:xBATCH]"))?;
        let (mut layout, mut dtype, mut batch) = ("NN", DTYPES[0], 1);
        for field in fields {
            let known = ["NN", "NT", "TN", "TT"]
                .into_iter()
                .find(|layout| layout.eq_ignore_ascii_case(field));
            let number = field
                .strip_prefix('x')
                .and_then(|number| number.parse().ok())
                .filter(|&number| number > 0);
            match (known, DTYPES.into_iter().find(|dtype| dtype.0 == field), number) {
                (Some(known), ..) => layout = known,
                (_, Some(known), _) => dtype = known,
                (.., Some(number)) => batch = number,
                _ => {
                    return Err(format!(
                        "{text:?}: {field:?} is neither a layout, nor a dtype, nor a batch (x8)"
                    ));
                }
            }
        }
        let (dtype_name, dtype, roundoff, element) = dtype;
        Ok(Shape {
            name: text.to_owned(),
            mnk,
            batch,
            layout,
            dtype_name,
            dtype,
            roundoff,
            element,
        })
    }
}

impl Shape {
    /// Floating-point operations.
    pub fn flops(&self) -> f64 {
        2.0 * self.batch as f64 * self.mnk.iter().map(|&size| size as f64).product::<f64>()
    }

    /// Bytes that must move: A, B and C once.
    pub fn bytes(&self) -> f64 {
        let [m, n, k] = self.mnk.map(|size| size as f64);
        (self.batch * self.element) as f64 * (m * k + k * n + m * n)
    }
}
