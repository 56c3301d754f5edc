//! JSON log lines in the format of kube-apiserver's `--logging-format=json` (component-base's `logs/json`): `ts`, `logger`,
//! `caller`, `msg`, `v`, the fields of the event, `err`.

use std::fmt::{self, Debug, Write as _};
use std::time::{SystemTime, UNIX_EPOCH};

use tracing::field::{Field, Visit};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Formatter of JSON log lines.
pub(super) struct KlogJson;

/// Fields of an event as members of a JSON object.
#[derive(Default)]
struct EventFields {
    message: String,
    error: Option<String>,
    members: String,
}

impl<S, N> FormatEvent<S, N> for KlogJson
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut fields = EventFields::default();
        event.record(&mut fields);
        let metadata = event.metadata();
        let (logger, caller) = (quote_json(metadata.target()), quote_json(&caller(metadata)));
        write!(writer, "{{\"ts\":{:?},\"logger\":{logger},\"caller\":{caller}", milliseconds())?;
        write!(writer, ",\"msg\":{}", quote_json(&fields.message))?;
        if let Some(verbosity) = verbosity(metadata.level()) {
            write!(writer, ",\"v\":{verbosity}")?;
        }
        writer.write_str(&fields.members)?;
        if let Some(error) = fields.error {
            write!(writer, ",\"err\":{}", quote_json(&error))?;
        }
        writer.write_str("}\n")
    }
}

/// Returns the milliseconds since 1970, with fractions.
fn milliseconds() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64() * 1000.0
}

/// Returns the file with its folder, and the line.
fn caller(metadata: &Metadata<'_>) -> String {
    let file = metadata.file().unwrap_or_default();
    let folder = file.rmatch_indices('/').nth(1).map_or(0, |(at, _)| at + 1);
    format!("{}:{}", &file[folder..], metadata.line().unwrap_or_default())
}

/// Returns klog's verbosity of a level, or `None` for errors.
fn verbosity(level: &Level) -> Option<u8> {
    match *level {
        Level::ERROR => None,
        Level::WARN | Level::INFO => Some(0),
        Level::DEBUG => Some(4),
        Level::TRACE => Some(6),
    }
}

impl EventFields {
    fn add_member(&mut self, field: &Field, value: &dyn fmt::Display) {
        let name = quote_json(field.name());
        // Writing to a String cannot fail.
        let _ = write!(self.members, ",{name}:{value}");
    }

    fn add_text(&mut self, field: &Field, text: String) {
        match field.name() {
            "message" => self.message = text,
            "error" | "err" => self.error = Some(text),
            _ => self.add_member(field, &quote_json(&text)),
        }
    }
}

impl Visit for EventFields {
    fn record_f64(&mut self, field: &Field, value: f64) {
        if value.is_finite() {
            self.add_member(field, &value)
        } else {
            self.add_text(field, value.to_string())
        }
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add_member(field, &value);
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add_member(field, &value);
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add_member(field, &value);
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.add_text(field, value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.add_text(field, format!("{value:?}"));
    }
}

/// Encodes a JSON string.
fn quote_json(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for char in text.chars() {
        match char {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            char if char < ' ' => out.extend(format!("\\u{:04x}", char as u32).chars()),
            char => out.push(char),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_encoded_as_json() {
        assert_eq!(quote_json("a\"b\\c\nd\u{1}é"), "\"a\\\"b\\\\c\\nd\\u0001é\"");
    }
}
