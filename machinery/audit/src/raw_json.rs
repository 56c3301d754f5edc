//! JSON output like that of Go's encoder: escaped markup characters, compact documents.

/// Writes a string with quotes and escapes.
pub(crate) fn push_string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    let bytes = text.as_bytes();
    // Nearly all strings are plain. Without branches, the compiler vectorizes the loop.
    if bytes.iter().fold(true, |plain, byte| plain & is_plain(*byte)) {
        out.extend_from_slice(bytes);
        out.push(b'"');
        return;
    }
    let mut written = 0;
    for (at, byte) in bytes.iter().enumerate() {
        let escaped: &[u8] = match byte {
            b'"' => b"\\\"",
            b'\\' => b"\\\\",
            b'\n' => b"\\n",
            b'\r' => b"\\r",
            b'\t' => b"\\t",
            0x08 => b"\\b",
            0x0c => b"\\f",
            0x00..=0x1f | b'<' | b'>' | b'&' => &escape(*byte),
            // U+2028 and U+2029, which end lines in JavaScript.
            0xe2 => match escaped_separator(&bytes[at..]) {
                Some(escaped) => escaped,
                None => continue,
            },
            _ => continue,
        };
        // The two bytes that follow the first byte of a separator are skipped.
        let width = if *byte == 0xe2 { 3 } else { 1 };
        out.extend_from_slice(&bytes[written..at]);
        out.extend_from_slice(escaped);
        written = at + width;
    }
    out.extend_from_slice(&bytes[written..]);
    out.push(b'"');
}

/// Writes a JSON document without whitespace between its tokens and with escaped markup.
pub(crate) fn push_compact(out: &mut Vec<u8>, json: &[u8]) {
    let (mut in_string, mut written, mut at) = (false, 0, 0);
    while at < json.len() {
        let byte = json[at];
        let (replaced, width): (&[u8], usize) = match byte {
            b'\\' if in_string => {
                at += 2;
                continue;
            }
            b'"' => {
                in_string = !in_string;
                at += 1;
                continue;
            }
            b' ' | b'\t' | b'\n' | b'\r' if !in_string => (b"", 1),
            b'<' | b'>' | b'&' => (&escape(byte), 1),
            0xe2 => match escaped_separator(&json[at..]) {
                Some(escaped) => (escaped, 3),
                None => {
                    at += 1;
                    continue;
                }
            },
            _ => {
                at += 1;
                continue;
            }
        };
        out.extend_from_slice(&json[written..at]);
        out.extend_from_slice(replaced);
        at += width;
        written = at;
    }
    out.extend_from_slice(&json[written..]);
}

/// True if the byte is not escaped and does not start an escaped sequence.
fn is_plain(byte: u8) -> bool {
    byte >= 0x20
        && byte != b'"'
        && byte != b'\\'
        && byte != b'<'
        && byte != b'>'
        && byte != b'&'
        && byte != 0xe2
}

fn escape(byte: u8) -> [u8; 6] {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digit = |value: u8| HEX[usize::from(value & 0xf)];
    [b'\\', b'u', b'0', b'0', digit(byte >> 4), digit(byte)]
}

fn escaped_separator(bytes: &[u8]) -> Option<&'static [u8]> {
    match bytes {
        [0xe2, 0x80, 0xa8, ..] => Some(b"\\u2028"),
        [0xe2, 0x80, 0xa9, ..] => Some(b"\\u2029"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn string(text: &str) -> String {
        let mut out = Vec::new();
        push_string(&mut out, text);
        String::from_utf8(out).unwrap()
    }

    fn compact(json: &str) -> String {
        let mut out = Vec::new();
        push_compact(&mut out, json.as_bytes());
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn strings_are_escaped_as_go_escapes_them() {
        for (text, json) in [
            ("plain \u{7f} ü €", "\"plain \u{7f} ü €\""),
            ("a\"b\\c/", r#""a\"b\\c/""#),
            ("\n\r\t\u{8}\u{c}\u{1}\u{1f}", r#""\n\r\t\b\f\u0001\u001f""#),
            ("<a>&", r#""\u003ca\u003e\u0026""#),
            ("\u{2028}\u{2029}", r#""\u2028\u2029""#),
        ] {
            assert_eq!(string(text), json);
        }
    }

    #[test]
    fn documents_lose_whitespace_and_keep_strings() {
        let json = "{ \"a b\" : [ 1 , \"c \\\" \\\\\" ],\n\t\"<\":\"\u{2028}>\" } \n";
        assert_eq!(compact(json), r#"{"a b":[1,"c \" \\"],"\u003c":"\u2028\u003e"}"#);
    }

    proptest! {
        #[test]
        fn a_written_string_is_read_unchanged(text in any::<String>()) {
            let read: String = serde_json::from_str(&string(&text)).unwrap();
            prop_assert_eq!(&read, &text);
            let spaced = format!(" [ {} , 1 ] ", serde_json::to_string(&text).unwrap());
            let read: (String, u8) = serde_json::from_str(&compact(&spaced)).unwrap();
            prop_assert_eq!(read, (text, 1));
        }

        #[test]
        fn no_bytes_cause_a_panic(bytes in any::<Vec<u8>>()) {
            push_compact(&mut Vec::new(), &bytes);
        }
    }
}
