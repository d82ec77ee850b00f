//! `config.json` beside the tensors: MLX's `quantization`, with exceptions by layer, and the
//! `quantization_config` of other programs, a parser for each method.

mod compressed;
mod packed;

use crate::claims::{Claim, Expected};
use crate::error::bad;
use crate::json::{kind, object};
use crate::source::Source;
use serde_json::{Map, Value};
use std::fmt;
use tilewise_core::{Error, Result};

pub(crate) use compressed::{Compressed, Stored};
pub(crate) use packed::Packed;

/// The entries on quantization.
#[derive(Default)]
pub(crate) struct Config {
    file: String,
    mlx: Option<Map<String, Value>>,
    /// Why a file beside the tensors could not be read.
    pub(crate) fault: Option<Error>,
    /// The entries of another program.
    pub(crate) said: Option<Said>,
}

/// The entries on matrices that another program stored: a `quantization_config`.
#[derive(Clone, Debug)]
pub(crate) struct Said {
    /// The file that says so.
    pub(crate) file: String,
    /// Its `quant_method`, and what tells that it is read or not.
    method: String,
    pub(crate) says: Says,
}

#[derive(Clone, Debug)]
pub(crate) enum Says {
    Packed(Packed),
    Compressed(Compressed),
    /// Floats of 8 bits, with a scale for each block of rows and columns, if one is said.
    Fp8 {
        block: Option<[usize; 2]>,
    },
    /// Nothing but what the tensors say, too.
    Tensors,
    /// The method is not read.
    Unread,
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} says quant_method {}", self.file, self.method)
    }
}

impl Config {
    /// Reads `config.json`, or the `quantize_config.json` of older GPTQ.
    pub(crate) fn read(source: &Source) -> Result<Config> {
        let file = &source.name;
        let mut object = object(source)?;
        let says = |map: &Map<String, Value>| {
            ["quantization", "quantization_config"]
                .iter()
                .any(|key| map.get(*key).is_some_and(|value| !value.is_null()))
        };
        // Models of text and images may have the entries of the text's part.
        if !says(&object)
            && let Some(Value::Object(inner)) = object.remove("text_config")
            && says(&inner)
        {
            object = inner;
        }
        let mut take = |key: &str| match object.remove(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::Object(inner)) => Ok(Some(inner)),
            Some(other) => {
                Err(bad(file, format!("{key} is {}, an object is expected", kind(&other))))
            }
        };
        let mut mlx = take("quantization")?;
        let other = take("quantization_config")?;
        let is_mlx = |inner: &Map<String, Value>| {
            ["bits", "group_size", "mode"].iter().any(|key| inner.contains_key(*key))
        };
        let said = match other {
            Some(inner) if inner.get("quant_method").is_some_and(|method| !method.is_null()) => {
                Some(Said::read(file, &inner)?)
            }
            // MLX writes its own entries under both keys.
            Some(inner) if is_mlx(&inner) => {
                mlx.get_or_insert(inner);
                None
            }
            Some(_) => None,
            None if mlx.is_none() && object.contains_key("bits") => {
                Some(Said::read(file, &object)?)
            }
            None => None,
        };
        let config = Config { file: file.clone(), mlx, said, fault: None };
        if let Some(mlx) = &config.mlx {
            config.expected(mlx, "quantization")?;
        }
        Ok(config)
    }

    /// Whether it says nothing about quantization.
    pub(crate) fn is_silent(&self) -> bool {
        self.mlx.is_none() && self.said.is_none()
    }

    /// Its words on the method, if that is not read.
    pub(crate) fn unread(&self) -> Option<String> {
        let said = self.said.as_ref()?;
        matches!(said.says, Says::Unread).then(|| said.to_string())
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

impl Said {
    /// Reads a `quantization_config`.
    fn read(file: &str, map: &Map<String, Value>) -> Result<Said> {
        let entries = Entries { file, map };
        let method = entries.text("quant_method");
        let says = match &*method {
            // Older GPTQ files lack the key.
            "gptq" | "" => packed::gptq(&entries)?,
            "awq" => packed::awq(&entries)?,
            "compressed-tensors" => compressed::compressed(&entries)?,
            "bitsandbytes" | "hqq" | "mxfp4" => Says::Tensors,
            "fp8" => Says::Fp8 { block: entries.block("weight_block_size")? },
            "auto-round" | "intel/auto-round" => packed::auto_round(&entries)?,
            _ => Says::Unread,
        };
        let mut method = format!("{method:?}");
        if matches!(says, Says::Unread) {
            // The entry that tells the layout, if it is not the method.
            let tells = ["packing_format", "checkpoint_format", "format", "version"];
            if let Some(key) = tells.into_iter().find(|key| map.contains_key(*key)) {
                method = format!("{method} and {key} {}", map[key]);
            } else if method.contains("auto-round") {
                method = format!("{method} and no packing_format");
            }
        }
        Ok(Said { file: file.to_owned(), method, says })
    }
}

/// The entries of a `quantization_config`.
struct Entries<'a> {
    file: &'a str,
    map: &'a Map<String, Value>,
}

impl Entries<'_> {
    /// A text in lower case; empty, if there is none.
    fn text(&self, key: &str) -> String {
        self.map.get(key).and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase()
    }

    fn flag(&self, key: &str) -> bool {
        self.map.get(key).and_then(Value::as_bool) == Some(true)
    }

    fn is_there(&self, key: &str) -> bool {
        self.map.get(key).is_some_and(|value| !value.is_null())
    }

    /// A count under one of two keys. -1 stands for `all`, if that is given.
    fn count(&self, keys: [&str; 2], all: Option<u64>) -> Result<Option<u64>> {
        let said = |key| Some((key, self.map.get(key).filter(|value| !value.is_null())?));
        let Some((key, value)) = keys.into_iter().find_map(said) else { return Ok(None) };
        match value.as_i64().or_else(|| value.as_str()?.parse().ok()) {
            Some(-1) if all.is_some() => Ok(all),
            Some(value @ 1..) => Ok(Some(value as u64)),
            _ => {
                let text = format!("{key} is {value}, a whole number from 1 on is expected");
                Err(bad(self.file, text))
            }
        }
    }
}
