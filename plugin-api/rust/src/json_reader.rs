//! The reader of [`Value`]: RFC 8259, with the limits of `hearth/json_rules.h`.
//!
//! Bounded: recursion stops at `MAX_DEPTH` levels, so no text can use up the stack.

use crate::json::{Value, MAX_DEPTH};
use std::collections::BTreeMap;

pub(crate) fn parse(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0, depth: 0 };
    reader.skip_space();
    let value = reader.value()?;
    reader.skip_space();
    if reader.at < text.len() {
        return reader.fail("nothing more was expected");
    }
    Ok(value)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, what: &str) -> Result<T, String> {
        Err(format!("not JSON: {what} at byte {}", self.at))
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// Takes this byte if it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip_space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self) -> Result<Value, String> {
        match self.peek() {
            Some(b'{') => self.nested(Self::object),
            Some(b'[') => self.nested(Self::array),
            Some(b'"') => Ok(Value::Text(self.string()?)),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => self.word("null", Value::Null),
            Some(b'-' | b'0'..=b'9') => self.number(),
            _ => self.fail("a value was expected"),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        if !self.text[self.at..].starts_with(word) {
            return self.fail("a value was expected");
        }
        self.at += word.len();
        Ok(value)
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, String>) -> Result<Value, String> {
        if self.depth == MAX_DEPTH {
            return self.fail("it is nested too deeply");
        }
        self.depth += 1;
        self.at += 1; // the bracket
        self.skip_space();
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn array(&mut self) -> Result<Value, String> {
        let mut values = Vec::new();
        if self.take(b']') {
            return Ok(Value::Array(values));
        }
        loop {
            values.push(self.value()?);
            self.skip_space();
            if self.take(b']') {
                return Ok(Value::Array(values));
            }
            if !self.take(b',') {
                return self.fail("',' or ']' was expected");
            }
            self.skip_space();
        }
    }

    fn object(&mut self) -> Result<Value, String> {
        let mut members = BTreeMap::new();
        if self.take(b'}') {
            return Ok(Value::Object(members));
        }
        loop {
            if self.peek() != Some(b'"') {
                return self.fail("a key was expected");
            }
            let key = self.string()?;
            self.skip_space();
            if !self.take(b':') {
                return self.fail("':' was expected");
            }
            self.skip_space();
            members.insert(key, self.value()?);
            self.skip_space();
            if self.take(b'}') {
                return Ok(Value::Object(members));
            }
            if !self.take(b',') {
                return self.fail("',' or '}' was expected");
            }
            self.skip_space();
        }
    }

    fn digits(&mut self) -> Result<(), String> {
        if !matches!(self.peek(), Some(b'0'..=b'9')) {
            return self.fail("a digit was expected");
        }
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, String> {
        let begin = self.at;
        let mut is_integer = true;
        self.take(b'-');
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            is_integer = false;
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            is_integer = false;
            let _ = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        let text = &self.text[begin..self.at];
        if is_integer {
            if let Ok(value) = text.parse() {
                return Ok(Value::Int(value));
            }
        }
        match text.parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Value::Float(value)),
            _ => self.fail("the number is too large, ending"),
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let mut out = String::new();
        self.at += 1; // the quote
        loop {
            let plain = self.at;
            while !matches!(self.peek(), None | Some(b'"' | b'\\' | 0..=0x1f)) {
                self.at += 1;
            }
            // Cut at ASCII bytes only, so between characters.
            out.push_str(&self.text[plain..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.push(self.escape()?);
                }
                Some(_) => return self.fail("a control character is not escaped"),
                None => return self.fail("a string has no end"),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let letter = self.peek();
        self.at += usize::from(letter.is_some());
        Ok(match letter {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => return self.unicode(),
            _ => return self.fail("an unknown escape"),
        })
    }

    fn unicode(&mut self) -> Result<char, String> {
        let first = self.hex()?;
        let code = match first {
            0xd800..=0xdbff if self.take(b'\\') && self.take(b'u') => match self.hex()? {
                second @ 0xdc00..=0xdfff => 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00),
                _ => return self.fail("half of a surrogate pair"),
            },
            _ => first,
        };
        // None: a surrogate without its other half.
        char::from_u32(code).map_or_else(|| self.fail("half of a surrogate pair"), Ok)
    }

    fn hex(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            match self.peek().and_then(|byte| (byte as char).to_digit(16)) {
                Some(digit) => code = code * 16 + digit,
                None => return self.fail("four hexadecimal digits were expected"),
            }
            self.at += 1;
        }
        Ok(code)
    }
}
