//! Writer of messages: fields in order, and messages with their length.

/// Partially written message.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    out: Vec<u8>,
}

const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Writer {
    /// Returns the number of written bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len()
    }

    /// True if no bytes have been written.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.out.is_empty()
    }

    /// Returns the written bytes.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    fn tag(&mut self, number: u32, wire: u32) {
        self.varint(u64::from(number << 3 | wire));
    }

    fn varint(&mut self, mut value: u64) {
        while value > 0x7f {
            // The low seven bits, and a flag that more bits follow.
            self.out.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    /// Writes an integer field. Negative numbers take ten bytes, independent of their type.
    pub fn int(&mut self, number: u32, value: i64) {
        self.tag(number, VARINT);
        self.varint(value.cast_unsigned());
    }

    /// Writes a Boolean field.
    pub fn bool(&mut self, number: u32, value: bool) {
        self.int(number, i64::from(value));
    }

    /// Writes a double field.
    pub fn double(&mut self, number: u32, value: f64) {
        self.tag(number, FIXED64);
        self.out.extend_from_slice(&value.to_le_bytes());
    }

    /// Writes a bytes field.
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.tag(number, LENGTH);
        self.varint(value.len() as u64);
        self.out.extend_from_slice(value);
    }

    /// Writes a string field.
    pub fn string(&mut self, number: u32, value: &str) {
        self.bytes(number, value.as_bytes());
    }

    /// Appends encoded fields.
    pub fn raw(&mut self, fields: &[u8]) {
        self.out.extend_from_slice(fields);
    }

    /// Writes a message field with the fields that `write` adds.
    pub fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        self.tag(number, LENGTH);
        let start = self.out.len();
        // Space for the length of most messages; longer messages are moved.
        self.out.push(0);
        write(self);
        let length = self.out.len() - start - 1;
        if length <= 0x7f {
            self.out[start] = length as u8;
            return;
        }
        let mut prefix = Self::default();
        prefix.varint(length as u64);
        self.out.splice(start..=start, prefix.out);
    }
}

/// Creates a writer that appends to these bytes.
impl From<Vec<u8>> for Writer {
    fn from(out: Vec<u8>) -> Self {
        Self { out }
    }
}

/// Returns the number of bytes of a field with content of this length, including tag and length.
#[must_use]
pub fn field_length(number: u32, length: u64) -> u64 {
    let varint = |value: u64| u64::from(value.checked_ilog2().unwrap_or(0) / 7 + 1);
    varint(u64::from(number) << 3) + varint(length) + length
}

/// Returns the field tag and length that precede `length` bytes.
pub(super) fn delimiter(number: u32, length: u64) -> Vec<u8> {
    let mut writer = Writer::default();
    writer.tag(number, LENGTH);
    writer.varint(length);
    writer.out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_have_the_specified_encoding() {
        let mut writer = Writer::default();
        writer.int(1, 150);
        writer.int(2, -1);
        writer.bool(3, true);
        writer.string(4, "ab");
        writer.double(5, 1.0);
        let want = [
            &[0x08, 0x96, 0x01][..],
            &[0x10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x18, 1, 0x22, 2, b'a', b'b'],
            &[0x29, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f],
        ];
        assert_eq!(writer.into_bytes(), want.concat());
    }

    #[test]
    fn lengths_are_known_before_writing() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 100_000] {
            for number in [1, 15, 16, 2048] {
                let mut writer = Writer::default();
                writer.bytes(number, &vec![0; length]);
                assert_eq!(writer.len() as u64, field_length(number, length as u64));
            }
        }
    }

    #[test]
    fn long_messages_carry_long_lengths() {
        let mut writer = Writer::default();
        writer.message(1, |w| w.message(2, |w| w.bytes(3, &[7; 300])));
        let bytes = writer.into_bytes();
        assert_eq!(bytes[..9], [0x0a, 0xb2, 0x02, 0x12, 0xaf, 0x02, 0x1a, 0xac, 0x02]);
        assert_eq!(bytes.len(), 309);
    }
}
