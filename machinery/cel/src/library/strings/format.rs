//! `format`: values put into a text as its clauses want them.

use std::fmt::Write as _;

use portico_gostd::strconv::quote;

use super::clause::{Clause, Format, Verb, walk};
use super::limits::{MAX_TEXT_BYTES, too_long};
use super::numerals;
use crate::error::EvalError;
use crate::value::{Value, print_double};

/// Deepest nesting of lists and maps that is put.
const MAX_DEPTH: usize = 128;

/// A text with the arguments put into it.
pub(super) fn format(text: &str, arguments: &[Value<'_>]) -> Result<String, EvalError> {
    let mut into = Formatter { text: String::with_capacity(text.len()), arguments };
    walk(text, &mut into).map_err(EvalError::new)?;
    Ok(into.text)
}

/// A value as messages show it; those without a spelling by their type.
pub(crate) fn shown(value: &Value<'_>) -> String {
    let mut text = String::new();
    match string(&mut text, value, MAX_DEPTH) {
        Ok(()) => text,
        Err(_) => value.type_of().name().to_owned(),
    }
}

struct Formatter<'a, 'v> {
    text: String,
    arguments: &'a [Value<'v>],
}

impl Format for Formatter<'_, '_> {
    const ARGUMENTS_FIRST: bool = true;

    fn arguments(&self) -> usize {
        self.arguments.len()
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        if self.text.len() + text.len() > MAX_TEXT_BYTES {
            return Err(too_long());
        }
        self.text.push_str(text);
        Ok(())
    }

    fn clause(&mut self, index: usize, clause: Clause) -> Result<(), String> {
        let Some(value) = self.arguments.get(index) else { return Ok(()) };
        let precision = clause.precision;
        match clause.verb {
            Verb::String => string(&mut self.text, value, MAX_DEPTH),
            Verb::Decimal => self.text(&decimal(value)?),
            Verb::Fixed => self.text(&numerals::fixed(double(value, Verb::Fixed)?, precision)),
            Verb::Scientific => self.text(&numerals::scientific(double(value, Verb::Scientific)?, precision)),
            Verb::Binary => self.text(&binary(value)?),
            Verb::Hex { capitals } => self.text(&hex(value, capitals)?),
            Verb::Octal => self.text(&octal(value)?),
        }
    }
}

/// Why a value of a type cannot be put as a clause wants it.
pub(crate) fn refusal(verb: Verb, ty: &str) -> String {
    let wanted = match verb {
        Verb::String => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, durations, and timestamps"
        }
        Verb::Decimal => "decimal clause can only be used on integers",
        Verb::Fixed => "fixed-point clause can only be used on doubles",
        Verb::Scientific => "scientific clause can only be used on doubles",
        Verb::Binary => "only integers and bools can be formatted as binary",
        Verb::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
        Verb::Octal => "octal clause can only be used on integers",
    };
    format!("{wanted}, was given {ty}")
}

fn refused(verb: Verb, value: &Value<'_>) -> String {
    refusal(verb, value.type_of().name())
}

fn decimal(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(number) => Ok(number.to_string()),
        Value::Uint(number) => Ok(number.to_string()),
        other => Err(refused(Verb::Decimal, other)),
    }
}

/// The number of a double, or of the words that stand for those that have no literal.
fn double(value: &Value<'_>, verb: Verb) -> Result<f64, String> {
    match value {
        Value::Double(number) => Ok(*number),
        Value::String(text) => match &**text {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(refused(verb, value)),
        },
        other => Err(refused(verb, other)),
    }
}

fn signed(number: i64, digits: &str) -> String {
    if number < 0 { format!("-{digits}") } else { digits.to_owned() }
}

fn binary(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(number) => Ok(signed(*number, &format!("{:b}", number.unsigned_abs()))),
        Value::Uint(number) => Ok(format!("{number:b}")),
        Value::Bool(yes) => Ok(if *yes { "1" } else { "0" }.to_owned()),
        other => Err(refused(Verb::Binary, other)),
    }
}

fn octal(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(number) => Ok(signed(*number, &format!("{:o}", number.unsigned_abs()))),
        Value::Uint(number) => Ok(format!("{number:o}")),
        other => Err(refused(Verb::Octal, other)),
    }
}

fn hex(value: &Value<'_>, capitals: bool) -> Result<String, String> {
    let mut digits = match value {
        Value::Int(number) => signed(*number, &format!("{:x}", number.unsigned_abs())),
        Value::Uint(number) => format!("{number:x}"),
        Value::String(text) => hex_bytes(text.as_bytes())?,
        Value::Bytes(bytes) => hex_bytes(bytes)?,
        other => return Err(refused(Verb::Hex { capitals }, other)),
    };
    if capitals {
        digits.make_ascii_uppercase();
    }
    Ok(digits)
}

fn hex_bytes(bytes: &[u8]) -> Result<String, String> {
    if bytes.len() > MAX_TEXT_BYTES / 2 {
        return Err(too_long());
    }
    Ok(bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut digits, byte| {
        write!(digits, "{byte:02x}").unwrap_or_default();
        digits
    }))
}

/// `%s`: a value as text.
fn string(into: &mut String, value: &Value<'_>, depth: usize) -> Result<(), String> {
    match value {
        Value::List(_) | Value::Map(_) => literal(into, value, depth),
        Value::Double(number) => put(into, &print_double(*number)),
        other => match plain(other)? {
            Some(text) => put(into, &text),
            None => Err(refused(Verb::String, other)),
        },
    }
}

fn put(into: &mut String, text: &str) -> Result<(), String> {
    if into.len() + text.len() > MAX_TEXT_BYTES {
        return Err(too_long());
    }
    into.push_str(text);
    Ok(())
}

/// Values that are put alike by themselves and in lists, but for quotes.
fn plain(value: &Value<'_>) -> Result<Option<String>, String> {
    Ok(Some(match value {
        Value::Null => "null".to_owned(),
        Value::Bool(yes) => yes.to_string(),
        Value::Int(number) => number.to_string(),
        Value::Uint(number) => number.to_string(),
        Value::String(text) => text.to_string(),
        Value::Bytes(bytes) => std::str::from_utf8(bytes)
            .map_err(|_| {
                "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string"
                    .to_owned()
            })?
            .to_owned(),
        Value::Timestamp(at) => at.to_string(),
        Value::Duration(span) => span.to_string(),
        Value::Type(ty) => ty.name().to_owned(),
        _ => return Ok(None),
    }))
}

/// A value as a literal of the language, as it stands inside of lists and maps.
fn literal(into: &mut String, value: &Value<'_>, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or_else(|| "value is nested too deeply".to_owned())?;
    match value {
        Value::List(list) => {
            put(into, "[")?;
            for (index, item) in list.iter().enumerate() {
                put(into, if index == 0 { "" } else { ", " })?;
                literal(into, &item.map_err(|error| error.to_string())?, depth)?;
            }
            put(into, "]")
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries().map_err(|error| error.to_string())? {
                entries.push((map_key(&key)?, value));
            }
            entries.sort_by(|(one, _), (two, _)| one.cmp(two));
            put(into, "{")?;
            for (index, (key, value)) in entries.iter().enumerate() {
                put(into, if index == 0 { "" } else { ", " })?;
                put(into, key)?;
                put(into, ":")?;
                literal(into, value, depth)?;
            }
            put(into, "}")
        }
        Value::Double(number) if number.is_finite() => put(into, &numerals::plain(*number)),
        Value::Double(number) => put(into, &quote(&numerals::plain(*number))),
        other => scalar_literal(into, other),
    }
}

fn scalar_literal(into: &mut String, value: &Value<'_>) -> Result<(), String> {
    let Some(text) = plain(value)? else {
        return Err(format!("no formatting function for {}", value.type_of().name()));
    };
    let text = match value {
        Value::String(_) => quote(&text),
        Value::Bytes(_) => format!("b{}", quote(&text)),
        Value::Timestamp(_) => format!("timestamp({})", quote(&text)),
        Value::Duration(_) => format!("duration({})", quote(&text)),
        _ => text,
    };
    put(into, &text)
}

fn map_key(key: &Value<'_>) -> Result<String, String> {
    match key {
        Value::String(text) => Ok(quote(text)),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) => Ok(plain(key)?.unwrap_or_default()),
        other => Err(format!("no formatting function for map key of type {}", other.type_of().name())),
    }
}
