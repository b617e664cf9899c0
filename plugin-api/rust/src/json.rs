//! JSON values: from clients, and in the host's storage.
//!
//! [`Value::parse`] reads text and `to_string()` writes it. Text that the host would reject is
//! rejected here too: more than [`MAX_DEPTH`] levels, a number that does not fit an `f64`, half
//! of a surrogate pair.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::ops::Index;

/// Most levels of arrays and objects: `HEARTH_MAX_JSON_DEPTH` of `json_rules.h`.
pub const MAX_DEPTH: usize = 256;

#[derive(Clone, Debug, Default, PartialEq)]
pub enum Value {
    #[default]
    Null,
    Bool(bool),
    /// A number without fraction and exponent that fits.
    Int(i64),
    Float(f64),
    Text(String),
    Array(Vec<Value>),
    /// Sorted by key. Of two members with one key the later one counts.
    Object(BTreeMap<String, Value>),
}

impl Value {
    /// Reads one value. The error says what is wrong and at which byte.
    pub fn parse(text: &str) -> Result<Value, String> {
        crate::json_reader::parse(text)
    }

    /// `Value::object([("count", 1.into()), ("name", "a".into())])`
    pub fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
        Value::Object(members.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
    }

    pub fn is_null(&self) -> bool {
        *self == Value::Null
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }

    /// An integer. JavaScript has one type of number, so `1e3` and `2.0` count as integers too.
    pub fn as_i64(&self) -> Option<i64> {
        // Beyond 2^53 a double no longer holds every integer.
        const EXACT: f64 = 9_007_199_254_740_992.0;
        match self {
            Value::Int(value) => Some(*value),
            Value::Float(value) if value.fract() == 0.0 && value.abs() <= EXACT => {
                Some(*value as i64)
            }
            _ => None,
        }
    }

    pub fn as_f64(&self) -> Option<f64> {
        match self {
            Value::Int(value) => Some(*value as f64),
            Value::Float(value) => Some(*value),
            _ => None,
        }
    }

    pub fn as_text(&self) -> Option<&str> {
        match self {
            Value::Text(value) => Some(value),
            _ => None,
        }
    }

    pub fn as_array(&self) -> Option<&[Value]> {
        match self {
            Value::Array(values) => Some(values),
            _ => None,
        }
    }

    /// The member of an object.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Object(members) => members.get(key),
            _ => None,
        }
    }

    /// Sets a member. A value that is no object becomes an object with only this member.
    pub fn set(&mut self, key: &str, value: impl Into<Value>) {
        if !matches!(self, Value::Object(_)) {
            *self = Value::Object(BTreeMap::new());
        }
        if let Value::Object(members) = self {
            members.insert(key.to_owned(), value.into());
        }
    }
}

static NULL: Value = Value::Null;

/// `value["key"]`: null if there is no such member.
impl Index<&str> for Value {
    type Output = Value;
    fn index(&self, key: &str) -> &Value {
        self.get(key).unwrap_or(&NULL)
    }
}

/// `value[0]`: null if there is no such element.
impl Index<usize> for Value {
    type Output = Value;
    fn index(&self, index: usize) -> &Value {
        self.as_array().and_then(|values| values.get(index)).unwrap_or(&NULL)
    }
}

// ---- to JSON -----------------------------------------------------------------------------------

/// The JSON text, without spaces. A number that is not finite is written as null, as JavaScript
/// does.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Null => f.write_str("null"),
            Value::Bool(value) => write!(f, "{value}"),
            Value::Int(value) => write!(f, "{value}"),
            // Not Display, which writes 1e300 with 301 digits.
            Value::Float(value) if value.is_finite() => write!(f, "{value:?}"),
            Value::Float(_) => f.write_str("null"),
            Value::Text(value) => write_text(f, value),
            Value::Array(values) => {
                for (index, value) in values.iter().enumerate() {
                    f.write_char(if index == 0 { '[' } else { ',' })?;
                    write!(f, "{value}")?;
                }
                f.write_str(if values.is_empty() { "[]" } else { "]" })
            }
            Value::Object(members) => {
                for (index, (key, value)) in members.iter().enumerate() {
                    f.write_char(if index == 0 { '{' } else { ',' })?;
                    write_text(f, key)?;
                    write!(f, ":{value}")?;
                }
                f.write_str(if members.is_empty() { "{}" } else { "}" })
            }
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    f.write_char('"')?;
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        f.write_str(&text[plain..at])?;
        plain = at + 1;
        match byte {
            b'"' | b'\\' => write!(f, "\\{}", byte as char)?,
            b'\n' => f.write_str("\\n")?,
            b'\r' => f.write_str("\\r")?,
            b'\t' => f.write_str("\\t")?,
            _ => write!(f, "\\u{byte:04x}")?,
        }
    }
    f.write_str(&text[plain..])?;
    f.write_char('"')
}

// ---- from Rust ---------------------------------------------------------------------------------

impl From<()> for Value {
    fn from(_: ()) -> Value {
        Value::Null
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Value {
        Value::Bool(value)
    }
}

impl From<i32> for Value {
    fn from(value: i32) -> Value {
        Value::Int(value.into())
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Value {
        Value::Int(value)
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Value {
        Value::Int(value.into())
    }
}

impl From<usize> for Value {
    fn from(value: usize) -> Value {
        i64::try_from(value).map_or(Value::Float(value as f64), Value::Int)
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Value {
        Value::Float(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Value {
        Value::Text(value.to_owned())
    }
}

impl From<String> for Value {
    fn from(value: String) -> Value {
        Value::Text(value)
    }
}

impl<T: Into<Value>> From<Vec<T>> for Value {
    fn from(values: Vec<T>) -> Value {
        Value::Array(values.into_iter().map(Into::into).collect())
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}
