//! Claims about the format of a matrix, and who makes them.

use std::fmt;
use tilewise_core::{Error, QuantFormat, Result};

/// The format of a quantized matrix, as far as the caller knows it. Nothing is required.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Expected {
    /// The format itself.
    pub format: Option<QuantFormat>,
    /// Bits of a code.
    pub bits: Option<u32>,
    /// Elements along K that share a scale.
    pub group: Option<u32>,
    /// The family, as MLX calls it: `affine`, `mxfp4`, `mxfp8`, `nvfp4`.
    pub mode: Option<String>,
}

impl From<QuantFormat> for Expected {
    fn from(format: QuantFormat) -> Self {
        Expected { format: Some(format), ..Expected::default() }
    }
}

impl Expected {
    /// One of MLX's formats in the words of its `config.json`: bits, group and mode. None for
    /// others.
    pub fn in_words(format: QuantFormat) -> Option<Self> {
        let (bits, group) = (bits_of(format)?, u32::try_from(format.block()).ok()?);
        let words = Expected {
            format: None,
            bits: Some(bits),
            group: Some(group),
            mode: Some(mode_of(format).into()),
        };
        format.gguf().is_none().then_some(words)
    }

    /// Whether it says nothing.
    pub fn is_empty(&self) -> bool {
        *self == Expected::default()
    }

    /// Whether a format is as expected.
    pub fn admits(&self, format: QuantFormat) -> bool {
        self.format.is_none_or(|own| own == format)
            && self.bits.is_none_or(|bits| bits_of(format) == Some(bits))
            && self.group.is_none_or(|group| u64::from(group) == format.block())
            && self.mode.as_deref().is_none_or(|mode| mode.eq_ignore_ascii_case(mode_of(format)))
    }

    /// Whether no format could be both.
    fn contradicts(&self, other: &Expected) -> bool {
        !QuantFormat::all().any(|format| self.admits(format) && other.admits(format))
            // A claim that no format fulfils contradicts no other.
            && QuantFormat::all().any(|format| self.admits(format))
            && QuantFormat::all().any(|format| other.admits(format))
    }
}

/// Bits of a code, in the formats of MLX, whose first plane holds the codes.
fn bits_of(format: QuantFormat) -> Option<u32> {
    let codes = format.planes().first().filter(|plane| plane.name == "weight")?;
    u32::try_from(codes.bytes * 8 / format.block()).ok()
}

/// As MLX calls the family: the name up to the numbers that tell its members apart.
fn mode_of(format: QuantFormat) -> &'static str {
    format.name().split('-').next().unwrap_or_default()
}

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = [
            self.format.map(|format| format.to_string()),
            self.bits.map(|bits| format!("{bits} bits")),
            self.group.map(|group| format!("groups of {group}")),
            self.mode.as_ref().map(|mode| format!("mode {mode}")),
        ];
        f.write_str(&words.into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Something said about a matrix.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Claim {
    /// Who says it: `config.json (quantization)`.
    pub(crate) by: String,
    pub(crate) says: Expected,
}

/// Fails if two claims cannot both be true. The text names the earlier one first.
pub(crate) fn agree(claims: &[Claim]) -> Result<()> {
    for (i, first) in claims.iter().enumerate() {
        if let Some(second) =
            claims[i + 1..].iter().find(|second| first.says.contradicts(&second.says))
        {
            let text = format!("{}: {}; {}: {}", first.by, first.says, second.by, second.says);
            return Err(Error::Contradiction(text));
        }
    }
    Ok(())
}
