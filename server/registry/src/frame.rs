//! Frame of a watch: one event, encoded once for all watchers with the same representation.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use portico_machinery::protobuf::encode_event;

/// Type of a watch event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// The object was created or starts to match the selection.
    Added,
    /// The object changed.
    Modified,
    /// The object was deleted or no longer matches the selection.
    Deleted,
    /// Bookmark: all events up to this revision have been sent.
    Bookmark,
    /// The watch failed; the object is a Status, and the stream ends.
    Error,
}

impl EventType {
    /// Name in the Kubernetes API.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
            Self::Bookmark => "BOOKMARK",
            Self::Error => "ERROR",
        }
    }
}

/// Event in one representation, shared by all watchers of that representation, so it contains no data of a single watcher.
#[derive(Debug)]
pub struct Frame {
    /// Type of the event.
    pub kind: EventType,
    /// Revision of the event.
    pub revision: i64,
    line: Bytes,
    object: Range<usize>,
    wire: OnceLock<Bytes>,
}

impl Frame {
    /// Frame of an object encoded as JSON.
    #[must_use]
    pub fn new(kind: EventType, revision: i64, object: &[u8]) -> Self {
        let object = object.trim_ascii_end();
        let mut line = Vec::with_capacity(object.len() + 40);
        line.extend_from_slice(b"{\"type\":\"");
        line.extend_from_slice(kind.as_str().as_bytes());
        line.extend_from_slice(b"\",\"object\":");
        let start = line.len();
        line.extend_from_slice(object);
        let end = line.len();
        line.extend_from_slice(b"}\n");
        Self { kind, revision, line: line.into(), object: start..end, wire: OnceLock::new() }
    }

    /// Frame of an object or Status encoded as protobuf with its envelope.
    #[must_use]
    pub fn protobuf(kind: EventType, revision: i64, sealed: &[u8]) -> Self {
        let line = Bytes::from(encode_event(kind.as_str(), sealed));
        let object = line.len() - sealed.len()..line.len();
        Self { kind, revision, line, object, wire: OnceLock::new() }
    }

    /// Bytes for an HTTP watch: `{"type":"ADDED","object":{...}}` and a newline, or the protobuf event with its length prefix.
    #[must_use]
    pub fn line(&self) -> Bytes {
        self.line.clone()
    }

    /// Object of the event, as JSON or protobuf with its envelope.
    #[must_use]
    pub fn object(&self) -> Bytes {
        self.line.slice(self.object.clone())
    }

    /// Bytes for another protocol, encoded on first use and cached.
    pub fn wire(&self, encode: impl FnOnce(&Self) -> Bytes) -> Bytes {
        self.wire.get_or_init(|| encode(self)).clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_a_line_around_its_object() {
        let frame = Frame::new(EventType::Added, 7, b"{\"a\":1}\n");
        assert_eq!(frame.line(), &b"{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n"[..]);
        assert_eq!(frame.object(), &b"{\"a\":1}"[..]);
        assert_eq!(frame.wire(|_| Bytes::from_static(b"x")), frame.wire(|_| Bytes::from_static(b"y")));
    }
}
