//! A frame: one watch event, encoded once for everybody who watches in the same form.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;
use portico_machinery::protobuf::seal_event;

/// What happened to an object, as its watcher sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EventType {
    /// It is there, or begins to match.
    Added,
    /// It changed.
    Modified,
    /// It is gone, or no longer matches.
    Deleted,
    /// Nothing happened up to this revision.
    Bookmark,
    /// The watch is broken; the object is a Status and the stream ends.
    Error,
}

impl EventType {
    /// The wire spelling.
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

/// One event in one form. Shared by all watchers of the form: carries nothing particular to one of them.
#[derive(Debug)]
pub struct Frame {
    /// What happened.
    pub kind: EventType,
    /// The revision at which it happened.
    pub revision: i64,
    line: Bytes,
    object: Range<usize>,
    wire: OnceLock<Bytes>,
}

impl Frame {
    /// A frame of an encoded object.
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

    /// A frame of a sealed object (or Status).
    #[must_use]
    pub fn protobuf(kind: EventType, revision: i64, sealed: &[u8]) -> Self {
        let line = Bytes::from(seal_event(kind.as_str(), sealed));
        let object = line.len() - sealed.len()..line.len();
        Self { kind, revision, line, object, wire: OnceLock::new() }
    }

    /// `{"type":"ADDED","object":{...}}` and a newline, or the event with its length before it: what an HTTP watch
    /// sends.
    #[must_use]
    pub fn line(&self) -> Bytes {
        self.line.clone()
    }

    /// The object alone, as JSON or sealed.
    #[must_use]
    pub fn object(&self) -> Bytes {
        self.line.slice(self.object.clone())
    }

    /// The bytes of another protocol, made by the first who needs them and kept for the rest.
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
