//! Conversion of YAML to JSON text, which is then decoded as JSON: YAML 1.1 as upstream reads it, with limits.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_saphyr::options::{AliasLimits, DuplicateKeyPolicy, MergeKeyPolicy, NonFiniteFloatPolicy};
use serde_saphyr::{Error, Spanned};

use super::limits::{MAX_VALUES, MAX_YAML_DEPTH};
use super::yaml_errors::{self, EXCESSIVE_ALIASING};
use super::yaml_tags;

/// Size of the JSON that a YAML body expands to.
///
/// Four times the largest body.
///
/// Limit (Requests, bytes): 400, "document contains excessive aliasing".
const MAX_JSON: usize = 12 * 1024 * 1024;
/// Size of the JSON that a YAML body may always expand to.
///
/// Limit (Requests, bytes): the limit for each byte applies.
const MIN_MAX_JSON: usize = 64 * 1024;
/// Bytes of JSON for each byte of a YAML body.
///
/// Without aliases, a byte becomes at most six.
///
/// Limit (Requests, bytes): 400, "document contains excessive aliasing".
const MAX_JSON_PER_BYTE: usize = 32;
/// Events (starts, ends, scalars) that the aliases of a YAML body repeat.
///
/// Limit (Requests): 400, "document contains excessive aliasing".
const MAX_REPLAYED: usize = 200_000;
/// Events that the aliases of any YAML body may repeat.
///
/// kube-apiserver also accepts any aliases below 1,000 nodes.
///
/// Limit (Requests): the limit for each byte applies.
const MIN_MAX_REPLAYED: usize = 1_000;
/// Repeated events for each byte of a YAML body.
///
/// A node of a manifest takes 6 bytes or more, so this is no stricter than kube-apiserver's limit of 99 repeated nodes for
/// each written one.
///
/// Limit (Requests): 400, "document contains excessive aliasing".
const MAX_REPLAYED_PER_BYTE: usize = 16;
/// Maximum number of copies that nested anchors make of each event.
const MAX_COPIES: usize = 4;

/// Converts the first document of a YAML text to JSON, including duplicate keys.
///
/// # Errors
/// Message of the parser.
pub(super) fn to_json(text: &str) -> Result<String, String> {
    let text = first_document(text);
    let (out, read) = transcode(text);
    if let Some(number) = out.non_finite {
        return Err(format!("json: unsupported value: {number}"));
    }
    if out.is_too_large() {
        return Err(format!("yaml: {EXCESSIVE_ALIASING}"));
    }
    read.map_err(|error| format!("yaml: {}", yaml_errors::error_message(&error, text)))?;
    String::from_utf8(out.json).map_err(|error| error.to_string())
}

/// Writes one document as JSON, up to the first error.
fn transcode(text: &str) -> (JsonOutput<'_>, Result<(), Error>) {
    let max_json = proportional(text, MAX_JSON_PER_BYTE, MIN_MAX_JSON, MAX_JSON);
    let tag_levels = yaml_tags::levels(text);
    let mut out = JsonOutput { text, json: Vec::new(), max_json, tag_levels, non_finite: None };
    let mut is_complete = false;
    let read = serde_saphyr::with_deserializer_from_str_with_options(text, options(text), |deserializer| {
        let read = Transcode(&mut out).deserialize(deserializer);
        is_complete = read.is_ok();
        read
    });
    // As upstream, content after the first value of the document is ignored.
    (out, if is_complete { Ok(()) } else { read })
}

/// Returns the first document; the documents after it are ignored.
pub(super) fn first_document(text: &str) -> &str {
    let mut started = false;
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_end();
        let is_marker =
            |mark| bare.strip_prefix(mark).is_some_and(|rest: &str| rest.is_empty() || rest.starts_with(' '));
        if started && (is_marker("---") || is_marker("...")) {
            return &text[..offset];
        }
        started |= !bare.is_empty() && !bare.starts_with(['#', '%']);
        offset += line.len();
    }
    text
}

/// Returns a limit in proportion to the size of a text.
fn proportional(text: &str, per_byte: usize, min: usize, max: usize) -> usize {
    text.len().saturating_mul(per_byte).clamp(min, max)
}

/// Returns the parser options for this text. The limits of aliases grow with its size.
pub(super) fn options(text: &str) -> serde_saphyr::Options {
    let mut limits = AliasLimits::default();
    let replayed = proportional(text, MAX_REPLAYED_PER_BYTE, MIN_MAX_REPLAYED, MAX_REPLAYED);
    limits.max_total_replayed_events = replayed;
    let mut options = serde_saphyr::options! {
        duplicate_keys: DuplicateKeyPolicy::PassThrough,
        // Merged below: upstream writes the entries at the position of the merge key, so that later entries win.
        merge_keys: MergeKeyPolicy::AsOrdinary,
        alias_limits: limits,
        legacy_octal_numbers: true,
        with_snippet: false,
        // Rejected below, with Go's message.
        non_finite_float_policy: NonFiniteFloatPolicy::PassThrough,
    };
    if let Some(budget) = options.budget.as_mut() {
        budget.max_depth = MAX_YAML_DEPTH;
        // Keys and the document count as nodes.
        budget.max_nodes = 2 * MAX_VALUES + 1;
        budget.max_recorded_anchor_events = MAX_COPIES * replayed;
        // Upstream accepts any number of aliases of one anchor.
        budget.enforce_alias_anchor_ratio = false;
    }
    options
}

/// True for a key that merges a map into its parent: `<<` without quotes.
pub(super) fn is_merge_key<K>(text: &str, key: &Spanned<K>) -> bool {
    let offset = key.defined.span().byte_offset().and_then(|offset| usize::try_from(offset).ok());
    offset
        .and_then(|offset| text.get(offset..))
        .is_some_and(|key| key.strip_prefix("<<").is_some_and(ends_key))
}

fn ends_key(rest: &str) -> bool {
    rest.trim_start_matches(' ').starts_with(':')
}

/// JSON output.
struct JsonOutput<'t> {
    /// YAML input.
    text: &'t str,
    json: Vec<u8>,
    /// Maximum size of `json`.
    max_json: usize,
    /// Number of further levels that are searched for tags.
    tag_levels: u8,
    /// Number that JSON cannot represent, as Go prints it. Ends the conversion.
    non_finite: Option<&'static str>,
}

impl JsonOutput<'_> {
    fn is_too_large(&self) -> bool {
        self.json.len() > self.max_json
    }

    /// Writes a value that may have a tag.
    fn transcode_tagged<'de, D: Deserializer<'de>>(&mut self, deserializer: D) -> Result<(), D::Error> {
        let start = self.json.len();
        self.tag_levels -= 1;
        let range = yaml_tags::read_tagged(deserializer, UntaggedWriter(self))?;
        self.tag_levels += 1;
        let is_typed = matches!(self.json.get(start), Some(b'"' | b'[' | b'{'));
        if let Some(scalar) = range.filter(|_| !is_typed).and_then(|range| self.text.get(range)) {
            self.json.truncate(start);
            self.json.extend(Value::from(scalar).to_string().into_bytes());
        }
        Ok(())
    }
}

/// Visitor that writes a value as JSON.
struct Transcode<'o, 't>(&'o mut JsonOutput<'t>);

impl Transcode<'_, '_> {
    fn write<E: serde::de::Error>(self, value: impl serde::Serialize) -> Result<(), E> {
        serde_json::to_writer(&mut self.0.json, &value).map_err(E::custom)?;
        self.check_size()
    }

    /// Counts all output: aliases can also repeat brackets and keys.
    fn check_size<E: serde::de::Error>(&self) -> Result<(), E> {
        if self.0.is_too_large() {
            return Err(E::custom(EXCESSIVE_ALIASING));
        }
        Ok(())
    }
}

/// Returns Go's name of a float that JSON cannot represent, otherwise `None`.
fn non_finite_name(number: f64) -> Option<&'static str> {
    match number {
        _ if number.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

impl<'de> DeserializeSeed<'de> for Transcode<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0.tag_levels {
            0 => deserializer.deserialize_any(self),
            _ => self.0.transcode_tagged(deserializer),
        }
    }
}

/// Writes a value without a tag.
struct UntaggedWriter<'o, 't>(&'o mut JsonOutput<'t>);

impl<'de> DeserializeSeed<'de> for UntaggedWriter<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(Transcode(self.0))
    }
}

impl<'de> Visitor<'de> for Transcode<'_, '_> {
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
        if let Some(number) = non_finite_name(v) {
            self.0.non_finite = Some(number);
            return Err(E::custom("no number of JSON"));
        }
        // A float with a zero fraction becomes an integer: upstream's JSON of 1.0 is 1.
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

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        self.0.json.push(b'{');
        let (start, mut entries) = (self.0.json.len(), Vec::new());
        write_entries(self.0, map, &mut entries)?;
        self.0.repeat_last_values(start, &entries);
        self.0.json.push(b'}');
        self.check_size()
    }
}

/// Entry of a map, with the range of its value in the JSON.
struct Entry {
    key: String,
    value: Range<usize>,
}

impl JsonOutput<'_> {
    /// Replaces the values of repeated keys with the last value, as upstream's map keeps only that one. Each repeated key is
    /// written two times, so that duplicate keys can be reported later.
    fn repeat_last_values(&mut self, start: usize, entries: &[Entry]) {
        let places: HashMap<&str, usize> =
            entries.iter().enumerate().map(|(index, entry)| (entry.key.as_str(), index)).collect();
        if places.len() == entries.len() {
            return;
        }
        let (mut seen, mut json) = (HashSet::new(), Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let last = places[entry.key.as_str()];
            if !seen.insert(entry.key.as_str()) && index != last {
                continue;
            }
            if !json.is_empty() {
                json.push(b',');
            }
            json.extend(Value::from(entry.key.as_str()).to_string().into_bytes());
            json.push(b':');
            json.extend_from_slice(&self.json[entries[last].value.clone()]);
        }
        self.json.truncate(start);
        self.json.extend(json);
    }
}

/// Writes the entries of a map, including those of merged maps, without brackets.
fn write_entries<'de, A: MapAccess<'de>>(
    out: &mut JsonOutput<'_>,
    mut map: A,
    entries: &mut Vec<Entry>,
) -> Result<(), A::Error> {
    while let Some(key) = map.next_key::<Spanned<Key>>()? {
        if is_merge_key(out.text, &key) {
            map.next_value_seed(MergedEntries { out, entries })?;
            continue;
        }
        if !entries.is_empty() {
            out.json.push(b',');
        }
        serde_json::to_writer(&mut out.json, &key.value.0).map_err(A::Error::custom)?;
        out.json.push(b':');
        let start = out.json.len();
        map.next_value_seed(Transcode(out))?;
        entries.push(Entry { key: key.value.0, value: start..out.json.len() });
        Transcode(out).check_size()?;
    }
    Ok(())
}

/// Writes the entries of a map, or of a list of maps. If several maps of a list have a key, the first one wins.
struct MergedEntries<'o, 't, 'e> {
    out: &'o mut JsonOutput<'t>,
    entries: &'e mut Vec<Entry>,
}

impl<'de> DeserializeSeed<'de> for MergedEntries<'_, '_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MergedEntries<'_, '_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("map or sequence of maps as the value")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        write_entries(self.out, map, self.entries)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let (start, mut maps) = (self.entries.len(), vec![self.entries.len()]);
        while items
            .next_element_seed(MergedEntries { out: &mut *self.out, entries: &mut *self.entries })?
            .is_some()
        {
            maps.push(self.entries.len());
        }
        let mut merged = self.entries.split_off(start);
        for from in maps.iter().rev().skip(1) {
            self.entries.extend(merged.drain(from - start..));
        }
        Ok(())
    }
}

/// Key: a string, or a number or Boolean that becomes a string.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(KeyReader).map(Self)
    }
}

struct KeyReader;

impl Visitor<'_> for KeyReader {
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
        Ok(match non_finite_name(v) {
            Some("NaN") => ".nan".to_owned(),
            Some("+Inf") => ".inf".to_owned(),
            Some(_) => "-.inf".to_owned(),
            None => v.to_string(),
        })
    }

    fn visit_str<E>(self, v: &str) -> Result<String, E> {
        Ok(v.to_owned())
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<String, E> {
        Err(E::custom("unsupported map key of type: %!s(<nil>), key: <nil>"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_is_read_as_upstream_reads_it() {
        let rows = [
            (
                "a: yes\nb: 0644\nc: '0644'\nd: 1.0\ne: 2026-01-02T03:04:05Z",
                r#"{"a":true,"b":420,"c":"0644","d":1,"e":"2026-01-02T03:04:05Z"}"#,
            ),
            ("1: x\ntrue: why", r#"{"1":"x","true":"why"}"#),
            ("a: &x [1, null]\nb: *x", r#"{"a":[1,null],"b":[1,null]}"#),
            ("a: 1\na: 2", r#"{"a":2,"a":2}"#),
            ("a: 1\nb: x\na: 2\na: [3]", r#"{"a":[3],"b":"x","a":[3]}"#),
            ("# one\n---\na: 1\n--- \na: 2", r#"{"a":1}"#),
            ("a: 1\n...\n]", r#"{"a":1}"#),
            ("a:\n  b: |\n    x\n    y\n", r#"{"a":{"b":"x\ny\n"}}"#),
            ("base: &b {x: 1}\nmore: {<<: *b, z: 2}", r#"{"base":{"x":1},"more":{"x":1,"z":2}}"#),
            ("<<: {}\na: 1\n<<: {a: 2}\n\"<<\": 3", r#"{"a":2,"a":2,"<<":3}"#),
            ("<<: [{a: 1}, {}, {a: 2}]\nb: 1", r#"{"a":1,"a":1,"b":1}"#),
            ("b: 1\n<<: [{}, {c: é}, [{c: 2}, {d: 3}], {}]", r#"{"b":1,"d":3,"c":"é","c":"é"}"#),
            ("{\"a\":1} x", r#"{"a":1}"#),
        ];
        for (text, want) in rows {
            assert_eq!(to_json(text).as_deref(), Ok(want));
        }
    }

    #[test]
    fn scalars_with_application_tags_are_strings() {
        for (text, json) in [
            ("a: !x 1\nb: 1", r#"{"a":"1","b":1}"#),
            ("a: é\nb: !<tag:x> true # c", r#"{"a":"é","b":"true"}"#),
            ("a: &a !x 010\nb: *a", r#"{"a":"010","b":"010"}"#),
            ("a: !x ~\nb: !x [1, !!foo 2]\nc: !x {d: 3}", r#"{"a":"~","b":[1,"2"],"c":{"d":3}}"#),
            ("a: !!int '3'\nb: !!str 4\nc: ! 5\nd: !!binary aGk=", r#"{"a":3,"b":"4","c":"5","d":"hi"}"#),
        ] {
            assert_eq!(to_json(text).as_deref(), Ok(json), "{text}");
        }
    }

    #[test]
    fn texts_with_tags_may_nest_as_deep_as_texts_without() {
        let text = format!("a: !x 1\nb: {}1{}", "[".repeat(90), "]".repeat(90));
        // Stack size of the threads that decode bodies.
        let reader = std::thread::Builder::new().stack_size(8 << 20);
        let read = reader.spawn(move || to_json(&text).unwrap()).unwrap().join().unwrap();
        assert_eq!(read.matches('[').count(), 90);
    }

    #[test]
    fn numbers_that_json_cannot_represent_are_rejected() {
        for (text, number) in
            [("a: .nan", "NaN"), ("a: [.inf]", "+Inf"), ("{a: {b: -.Inf}}", "-Inf"), (".NaN", "NaN")]
        {
            assert_eq!(to_json(text).unwrap_err(), format!("json: unsupported value: {number}"), "{text}");
        }
        assert_eq!(to_json("{.nan: 1, -.inf: 2, x: '.nan'}").unwrap(), r#"{".nan":1,"-.inf":2,"x":".nan"}"#);
    }

    #[test]
    fn a_null_key_is_refused() {
        for text in ["{~: 1}", "a: {null: 1}", "? \n: 1"] {
            assert!(to_json(text).unwrap_err().contains("unsupported map key"), "{text}");
        }
    }

    /// Text with nine aliases of the last anchor on each level.
    fn bomb(levels: usize) -> String {
        use std::fmt::Write as _;
        let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
        for level in 1..levels {
            let aliases = vec![format!("*a{}", level - 1); 9].join(",");
            writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
        }
        bomb
    }

    /// Text with aliases inside many anchors, each of which copies the events that the aliases repeat.
    fn deep_copies() -> String {
        let anchors: String = (0..50).map(|level| format!("&n{level} [")).collect();
        let aliases = "*a,".repeat(100);
        format!("a: &a [{}]\nb: {anchors}{aliases}{}", "x,".repeat(30), "]".repeat(50))
    }

    #[test]
    fn excessive_aliasing_is_rejected_with_work_proportional_to_the_text() {
        let texts = [
            bomb(12),
            format!("a: &a [{}]\nb: [{}]", "x,".repeat(300), "*a,".repeat(300)),
            format!("a: &a {}\nb: [{}]", "x".repeat(20_000), "*a,".repeat(200)),
            deep_copies(),
            format!("a: &a {{k: {}}}\n<<: [{}]", "x".repeat(20_000), "*a,".repeat(3_000)),
            format!("a: &a {{k: \"{}\"}}\n<<: [{}]", "\\x01".repeat(5_000), "*a,".repeat(3_000)),
            format!("a: &a {{k: {}}}\n<<: [[{}]]", "x".repeat(20_000), "*a,".repeat(3_000)),
            format!("a: &a {{k: {}}}\n<<: [{}]", "x".repeat(20_000), "{<<: *a},".repeat(1_500)),
        ];
        for text in &texts {
            assert_eq!(to_json(text).unwrap_err(), "yaml: document contains excessive aliasing", "{text}");
            let written = transcode(text).0.json.len();
            assert!(written < 80 * 1024 + 40 * text.len(), "{written} bytes of {}: {text}", text.len());
        }
    }

    #[test]
    fn aliases_of_manifests_are_expanded() {
        use std::fmt::Write as _;
        let mut text =
            "base: &base {image: nginx, ports: [80, 443], env: [{name: A, value: b}]}\n".to_owned();
        for index in 0..400 {
            writeln!(text, "container{index}: *base").unwrap();
        }
        assert_eq!(to_json(&text).unwrap().matches("nginx").count(), 401);
        assert!(to_json(&format!("a: &a {}\nb: [{}]", "x".repeat(10_000), "*a,".repeat(5))).is_ok());
    }

    #[test]
    fn deep_nesting_is_refused() {
        assert!(to_json(&"[".repeat(100_000)).is_err());
    }
}
