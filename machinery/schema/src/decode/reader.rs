//! Pull parser for JSON with upstream's syntax errors. Does not use types.

use std::borrow::Cow;

use portico_machinery::object::{MAX_DEPTH, MAX_READ_DEPTH};
use serde_json::{Map, Number, Value};

use super::limits::{MAX_VALUES, TooManyValues};

/// Syntax error in JSON, with upstream's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct SyntaxError(pub String);

/// Contexts in which Go reports the end of the text as a space, because it appends one.
const IN_TOKEN: [&str; 4] = ["in literal", "numeric literal", "escape code", "character escape"];

type Result<T> = std::result::Result<T, SyntaxError>;

/// Kind of the next value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueKind {
    Object,
    Array,
    String,
    Number,
    Bool,
    Null,
}

pub(crate) struct Reader<'a> {
    text: &'a str,
    offset: usize,
    depth: usize,
    max_depth: usize,
    /// Number of members and elements that may still be read.
    remaining_values: usize,
}

impl<'a> Reader<'a> {
    /// Creates a reader of text from a client.
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, offset: 0, depth: 0, max_depth: MAX_DEPTH, remaining_values: MAX_VALUES }
    }

    /// Creates a reader of stored text: it was accepted when it was written, so the current limits do not apply.
    pub(crate) fn for_stored(text: &'a str) -> Self {
        Self { remaining_values: usize::MAX, ..Self::stored_part(text) }
    }

    /// Creates a reader of a part of stored text, which may be nested deeper than a body.
    pub(crate) fn stored_part(text: &'a str) -> Self {
        Self { max_depth: MAX_READ_DEPTH, ..Self::new(text) }
    }

    /// Creates a reader of JSON nested at this depth of another value, with a limit of remaining values.
    pub(crate) fn nested(text: &'a str, depth: usize, remaining_values: usize) -> Self {
        Self { depth, remaining_values, ..Self::new(text) }
    }

    /// Returns the number of values that may still be read.
    pub(crate) fn remaining_values(&self) -> usize {
        self.remaining_values
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.offset).copied()
    }

    fn skip_space(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.byte() {
            self.offset += 1;
        }
        self.byte()
    }

    fn unexpected<T>(&self, context: &str) -> Result<T> {
        Err(SyntaxError(match self.byte() {
            None if IN_TOKEN.iter().any(|token| context.contains(token)) => {
                format!("invalid character ' ' {context}")
            }
            None => "unexpected end of JSON input".to_owned(),
            Some(byte) => format!("invalid character {} {context}", quote_byte(byte)),
        }))
    }

    /// Returns the kind of the next value without consuming it.
    pub(crate) fn peek_kind(&mut self) -> Result<ValueKind> {
        match self.skip_space() {
            Some(b'{') => Ok(ValueKind::Object),
            Some(b'[') => Ok(ValueKind::Array),
            Some(b'"') => Ok(ValueKind::String),
            Some(b'-' | b'0'..=b'9') => Ok(ValueKind::Number),
            Some(b't' | b'f') => Ok(ValueKind::Bool),
            Some(b'n') => Ok(ValueKind::Null),
            _ => self.unexpected("looking for beginning of value"),
        }
    }

    /// Requires that only white space follows the outermost value.
    pub(crate) fn end(&mut self) -> Result<()> {
        match self.skip_space() {
            None => Ok(()),
            Some(_) => self.unexpected("after top-level value"),
        }
    }

    /// Enters an object or array. The caller has checked the kind of the value.
    pub(crate) fn enter(&mut self) -> Result<()> {
        self.offset += 1;
        self.depth += 1;
        if self.depth > self.max_depth {
            let text = format!("exceeded max depth: at most {} levels are accepted", self.max_depth);
            return Err(SyntaxError(text));
        }
        Ok(())
    }

    /// Counts a member of an object or an element of an array.
    fn count(&mut self) -> Result<()> {
        self.remaining_values =
            self.remaining_values.checked_sub(1).ok_or_else(|| SyntaxError(TooManyValues.to_string()))?;
        Ok(())
    }

    fn leave(&mut self) {
        self.offset += 1;
        self.depth -= 1;
    }

    /// Reads the next key of the entered object and its colon. Returns `None` at the end, where it leaves the object.
    pub(crate) fn key(&mut self, first: bool) -> Result<Option<Cow<'a, str>>> {
        match (self.skip_space(), first) {
            (Some(b'}'), _) => {
                self.leave();
                return Ok(None);
            }
            (Some(b'"'), true) => {}
            (Some(b','), false) => {
                self.offset += 1;
                if self.skip_space() != Some(b'"') {
                    return self.unexpected("looking for beginning of object key string");
                }
            }
            (_, true) => return self.unexpected("looking for beginning of object key string"),
            (_, false) => return self.unexpected("after object key:value pair"),
        }
        let key = self.string()?;
        if self.skip_space() != Some(b':') {
            return self.unexpected("after object key");
        }
        self.offset += 1;
        self.count()?;
        Ok(Some(key))
    }

    /// Returns true if the entered array has another element. Leaves the array at its end.
    pub(crate) fn element(&mut self, first: bool) -> Result<bool> {
        match (self.skip_space(), first) {
            (Some(b']'), _) => {
                self.leave();
                Ok(false)
            }
            (_, true) => self.count().map(|()| true),
            (Some(b','), false) => {
                self.offset += 1;
                self.count().map(|()| true)
            }
            (_, false) => self.unexpected("after array element"),
        }
    }

    /// Reads a string. The caller has checked the kind of the value.
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>> {
        self.offset += 1;
        let from = self.offset;
        loop {
            match self.byte() {
                Some(b'"') => {
                    let text = &self.text[from..self.offset];
                    self.offset += 1;
                    return Ok(Cow::Borrowed(text));
                }
                Some(b'\\') => return self.escaped_string(from).map(Cow::Owned),
                Some(0x20..) => self.offset += 1,
                _ => return self.unexpected("in string literal"),
            }
        }
    }

    fn escaped_string(&mut self, from: usize) -> Result<String> {
        let mut out = self.text[from..self.offset].to_owned();
        loop {
            let plain = self.offset;
            while matches!(self.byte(), Some(b) if b >= 0x20 && b != b'"' && b != b'\\') {
                self.offset += 1;
            }
            out.push_str(&self.text[plain..self.offset]);
            match self.byte() {
                Some(b'"') => {
                    self.offset += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.offset += 1;
                    out.push(self.escape()?);
                }
                _ => return self.unexpected("in string literal"),
            }
        }
    }

    fn escape(&mut self) -> Result<char> {
        let c = match self.byte() {
            Some(c @ (b'"' | b'\\' | b'/')) => c as char,
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                self.offset += 1;
                return self.unicode();
            }
            _ => return self.unexpected("in string escape code"),
        };
        self.offset += 1;
        Ok(c)
    }

    /// Reads the digits after `\u`. Unpaired surrogates become the replacement character.
    fn unicode(&mut self) -> Result<char> {
        let high = self.hex()?;
        if !(0xd800..0xdc00).contains(&high) {
            return Ok(char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER));
        }
        let start = self.offset;
        if self.text.as_bytes()[self.offset..].starts_with(b"\\u") {
            self.offset += 2;
            let low = self.hex()?;
            if (0xdc00..0xe000).contains(&low) {
                let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.offset = start;
        }
        Ok(char::REPLACEMENT_CHARACTER)
    }

    fn hex(&mut self) -> Result<u32> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.byte().and_then(|b| (b as char).to_digit(16)) else {
                return self.unexpected("in \\u hexadecimal character escape");
            };
            code = code * 16 + digit;
            self.offset += 1;
        }
        Ok(code)
    }

    /// Reads the text of a number. The caller has checked the kind of the value.
    pub(crate) fn number(&mut self) -> Result<&'a str> {
        let from = self.offset;
        if self.byte() == Some(b'-') {
            self.offset += 1;
        }
        match self.byte() {
            Some(b'0') => self.offset += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return self.unexpected("in numeric literal"),
        }
        if self.byte() == Some(b'.') {
            self.offset += 1;
            self.require_digits("after decimal point in numeric literal")?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.offset += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.offset += 1;
            }
            self.require_digits("in exponent of numeric literal")?;
        }
        Ok(&self.text[from..self.offset])
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.byte() {
            self.offset += 1;
        }
    }

    fn require_digits(&mut self, context: &str) -> Result<()> {
        let from = self.offset;
        self.digits();
        if self.offset == from { self.unexpected(context) } else { Ok(()) }
    }

    /// Reads `true` or `false`. The caller has checked the kind of the value.
    pub(crate) fn bool(&mut self) -> Result<bool> {
        let truth = self.byte() == Some(b't');
        self.literal(if truth { "true" } else { "false" })?;
        Ok(truth)
    }

    /// Reads `null`. The caller has checked the kind of the value.
    pub(crate) fn null(&mut self) -> Result<()> {
        self.literal("null")
    }

    fn literal(&mut self, word: &str) -> Result<()> {
        for expected in word.bytes() {
            if self.byte() != Some(expected) {
                return self.unexpected(&format!("in literal {word} (expecting {})", quote_byte(expected)));
            }
            self.offset += 1;
        }
        Ok(())
    }

    /// Skips a value.
    pub(crate) fn skip(&mut self) -> Result<()> {
        match self.peek_kind()? {
            ValueKind::Object => {
                self.enter()?;
                let mut first = true;
                while self.key(first)?.is_some() {
                    first = false;
                    self.skip()?;
                }
            }
            ValueKind::Array => {
                self.enter()?;
                let mut first = true;
                while self.element(first)? {
                    first = false;
                    self.skip()?;
                }
            }
            ValueKind::String => drop(self.string()?),
            ValueKind::Number => drop(self.number()?),
            ValueKind::Bool => drop(self.bool()?),
            ValueKind::Null => self.null()?,
        }
        Ok(())
    }

    /// Reads any value. If a key is duplicated, the last value wins.
    pub(crate) fn any(&mut self) -> Result<Value> {
        Ok(match self.peek_kind()? {
            ValueKind::Object => {
                self.enter()?;
                let mut map = Map::new();
                while let Some(key) = self.key(map.is_empty())? {
                    let value = self.any()?;
                    map.insert(key.into_owned(), value);
                }
                Value::Object(map)
            }
            ValueKind::Array => {
                self.enter()?;
                let mut list = Vec::new();
                while self.element(list.is_empty())? {
                    list.push(self.any()?);
                }
                Value::Array(list)
            }
            ValueKind::String => Value::String(self.string()?.into_owned()),
            ValueKind::Number => number_value(self.number()?).ok_or_else(|| {
                SyntaxError("json: cannot unmarshal number into Go value of type float64".to_owned())
            })?,
            ValueKind::Bool => Value::Bool(self.bool()?),
            ValueKind::Null => {
                self.null()?;
                Value::Null
            }
        })
    }
}

/// Parses a number: integers in the range of `i64` stay integers, all others become floats. Returns `None` outside the range
/// of floats.
pub(crate) fn number_value(text: &str) -> Option<Value> {
    if let Ok(integer) = text.parse::<i64>() {
        return Some(integer.into());
    }
    Number::from_f64(text.parse().ok()?).map(Value::Number)
}

/// Returns upstream's syntax error if the bytes are not JSON, otherwise `None`.
#[must_use]
pub fn syntax_error_in(bytes: &[u8]) -> Option<String> {
    match bytes.iter().find(|byte| !matches!(byte, b' ' | b'\t' | b'\n' | b'\r')) {
        // The reader takes text, where invalid bytes have been replaced: name the original byte.
        Some(byte) if !byte.is_ascii() => {
            Some(format!("invalid character {} looking for beginning of value", quote_byte(*byte)))
        }
        _ => {
            let text = String::from_utf8_lossy(bytes);
            let mut reader = Reader::new(&text);
            reader.any().and_then(|_| reader.end()).err().map(|error| error.0)
        }
    }
}

/// Quotes a byte as upstream's JSON errors do.
fn quote_byte(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..=0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
