//! Claims about the format of a matrix, and who makes them.

use crate::layouts;
use std::collections::BTreeSet;
use std::fmt;
use tilewise_core::{Error, QuantFormat, Result};

/// The format of a quantized matrix, as far as the caller knows it. Nothing is required.
///
/// ```
/// use tilewise_files::Expected;
///
/// let affine = Expected::default().bits(4).group(64).mode("affine");
/// assert_eq!(affine.to_string(), "4 bits, groups of 64, mode affine");
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Expected {
    /// The format itself.
    pub format: Option<QuantFormat>,
    /// Bits of a code.
    pub bits: Option<u32>,
    /// Elements along K that share a scale.
    pub group: Option<u32>,
    /// The family, as MLX calls it: `affine`, `mxfp4`, `mxfp8`, `nvfp4`; or who packed the matrix:
    /// `gptq`, `gptq_v2`, `awq`, `awq_gemv`, `awq_gemv_fast`. Case does not count. GPTQ's version
    /// that is said here counts more than that of `config.json`, and a `quant_method` that is not
    /// known does not count beside it.
    pub mode: Option<String>,
}

impl From<QuantFormat> for Expected {
    fn from(format: QuantFormat) -> Self {
        Expected { format: Some(format), ..Expected::default() }
    }
}

impl Expected {
    /// Expects this format.
    #[must_use]
    pub fn format(mut self, format: QuantFormat) -> Self {
        self.format = Some(format);
        self
    }

    /// Expects codes of `bits` bits.
    #[must_use]
    pub fn bits(mut self, bits: u32) -> Self {
        self.bits = Some(bits);
        self
    }

    /// Expects `group` elements along K to share a scale.
    #[must_use]
    pub fn group(mut self, group: u32) -> Self {
        self.group = Some(group);
        self
    }

    /// Expects this [`mode`](Self::mode).
    #[must_use]
    pub fn mode(mut self, mode: impl Into<String>) -> Self {
        self.mode = Some(mode.into());
        self
    }

    /// One of MLX's formats in the words of its `config.json`: bits, group and mode. None for
    /// others.
    pub fn in_words(format: QuantFormat) -> Option<Self> {
        let (bits, group) = (bits_of(format)?, u32::try_from(format.block()).ok()?);
        let mode = Some(mode_of(format)?.into());
        Some(Expected { format: None, bits: Some(bits), group: Some(group), mode })
    }

    /// Whether it expects nothing.
    pub fn is_empty(&self) -> bool {
        *self == Expected::default()
    }

    /// Fails if no file could be as expected.
    pub(crate) fn check(&self) -> Result<()> {
        let possible = match self.mode.as_deref().and_then(layouts::of_mode) {
            // Codes of foreign layouts have some numbers of bits, and groups of any size.
            Some(layout) => {
                self.bits.is_none_or(|bits| layout.bits.contains(&bits))
                    && self.format.is_none_or(|format| mode_of(format) == Some("affine"))
            }
            None => {
                // A size of groups alone may be GPTQ's or AWQ's.
                let formats = Expected { group: None, ..self.clone() };
                QuantFormat::all().any(|format| formats.admits(format))
            }
        };
        if possible {
            return Ok(());
        }
        let (mut bits, mut modes) = (BTreeSet::new(), layouts::modes().collect::<BTreeSet<_>>());
        for format in QuantFormat::all() {
            bits.extend(bits_of(format).map(|bits| bits.to_string()));
            modes.extend(mode_of(format));
        }
        let (bits, modes) = (Vec::from_iter(bits), Vec::from_iter(modes));
        Err(Error::Misuse(format!(
            "the arguments: no format has {self}; bits may be {}, modes {}",
            bits.join(", "),
            modes.join(", ")
        )))
    }

    /// Whether a format is as expected.
    pub fn admits(&self, format: QuantFormat) -> bool {
        self.format.is_none_or(|own| own == format)
            && self.bits.is_none_or(|bits| bits_of(format) == Some(bits))
            && self.group.is_none_or(|group| u64::from(group) == format.block())
            && self.mode.as_deref().is_none_or(|mode| {
                mode_of(format).is_some_and(|own| mode.eq_ignore_ascii_case(own))
            })
    }

    /// Whether no format could be as both claims say.
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

/// MLX's name of the family: the format's name up to the numbers that tell its members apart.
fn mode_of(format: QuantFormat) -> Option<&'static str> {
    bits_of(format)?;
    format.name().split('-').next()
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
            let text = format!(
                "contradiction: {}: {}; {}: {}",
                first.by, first.says, second.by, second.says
            );
            return Err(Error::file(text));
        }
    }
    Ok(())
}

/// Fails if a format is not as expected.
pub(crate) fn admit(expected: &Expected, format: QuantFormat) -> Result<()> {
    if expected.admits(format) {
        return Ok(());
    }
    if format.gguf().is_some() && expected.format.is_none_or(|named| named == format) {
        let text =
            format!("{format} is a format of GGUF; {expected} applies to MLX's formats only");
        return Err(Error::Unsupported(text));
    }
    Err(contradiction(expected, format))
}

/// The error of a format that is not as expected.
pub(crate) fn contradiction(expected: &Expected, format: QuantFormat) -> Error {
    Error::file(format!("contradiction: the arguments: {expected}; the file: {format}"))
}
