//! Shards of safetensors: the index that says which tensors they hold, and a shard without the
//! others.

use crate::error::bad;
use crate::json::{kind, object};
use crate::source::{Source, Store};
use crate::split;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use tilewise_core::Result;

/// The ending of the name of an index.
pub(crate) const INDEX: &str = ".safetensors.index.json";

/// The file that holds each tensor, by the tensor's name.
pub(crate) type WeightMap = BTreeMap<String, String>;

/// A shard that was opened by its own name.
#[derive(Debug)]
pub(crate) struct Shard {
    /// From 1 on.
    pub(crate) number: u64,
    pub(crate) count: u64,
    /// Weight map of its model, or why it is not known.
    weights: std::result::Result<WeightMap, String>,
}

impl Shard {
    /// Opens the shard that the file of this name is; none if it is a whole model.
    pub(crate) fn open(files: &mut Store, file: &str) -> Option<Self> {
        let (prefix, number, count) = several(file)?;
        let weights = match files.open_optional(&format!("{prefix}{INDEX}")) {
            Ok(Some(index)) => weight_map(&index).map_err(|error| error.to_string()),
            Ok(None) => Err("no index is there to tell".to_owned()),
            Err(error) => Err(error.to_string()),
        };
        Some(Shard { number, count, weights })
    }

    /// Where a tensor lies that this shard does not hold, if it lies anywhere; or why that is not
    /// known.
    pub(crate) fn elsewhere(&self, tensor: &str) -> std::result::Result<Option<&str>, &str> {
        let weights = self.weights.as_ref().map_err(String::as_str)?;
        Ok(weights.get(tensor).map(String::as_str))
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "shard {} of {}", self.number, self.count)
    }
}

/// The start of the name, the number and the count of a shard, if its name says that it is one of
/// several.
fn several(file: &str) -> Option<(&str, u64, u64)> {
    split::parse(file, ".safetensors").filter(|(_, _, count)| *count > 1)
}

/// Whether the name of a file says that it is one of several.
pub(crate) fn is_shard(file: &str) -> bool {
    several(file).is_some()
}

/// Reads an index.
pub(crate) fn weight_map(index: &Source) -> Result<WeightMap> {
    let bad = |why: String| bad(&index.name, why);
    let mut object = object(index)?;
    let map = match object.remove("weight_map").unwrap_or(Value::Null) {
        Value::Object(map) => map,
        other => return Err(bad(format!("weight_map is {}, an object is expected", kind(&other)))),
    };
    if map.is_empty() {
        return Err(bad("weight_map is empty: it names no tensors".to_owned()));
    }
    let file = |(tensor, file): (String, Value)| match file {
        Value::String(file) if is_plain(&file) => Ok((tensor, file)),
        _ => Err(bad(format!(
            "tensor {tensor:?} is in {file}, the name of a file beside it is expected"
        ))),
    };
    map.into_iter().map(file).collect()
}

/// Whether this is the name of a file, without folders.
fn is_plain(name: &str) -> bool {
    !name.is_empty() && name != "." && name != ".." && !name.contains(['/', '\\', ':', '\0'])
}
