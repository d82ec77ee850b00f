//! The header of a safetensors file: a length, then JSON that says where each tensor lies.
//!
//! The crate `safetensors` reads it too. It refuses a whole file for one unknown type, tells no
//! numbers and takes a name that is given twice. The format promises no alignment, and none is
//! needed here.

use crate::error::bad;
use crate::raw::{Element, Raw, elements};
use crate::signature::{self, Kind};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fmt;
use tilewise_core::{DType, Result};

/// Bytes before the header: its length as a u64.
const PREFIX: usize = 8;
/// Bytes of a header, at most: the format's own limit.
pub(crate) const MOST: u64 = 100_000_000;

/// The key of the metadata among the names of tensors.
pub(crate) const METADATA: &str = "__metadata__";

/// The contents of a header.
#[derive(Debug)]
pub(crate) struct Header {
    pub(crate) metadata: BTreeMap<String, String>,
    /// In the order of their bytes.
    pub(crate) tensors: Vec<Raw>,
}

/// Reads the header of a safetensors file, and checks that its tensors cover the rest of the file,
/// each with as many bytes as its shape needs.
pub(crate) fn read(file: usize, name: &str, bytes: &[u8]) -> Result<Header> {
    read_header(file, name, bytes)
        .map_err(|error| signature::or_foreign(name, bytes, Kind::Safetensors, error))
}

fn read_header(file: usize, name: &str, bytes: &[u8]) -> Result<Header> {
    let length = bytes.len();
    let bad = |why: String| bad(name, why);
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
        return Err(bad(format!("truncated: {length} bytes are too few for a safetensors file")));
    };
    let declared = u64::from_le_bytes(*prefix);
    if declared > MOST {
        return Err(bad(format!(
            "it declares a header of {declared} bytes; at most {MOST} are read"
        )));
    }
    let Some((header, data)) = rest.split_at_checked(declared as usize) else {
        let text = format!(
            "truncated: a header of {declared} bytes is declared at byte 0 of a file of {length} \
             bytes"
        );
        return Err(bad(text));
    };
    let parsed: Parsed = serde_json::from_slice(header)
        .map_err(|why| bad(format!("the header, {declared} bytes from byte {PREFIX}: {why}")))?;
    let start = PREFIX + header.len();
    let tensor = |(name, info): (String, Info)| {
        let element = element(&info.dtype);
        let (from, to) = info.data_offsets;
        let place = || {
            let Info { dtype, shape, .. } = &info;
            format!("tensor {name:?}, {dtype} {shape:?}, bytes {from}..{to} from byte {start}")
        };
        if from > to || to > data.len() as u64 {
            return Err(bad(format!(
                "{}: {} bytes of tensors are in the file",
                place(),
                data.len()
            )));
        }
        let needed = elements(&info.shape)
            .ok_or_else(|| bad(format!("{}: the product of its shape overflows", place())))?;
        if let Some(bits) = bits(&info.dtype) {
            let needed = needed as u128 * u128::from(bits);
            if !needed.is_multiple_of(8) {
                return Err(bad(format!("{}: its {needed} bits end within a byte", place())));
            }
            if needed / 8 != u128::from(to - from) {
                return Err(bad(format!(
                    "{}: {} bytes, its shape needs {}",
                    place(),
                    to - from,
                    needed / 8
                )));
            }
        }
        let bytes = start + from as usize..start + to as usize;
        Ok(Raw { name, element, shape: info.shape, file, bytes })
    };
    let mut tensors = parsed.tensors.into_iter().map(tensor).collect::<Result<Vec<Raw>>>()?;
    tensors.sort_by(|a, b| {
        (a.bytes.start, a.bytes.end, &a.name).cmp(&(b.bytes.start, b.bytes.end, &b.name))
    });
    let (mut end, mut last) = (start, "");
    for tensor in &tensors {
        let (from, to) = (tensor.bytes.start, tensor.bytes.end);
        let shown = || format!("tensor {:?} at bytes {from}..{to} of the file", tensor.name);
        if from < end {
            return Err(bad(format!(
                "{} overlaps tensor {last:?}, which ends at byte {end}",
                shown()
            )));
        }
        if from > end {
            return Err(bad(format!(
                "{}: the {} bytes before it belong to no tensor",
                shown(),
                from - end
            )));
        }
        (end, last) = (to, &tensor.name);
    }
    if end != length {
        return Err(bad(format!(
            "too long: the tensors end at byte {end}, the file at byte {length}"
        )));
    }
    Ok(Header { metadata: parsed.metadata, tensors })
}

/// The type of this name.
fn element(name: &str) -> Element {
    match name {
        "F32" => Element::Dense(DType::F32),
        "F16" => Element::Dense(DType::F16),
        "BF16" => Element::Dense(DType::BF16),
        "I32" => Element::Dense(DType::I32),
        "U32" => Element::Dense(DType::U32),
        other => Element::Other(Cow::Owned(other.to_owned())),
    }
}

/// Bits of an element of a type, if it is known.
pub(crate) fn bits(name: &str) -> Option<u32> {
    Some(match name {
        "F4" => 4,
        "F6_E2M3" | "F6_E3M2" => 6,
        "BOOL" | "U8" | "I8" | "F8_E5M2" | "F8_E4M3" | "F8_E8M0" | "F8_E4M3FNUZ"
        | "F8_E5M2FNUZ" => 8,
        "U16" | "I16" | "F16" | "BF16" => 16,
        "U32" | "I32" | "F32" => 32,
        "U64" | "I64" | "F64" | "C64" => 64,
        _ => return None,
    })
}

/// The JSON. A map of the crate serde_json would hide a name that is given twice.
struct Parsed {
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, Info>,
}

#[derive(serde::Deserialize)]
struct Info {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

impl<'de> Deserialize<'de> for Parsed {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries;

        impl<'de> Visitor<'de> for Entries {
            type Value = Parsed;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Parsed, A::Error> {
                use serde::de::Error;
                let mut parsed = Parsed { metadata: BTreeMap::new(), tensors: BTreeMap::new() };
                let mut described = false;
                while let Some(key) = map.next_key::<String>()? {
                    if key == METADATA {
                        if std::mem::replace(&mut described, true) {
                            return Err(A::Error::custom("__metadata__ is there twice"));
                        }
                        // MLX writes null if it has none.
                        parsed.metadata = map.next_value::<Option<_>>()?.unwrap_or_default();
                    } else {
                        match parsed.tensors.entry(key) {
                            Entry::Vacant(free) => free.insert(map.next_value()?),
                            Entry::Occupied(first) => {
                                let text = format!("tensor {:?} is there twice", first.key());
                                return Err(A::Error::custom(text));
                            }
                        };
                    }
                }
                Ok(parsed)
            }
        }

        deserializer.deserialize_map(Entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(header: &str, data: usize) -> Vec<u8> {
        [&(header.len() as u64).to_le_bytes(), header.as_bytes(), &vec![0; data]].concat()
    }

    fn refusal(bytes: &[u8]) -> String {
        read(0, "f", bytes).unwrap_err().to_string()
    }

    #[test]
    fn lies_are_told_with_their_numbers() {
        assert!(refusal(&[0; 7]).contains("f: truncated: 7 bytes"));
        assert!(refusal(&[0xff; 64]).contains("a header of 18446744073709551615 bytes"));
        assert!(
            refusal(&file("{}", 0)[..9])
                .contains("a header of 2 bytes is declared at byte 0 of a file of 9 bytes")
        );
        assert_eq!(refusal(b"\x93NUMPY\x01\0v\0{"), "f: a NumPy array, not a model");
        assert!(refusal(&file("{", 0)).contains("the header, 1 bytes from byte 8: EOF"));
        assert!(refusal(&file("[]", 0)).contains("an object of tensors"));
        for (entries, data, expected) in [
            (
                r#""a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#,
                7,
                "bytes 0..8 from byte 62: 7 bytes of tensors",
            ),
            (
                r#""a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}"#,
                9,
                "end at byte 70, the file at byte 71",
            ),
            (
                r#""a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}"#,
                8,
                "8 bytes, its shape needs 12",
            ),
            (r#""a":{"dtype":"F32","shape":[2],"data_offsets":[8,0]}"#, 8, "bytes 8..0 from byte"),
            (
                r#""a":{"dtype":"F4","shape":[3],"data_offsets":[0,2]}"#,
                2,
                "its 12 bits end within a byte",
            ),
            (
                r#""a":{"dtype":"U8","shape":[4294967296,4294967296],"data_offsets":[0,0]}"#,
                0,
                "overflows",
            ),
            (r#""a":{"dtype":"U8","shape":[-1],"data_offsets":[0,0]}"#, 0, "-1"),
            (
                r#""a":{"dtype":"U8","shape":[0],"data_offsets":[0,0],"more":1,"dtype":"U8"}"#,
                0,
                "duplicate field",
            ),
        ] {
            let text = refusal(&file(&format!("{{{entries}}}"), data));
            assert!(text.contains(expected), "{text}");
        }
    }

    #[test]
    fn two_tensors_share_no_bytes_and_leave_none() {
        let entry = |name: &str, from: usize, to: usize| {
            format!(
                r#""{name}":{{"dtype":"U8","shape":[{}],"data_offsets":[{from},{to}]}}"#,
                to - from
            )
        };
        let both = |a: String, b: String| file(&format!("{{{a},{b}}}"), 8);
        assert!(read(0, "f", &both(entry("b", 4, 8), entry("a", 0, 4))).is_ok());
        assert!(
            refusal(&both(entry("a", 0, 5), entry("b", 4, 8)))
                .contains("overlaps tensor \"a\", which ends at byte")
        );
        assert!(
            refusal(&both(entry("a", 0, 3), entry("b", 4, 8)))
                .contains("the 1 bytes before it belong to no tensor")
        );
        assert!(
            refusal(&both(entry("a", 0, 4), entry("a", 4, 8)))
                .contains("tensor \"a\" is there twice")
        );
    }

    #[test]
    fn unknown_types_are_named_and_empty_tensors_taken() {
        assert!(read(5, "f", &file(r#"{"__metadata__":null}"#, 0)).unwrap().metadata.is_empty());
        let header = r#"{"__metadata__":{"k":"v"},"a":
            {"dtype":"F2","shape":[9],"data_offsets":[0,3]},
            "b":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[3,3]}}"#;
        let read = read(5, "f", &file(header, 3)).unwrap();
        assert_eq!(read.metadata["k"], "v");
        let [a, b] = &read.tensors[..] else { panic!("{read:?}") };
        assert_eq!((a.element.name(), a.file, a.bytes.len()), ("F2", 5, 3));
        assert_eq!((b.element.name(), b.bytes.len()), ("F32", 0));
    }
}
