//! Finds the ends of events in the bytes of a watch: lines of JSON, or protobuf messages with length prefixes.

use portico_machinery::Status;
use portico_machinery::protobuf::seal_event;

/// Bytes of a length prefix.
const LENGTH: usize = 4;

/// Parser of the bytes of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    is_protobuf: bool,
    position: Position,
}

/// Position of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Between,
    InLine,
    /// Within a length prefix, of which this many bytes and their value are known.
    InLength(usize, u32),
    /// Within a message, of which this many bytes are missing.
    InMessage(usize),
}

impl Events {
    /// Creates the parser for a watch of this media type.
    pub fn of(media_type: &str) -> Self {
        Self { is_protobuf: media_type.contains("protobuf"), position: Position::Between }
    }

    /// True if the bytes so far end with a complete event.
    pub fn is_between(&self) -> bool {
        self.position == Position::Between
    }

    /// Reads up to the end of the next event. Returns its offset; `None` if the event does not end in `bytes`.
    pub fn next_end(&mut self, bytes: &[u8]) -> Option<usize> {
        if !self.is_protobuf {
            let end = bytes.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            if !bytes.is_empty() {
                self.position = if end.is_some() { Position::Between } else { Position::InLine };
            }
            return end;
        }
        let mut at = 0;
        while at < bytes.len() {
            let (known, length) = match self.position {
                Position::InMessage(missing) => {
                    let taken = missing.min(bytes.len() - at);
                    at += taken;
                    self.position = Position::InMessage(missing - taken);
                    if missing > taken {
                        continue;
                    }
                    self.position = Position::Between;
                    return Some(at);
                }
                Position::InLength(known, length) => (known, length),
                Position::Between | Position::InLine => (0, 0),
            };
            let length = length << 8 | u32::from(bytes[at]);
            at += 1;
            self.position = match known + 1 {
                LENGTH => Position::InMessage(usize::try_from(length).unwrap_or(usize::MAX)),
                known => Position::InLength(known, length),
            };
        }
        None
    }

    /// Encodes the event that ends a watch with an error.
    pub fn error(&self, status: &Status) -> Vec<u8> {
        if self.is_protobuf {
            return seal_event("ERROR", &status.to_protobuf());
        }
        let mut line = br#"{"type":"ERROR","object":"#.to_vec();
        line.extend_from_slice(status.to_json().trim_ascii_end());
        line.extend_from_slice(b"}\n");
        line
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the ends of all events in these bytes, which arrive in chunks of `size` bytes.
    fn ends(events: &mut Events, bytes: &[u8], size: usize) -> Vec<usize> {
        let (mut found, mut before) = (Vec::new(), 0);
        for piece in bytes.chunks(size) {
            let mut rest = piece;
            while let Some(end) = events.next_end(rest) {
                rest = &rest[end..];
                found.push(before + piece.len() - rest.len());
            }
            before += piece.len();
        }
        found
    }

    #[test]
    fn events_end_where_they_do_however_their_bytes_come() {
        let status = Status::expired("too old");
        let json = Events::of("application/json;stream=watch");
        let protobuf = Events::of("application/vnd.kubernetes.protobuf;stream=watch");
        for events in [json, protobuf] {
            let one = events.error(&status);
            let bytes = [one.as_slice(), &one, &one[..7]].concat();
            for size in [1, 2, 3, 5, one.len(), bytes.len()] {
                let mut events = events.clone();
                assert!(events.is_between());
                assert_eq!(ends(&mut events, &bytes, size), [one.len(), 2 * one.len()], "{events:?} {size}");
                assert!(!events.is_between());
            }
        }
    }
}
