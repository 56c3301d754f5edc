//! Converts JSON to YAML as upstream does: keys sorted, sequences not indented, strings quoted that YAML 1.1 would not read as
//! strings. Levels below [`MAX_LEVELS`] are written in flow style, on one line.

mod flow;
mod outline;
mod scalar;
mod text;

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use self::flow::flow;
use self::outline::{Outline, ValueRef};
use self::scalar::{is_simple, scalar, string};
use self::text::text;
use super::MAX_LEVELS;

/// Returns the YAML of a JSON document; `None` if it is not valid JSON.
#[must_use]
pub fn yaml(json: &[u8]) -> Option<Vec<u8>> {
    let raw: &RawValue = serde_json::from_slice(json).ok()?;
    let outline = Outline::parse(raw.get());
    let out = String::with_capacity(json.len() + json.len() / 4);
    let mut writer = Writer { outline: &outline, level: 0, out };
    let root = outline.root()?;
    if root.is_container() {
        writer.block(root, 0)?;
    } else {
        scalar(root.text, 0, &mut writer.out)?;
        writer.out.push('\n');
    }
    Some(writer.out.into_bytes())
}

struct Writer<'a> {
    outline: &'a Outline<'a>,
    /// Number of maps and sequences around the cursor.
    level: usize,
    out: String,
}

impl<'a> Writer<'a> {
    /// Writes a map or sequence whose first line begins at the cursor.
    fn block(&mut self, part: ValueRef<'a>, indent: usize) -> Option<()> {
        self.level += 1;
        if part.text.starts_with('{') {
            self.map(part, indent)?
        } else {
            self.list(part, indent)?
        }
        self.level -= 1;
        Some(())
    }

    fn map(&mut self, part: ValueRef<'a>, indent: usize) -> Option<()> {
        let mut items = self.outline.items(part);
        let mut map = BTreeMap::new();
        while let (Some(key), Some(value)) = (items.next(), items.next()) {
            map.insert(string(key.text)?, value);
        }
        for (at, (key, value)) in map.iter().enumerate() {
            pad(if at == 0 { 0 } else { indent }, &mut self.out);
            if !is_simple(key) {
                self.explicit_entry(key, *value, indent)?;
                continue;
            }
            text(key, indent, &mut self.out);
            self.out.push(':');
            // Sequences have the same indentation as their key.
            let deeper = if value.text.starts_with('[') { indent } else { indent + 2 };
            self.entry(*value, deeper)?;
        }
        if map.is_empty() {
            self.out.push_str("{}\n");
        }
        Some(())
    }

    fn list(&mut self, part: ValueRef<'a>, indent: usize) -> Option<()> {
        let mut is_empty = true;
        for value in self.outline.items(part) {
            pad(if is_empty { 0 } else { indent }, &mut self.out);
            is_empty = false;
            self.out.push('-');
            self.value_after_indicator(value, indent + 2)?;
        }
        if is_empty {
            self.out.push_str("[]\n");
        }
        Some(())
    }

    /// Writes a key after `?` and its value after `:`.
    fn explicit_entry(&mut self, key: &str, value: ValueRef<'a>, indent: usize) -> Option<()> {
        self.out.push_str("? ");
        text(key, indent + 2, &mut self.out);
        self.out.push('\n');
        pad(indent, &mut self.out);
        self.out.push(':');
        self.value_after_indicator(value, indent + 2)
    }

    /// Writes the value of `-` or of an explicit key, with the newline.
    fn value_after_indicator(&mut self, value: ValueRef<'a>, indent: usize) -> Option<()> {
        if self.is_block(value) {
            self.out.push(' ');
            return self.block(value, indent);
        }
        self.entry(value, indent)
    }

    /// Writes the value of `key:`, with the newline.
    fn entry(&mut self, value: ValueRef<'a>, indent: usize) -> Option<()> {
        if self.is_block(value) {
            self.out.push('\n');
            pad(indent, &mut self.out);
            return self.block(value, indent);
        }
        self.out.push(' ');
        if value.is_container() {
            flow(value.text, &mut self.out)?;
        } else {
            scalar(value.text, indent, &mut self.out)?;
        }
        self.out.push('\n');
        Some(())
    }

    /// True for a non-empty map or sequence that is written on several lines.
    fn is_block(&self, part: ValueRef<'a>) -> bool {
        self.level < MAX_LEVELS && part.is_container() && self.outline.items(part).next().is_some()
    }
}

fn pad(indent: usize, out: &mut String) {
    out.extend(std::iter::repeat_n(' ', indent));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn written(json: &str) -> String {
        String::from_utf8(yaml(json.as_bytes()).unwrap()).unwrap()
    }

    #[test]
    fn a_document_has_upstreams_layout() {
        let json = r#"{"kind":"A","apiVersion":"v1","items":[{"b":1,"a":[]},[1,2],"x"],"m":{"z":{},"y":{"k":null}}}"#;
        let want = "apiVersion: v1\nitems:\n- a: []\n  b: 1\n- - 1\n  - 2\n- x\nkind: A\nm:\n  \"y\":\n    k: null\n  z: {}\n";
        assert_eq!(written(json), want);
    }

    #[test]
    fn multi_line_and_long_keys_are_explicit() {
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
    fn strings_that_would_have_another_type_are_quoted() {
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
    fn levels_below_the_limit_are_in_flow_style() {
        let long = "k".repeat(2000);
        let inner = format!(
            r#"{{"b":["a: b", 1.50, null,"it's",{{}}], "a\nb":{{"{long}":true}},"c":"é\u0007\ud83d\ude00"}}"#
        );
        let nested = format!("{}{inner}{}", "{\"x\":".repeat(MAX_LEVELS), "}".repeat(MAX_LEVELS));
        let written = written(&nested);
        let flow = format!(
            "{pad}x: {{\"b\": [\"a: b\",1.5,null,\"it's\",{{}}],? \"a\\nb\": {{? \"{long}\": true}},\"c\": \"é\\a\\U0001F600\"}}\n",
            pad = "  ".repeat(MAX_LEVELS - 1),
        );
        assert!(written.ends_with(&flow), "{written}");
        let read: serde_json::Value = serde_saphyr::from_str(&format!("y{}", flow.trim_start())).unwrap();
        assert_eq!(read["yx"], serde_json::from_str::<serde_json::Value>(&inner).unwrap());
    }

    #[test]
    fn a_wide_and_deep_object_grows_with_its_size_and_is_read_once() {
        let json = crate::render::wide_and_deep(200_000);
        outline::READ.set(0);
        assert!(written(&json).len() < json.len() + 2 * MAX_LEVELS * MAX_LEVELS);
        let read = outline::READ.get();
        assert!(read < 4 * json.len(), "{read} tokens of {} bytes", json.len());
        // The same for levels that are written on several lines.
        let list = vec!["1"; 100_000].join(",");
        let json = format!("{}[{list}]{}", "{\"a\":".repeat(98), "}".repeat(98));
        outline::READ.set(0);
        written(&json);
        assert!(outline::READ.get() < 4 * json.len());
    }

    #[test]
    fn invalid_json_is_none() {
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
