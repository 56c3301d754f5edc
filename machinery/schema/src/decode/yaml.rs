//! YAML into JSON text, which then takes the same way as JSON: YAML 1.1 as upstream reads it, with budgets.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_saphyr::Error;
use serde_saphyr::budget::BudgetBreach;
use serde_saphyr::options::{AliasLimits, DuplicateKeyPolicy, NonFiniteFloatPolicy};

use super::limits::{MAX_DEPTH, MAX_VALUES, TooManyValues};

/// The most bytes of JSON that a YAML text may become: four times the largest body, for what aliases repeat.
const MAX_JSON: usize = 12 * 1024 * 1024;

/// The JSON of the first document of a YAML text, duplicate keys and all.
///
/// # Errors
/// The parser's words.
pub(super) fn to_json(text: &str) -> Result<String, String> {
    let mut out = Out::default();
    let read =
        serde_saphyr::with_deserializer_from_str_with_options(first(text), options(), |deserializer| {
            Transcode(&mut out).deserialize(deserializer)
        });
    if let Some(number) = out.no_json {
        return Err(format!("json: unsupported value: {number}"));
    }
    read.map_err(|error| format!("yaml: {}", worded(&error)))?;
    String::from_utf8(out.json).map_err(|error| error.to_string())
}

/// The first document: nobody reads those after it.
pub(super) fn first(text: &str) -> &str {
    let mut begun = false;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let marks =
            |mark| bare.strip_prefix(mark).is_some_and(|rest: &str| rest.is_empty() || rest.starts_with(' '));
        if begun && (marks("---") || marks("...")) {
            return &text[..at];
        }
        begun |= !bare.is_empty() && !bare.starts_with(['#', '%']);
        at += line.len();
    }
    text
}

/// An error as upstream words it: the line first.
fn worded(error: &Error) -> String {
    if let Error::Budget { breach: BudgetBreach::Nodes { .. }, .. } = error {
        return TooManyValues.to_string();
    }
    let text = error.to_string();
    match (text.rfind(" at line "), error.location()) {
        (Some(at), Some(location)) => format!("line {}: {}", location.line(), &text[..at]),
        _ => text,
    }
}

pub(super) fn options() -> serde_saphyr::Options {
    let mut limits = AliasLimits::default();
    limits.max_total_replayed_events = 200_000;
    let mut options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        alias_limits: limits,
        legacy_octal_numbers: true,
        with_snippet: false,
        // Refused here, in Go's words.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    };
    if let Some(budget) = options.budget.as_mut() {
        budget.max_depth = MAX_DEPTH;
        // Keys are nodes, too, and so is the document.
        budget.max_nodes = 2 * MAX_VALUES + 1;
    }
    options
}

/// What is written.
#[derive(Default)]
struct Out {
    json: Vec<u8>,
    /// The number that JSON does not have, as Go prints it; it ended the reading.
    no_json: Option<&'static str>,
}

/// Writes what it reads as JSON.
struct Transcode<'o>(&'o mut Out);

impl Transcode<'_> {
    fn write<E: serde::de::Error>(self, value: impl serde::Serialize) -> Result<(), E> {
        serde_json::to_writer(&mut self.0.json, &value).map_err(E::custom)?;
        self.check_size()
    }

    /// Counts everything that is written: brackets and keys may be repeated by aliases, too.
    fn check_size<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.0.json.len() > MAX_JSON {
            return Err(E::custom("document contains excessive aliasing"));
        }
        Ok(())
    }
}

/// How Go prints a float that is no number of JSON.
fn no_json(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

impl<'de> DeserializeSeed<'de> for Transcode<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Transcode<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value that JSON has, too")
    }

    fn visit_bool<E: serde::de::Error>(self, v: bool) -> Result<(), E> {
        self.write(v)
    }

    fn visit_i64<E: serde::de::Error>(self, v: i64) -> Result<(), E> {
        self.write(v)
    }

    fn visit_u64<E: serde::de::Error>(self, v: u64) -> Result<(), E> {
        self.write(v)
    }

    fn visit_f64<E: serde::de::Error>(self, v: f64) -> Result<(), E> {
        if let Some(number) = no_json(v) {
            self.0.no_json = Some(number);
            return Err(E::custom("no number of JSON"));
        }
        // A whole number stays whole: upstream's JSON of 1.0 is 1.
        #[expect(clippy::cast_possible_truncation, reason = "checked to be whole and small")]
        if v.fract() == 0.0 && v.abs() < 1e15 { self.write(v as i64) } else { self.write(v) }
    }

    fn visit_str<E: serde::de::Error>(self, v: &str) -> Result<(), E> {
        self.write(v)
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<(), E> {
        self.write(())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        self.deserialize(deserializer)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        self.0.json.push(b'[');
        let start = self.0.json.len();
        loop {
            let before = self.0.json.len();
            if before > start {
                self.0.json.push(b',');
            }
            if items.next_element_seed(Transcode(self.0))?.is_none() {
                self.0.json.truncate(before);
                break;
            }
        }
        self.0.json.push(b']');
        self.check_size()
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        self.0.json.push(b'{');
        let start = self.0.json.len();
        loop {
            let before = self.0.json.len();
            if before > start {
                self.0.json.push(b',');
            }
            let Some(key) = entries.next_key_seed(Key)? else {
                self.0.json.truncate(before);
                break;
            };
            serde_json::to_writer(&mut self.0.json, &key).map_err(A::Error::custom)?;
            self.0.json.push(b':');
            entries.next_value_seed(Transcode(self.0))?;
            self.check_size()?;
        }
        self.0.json.push(b'}');
        Ok(())
    }
}

/// A key: a string, or a number or truth value that becomes one.
struct Key;

impl<'de> DeserializeSeed<'de> for Key {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl Visitor<'_> for Key {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a key that is a scalar")
    }

    fn visit_bool<E>(self, v: bool) -> Result<String, E> {
        Ok(v.to_string())
    }

    fn visit_i64<E>(self, v: i64) -> Result<String, E> {
        Ok(v.to_string())
    }

    fn visit_u64<E>(self, v: u64) -> Result<String, E> {
        Ok(v.to_string())
    }

    fn visit_f64<E>(self, v: f64) -> Result<String, E> {
        Ok(match no_json(v) {
            Some("NaN") => ".nan".to_owned(),
            Some("+Inf") => ".inf".to_owned(),
            Some(_) => "-.inf".to_owned(),
            None => v.to_string(),
        })
    }

    fn visit_str<E>(self, v: &str) -> Result<String, E> {
        Ok(v.to_owned())
    }

    fn visit_unit<E>(self) -> Result<String, E> {
        Ok("null".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_reads_as_upstream_reads_it() {
        let rows = [
            (
                "a: yes\nb: 0644\nc: '0644'\nd: 1.0\ne: 2026-01-02T03:04:05Z",
                r#"{"a":true,"b":420,"c":"0644","d":1,"e":"2026-01-02T03:04:05Z"}"#,
            ),
            ("1: x\ntrue: why", r#"{"1":"x","true":"why"}"#),
            ("a: &x [1, null]\nb: *x", r#"{"a":[1,null],"b":[1,null]}"#),
            ("a: 1\na: 2", r#"{"a":1,"a":2}"#),
            ("# one\n---\na: 1\n--- \na: 2", r#"{"a":1}"#),
            ("a: 1\n...\n]", r#"{"a":1}"#),
            ("a:\n  b: |\n    x\n    y\n", r#"{"a":{"b":"x\ny\n"}}"#),
            ("base: &b {x: 1}\nmore: {<<: *b, z: 2}", r#"{"base":{"x":1},"more":{"z":2,"x":1}}"#),
        ];
        for (text, want) in rows {
            assert_eq!(to_json(text).as_deref(), Ok(want));
        }
    }

    #[test]
    fn numbers_that_json_does_not_have_are_refused() {
        for (text, number) in
            [("a: .nan", "NaN"), ("a: [.inf]", "+Inf"), ("{a: {b: -.Inf}}", "-Inf"), (".NaN", "NaN")]
        {
            assert_eq!(to_json(text).unwrap_err(), format!("json: unsupported value: {number}"), "{text}");
        }
        assert_eq!(to_json("{.nan: 1, -.inf: 2, x: '.nan'}").unwrap(), r#"{".nan":1,"-.inf":2,"x":".nan"}"#);
    }

    #[test]
    fn errors_begin_with_the_line() {
        assert!(to_json("a: 1\nb: [").unwrap_err().starts_with("yaml: line 2: "));
    }

    #[test]
    fn an_alias_bomb_is_refused_at_once() {
        use std::fmt::Write as _;
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for i in 1..12 {
            let refs = vec![format!("*a{}", i - 1); 9].join(",");
            writeln!(bomb, "a{i}: &a{i} [{refs}]").unwrap();
        }
        let start = cpu_time::ThreadTime::now();
        assert!(to_json(&bomb).is_err());
        assert!(start.elapsed().as_secs() < 5);
        assert!(to_json(&"[".repeat(100_000)).is_err());
    }
}
