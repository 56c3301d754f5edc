//! The protobuf wire format as far as a writer of documents needs it: tags, varints, doubles, text and nested messages.

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const DELIMITED: u32 = 2;

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_tag(out: &mut Vec<u8>, number: u32, wire_type: u32) {
    put_varint(out, u64::from(number << 3 | wire_type));
}

/// A field of an integer type; negative numbers are two's complement, `bool` is 0 or 1.
pub(super) fn put_integer(out: &mut Vec<u8>, number: u32, value: i64) {
    put_tag(out, number, VARINT);
    put_varint(out, value.cast_unsigned());
}

/// A field of type `double`.
pub(super) fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_tag(out, number, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// A field of type `string`.
pub(super) fn put_text(out: &mut Vec<u8>, number: u32, value: &str) {
    put_tag(out, number, DELIMITED);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

/// A field of a message type, with what `body` writes as its content.
///
/// # Errors
/// Those of `body`; what it has written stays behind then, and the whole output is worth nothing.
pub(super) fn put_message<E>(
    out: &mut Vec<u8>,
    number: u32,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    put_tag(out, number, DELIMITED);
    let at = out.len();
    // The length comes first and is known last. Most messages are short: one byte is kept for it, longer ones move.
    out.push(0);
    body(out)?;
    let mut length = Vec::with_capacity(10);
    put_varint(&mut length, (out.len() - at - 1) as u64);
    out.splice(at..=at, length);
    Ok(())
}
