//! JSON files beside the tensors.

use crate::error::bad;
use crate::source::Source;
use serde_json::{Map, Value};
use tilewise_core::Result;

/// Bytes of a file, at most. Real ones take a few MB. The parsed form is several times as large.
const MOST: usize = 32 << 20;

/// The object that a file holds.
pub(crate) fn object(source: &Source) -> Result<Map<String, Value>> {
    let length = source.bytes.len();
    if length > MOST {
        return Err(bad(&source.name, format!("{length} bytes of JSON; at most {MOST} are read")));
    }
    match serde_json::from_slice(&source.bytes) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(bad(&source.name, format!("an object is expected, not {}", kind(&other)))),
        Err(why) => Err(bad(&source.name, format!("not JSON: {why}"))),
    }
}

/// The kind of a value, in words.
pub(crate) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
