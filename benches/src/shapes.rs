//! Shapes worth measuring, by name, and any other as `MxNxK[:layout][:dtype]`.

use tilewise::DType;

/// A dense product to measure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its name in tables and records.
    pub name: String,
    /// Rows, columns and summed dimension.
    pub mnk: [usize; 3],
    /// `NN`, `NT`, `TN` or `TT`.
    pub layout: &'static str,
    /// Type of all three matrices.
    pub dtype: DType,
}

/// Groups of named shapes: `--shapes GROUP`.
pub const GROUPS: &[(&str, &[&str])] = &[
    (
        "floor",
        &[
            "4096x4096x4096",
            "4096x4096x4096:NT",
            "4096x4096x4096:TN",
            "4096x4096x4096:TT",
            "4095x4095x4095",
            "4097x4097x4097",
            "1x8192x8192",
            "1x8192x8192:NT",
            "8192x1x8192",
        ],
    ),
    ("square", &["256x256x256", "512x512x512", "1024x1024x1024", "2048x2048x2048", "4096x4096x4096", "8192x8192x8192"]),
    (
        "half",
        &["4096x4096x4096:f16", "4096x4096x4096:bf16", "4095x4095x4095:f16", "1x8192x8192:f16", "1x8192x8192:NT:bf16"],
    ),
    (
        "skinny",
        &[
            "1x8192x8192:NT",
            "2x8192x8192:NT",
            "4x8192x8192:NT",
            "8x8192x8192:NT",
            "16x8192x8192:NT",
            "32x8192x8192:NT",
            "8192x4x8192",
        ],
    ),
    ("deep", &["256x256x65536", "64x64x262144"]),
];

impl std::str::FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut fields = text.split(':');
        let sizes: Vec<usize> = fields.next().unwrap_or("").split('x').filter_map(|size| size.parse().ok()).collect();
        let mnk = <[usize; 3]>::try_from(sizes).map_err(|_| format!("{text:?}: wanted MxNxK[:layout][:dtype]"))?;
        if mnk.contains(&0) {
            return Err(format!("{text:?}: nothing to measure"));
        }
        let mut shape = Shape { name: text.to_owned(), mnk, layout: "NN", dtype: DType::F32 };
        for field in fields {
            let layout = ["NN", "NT", "TN", "TT"].into_iter().find(|layout| layout.eq_ignore_ascii_case(field));
            let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == field);
            match (layout, dtype) {
                (Some(layout), _) => shape.layout = layout,
                (_, Some(dtype)) => shape.dtype = dtype,
                _ => {
                    return Err(format!(
                        "{text:?}: {field:?} is neither a layout (NN, NT, TN, TT) nor a dtype (f32, f16, bf16)"
                    ));
                }
            }
        }
        Ok(shape)
    }
}

/// The shapes of a list of group names and single shapes.
///
/// # Errors
/// A text that says which item is neither.
pub fn parse(list: &[String]) -> Result<Vec<Shape>, String> {
    let mut shapes = Vec::new();
    for item in list {
        match GROUPS.iter().find(|(name, _)| name == item) {
            Some((_, members)) => {
                for member in *members {
                    shapes.push(member.parse()?);
                }
            }
            None if item.contains('x') => shapes.push(item.parse()?),
            None => {
                let names: Vec<_> = GROUPS.iter().map(|(name, _)| *name).collect();
                return Err(format!("{item:?} is no shape and no group; groups: {}", names.join(", ")));
            }
        }
    }
    Ok(shapes)
}

impl Shape {
    /// Floating-point operations.
    pub fn flops(&self) -> f64 {
        2.0 * self.mnk.iter().map(|&size| size as f64).product::<f64>()
    }

    /// Bytes that must move: A, B and C once.
    pub fn bytes(&self) -> f64 {
        let [m, n, k] = self.mnk.map(|size| size as f64);
        (m * k + k * n + m * n) * self.dtype.bytes() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_named_shape_parses() {
        for (name, members) in GROUPS {
            assert_eq!(parse(&[(*name).to_owned()]).map(|shapes| shapes.len()), Ok(members.len()));
        }
        let shape: Shape = "4x5x6:tn:bf16".parse().unwrap();
        assert_eq!((shape.mnk, shape.layout, shape.dtype), ([4, 5, 6], "TN", DType::BF16));
        assert!(
            "4x5".parse::<Shape>().is_err()
                && "4x5x0".parse::<Shape>().is_err()
                && "4x5x6:zz".parse::<Shape>().is_err()
        );
    }
}
