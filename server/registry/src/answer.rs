//! An answer: what a call gets, in a shape that HTTP and gRPC can send on.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::Stream;
use portico_machinery::Status;
use portico_machinery::accept::Encoding;

use crate::Result;
use crate::frame::Frame;
use crate::recorded::Record;

/// Pieces of one list, in order; joined they are the document, JSON with its closing newline. Pieces have about 64 KiB.
/// Fails only if a piece cannot be written because the process ends or the writer panicked.
pub type ListStream = Pin<Box<dyn Stream<Item = Result<Bytes>> + Send>>;

/// Frames in order of revision. Ends at the deadline, when the watcher was too slow, or after an `ERROR` frame.
pub type WatchStream = Pin<Box<dyn Stream<Item = WatchFrame> + Send>>;

/// A frame of a watch.
#[derive(Clone, Debug)]
pub struct WatchFrame {
    /// The frame, which watches share.
    pub frame: Arc<Frame>,
    /// True if more events of its revision may follow.
    pub more: bool,
}

impl From<Frame> for WatchFrame {
    fn from(frame: Frame) -> Self {
        Self { frame: Arc::new(frame), more: false }
    }
}

/// A watch that begins.
pub struct Watch {
    /// Its frames.
    pub frames: WatchStream,
    /// How many of the first frames show what was there.
    pub initial: usize,
    /// Where those are through: a watch from this revision on brings what follows them.
    pub from: i64,
}

/// The body of an answer. JSON for who wants JSON or YAML, else protobuf; see [`Answer::encoding`].
pub enum Body {
    /// One document, JSON with its closing newline.
    Bytes(Bytes),
    /// A list at one revision.
    List(ListStream),
    /// A watch: frames until the stream ends.
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

/// What a call gets.
#[derive(Debug)]
pub struct Answer {
    /// The HTTP code.
    pub code: u16,
    /// The encoding that the caller wants; bodies are in it but for YAML, which the facade makes of JSON.
    pub encoding: Encoding,
    /// Whether Accept asked for `pretty=1`, or the answer is indented whatever was asked (some errors).
    pub pretty: bool,
    /// The body.
    pub body: Body,
    /// Texts for `Warning: 299` headers, in order, unquoted.
    pub warnings: Vec<String>,
    /// Audit annotations.
    pub audit: Vec<(String, String)>,
    /// Further annotations of the audit event.
    pub record: Record,
    /// The revision of the object or list; 0 when there is none.
    pub revision: i64,
    /// The Status when the answer is one (failures, and deletions that answer `Success`).
    pub status: Option<Box<Status>>,
    /// Whether nothing of the kind is served: text, as upstream's last handler answers.
    pub unrouted: bool,
    /// How long webhooks were waited for: latency objectives leave it out.
    pub webhooks_took: Duration,
}

impl Answer {
    /// A JSON document.
    #[must_use]
    pub fn json(code: u16, body: Bytes, revision: i64) -> Self {
        Self {
            code,
            encoding: Encoding::Json,
            pretty: false,
            body: Body::Bytes(body),
            warnings: Vec::new(),
            audit: Vec::new(),
            record: Record::default(),
            revision,
            status: None,
            unrouted: false,
            webhooks_took: Duration::ZERO,
        }
    }

    /// Nothing of the kind is served, by a definition or otherwise.
    #[must_use]
    pub fn unrouted() -> Self {
        let status = Some(Box::new(Status::no_route()));
        Self { status, unrouted: true, ..Self::json(404, Bytes::from_static(b"404 page not found\n"), 0) }
    }

    /// A Status under its own code (200 for a success), with its warnings.
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

    /// The media type to answer with when the body is sent in [`Answer::encoding`].
    #[must_use]
    pub fn media_type(&self) -> &'static str {
        match (&self.body, self.encoding) {
            _ if self.unrouted => "text/plain; charset=utf-8",
            (Body::Watch(_), Encoding::Protobuf) => "application/vnd.kubernetes.protobuf;stream=watch",
            (_, encoding) => encoding.media_type(),
        }
    }

    /// The same in the encoding that the caller wants, which other bodies than a Status are in already.
    pub(crate) fn encoded(mut self, encoding: Encoding) -> Self {
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
