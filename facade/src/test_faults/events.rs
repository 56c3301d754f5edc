//! Finds the ends of events in the bytes of a watch: lines of JSON, or protobuf messages with length prefixes.

use portico_machinery::Status;
use portico_machinery::protobuf::encode_event;

/// Bytes of a length prefix.
const LENGTH_BYTES: usize = 4;

/// Parser of the bytes of a watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventParser {
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

impl EventParser {
    /// Creates the parser for a watch of this media type.
    pub fn new(media_type: &str) -> Self {
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
            let (read_bytes, length) = match self.position {
                Position::InMessage(missing) => {
                    let consumed = missing.min(bytes.len() - at);
                    at += consumed;
                    self.position = Position::InMessage(missing - consumed);
                    if missing > consumed {
                        continue;
                    }
                    self.position = Position::Between;
                    return Some(at);
                }
                Position::InLength(read_bytes, length) => (read_bytes, length),
                Position::Between | Position::InLine => (0, 0),
            };
            let length = length << 8 | u32::from(bytes[at]);
            at += 1;
            self.position = match read_bytes + 1 {
                LENGTH_BYTES => Position::InMessage(usize::try_from(length).unwrap_or(usize::MAX)),
                read_bytes => Position::InLength(read_bytes, length),
            };
        }
        None
    }

    /// Encodes the event that ends a watch with an error.
    pub fn error(&self, status: &Status) -> Vec<u8> {
        if self.is_protobuf {
            return encode_event("ERROR", &status.to_protobuf());
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
    fn ends(events: &mut EventParser, bytes: &[u8], size: usize) -> Vec<usize> {
        let (mut offsets, mut start) = (Vec::new(), 0);
        for piece in bytes.chunks(size) {
            let mut remaining = piece;
            while let Some(end) = events.next_end(remaining) {
                remaining = &remaining[end..];
                offsets.push(start + piece.len() - remaining.len());
            }
            start += piece.len();
        }
        offsets
    }

    #[test]
    fn the_ends_of_events_do_not_depend_on_chunks() {
        let status = Status::expired("too old");
        let json = EventParser::new("application/json;stream=watch");
        let protobuf = EventParser::new("application/vnd.kubernetes.protobuf;stream=watch");
        for events in [json, protobuf] {
            let event = events.error(&status);
            let bytes = [event.as_slice(), &event, &event[..7]].concat();
            for size in [1, 2, 3, 5, event.len(), bytes.len()] {
                let mut events = events.clone();
                assert!(events.is_between());
                assert_eq!(
                    ends(&mut events, &bytes, size),
                    [event.len(), 2 * event.len()],
                    "{events:?} {size}"
                );
                assert!(!events.is_between());
            }
        }
    }
}
