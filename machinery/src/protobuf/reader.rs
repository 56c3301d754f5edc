//! Reading: a field at a time, nothing copied, with upstream's words for what is no protobuf.

/// Why bytes are no message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WireError {
    /// A length or number that goes beyond the end.
    #[error("unexpected EOF")]
    UnexpectedEof,
    /// A number of more than 64 bits.
    #[error("proto: integer overflow")]
    Overflow,
    /// A length that does not fit in a signed number.
    #[error("proto: negative length found during unmarshaling")]
    NegativeLength,
    /// The end of a group that has not begun, in a message of this name.
    #[error("proto: {}wiretype end group for non-group", prefix(.0))]
    EndOfGroup(String),
    /// A field number out of range, in a message of this name.
    #[error("proto: {}illegal tag {} (wire type {})", prefix(.0), .1, .2)]
    Tag(String, i32, u64),
    /// A wire type that does not exist.
    #[error("proto: illegal wireType {0}")]
    WireType(u8),
    /// A field of another wire type than its own.
    #[error("proto: wrong wireType = {0} for field {1}")]
    Wrong(u8, String),
}

/// The name of a message before what is wrong with it.
fn prefix(message: &str) -> String {
    if message.is_empty() { String::new() } else { format!("{message}: ") }
}

/// What a field holds on the wire.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar<'a> {
    /// A number of any width, or a truth value.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A string, bytes, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

impl<'a> Scalar<'a> {
    /// The bytes of this field.
    ///
    /// # Errors
    /// [`WireError::Wrong`].
    pub fn bytes(self, field: &str) -> Result<&'a [u8], WireError> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            other => Err(other.wrong(field)),
        }
    }

    /// The number of this field.
    ///
    /// # Errors
    /// [`WireError::Wrong`].
    pub fn varint(self, field: &str) -> Result<u64, WireError> {
        match self {
            Self::Varint(number) => Ok(number),
            other => Err(other.wrong(field)),
        }
    }

    /// That this is not what the field holds. Upstream names fields as Go does.
    #[must_use]
    pub fn wrong(self, field: &str) -> WireError {
        let wire = match self {
            Self::Varint(_) => 0,
            Self::Fixed64(_) => 1,
            Self::Bytes(_) => 2,
            Self::Fixed32(_) => 5,
        };
        wrong(wire, field)
    }
}

fn wrong(wire: u8, field: &str) -> WireError {
    let mut name = field.to_owned();
    if let Some(first) = name.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    WireError::Wrong(wire, name)
}

/// A message being read.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    rest: &'a [u8],
    /// What Go calls the message; empty where nobody says.
    message: &'a str,
}

impl<'a> Reader<'a> {
    /// A reader of a message's bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, message: "" }
    }

    /// A reader of a message that Go calls so.
    #[must_use]
    pub fn of(message: &'a str, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, message }
    }

    /// The next field, groups left out; nothing at the end.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn field(&mut self) -> Result<Option<(u32, Scalar<'a>)>, WireError> {
        self.field_named(|_| None)
    }

    /// The same, where fields with a name are known: those are no groups and of no wire type that does not exist.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn field_named<'n>(
        &mut self,
        name: impl Fn(u32) -> Option<&'n str>,
    ) -> Result<Option<(u32, Scalar<'a>)>, WireError> {
        // How many groups are being skipped.
        let mut groups = 0_usize;
        while !self.rest.is_empty() {
            let (number, wire) = self.tag(groups)?;
            if groups == 0
                && matches!(wire, 3 | 6 | 7)
                && let Some(name) = name(number)
            {
                return Err(wrong(wire, name));
            }
            let scalar = match wire {
                0 => Scalar::Varint(self.varint()?),
                1 => Scalar::Fixed64(u64::from_le_bytes(self.array()?)),
                2 => {
                    let length = self.varint()?;
                    Scalar::Bytes(self.take(length)?)
                }
                3 => {
                    groups += 1;
                    continue;
                }
                4 => {
                    let ended = groups.checked_sub(1);
                    groups = ended.ok_or_else(|| WireError::EndOfGroup(self.message.to_owned()))?;
                    continue;
                }
                5 => Scalar::Fixed32(u32::from_le_bytes(self.array()?)),
                other => return Err(WireError::WireType(other)),
            };
            if groups == 0 {
                return Ok(Some((number, scalar)));
            }
        }
        if groups == 0 { Ok(None) } else { Err(WireError::UnexpectedEof) }
    }

    /// The next of packed numbers; nothing at the end.
    ///
    /// # Errors
    /// [`WireError`].
    pub fn packed(&mut self) -> Result<Option<u64>, WireError> {
        if self.rest.is_empty() { Ok(None) } else { self.varint().map(Some) }
    }

    /// A number and a wire type, outside of so many groups.
    fn tag(&mut self, groups: usize) -> Result<(u32, u8), WireError> {
        let tag = self.varint()?;
        let wire = (tag & 7) as u8;
        // Upstream reads the number as a signed one of 32 bits.
        let number = (tag >> 3) as i32;
        match u32::try_from(number) {
            Ok(number) if number > 0 => Ok((number, wire)),
            // The end of a group is looked for first, and what is skipped is not looked at.
            _ if wire == 4 || groups > 0 => Ok((0, wire)),
            _ => Err(WireError::Tag(self.message.to_owned(), number, tag)),
        }
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0_u64;
        for (at, byte) in self.rest.iter().enumerate() {
            if at == 10 {
                return Err(WireError::Overflow);
            }
            value |= u64::from(byte & 0x7f) << (7 * at).min(63);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[at + 1..];
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
    fn fields_are_read_and_groups_left_out() {
        let bytes = [0x08, 0x96, 0x01, 0x1b, 0x08, 0x01, 0x13, 0x14, 0x1c, 0x12, 1, b'a', 0x2d, 1, 0, 0, 0];
        let mut reader = Reader::new(&bytes);
        assert_eq!(reader.field(), Ok(Some((1, Scalar::Varint(150)))));
        assert_eq!(reader.field(), Ok(Some((2, Scalar::Bytes(b"a")))));
        assert_eq!(reader.field(), Ok(Some((5, Scalar::Fixed32(1)))));
        assert_eq!(reader.field(), Ok(None));
    }

    #[test]
    fn what_is_no_message_is_named() {
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
            Scalar::Varint(1).bytes("name").unwrap_err().to_string(),
            "proto: wrong wireType = 0 for field Name"
        );
    }
}
