//! JSON files beside the tensors.

use crate::error::bad;
use crate::signature::{self, Kind};
use crate::source::Source;
use serde_json::{Map, Value};
use std::borrow::Cow;
use tilewise_core::Result;

/// Bytes of a file, at most. Real ones take a few MB. The parsed form is several times as large.
const MOST: usize = 32 << 20;

/// Numbers that JSON lacks, and that Python's json writes. `-Infinity` is the second, with a sign.
const WORDS: [&[u8]; 2] = [b"NaN", b"Infinity"];

/// The object that a file holds. A mark of the byte order may come first, and numbers may be
/// `NaN`, `Infinity` and `-Infinity`: these become strings.
pub(crate) fn object(source: &Source) -> Result<Map<String, Value>> {
    let length = source.bytes.len();
    if length > MOST {
        return Err(bad(&source.name, format!("{length} bytes of JSON; at most {MOST} are read")));
    }
    let text = source.bytes.strip_prefix(signature::MARK).unwrap_or(&source.bytes);
    match serde_json::from_slice(&quoted(text)) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(other) => Err(bad(&source.name, format!("an object is expected, not {}", kind(&other)))),
        Err(why) => {
            let found = signature::foreign(&source.bytes, Kind::Json);
            Err(bad(&source.name, found.unwrap_or_else(|| format!("not JSON: {why}"))))
        }
    }
}

/// The text with quotes around each of the [`WORDS`] that stands outside of strings.
fn quoted(text: &[u8]) -> Cow<'_, [u8]> {
    let mut quoted = Vec::new();
    // All that precedes `done` is in `quoted`.
    let (mut at, mut done, mut in_string) = (0, 0, false);
    while at < text.len() {
        let word = match text[at] {
            b'"' => {
                in_string = !in_string;
                None
            }
            b'\\' if in_string => {
                at += 1;
                None
            }
            b'-' | b'N' | b'I' if !in_string => {
                let rest = &text[at..];
                let sign = usize::from(rest[0] == b'-');
                let word = WORDS[sign..].iter().find(|word| rest[sign..].starts_with(word));
                word.map(|word| sign + word.len())
            }
            _ => None,
        };
        if let Some(length) = word {
            quoted.extend_from_slice(&text[done..at]);
            quoted.push(b'"');
            quoted.extend_from_slice(&text[at..at + length]);
            quoted.push(b'"');
            at += length;
            done = at;
        } else {
            at += 1;
        }
    }
    if done == 0 {
        return Cow::Borrowed(text);
    }
    quoted.extend_from_slice(&text[done..]);
    Cow::Owned(quoted)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Bytes;

    fn read(text: &[u8]) -> Result<Value, String> {
        let source = Source { name: "f".into(), bytes: Bytes::Held(text.to_vec()) };
        object(&source).map(Value::Object).map_err(|error| error.to_string())
    }

    #[test]
    fn words_of_python_are_strings() {
        for (text, expected) in [
            (r#"{"a": [0.0, Infinity], "b": 1}"#, r#"{"a": [0.0, "Infinity"], "b": 1}"#),
            (r#"{"a":-Infinity,"b":[NaN,NaN,-1]}"#, r#"{"a":"-Infinity","b":["NaN","NaN",-1]}"#),
            (
                r#"{"a NaN": "Infinity \" NaN \\", "b":NaN}"#,
                r#"{"a NaN": "Infinity \" NaN \\", "b":"NaN"}"#,
            ),
            ("\u{feff}{\"\u{feff}\": 1}", "{\"\u{feff}\": 1}"),
            (r#"{"N": "I", "-": []}"#, r#"{"N": "I", "-": []}"#),
        ] {
            assert_eq!(
                read(text.as_bytes()).unwrap(),
                serde_json::from_str::<Value>(expected).unwrap()
            );
        }
        for text in [
            "",
            "N",
            "{\"a\": Nan}",
            "{\"a\": -NaN}",
            "{\"a\": +Infinity}",
            "{\"a\": InfinityNaN}",
            "{\"a\": 1NaN}",
            "{\"a\": \"NaN",
            "{\"a\": \"\\",
            "{\"a\": \u{feff}1}",
        ] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        assert_eq!(read(b"[NaN]").unwrap_err(), "f: an object is expected, not an array");
    }
}
