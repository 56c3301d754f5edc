//! Responses in protobuf as JSON: fields by number, in the order of the bytes.
//!
//! The bytes contain no names of fields, so texts, messages and other bytes are distinguished by their form, in the same way
//! for both servers.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

const MAGIC: &[u8] = b"k8s\0";
/// A number within this many seconds of the current time is a time.
const TIME_RANGE_SECONDS: u64 = 100_000;

/// Decodes the bytes of a response; those of a watch are frames with length prefixes.
pub fn read(bytes: &[u8]) -> Value {
    if let Some(message) = bytes.strip_prefix(MAGIC) {
        return envelope(message);
    }
    frames(bytes).map_or_else(|| json!({"bytes": printable(bytes)}), Value::Array)
}

fn envelope(message: &[u8]) -> Value {
    let mut read = message_or_bytes(message);
    if read.pointer("/0/1/1/2").is_some_and(|kind| kind == "Status")
        && let Some(status) = read.pointer_mut("/1/2").and_then(Value::as_array_mut)
    {
        order_causes(status);
    }
    json!({"envelope": read})
}

/// Sorts causes, whose order varies, and replaces the message, which contains them.
fn order_causes(status: &mut [Value]) {
    let details = status.iter_mut().find_map(|field| field.get_mut("5")?.as_array_mut());
    let Some(details) =
        details.filter(|fields| fields.iter().filter(|field| field.get("4").is_some()).count() > 1)
    else {
        return;
    };
    details.sort_by_cached_key(Value::to_string);
    for message in status.iter_mut().filter_map(|field| field.get_mut("3")) {
        *message = "<causes>".into();
    }
}

fn frames(mut bytes: &[u8]) -> Option<Vec<Value>> {
    let mut frames = Vec::new();
    while !bytes.is_empty() {
        let (length, rest) = bytes.split_first_chunk::<4>()?;
        let length = usize::try_from(u32::from_be_bytes(*length)).ok()?;
        let (frame, rest) = rest.split_at_checked(length)?;
        frames.push(read(frame));
        bytes = rest;
    }
    Some(frames)
}

fn message_or_bytes(bytes: &[u8]) -> Value {
    message(bytes).map_or_else(|| printable(bytes), Value::Array)
}

/// Decodes a message as fields `{"number": value}`; `None` if the bytes are no message.
fn message(mut bytes: &[u8]) -> Option<Vec<Value>> {
    let mut fields = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let (number, kind) = (tag >> 3, tag & 7);
        if !(1..100_000).contains(&number) {
            return None;
        }
        let value = match kind {
            0 => number_or_word(varint(&mut bytes)?),
            1 => json!({"fixed64": printable(take(&mut bytes, 8)?)}),
            2 => {
                let length = usize::try_from(varint(&mut bytes)?).ok()?;
                let inner = take(&mut bytes, length)?;
                let text = text(inner);
                // A revision, in the metadata of an object or of a list.
                match (number, text.filter(|text| is_revision(number, text))) {
                    (_, Some(_)) => json!("<rv>"),
                    (_, None) => delimited(inner),
                }
            }
            5 => json!({"fixed32": printable(take(&mut bytes, 4)?)}),
            _ => return None,
        };
        fields.push(json!({number.to_string(): value}));
    }
    Some(fields)
}

fn delimited(bytes: &[u8]) -> Value {
    if let Some(message) = bytes.strip_prefix(MAGIC) {
        return envelope(message);
    }
    match text(bytes) {
        Some(text) => match serde_json::from_str::<Value>(text) {
            // Managed fields and raw extensions.
            Ok(value) if value.is_object() || value.is_array() => json!({"json": value}),
            _ => text.into(),
        },
        None => message_or_bytes(bytes),
    }
}

fn is_revision(number: u64, text: &str) -> bool {
    matches!(number, 2 | 6) && !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn number_or_word(number: u64) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs();
    match number {
        _ if number.abs_diff(now) < TIME_RANGE_SECONDS => json!("<time>"),
        // A port that the server may have allocated.
        30_000..=32_767 => json!("<port>"),
        _ => number.into(),
    }
}

/// Returns a text without control characters, except for line ends inside of it.
fn text(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut inner = text.char_indices();
    inner.all(|(at, c)| !c.is_control() || (c == '\n' && at > 0)).then_some(text)
}

fn printable(bytes: &[u8]) -> Value {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().into()
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0_u64;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

#[test]
fn messages_are_read_by_their_numbers() {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "x", "resourceVersion": "17"}, "data": {"a": "b\nc"},
    });
    let read = read(&super::protobuf::encode(&object).unwrap());
    let raw = read.pointer("/envelope/1/2").unwrap();
    assert_eq!(raw.pointer("/0/1/0"), Some(&json!({"1": "x"})), "{read}");
    assert!(read.to_string().contains("<rv>") && read.to_string().contains("b\\nc"), "{read}");
}
