//! Answer to a call, in a form that HTTP and gRPC servers can transmit.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use portico_machinery::Status;
use portico_machinery::accept::Encoding;

use crate::Result;
use crate::audit_record::AuditRecord;
use crate::frame::Frame;

/// Pieces of one list, in order, of about 64 KiB each. Concatenated they form the document; JSON ends with a newline.
/// Fails only if a piece cannot be written because the process ends or the writer panicked.
pub type ListStream = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// Frames in order of revision. Ends at the deadline, when the watcher was too slow, or after an `ERROR` frame.
pub type WatchStream = Pin<Box<dyn Stream<Item = WatchFrame> + Send>>;

/// Frame of a watch.
#[derive(Clone, Debug)]
pub struct WatchFrame {
    /// Frame, shared between watches.
    pub frame: Arc<Frame>,
    /// True if more events of its revision may follow.
    pub has_more: bool,
}

impl From<Frame> for WatchFrame {
    fn from(frame: Frame) -> Self {
        Self { frame: Arc::new(frame), has_more: false }
    }
}

/// Started watch.
pub struct Watch {
    pub frames: WatchStream,
    /// Number of frames at the start of the stream that show the initial state.
    pub initial: usize,
    /// Revision of the initial state. A watch that starts at this revision delivers only later events.
    pub start_revision: i64,
}

/// Body of an answer: JSON for callers that accept JSON or YAML, else protobuf; see [`Answer::encoding`].
pub enum Body {
    /// One document; JSON ends with a newline.
    Bytes(Bytes),
    /// List at one revision.
    List(ListStream),
    /// Watch that sends frames until the stream ends.
    Watch(Watch),
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bytes(bytes) => write!(f, "Bytes({})", String::from_utf8_lossy(bytes)),
            Self::List(_) => f.write_str("List"),
            Self::Watch(_) => f.write_str("Watch"),
        }
    }
}

/// Answer to a call.
#[derive(Debug)]
pub struct Answer {
    /// HTTP status code.
    pub code: u16,
    /// Negotiated encoding of the body, except that YAML bodies are JSON, which the facade converts.
    pub encoding: Encoding,
    /// True if the Accept header requests `pretty=1`, or if the answer is always indented (some errors).
    pub pretty: bool,
    /// Body of the response.
    pub body: Body,
    /// Texts of `Warning: 299` headers, in order, without quotes.
    pub warnings: Vec<String>,
    /// Annotations of the audit event.
    pub audit: Vec<(String, String)>,
    /// Request and response data for the audit event.
    pub record: AuditRecord,
    /// Revision of the object or list; 0 if there is none.
    pub revision: i64,
    /// Status, if the answer is one (failures, and deletions that return `Success`).
    pub status: Option<Box<Status>>,
    /// True if the path is not served: the body is text, as written by upstream's last handler.
    pub is_unrouted: bool,
    /// Time spent waiting for webhooks, which latency objectives exclude.
    pub webhook_duration: Duration,
}

impl Answer {
    /// JSON document.
    #[must_use]
    pub fn json(code: u16, body: Bytes, revision: i64) -> Self {
        Self {
            code,
            encoding: Encoding::Json,
            pretty: false,
            body: Body::Bytes(body),
            warnings: Vec::new(),
            audit: Vec::new(),
            record: AuditRecord::default(),
            revision,
            status: None,
            is_unrouted: false,
            webhook_duration: Duration::ZERO,
        }
    }

    /// Text of a 404 for a path that is not served.
    #[must_use]
    pub fn no_route() -> Self {
        let status = Some(Box::new(Status::route_not_found()));
        Self { status, is_unrouted: true, ..Self::json(404, Bytes::from_static(b"404 page not found\n"), 0) }
    }

    /// Status with its own code (200 for a success) and its warnings.
    #[must_use]
    pub fn status(mut status: Status) -> Self {
        let warnings = std::mem::take(&mut status.warnings);
        let code = match status.code {
            0 if status.is_failure() => 500,
            0 => 200,
            code => code,
        };
        let body = status.to_json().into();
        Self { status: Some(Box::new(status)), warnings, ..Self::json(code, body, 0) }
    }

    /// Media type of the response when the body is sent in [`Answer::encoding`].
    #[must_use]
    pub fn media_type(&self) -> &'static str {
        match (&self.body, self.encoding) {
            _ if self.is_unrouted => "text/plain; charset=utf-8",
            (Body::Watch(_), Encoding::Protobuf) => "application/vnd.kubernetes.protobuf;stream=watch",
            (_, encoding) => encoding.media_type(),
        }
    }

    /// Sets the negotiated encoding and encodes a Status in it; other bodies already have the negotiated encoding.
    pub(crate) fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = encoding;
        if let (Some(status), Encoding::Protobuf) = (&self.status, encoding) {
            self.body = Body::Bytes(status.to_protobuf().into());
        }
        self
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Self {
        Self::status(status)
    }
}
