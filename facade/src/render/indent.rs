//! Indents compact JSON byte by byte, without parsing values, complete or in parts.

use super::MAX_LEVELS;

/// Indents JSON by two spaces per level, as Go's `MarshalIndent`, without a final newline. Values below level
/// `MAX_LEVELS` are written on one line.
///
/// Valid JSON stays valid; other input gives unspecified output, without a panic.
#[must_use]
pub fn pretty(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + json.len() / 2);
    Indenter::default().push(json, &mut out);
    out
}

/// State between two parts of a document.
#[derive(Debug, Default)]
pub struct Indenter {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// True after an opening bracket: an empty array or object stays on its line.
    opened: bool,
}

impl Indenter {
    /// Indents one more part.
    pub fn push(&mut self, json: &[u8], out: &mut Vec<u8>) {
        for &byte in json {
            if self.in_string {
                self.string(byte, out);
            } else if !matches!(byte, b' ' | b'\t' | b'\r' | b'\n') {
                self.token(byte, out);
            }
        }
    }

    fn string(&mut self, byte: u8, out: &mut Vec<u8>) {
        out.push(byte);
        match byte {
            _ if self.escaped => self.escaped = false,
            b'\\' => self.escaped = true,
            b'"' => self.in_string = false,
            _ => {}
        }
    }

    fn token(&mut self, byte: u8, out: &mut Vec<u8>) {
        let closing = matches!(byte, b'}' | b']');
        let compact = self.depth > MAX_LEVELS;
        if closing {
            self.depth = self.depth.saturating_sub(1);
        }
        if closing != self.opened && !compact {
            // At the first value within brackets, and at the end of brackets that are not empty.
            newline(out, self.depth);
        }
        self.opened = matches!(byte, b'{' | b'[');
        out.push(byte);
        match byte {
            b'"' => self.in_string = true,
            b'{' | b'[' => self.depth += 1,
            b',' if !compact => newline(out, self.depth),
            b':' if !compact => out.push(b' '),
            _ => {}
        }
    }
}

fn newline(out: &mut Vec<u8>, depth: usize) {
    out.push(b'\n');
    out.resize(out.len() + 2 * depth, b' ');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_is_indented_as_in_go() {
        let json = br#"{"a":{},"b":[1,{"c":"x\"{,:"}],"d":[ ],"e":null}"#;
        let want = "{\n  \"a\": {},\n  \"b\": [\n    1,\n    {\n      \"c\": \"x\\\"{,:\"\n    }\n  ],\n  \"d\": [],\n  \"e\": null\n}";
        assert_eq!(String::from_utf8(pretty(json)).unwrap(), want);
    }

    #[test]
    fn levels_below_the_limit_are_compact() {
        let nested = |inner: &str| format!("{}{inner}{}", "[".repeat(MAX_LEVELS), "]".repeat(MAX_LEVELS));
        let json = nested(r#"{"a":[1,{"b":2},[]],"c":{}}"#);
        let laid_out = String::from_utf8(pretty(json.as_bytes())).unwrap();
        let pad = "  ".repeat(MAX_LEVELS);
        assert!(
            laid_out.contains(&format!("[\n{pad}{{\"a\":[1,{{\"b\":2}},[]],\"c\":{{}}}}\n")),
            "{laid_out}"
        );
        assert!(laid_out.ends_with("\n  ]\n]"), "{laid_out}");
    }

    #[test]
    fn a_wide_and_deep_object_grows_only_up_to_the_limit() {
        let json = crate::render::wide_and_deep(200_000);
        assert!(pretty(json.as_bytes()).len() < json.len() + 2 * 2 * MAX_LEVELS * (MAX_LEVELS + 2));
    }

    proptest! {
        #[test]
        fn any_bytes_are_accepted(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
            let _ = pretty(&bytes);
        }

        #[test]
        fn parts_are_indented_as_the_complete_document(text in ".{0,20}", cut in 0usize..40) {
            let json = serde_json::to_vec(&(vec![text], Vec::<u8>::new(), 1)).unwrap();
            let cut = cut.min(json.len());
            let (mut indenter, mut out) = (Indenter::default(), Vec::new());
            indenter.push(&json[..cut], &mut out);
            indenter.push(&json[cut..], &mut out);
            prop_assert_eq!(out, pretty(&json));
        }

        #[test]
        fn strings_stay_unchanged(text in ".*") {
            let json = serde_json::to_vec(&[&text]).unwrap();
            let back: Vec<String> = serde_json::from_slice(&pretty(&json)).unwrap();
            prop_assert_eq!(&back[0], &text);
        }
    }
}
