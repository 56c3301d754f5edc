//! Report of a request trace, as JSON.

use std::time::Instant;

use futures::future::poll_fn;
use http::StatusCode;
use http::response::Parts;
use http_body::Body as _;
use portico_kit::walk::{Noted, Walk, milliseconds};
use portico_machinery::Status;
use serde::Serialize;

use crate::body::Body;
use crate::request::{Request, RequestView, Response};
use crate::respond;

/// Maximum bytes that are read from a response body.
const MAX_READ: u64 = 64 << 20;
/// Maximum bytes of a response body that are kept for the message of a failure.
const MAX_KEPT: usize = 64 << 10;

/// Part of the report that is known before the request is served.
pub(super) struct Report {
    method: String,
    path: String,
    received: Instant,
}

/// Request target in the form of HTTP/1.1.
fn path_and_query(request: &Request) -> String {
    request.uri().path_and_query().map(ToString::to_string).unwrap_or_default()
}

/// JSON form of a report.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    method: &'a str,
    path: &'a str,
    /// True if the request was sent to its handler.
    sent: bool,
    /// True if the response is no failure, or if the request could have been sent.
    ok: bool,
    /// Status code of the response; absent if the request was not sent.
    code: Option<u16>,
    /// Message of a failure.
    message: &'a str,
    bytes: u64,
    whole_ms: f64,
    #[serde(flatten)]
    noted: Noted,
}

/// Response body that was read to its end.
pub(super) struct Read {
    bytes: u64,
    kept: Vec<u8>,
    /// Error that ended the body early.
    cut: Option<String>,
}

impl Read {
    /// Reads a body to its end.
    pub(super) async fn whole(mut body: Body) -> Self {
        let mut read = Self { bytes: 0, kept: Vec::new(), cut: None };
        let mut body = std::pin::Pin::new(&mut body);
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            match frame {
                Err(error) => read.cut = Some(error.to_string()),
                Ok(frame) => {
                    let Some(data) = frame.data_ref() else { continue };
                    read.bytes += data.len() as u64;
                    let room = MAX_KEPT.saturating_sub(read.kept.len()).min(data.len());
                    read.kept.extend_from_slice(&data[..room]);
                    if read.bytes > MAX_READ {
                        read.cut =
                            Some(format!("the body has more than {MAX_READ} bytes, the rest was not read"));
                    }
                }
            }
            if read.cut.is_some() {
                break;
            }
        }
        read
    }

    /// Adds the time of reading the body to the trace.
    pub(super) fn note(&self, walk: &Walk, begin: Instant) {
        match &self.cut {
            Some(why) => walk.failed("body", begin, why.clone()),
            None => walk.passed("body", begin, format!("{} bytes", self.bytes)),
        }
    }

    /// Message of the Status in the response, or its text.
    fn message(&self, head: &Parts) -> String {
        if let Some(respond::Answered(status)) = head.extensions.get() {
            return status.message.clone();
        }
        match Status::from_json(&self.kept) {
            Some(status) => status.message,
            None => {
                String::from_utf8_lossy(&self.kept).chars().take(1000).collect::<String>().trim().to_owned()
            }
        }
    }
}

impl Report {
    /// Starts a report for a request.
    pub(super) fn of(request: &Request) -> Self {
        let (method, path) = (request.method().to_string(), path_and_query(request));
        Self { method, path, received: request.received() }
    }

    /// Builds the response that contains the report.
    pub(super) fn response(self, mut head: Parts, read: &Read, walk: &Walk) -> Response {
        let fails = head.status.is_client_error() || head.status.is_server_error();
        let sent = walk.is_sent();
        let message = if fails { read.message(&head) } else { String::new() };
        let written = Written {
            method: &self.method,
            path: &self.path,
            sent,
            ok: !fails && read.cut.is_none(),
            code: (!walk.is_stopped()).then_some(head.status.as_u16()),
            message: &message,
            bytes: read.bytes,
            whole_ms: milliseconds(self.received.elapsed()),
            noted: walk.noted(),
        };
        let mut response = match serde_json::to_vec(&written) {
            Ok(written) => respond::whole(head.status, "application/json", written),
            Err(error) => respond::plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        };
        // The Status of a refusal, for the audit log.
        if let Some(answered) = head.extensions.remove::<respond::Answered>() {
            response.extensions_mut().insert(answered);
        }
        response
    }
}
