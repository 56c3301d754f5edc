//! The parts of the protobuf wire format that an encoder of documents needs: tags, varints, doubles, text and nested messages.

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

/// Writes a field of an integer type; negative numbers as two's complement, `bool` as 0 or 1.
pub(super) fn put_integer(out: &mut Vec<u8>, number: u32, value: i64) {
    put_tag(out, number, VARINT);
    put_varint(out, value.cast_unsigned());
}

/// Writes a field of type `double`.
pub(super) fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_tag(out, number, FIXED64);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Writes a field of type `string`.
pub(super) fn put_text(out: &mut Vec<u8>, number: u32, value: &str) {
    put_tag(out, number, DELIMITED);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value.as_bytes());
}

/// Writes a field of a message type, whose content `body` writes.
///
/// # Errors
/// Errors of `body`; the output is incomplete then and must be discarded.
pub(super) fn put_message<E>(
    out: &mut Vec<u8>,
    number: u32,
    body: impl FnOnce(&mut Vec<u8>) -> Result<(), E>,
) -> Result<(), E> {
    put_tag(out, number, DELIMITED);
    let at = out.len();
    // The length precedes the content. Most messages are short: one byte is reserved for the length, and longer
    // messages are moved.
    out.push(0);
    body(out)?;
    let mut length = Vec::with_capacity(10);
    put_varint(&mut length, (out.len() - at - 1) as u64);
    out.splice(at..=at, length);
    Ok(())
}
