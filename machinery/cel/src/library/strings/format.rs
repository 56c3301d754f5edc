//! `format`: formats values according to the clauses of a format string.

use std::borrow::Cow;

use portico_gostd::strconv::quote;

use super::clause::{Clause, Format, Verb, visit_clauses};
use super::limits::{MAX_TEXT_BYTES, too_long};
use super::numerals;
use crate::error::EvalError;
use crate::function::Call;
use crate::value::{Value, print_double};

/// Levels of a value that `format` prints.
///
/// Limit (Expressions): the expression fails.
const MAX_DEPTH: usize = 128;

/// Number of bytes that are copied in the time that writing one byte as digits takes.
const DIGIT_WORK: usize = 64;
const HEX_DIGITS: [u8; 16] = *b"0123456789abcdef";
/// Maximum bytes of a value in an error message.
const MAX_SHOWN_BYTES: usize = 1_024;

/// Formats a string with arguments.
pub(super) fn format(text: &str, arguments: &[Value<'_>], call: &Call<'_, '_>) -> Result<String, EvalError> {
    let written = Output {
        text: String::with_capacity(text.len()),
        limit: MAX_TEXT_BYTES,
        call: Some(call),
        stop: None,
    };
    let mut into = Formatter { written, arguments };
    let walked = visit_clauses(text, &mut into);
    match into.written.stop {
        Some(stop) => Err(stop),
        None => walked.map(|_| into.written.text).map_err(EvalError::new),
    }
}

/// Formats a value for messages. Long values, and values without a text form, are printed as their type.
pub(crate) fn value_text(value: &Value<'_>) -> String {
    let mut written = Output { text: String::new(), limit: MAX_SHOWN_BYTES, call: None, stop: None };
    match string(&mut written, value, MAX_DEPTH) {
        Ok(()) => written.text,
        Err(_) => value.type_of().name().to_owned(),
    }
}

/// Output text, limited in length and by the budget of the call.
struct Output<'a, 'c, 'v> {
    text: String,
    limit: usize,
    call: Option<&'a Call<'c, 'v>>,
    /// The failure that ends the evaluation.
    stop: Option<EvalError>,
}

impl Output<'_, '_, '_> {
    fn put(&mut self, text: &str) -> Result<(), String> {
        self.take(text.len())?;
        if self.text.len() + text.len() > self.limit {
            return Err(too_long());
        }
        self.text.push_str(text);
        Ok(())
    }

    /// Counts the copy of this number of bytes.
    fn take(&mut self, bytes: usize) -> Result<(), String> {
        self.call.map_or(Ok(()), |call| call.take_text(bytes)).map_err(|stop| {
            let words = stop.to_string();
            self.stop = Some(stop);
            words
        })
    }
}

struct Formatter<'a, 'c, 'v> {
    written: Output<'a, 'c, 'v>,
    arguments: &'a [Value<'v>],
}

impl Format for Formatter<'_, '_, '_> {
    const ARGUMENTS_FIRST: bool = true;

    fn arguments(&self) -> usize {
        self.arguments.len()
    }

    fn text(&mut self, text: &str) -> Result<(), String> {
        self.written.put(text)
    }

    fn clause(&mut self, index: usize, clause: Clause) -> Result<(), String> {
        let Some(value) = self.arguments.get(index) else { return Ok(()) };
        let precision = clause.precision;
        match clause.verb {
            Verb::String => string(&mut self.written, value, MAX_DEPTH),
            Verb::Decimal => self.text(&decimal(value)?),
            Verb::Fixed => {
                let number = double(value, Verb::Fixed)?;
                self.written.take(numerals::digits(number, precision).saturating_mul(DIGIT_WORK))?;
                self.text(&numerals::fixed(number, precision))
            }
            Verb::Scientific => self.text(&numerals::scientific(double(value, Verb::Scientific)?, precision)),
            Verb::Binary => self.text(&binary(value)?),
            Verb::Hex { capitals } => hex(&mut self.written, value, capitals),
            Verb::Octal => self.text(&octal(value)?),
        }
    }
}

/// Returns the message for a value that does not match its clause.
pub(crate) fn refusal(verb: Verb, ty: &str) -> String {
    let message = match verb {
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
    format!("{message}, was given {ty}")
}

fn unsupported_value(verb: Verb, value: &Value<'_>) -> String {
    refusal(verb, value.type_of().name())
}

fn decimal(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(number) => Ok(number.to_string()),
        Value::Uint(number) => Ok(number.to_string()),
        other => Err(unsupported_value(Verb::Decimal, other)),
    }
}

/// Returns the number of a double, or of a name of a number without a literal, such as `NaN`.
fn double(value: &Value<'_>, verb: Verb) -> Result<f64, String> {
    match value {
        Value::Double(number) => Ok(*number),
        Value::String(text) => match &**text {
            "NaN" => Ok(f64::NAN),
            "Infinity" => Ok(f64::INFINITY),
            "-Infinity" => Ok(f64::NEG_INFINITY),
            _ => Err(unsupported_value(verb, value)),
        },
        other => Err(unsupported_value(verb, other)),
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
        other => Err(unsupported_value(Verb::Binary, other)),
    }
}

fn octal(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::Int(number) => Ok(signed(*number, &format!("{:o}", number.unsigned_abs()))),
        Value::Uint(number) => Ok(format!("{number:o}")),
        other => Err(unsupported_value(Verb::Octal, other)),
    }
}

fn hex(into: &mut Output<'_, '_, '_>, value: &Value<'_>, capitals: bool) -> Result<(), String> {
    let mut digits = match value {
        Value::Int(number) => signed(*number, &format!("{:x}", number.unsigned_abs())),
        Value::Uint(number) => format!("{number:x}"),
        Value::String(text) => hex_bytes(into, text.as_bytes())?,
        Value::Bytes(bytes) => hex_bytes(into, bytes)?,
        other => return Err(unsupported_value(Verb::Hex { capitals }, other)),
    };
    if capitals {
        digits.make_ascii_uppercase();
    }
    into.put(&digits)
}

fn hex_bytes(into: &mut Output<'_, '_, '_>, bytes: &[u8]) -> Result<String, String> {
    into.take(bytes.len().saturating_mul(DIGIT_WORK))?;
    if bytes.len() > MAX_TEXT_BYTES / 2 {
        return Err(too_long());
    }
    let mut digits = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        digits.extend([byte >> 4, byte & 15].map(|digit| char::from(HEX_DIGITS[usize::from(digit)])));
    }
    Ok(digits)
}

/// Formats a value as a string (`%s`).
fn string(into: &mut Output<'_, '_, '_>, value: &Value<'_>, depth: usize) -> Result<(), String> {
    match value {
        Value::List(_) | Value::Map(_) => literal(into, value, depth),
        Value::Double(number) => into.put(&print_double(*number)),
        other => match plain(other)? {
            Some(text) => into.put(&text),
            None => Err(unsupported_value(Verb::String, other)),
        },
    }
}

/// Formats values that, except for quotes, have the same form inside and outside of lists.
fn plain<'a>(value: &'a Value<'_>) -> Result<Option<Cow<'a, str>>, String> {
    Ok(Some(match value {
        Value::Null => "null".into(),
        Value::Bool(yes) => yes.to_string().into(),
        Value::Int(number) => number.to_string().into(),
        Value::Uint(number) => number.to_string().into(),
        Value::String(text) => (&**text).into(),
        Value::Bytes(bytes) => std::str::from_utf8(bytes)
            .map_err(|_| {
                "could not convert argument \"invalid UTF-8 in bytes, cannot convert to string\" to string"
                    .to_owned()
            })?
            .into(),
        Value::Timestamp(at) => at.to_string().into(),
        Value::Duration(span) => span.to_string().into(),
        Value::Type(ty) => ty.name().into(),
        _ => return Ok(None),
    }))
}

/// Formats a value as a CEL literal, as used inside lists and maps.
fn literal(into: &mut Output<'_, '_, '_>, value: &Value<'_>, depth: usize) -> Result<(), String> {
    let depth = depth.checked_sub(1).ok_or_else(|| "value is nested too deeply".to_owned())?;
    match value {
        Value::List(list) => {
            into.put("[")?;
            for (index, item) in list.iter().enumerate() {
                into.put(if index == 0 { "" } else { ", " })?;
                literal(into, &item.map_err(|error| error.to_string())?, depth)?;
            }
            into.put("]")
        }
        Value::Map(map) => {
            // The entries are copied and sorted.
            into.take(map.len().saturating_mul(DIGIT_WORK))?;
            let mut entries = Vec::new();
            for entry in map.iter() {
                let (key, value) = entry.map_err(|error| error.to_string())?;
                entries.push((map_key(&key)?, value));
            }
            entries.sort_by(|(one, _), (two, _)| one.cmp(two));
            into.put("{")?;
            for (index, (key, value)) in entries.iter().enumerate() {
                into.put(if index == 0 { "" } else { ", " })?;
                into.put(key)?;
                into.put(":")?;
                literal(into, value, depth)?;
            }
            into.put("}")
        }
        Value::Double(number) if number.is_finite() => into.put(&numerals::plain(*number)),
        Value::Double(number) => into.put(&quote(&numerals::plain(*number))),
        other => scalar_literal(into, other),
    }
}

fn scalar_literal(into: &mut Output<'_, '_, '_>, value: &Value<'_>) -> Result<(), String> {
    let Some(text) = plain(value)? else {
        return Err(format!("no formatting function for {}", value.type_of().name()));
    };
    let text = match value {
        Value::String(_) => quote(&text).into(),
        Value::Bytes(_) => format!("b{}", quote(&text)).into(),
        Value::Timestamp(_) => format!("timestamp({})", quote(&text)).into(),
        Value::Duration(_) => format!("duration({})", quote(&text)).into(),
        _ => text,
    };
    into.put(&text)
}

fn map_key(key: &Value<'_>) -> Result<String, String> {
    match key {
        Value::String(text) => Ok(quote(text)),
        Value::Bool(_) | Value::Int(_) | Value::Uint(_) => Ok(plain(key)?.unwrap_or_default().into_owned()),
        other => Err(format!("no formatting function for map key of type {}", other.type_of().name())),
    }
}
