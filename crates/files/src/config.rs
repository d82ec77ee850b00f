//! `config.json` beside the tensors: MLX's `quantization`, with exceptions by layer, and the
//! `quantization_config` of GPTQ and AWQ.

use crate::claims::{Claim, Expected};
use crate::error::bad;
use crate::json::{kind, object};
use crate::source::Source;
use serde_json::{Map, Value};
use std::fmt;
use tilewise_core::Result;

/// The entries on quantization.
#[derive(Default)]
pub(crate) struct Config {
    file: String,
    mlx: Option<Map<String, Value>>,
    /// The entries of GPTQ or AWQ, for all matrices.
    pub(crate) import: Import,
}

/// How GPTQ or AWQ stored all matrices. Nothing is required.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Import {
    /// The file that says so.
    pub(crate) file: String,
    pub(crate) method: Option<Method>,
    pub(crate) bits: Option<u64>,
    /// `u64::MAX` if K is one group.
    pub(crate) group: Option<u64>,
    /// Whether it is the second version of GPTQ, which stores zeros without taking 1 off. Known if
    /// the method is.
    pub(crate) second_version: bool,
    /// Another method, by its name: its tensors are not read.
    pub(crate) other: Option<String>,
}

/// Who stored codes, scales and zeros as `qweight`, `scales` and `qzeros`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Method {
    Gptq,
    Awq,
}

impl Method {
    /// Bits that a code may have.
    pub(crate) const fn bits(self) -> &'static [u32] {
        match self {
            Method::Gptq => &[4, 8],
            Method::Awq => &[4],
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Method::Gptq => "GPTQ",
            Method::Awq => "AWQ",
        })
    }
}

impl Config {
    /// Reads `config.json`, or the `quantize_config.json` of older GPTQ.
    pub(crate) fn read(source: &Source) -> Result<Config> {
        let file = &source.name;
        let mut object = object(source)?;
        let mut take = |key: &str| match object.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(inner)) => Ok(Some(inner)),
            Some(other) => {
                Err(bad(file, format!("{key} is {}, an object is expected", kind(&other))))
            }
        };
        let mut mlx = take("quantization")?;
        let other = take("quantization_config")?;
        let own_method = |inner: &Map<String, Value>| inner.contains_key("quant_method");
        let import = match other {
            Some(inner) if own_method(&inner) => read_import(file, &inner)?,
            // MLX writes its own entries under both keys.
            Some(inner) => {
                mlx.get_or_insert(inner);
                Import::default()
            }
            None if mlx.is_none() && object.contains_key("bits") => read_import(file, &object)?,
            None => Import::default(),
        };
        let config = Config { file: file.clone(), mlx, import };
        if let Some(mlx) = &config.mlx {
            config.expected(mlx, "quantization")?;
        }
        Ok(config)
    }

    /// Whether it says nothing about quantization.
    pub(crate) fn is_silent(&self) -> bool {
        self.mlx.is_none() && self.import == Import::default()
    }

    /// The claim about the matrix of this prefix.
    pub(crate) fn claim(&self, prefix: &str) -> Result<Option<Claim>> {
        let Some(mlx) = &self.mlx else { return Ok(None) };
        let by = format!("{} (quantization)", self.file);
        match mlx.get(prefix) {
            Some(Value::Object(own)) => {
                let says = self.expected(own, prefix)?;
                Ok(Some(Claim { by: format!("{} (quantization of {prefix})", self.file), says }))
            }
            Some(Value::Bool(false)) => Err(bad(
                &self.file,
                format!("it says that {prefix:?} is not quantized, but the file has its planes"),
            )),
            _ => Ok(Some(Claim { by, says: self.expected(mlx, "quantization")? })),
        }
    }

    fn expected(&self, map: &Map<String, Value>, of: &str) -> Result<Expected> {
        let number = |key: &str| match map.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => value
                .as_u64()
                .and_then(|value| u32::try_from(value).ok())
                .map(Some)
                .ok_or_else(|| {
                    bad(
                        &self.file,
                        format!("{key} of {of} is {value}, a whole number from 0 on is expected"),
                    )
                }),
        };
        let mode = match map.get("mode") {
            // Older files name no mode.
            None | Some(Value::Null) => "affine".to_owned(),
            Some(Value::String(mode)) => mode.clone(),
            Some(other) => return Err(bad(&self.file, format!("mode of {of} is {}", kind(other)))),
        };
        Ok(Expected {
            format: None,
            bits: number("bits")?,
            group: number("group_size")?,
            mode: Some(mode),
        })
    }
}

/// A `quantization_config` with a `quant_method`.
fn read_import(file: &str, map: &Map<String, Value>) -> Result<Import> {
    let unsaid = Import { file: file.to_owned(), ..Import::default() };
    let text =
        |key: &str| map.get(key).and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    let method = match &*text("quant_method") {
        "gptq" => Method::Gptq,
        "awq" => Method::Awq,
        // Older GPTQ files lack the key.
        "" => Method::Gptq,
        other => return Ok(Import { other: Some(other.to_owned()), ..unsaid }),
    };
    let layout = text("version");
    if method == Method::Awq && !matches!(&*layout, "" | "gemm") {
        return Err(bad(file, format!("AWQ's layout {layout:?} is not read; \"gemm\" is")));
    }
    // GPTQModel makes exceptions by regular expression. Then only the shapes tell.
    if map.get("dynamic").is_some_and(|dynamic| !dynamic.is_null()) {
        return Ok(Import { method: Some(method), second_version: second_version(map), ..unsaid });
    }
    let number = |keys: [&str; 2], all: Option<u64>| {
        let said = |key| Some((key, map.get(key).filter(|value| !value.is_null())?));
        let Some((key, value)) = keys.into_iter().find_map(said) else { return Ok(None) };
        match value.as_i64() {
            Some(-1) if all.is_some() => Ok(all),
            Some(value @ 1..) => Ok(Some(value as u64)),
            _ => Err(bad(file, format!("{key} is {value}, a whole number from 1 on is expected"))),
        }
    };
    Ok(Import {
        method: Some(method),
        bits: number(["bits", "w_bit"], None)?,
        group: number(["group_size", "q_group_size"], Some(u64::MAX))?,
        second_version: second_version(map),
        ..unsaid
    })
}

fn second_version(map: &Map<String, Value>) -> bool {
    map.get("checkpoint_format").and_then(Value::as_str) == Some("gptq_v2")
}
