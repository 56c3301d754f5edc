//! Reader of messages, field by field, without copying, and with upstream's errors.

/// Reason why bytes are not a protobuf message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// Length or number that exceeds the input.
    #[error("unexpected EOF")]
    UnexpectedEof,
    /// Number with more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// Length that does not fit into a signed number.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// End of a group that has not started, in a message with this name.
    #[error("proto: {}wiretype end group for non-group", prefix(.0))]
    EndOfGroup(String),
    /// Field number out of range, in a message with this name.
    #[error("proto: {}illegal tag {} (wire type {})", prefix(.0), .1, .2)]
    Tag(String, i32, u64),
    /// Unknown wire type.
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    /// Field with an unexpected wire type.
    #[error("proto: wrong wireType = {0} for field {1}")]
    WrongType(u8, String),
}

/// Returns the prefix of an error: the name of the message.
fn prefix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!("{message}: ") }
}

/// Value of a field on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum WireValue<'a> {
    /// Number of any width, or a Boolean.
    Varint(u64),
    /// Eight bytes (`fixed64`, `double`).
    Fixed64(u64),
    /// String, bytes, message, or packed numbers.
    Bytes(&'a [u8]),
    /// Four bytes (`fixed32`, `float`).
    Fixed32(u32),
}

impl<'a> WireValue<'a> {
    /// Returns the bytes of the field with this name.
    ///
    /// # Errors
    /// [`WireError::WrongType`].
    pub fn bytes(self, field: &str) -> Result<&'a [u8], WireError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong_type_error(field)),
        }
    }

    /// Returns the number of the field with this name.
    ///
    /// # Errors
    /// [`WireError::WrongType`].
    pub fn varint(self, field: &str) -> Result<u64, WireError> {
        match self {
            Self::Varint(number) => Ok(number),
            other => Err(other.wrong_type_error(field)),
        }
    }

    /// Returns the error for a field with a wrong wire type. Upstream uses the Go name of the field.
    #[must_use]
    pub fn wrong_type_error(self, field: &str) -> WireError {
        let wire = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32(_) => 5,
        };
        wrong_type(wire, field)
    }
}

fn wrong_type(wire: u8, field: &str) -> WireError {
    let mut name = field.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    WireError::WrongType(wire, name)
}

/// Reader of one message.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// Go name of the message; empty if unknown.
    message: &'a str,
}

impl<'a> Reader<'a> {
    /// Creates a reader of a message.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, message: "" }
    }

    /// Creates a reader of a message with this Go name.
    #[must_use]
    pub fn with_name(message: &'a str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, message }
    }

    /// Returns the next field, skipping groups, or `None` at the end.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn field(&mut self) -> Result<Option<(u32, WireValue<'a>)>, WireError> {
        self.field_named(|_| None)
    }

    /// Returns the next field. Fields for which `name` returns a name must not be groups and must have an existing wire type;
    /// otherwise an error is returned.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn field_named<'n>(
        &mut self,
        name: impl Fn(u32) -> Option<&'n str>,
    ) -> Result<Option<(u32, WireValue<'a>)>, WireError> {
        // Number of enclosing groups that are being skipped.
        let mut groups = 0_usize;
        while !self.rest.is_empty() {
            let (number, wire) = self.tag(groups)?;
            if groups == 0
                && matches!(wire, 3 | 6 | 7)
                && let Some(name) = name(number)
            {
                return Err(wrong_type(wire, name));
            }
            let scalar = match wire {
                0 => WireValue::Varint(self.varint()?),
                1 => WireValue::Fixed64(u64::from_le_bytes(self.array()?)),
                2 => {
                    let length = self.varint()?;
                    WireValue::Bytes(self.take(length)?)
                }
                3 => {
                    groups += 1;
                    continue;
                }
                4 => {
                    let remaining = groups.checked_sub(1);
                    groups = remaining.ok_or_else(|| WireError::EndOfGroup(self.message.to_owned()))?;
                    continue;
                }
                5 => WireValue::Fixed32(u32::from_le_bytes(self.array()?)),
                other => return Err(WireError::WireType(other)),
            };
            if groups == 0 {
                return Ok(Some((number, scalar)));
            }
        }
        if groups == 0 { Ok(None) } else { Err(WireError::UnexpectedEof) }
    }

    /// Returns the next of several packed numbers, or `None` at the end.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn packed(&mut self) -> Result<Option<u64>, WireError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    /// Reads a field number and a wire type, inside this number of groups.
    fn tag(&mut self, groups: usize) -> Result<(u32, u8), WireError> {
        let tag = self.varint()?;
        let wire = (tag & 7) as u8;
        // Upstream reads the field number as a signed 32-bit number.
        let number = (tag >> 3) as i32;
        match u32::try_from(number) {
            Ok(number) if number > 0 => Ok((number, wire)),
            // The end of a group is checked before the number, and skipped fields are not checked.
            _ if wire == 4 || groups > 0 => Ok((0, wire)),
            _ => Err(WireError::Tag(self.message.to_owned(), number, tag)),
        }
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for (index, byte) in self.rest.iter().enumerate() {
            if index == 10 {
                return Err(WireError::Overflow);
            }
            value |= u64::from(byte & 0x7f) << (7 * index).min(63);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
        }
        Err(if self.rest.len() >= 10 { WireError::Overflow } else { WireError::UnexpectedEof })
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], WireError> {
        let length = i64::try_from(length).map_err(|_| WireError::NegativeLength)?;
        let length = usize::try_from(length).map_err(|_| WireError::UnexpectedEof)?;
        let (head, rest) = self.rest.split_at_checked(length).ok_or(WireError::UnexpectedEof)?;
        self.rest = rest;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(WireError::UnexpectedEof)?;
        self.rest = rest;
        Ok(*head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_read_and_groups_skipped() {
        let bytes = [0x08, 0x96, 0x01, 0x1b, 0x08, 0x01, 0x13, 0x14, 0x1c, 0x12, 1, b'a', 0x2d, 1, 0, 0, 0];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.field(), Ok(Some((1, WireValue::Varint(150)))));
        assert_eq!(reader.field(), Ok(Some((2, WireValue::Bytes(b"a")))));
        assert_eq!(reader.field(), Ok(Some((5, WireValue::Fixed32(1)))));
        assert_eq!(reader.field(), Ok(None));
    }

    #[test]
    fn malformed_messages_have_upstream_errors() {
        let rows: [(&[u8], WireError); 8] = [
            (&[0x08], WireError::UnexpectedEof),
            (&[0x0a, 5, 1], WireError::UnexpectedEof),
            (&[0x0b, 0x08, 0x01], WireError::UnexpectedEof),
            (&[0x0c], WireError::EndOfGroup(String::new())),
            (&[0x0f], WireError::WireType(7)),
            (&[0x00, 0x00], WireError::Tag(String::new(), 0, 0)),
            (&[0x08, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], WireError::Overflow),
            (&[0x0a, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1], WireError::NegativeLength),
        ];
        for (bytes, want) in rows {
            assert_eq!(Reader::new(bytes).field(), Err(want), "{bytes:?}");
        }
        assert_eq!(
            WireValue::Varint(1).bytes("name").unwrap_err().to_string(),
            "proto: wrong wireType = 0 for field Name"
        );
    }
}
