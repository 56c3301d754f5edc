//! Where the events of a watch end in its bytes: lines of JSON, or protobuf messages with their lengths before them.

use portico_machinery::Status;
use portico_machinery::protobuf::seal_event;

/// How many bytes say how long a message is.
const LENGTH: usize = 4;

/// Follows a watch's bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Events {
    is_protobuf: bool,
    position: Position,
}

/// Where the bytes so far have led.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Between,
    InLine,
    /// So many bytes of a length are known.
    InLength(usize, u32),
    /// So many bytes of a message are missing.
    InMessage(usize),
}

impl Events {
    /// Of a watch of this media type.
    pub fn of(media_type: &str) -> Self {
        Self { is_protobuf: media_type.contains("protobuf"), position: Position::Between }
    }

    /// Whether the bytes so far end with an event.
    pub fn is_between(&self) -> bool {
        self.position == Position::Between
    }

    /// Reads up to the end of the next event; gives back how many bytes that are, if the event ends in these.
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

    /// The event that a watch is broken for this reason.
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

    /// The ends of all events in these bytes, which come in pieces of a size.
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
