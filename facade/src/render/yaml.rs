//! JSON to YAML as upstream writes it: keys sorted, sequences not indented, strings quoted where YAML 1.1 would
//! read them as something else.

mod text;

use std::borrow::Cow;
use std::collections::BTreeMap;

use portico_machinery::object::Float;
use serde_json::value::RawValue;

use self::text::text;

/// The YAML of one JSON document; nothing when it is no JSON.
#[must_use]
pub fn yaml(json: &[u8]) -> Option<Vec<u8>> {
    let raw: &RawValue = serde_json::from_slice(json).ok()?;
    let mut out = String::with_capacity(json.len() + json.len() / 4);
    match raw.get().as_bytes().first()? {
        b'{' | b'[' => block(raw.get(), 0, &mut out)?,
        _ => {
            scalar(raw.get(), 0, &mut out)?;
            out.push('\n');
        }
    }
    Some(out.into_bytes())
}

/// A map or a sequence whose first line begins where the cursor is.
fn block(raw: &str, indent: usize, out: &mut String) -> Option<()> {
    if raw.starts_with('{') {
        let map: BTreeMap<Key<'_>, &RawValue> = serde_json::from_str(raw).ok()?;
        for (at, (key, value)) in map.iter().enumerate() {
            pad(if at == 0 { 0 } else { indent }, out);
            if !is_simple(&key.0) {
                explicit(&key.0, value.get(), indent, out)?;
                continue;
            }
            text(&key.0, indent, out);
            out.push(':');
            // Sequences stand at their key's own column.
            let deeper = if value.get().starts_with('[') { indent } else { indent + 2 };
            entry(value.get(), deeper, out)?;
        }
        if map.is_empty() {
            out.push_str("{}\n");
        }
        return Some(());
    }
    let list: Vec<&RawValue> = serde_json::from_str(raw).ok()?;
    for (at, value) in list.iter().enumerate() {
        pad(if at == 0 { 0 } else { indent }, out);
        out.push('-');
        if is_block(value.get()) {
            out.push(' ');
            block(value.get(), indent + 2, out)?;
        } else {
            entry(value.get(), indent + 2, out)?;
        }
    }
    if list.is_empty() {
        out.push_str("[]\n");
    }
    Some(())
}

/// The most bytes of a key that stands on the line of its value.
const MAX_SIMPLE_KEY: usize = 128;

/// Whether a key may stand on the line of its value.
fn is_simple(key: &str) -> bool {
    key.len() <= MAX_SIMPLE_KEY && !key.contains('\n')
}

/// A key and its value, each behind an indicator of its own.
fn explicit(key: &str, value: &str, indent: usize, out: &mut String) -> Option<()> {
    out.push_str("? ");
    text(key, indent + 2, out);
    out.push('\n');
    pad(indent, out);
    out.push(':');
    if is_block(value) {
        out.push(' ');
        return block(value, indent + 2, out);
    }
    entry(value, indent + 2, out)
}

#[derive(serde::Deserialize, PartialEq, Eq, PartialOrd, Ord)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// What follows `key:` up to and including the newline.
fn entry(raw: &str, indent: usize, out: &mut String) -> Option<()> {
    if is_block(raw) {
        out.push('\n');
        pad(indent, out);
        return block(raw, indent, out);
    }
    out.push(' ');
    match raw.as_bytes().first()? {
        b'{' => out.push_str("{}"),
        b'[' => out.push_str("[]"),
        _ => scalar(raw, indent, out)?,
    }
    out.push('\n');
    Some(())
}

/// Whether it is a map or sequence with something in it.
fn is_block(raw: &str) -> bool {
    let mut inner = raw.bytes();
    matches!(inner.next(), Some(b'{' | b'['))
        && !matches!(inner.find(|b| !b.is_ascii_whitespace()), Some(b'}' | b']'))
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

/// True for a number that upstream reads as a float before it writes it.
fn is_float(raw: &str) -> bool {
    raw.contains(['.', 'e', 'E']) && !raw.starts_with(['t', 'f', 'n'])
        || raw.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && raw.parse::<i64>().is_err()
            && raw.parse::<u64>().is_err()
}

fn scalar(raw: &str, indent: usize, out: &mut String) -> Option<()> {
    if !raw.starts_with('"') {
        match raw.parse().ok().filter(|_| is_float(raw)) {
            Some(float) => out.push_str(&Float(float).to_string()),
            None => out.push_str(raw),
        }
        return Some(());
    }
    let value: Cow<'_, str> = serde_json::from_str::<Key<'_>>(raw).ok()?.0;
    text(&value, indent, out);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(json: &str) -> String {
        String::from_utf8(yaml(json.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_document_is_laid_out_as_upstream_does() {
        let json = r#"{"kind":"A","apiVersion":"v1","items":[{"b":1,"a":[]},[1,2],"x"],"m":{"z":{},"y":{"k":null}}}"#;
        let want = "apiVersion: v1\nitems:\n- a: []\n  b: 1\n- - 1\n  - 2\n- x\nkind: A\nm:\n  \"y\":\n    k: null\n  z: {}\n";
        assert_eq!(written(json), want);
    }

    #[test]
    fn a_key_of_several_lines_or_of_many_bytes_stands_on_its_own() {
        let long = "k".repeat(129);
        let json =
            format!(r#"{{"a\nb":1,"c\nd\n":{{"x":[1],"y":"z\nz"}},"e\nf":[1,{{}}],"{long}":{{}},"\n":"g"}}"#);
        let written = written(&json);
        let want =
            "? |2+\n\n: g\n? |-\n  a\n  b\n: 1\n? |\n  c\n  d\n: x:\n  - 1\n  \"y\": |-\n    z\n    z\n";
        assert!(written.starts_with(want), "{written}");
        let read: serde_json::Value = serde_saphyr::from_str(&written).unwrap();
        assert_eq!(read, serde_json::from_str::<serde_json::Value>(&json).unwrap());
    }

    #[test]
    fn strings_that_mean_something_else_are_quoted() {
        for (json, want) in [
            (r#""true""#, "\"true\"\n"),
            (r#""1""#, "\"1\"\n"),
            (r#""0x1f""#, "\"0x1f\"\n"),
            (r#""1:30""#, "\"1:30\"\n"),
            (r#""2020-01-02T03:04:05Z""#, "\"2020-01-02T03:04:05Z\"\n"),
            (r#""""#, "\"\"\n"),
            (r#""a: b""#, "'a: b'\n"),
            (r#""*""#, "'*'\n"),
            (r#""it's""#, "it's\n"),
            (r#""v1.2.3""#, "v1.2.3\n"),
            (r#""1.2.3""#, "1.2.3\n"),
            ("1.50", "1.5\n"),
            ("1e-7", "1e-07\n"),
            ("1234567.5", "1.2345675e+06\n"),
            ("100000000000000000000", "1e+20\n"),
            ("1234567890123", "1234567890123\n"),
            ("true", "true\n"),
        ] {
            assert_eq!(written(json), want);
        }
        assert_eq!(written(r#"{"a":"x\ny\n","b":"x\ny"}"#), "a: |\n  x\n  y\nb: |-\n  x\n  y\n");
    }

    #[test]
    fn what_is_no_json_is_nothing() {
        assert_eq!(yaml(b"{"), None);
        assert_eq!(yaml(b""), None);
    }

    proptest! {
        #[test]
        fn a_yaml_reader_reads_the_same_strings(list in prop::collection::vec(r"[ -~\n]{0,12}", 0..6)) {
            let json = serde_json::to_vec(&std::collections::BTreeMap::from([("list", &list)])).unwrap();
            let text = String::from_utf8(yaml(&json).unwrap()).unwrap();
            let back: BTreeMap<String, Vec<String>> = serde_saphyr::from_str(&text)
                .map_err(|e| TestCaseError::fail(format!("{e}\n{text}")))?;
            prop_assert_eq!(&back["list"], &list, "{}", text);
        }
    }
}
