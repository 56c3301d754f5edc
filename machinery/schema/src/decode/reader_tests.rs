//! Tests of the JSON reader: upstream's messages, and agreement with another parser.

use portico_machinery::Object;
use portico_machinery::object::Float;
use proptest::prelude::*;

use super::*;

fn read(text: &str) -> std::result::Result<Value, String> {
    let mut reader = Reader::new(text);
    let value = reader.any().map_err(|e| e.0)?;
    reader.end().map_err(|e| e.0)?;
    let mut skipper = Reader::new(text);
    skipper.skip().and_then(|()| skipper.end()).map_err(|e| format!("skip disagrees: {e}"))?;
    Ok(value)
}

#[test]
fn malformed_json_is_rejected_with_upstream_messages() {
    let rows = [
        ("", "unexpected end of JSON input"),
        ("{not json", "invalid character 'n' looking for beginning of object key string"),
        ("{\"a\":1,}", "invalid character '}' looking for beginning of object key string"),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        ("{\"a\":1 \"b\"", "invalid character '\"' after object key:value pair"),
        ("[1 2]", "invalid character '2' after array element"),
        ("[1,]", "invalid character ']' looking for beginning of value"),
        ("\u{9e}", "invalid character 'Â' looking for beginning of value"),
        ("1 x", "invalid character 'x' after top-level value"),
        ("\"a\nb\"", r"invalid character '\n' in string literal"),
        (r#""\q""#, "invalid character 'q' in string escape code"),
        (r#""\u12g4""#, r"invalid character 'g' in \u hexadecimal character escape"),
        ("-x", "invalid character 'x' in numeric literal"),
        ("1.x", "invalid character 'x' after decimal point in numeric literal"),
        ("1e+", "invalid character ' ' in exponent of numeric literal"),
        ("1.", "invalid character ' ' after decimal point in numeric literal"),
        ("-", "invalid character ' ' in numeric literal"),
        ("\"\\", "invalid character ' ' in string escape code"),
        ("\"\\u1", r"invalid character ' ' in \u hexadecimal character escape"),
        ("\"a", "unexpected end of JSON input"),
        ("tru3", "invalid character '3' in literal true (expecting 'e')"),
        ("nul", "invalid character ' ' in literal null (expecting 'l')"),
    ];
    for (text, want) in rows {
        assert_eq!(read(text), Err(want.to_owned()), "{text:?}");
    }
}

#[test]
fn escapes_and_numbers_are_read() {
    assert_eq!(
        read(r#" "a\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\ud800x" "#),
        Ok(Value::String("a\"\\/\u{8}\u{c}\n\r\té😀\u{fffd}x".to_owned()))
    );
    assert_eq!(read("9223372036854775807"), Ok(Value::from(i64::MAX)));
    assert_eq!(read("-1.5e2"), Ok(Value::from(-150.0)));
    assert!(read("1e999").is_err());
}

#[test]
fn numbers_are_read_written_and_printed_as_recorded() {
    let (mut numbers, mut refused) = (0, 0);
    for row in include_str!("../../../testdata/json_numbers.jsonl").lines() {
        let row: Value = serde_json::from_str(row).unwrap();
        let text = row["text"].as_str().unwrap();
        let Ok(Value::Object(map)) = read(&format!("{{\"n\":{text}}}")) else {
            assert!(row["error"].is_string(), "{row}");
            refused += 1;
            continue;
        };
        let printed = match &map["n"] {
            Value::Number(number) if number.is_f64() => Float(number.as_f64().unwrap()).to_string(),
            integer => integer.to_string(),
        };
        assert_eq!(Some(printed.as_str()), row["shown"].as_str(), "{row}");
        let written = Object::from_map(map).to_json();
        let want = format!("{{\"n\":{}}}", row["written"].as_str().unwrap());
        assert_eq!(String::from_utf8(written).unwrap(), want, "{row}");
        // The written text is stored, and returned by later reads.
        assert_eq!(
            String::from_utf8(Object::from_json(want.as_bytes()).unwrap().to_json()).unwrap(),
            read_and_print(&row)
        );
        numbers += 1;
    }
    assert!(numbers > 400 && refused > 400, "{numbers} numbers, {refused} refused");
}

/// Returns the text that is written after a written number was read again.
fn read_and_print(row: &Value) -> String {
    let written = row["written"].as_str().unwrap();
    // Upstream reads a negative zero that it wrote as an integer.
    format!("{{\"n\":{}}}", if written == "-0" { "0" } else { written })
}

#[test]
fn deep_nesting_is_an_error_and_does_not_overflow_the_stack() {
    for open in ["[", "{\"a\":"] {
        let error = read(&open.repeat(1_000_000)).unwrap_err();
        assert!(error.starts_with("exceeded max depth"), "{error}");
    }
    let deepest = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert!(read(&deepest).is_ok());
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::from),
        (-1.0e9..1.0e9).prop_map(Value::from),
        ".{0,8}".prop_map(Value::String),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::Array),
            prop::collection::vec((".{0,4}", inner), 0..5)
                .prop_map(|v| Value::Object(v.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn encoded_values_are_read_back(value in json()) {
        prop_assert_eq!(read(&value.to_string()), Ok(value.clone()));
        prop_assert_eq!(read(&serde_json::to_string_pretty(&value).unwrap()), Ok(value));
    }

    #[test]
    fn texts_are_accepted_or_rejected_as_by_serde_json(text in "[\\[\\]{},:\"0-9a-ce.tfnul\\\\ -]{0,24}") {
        let other = serde_json::from_str::<Value>(&text);
        prop_assert_eq!(read(&text).is_ok(), other.is_ok(), "{} {:?}", text, other);
    }
}
