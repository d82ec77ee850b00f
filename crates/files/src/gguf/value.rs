//! Values of GGUF's metadata. They are read where they lie, so that lying counts cost no memory.

use super::cursor::Cursor;
use std::borrow::Cow;
use std::fmt;

/// Arrays in arrays, at most.
const DEEPEST: u32 = 4;

/// A value of GGUF's metadata.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value<'a> {
    /// A number.
    U8(u8),
    /// A number.
    I8(i8),
    /// A number.
    U16(u16),
    /// A number.
    I16(i16),
    /// A number.
    U32(u32),
    /// A number.
    I32(i32),
    /// A number.
    U64(u64),
    /// A number.
    I64(i64),
    /// A number.
    F32(f32),
    /// A number.
    F64(f64),
    /// Yes or no.
    Bool(bool),
    /// A text. Bytes that are not Unicode are replaced.
    String(Cow<'a, str>),
    /// Values of one type.
    Array(ValueArray<'a>),
}

/// An array of GGUF's metadata.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ValueArray<'a> {
    kind: Kind,
    count: u64,
    depth: u32,
    bytes: &'a [u8],
}

impl<'a> ValueArray<'a> {
    /// Number of its elements.
    pub fn len(&self) -> u64 {
        self.count
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its elements.
    pub fn iter(&self) -> impl Iterator<Item = Value<'a>> {
        let mut cursor = Cursor::new(self.bytes, 0);
        let (kind, depth) = (self.kind, self.depth);
        (0..self.count).map_while(move |_| kind.read(&mut cursor, depth).ok())
    }
}

impl fmt::Display for ValueArray<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 4;
        f.write_str("[")?;
        for (i, value) in self.iter().take(SHOWN).enumerate() {
            write!(f, "{}{value}", if i == 0 { "" } else { ", " })?;
        }
        match self.count.saturating_sub(SHOWN as u64) {
            0 => f.write_str("]"),
            more => write!(f, ", and {more} more]"),
        }
    }
}

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::U8(value) => value.fmt(f),
            Value::I8(value) => value.fmt(f),
            Value::U16(value) => value.fmt(f),
            Value::I16(value) => value.fmt(f),
            Value::U32(value) => value.fmt(f),
            Value::I32(value) => value.fmt(f),
            Value::U64(value) => value.fmt(f),
            Value::I64(value) => value.fmt(f),
            Value::F32(value) => value.fmt(f),
            Value::F64(value) => value.fmt(f),
            Value::Bool(value) => value.fmt(f),
            Value::String(value) => fmt::Debug::fmt(value, f),
            Value::Array(value) => value.fmt(f),
        }
    }
}

impl<'a> Value<'a> {
    /// A whole number from 0 on, of any type.
    pub fn as_u64(&self) -> Option<u64> {
        match *self {
            Value::U8(value) => Some(value.into()),
            Value::U16(value) => Some(value.into()),
            Value::U32(value) => Some(value.into()),
            Value::U64(value) => Some(value),
            Value::I8(value) => value.try_into().ok(),
            Value::I16(value) => value.try_into().ok(),
            Value::I32(value) => value.try_into().ok(),
            Value::I64(value) => value.try_into().ok(),
            _ => None,
        }
    }

    /// A number of any type, rounded to the nearest f32.
    ///
    /// ```
    /// use tilewise_files::Value;
    ///
    /// assert_eq!((Value::F64(0.5).as_f32(), Value::U32(10_000).as_f32()), (Some(0.5), Some(1e4)));
    /// assert_eq!(Value::Bool(true).as_f32(), None);
    /// ```
    pub fn as_f32(&self) -> Option<f32> {
        Some(match *self {
            Value::U8(value) => value.into(),
            Value::I8(value) => value.into(),
            Value::U16(value) => value.into(),
            Value::I16(value) => value.into(),
            Value::U32(value) => value as f32,
            Value::I32(value) => value as f32,
            Value::U64(value) => value as f32,
            Value::I64(value) => value as f32,
            Value::F32(value) => value,
            Value::F64(value) => value as f32,
            Value::Bool(_) | Value::String(_) | Value::Array(_) => return None,
        })
    }

    /// Yes or no. A number is neither.
    ///
    /// ```
    /// use tilewise_files::Value;
    ///
    /// assert_eq!((Value::Bool(true).as_bool(), Value::U8(1).as_bool()), (Some(true), None));
    /// ```
    pub fn as_bool(&self) -> Option<bool> {
        match *self {
            Value::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// An array, such as a tokenizer's tokens.
    ///
    /// ```no_run
    /// # use tilewise_files::Model;
    /// let model = Model::open("model.gguf")?;
    /// let tokens = model.gguf_value("tokenizer.ggml.tokens").and_then(|value| value.as_array());
    /// let first = tokens.and_then(|tokens| tokens.iter().next());
    /// # Ok::<(), tilewise_files::Error>(())
    /// ```
    pub fn as_array(&self) -> Option<ValueArray<'a>> {
        match *self {
            Value::Array(array) => Some(array),
            _ => None,
        }
    }

    /// A text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text),
            _ => None,
        }
    }
}

/// The type of a value, by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Kind(u32);

impl Kind {
    const BOOL: Kind = Kind(7);
    const STRING: Kind = Kind(8);
    const ARRAY: Kind = Kind(9);

    pub(super) fn read_number(cursor: &mut Cursor<'_>) -> Result<Kind, String> {
        let at = cursor.at();
        match cursor.u32()? {
            number @ 0..=12 => Ok(Kind(number)),
            number => {
                Err(format!("a value of type {number} at byte {at}; types 0 to 12 are known"))
            }
        }
    }

    /// Bytes of a value; `None` if they vary, or may be invalid.
    fn size(self) -> Option<u64> {
        match self.0 {
            0 | 1 => Some(1),
            2 | 3 => Some(2),
            4..=6 => Some(4),
            10..=12 => Some(8),
            _ => None,
        }
    }

    /// Reads a value inside `depth` arrays.
    pub(super) fn read<'a>(self, cursor: &mut Cursor<'a>, depth: u32) -> Result<Value<'a>, String> {
        Ok(match self {
            Kind::STRING => Value::String(String::from_utf8_lossy(cursor.string()?)),
            Kind::ARRAY => Value::Array(read_array(cursor, depth)?),
            Kind::BOOL => {
                let at = cursor.at();
                match cursor.array()? {
                    [0] => Value::Bool(false),
                    [1] => Value::Bool(true),
                    [other] => {
                        return Err(format!(
                            "the boolean at byte {at} is {other}, neither 0 nor 1"
                        ));
                    }
                }
            }
            Kind(0) => Value::U8(u8::from_le_bytes(cursor.array()?)),
            Kind(1) => Value::I8(i8::from_le_bytes(cursor.array()?)),
            Kind(2) => Value::U16(u16::from_le_bytes(cursor.array()?)),
            Kind(3) => Value::I16(i16::from_le_bytes(cursor.array()?)),
            Kind(4) => Value::U32(cursor.u32()?),
            Kind(5) => Value::I32(i32::from_le_bytes(cursor.array()?)),
            Kind(6) => Value::F32(f32::from_le_bytes(cursor.array()?)),
            Kind(10) => Value::U64(cursor.u64()?),
            Kind(11) => Value::I64(i64::from_le_bytes(cursor.array()?)),
            Kind(_) => Value::F64(f64::from_le_bytes(cursor.array()?)),
        })
    }
}

fn read_array<'a>(cursor: &mut Cursor<'a>, depth: u32) -> Result<ValueArray<'a>, String> {
    let at = cursor.at();
    if depth >= DEEPEST {
        return Err(format!(
            "the array at byte {at} lies within {depth} others, which is deeper than any is read"
        ));
    }
    let kind = Kind::read_number(cursor)?;
    let count = cursor.u64()?;
    // A copy of the cursor walks over the elements; then the bytes are taken at once.
    let mut walk = cursor.fork();
    match kind.size() {
        Some(size) => {
            let text = || format!("truncated: an array of {count} elements at byte {at}");
            walk.take(count.checked_mul(size).ok_or_else(text)?)?;
        }
        None => {
            for _ in 0..count {
                kind.read(&mut walk, depth + 1)?;
            }
        }
    }
    let bytes = cursor.take((walk.at() - cursor.at()) as u64)?;
    Ok(ValueArray { kind, count, depth: depth + 1, bytes })
}
