//! Report of a request trace, as JSON.

use std::time::Instant;

use futures::future::poll_fn;
use http::StatusCode;
use http::response::Parts;
use http_body::Body as _;
use portico_kit::request_trace::{RequestTrace, TraceContents, milliseconds};
use portico_machinery::Status;
use serde::Serialize;

use crate::body::Body;
use crate::request::{Request, RequestView, Response};
use crate::respond;

/// Maximum bytes that are read from a response body.
const MAX_READ_BYTES: u64 = 64 << 20;
/// Maximum bytes of a response body that are kept for the message of a failure.
const MAX_MESSAGE_BYTES: usize = 64 << 10;

/// Part of the report that is known before the request is served.
pub(super) struct ReportBuilder {
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
struct ReportJson<'a> {
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
    contents: TraceContents,
}

/// Response body that was read to its end.
pub(super) struct ReadBody {
    bytes: u64,
    message_bytes: Vec<u8>,
    /// Error that ended the body early.
    error: Option<String>,
}

impl ReadBody {
    /// Reads a body to its end.
    pub(super) async fn read(mut body: Body) -> Self {
        let mut read = Self { bytes: 0, message_bytes: Vec::new(), error: None };
        let mut body = std::pin::Pin::new(&mut body);
        while let Some(frame) = poll_fn(|cx| body.as_mut().poll_frame(cx)).await {
            match frame {
                Err(error) => read.error = Some(error.to_string()),
                Ok(frame) => {
                    let Some(data) = frame.data_ref() else { continue };
                    read.bytes += data.len() as u64;
                    let room = MAX_MESSAGE_BYTES.saturating_sub(read.message_bytes.len()).min(data.len());
                    read.message_bytes.extend_from_slice(&data[..room]);
                    if read.bytes > MAX_READ_BYTES {
                        read.error = Some(format!(
                            "the body has more than {MAX_READ_BYTES} bytes, the rest was not read"
                        ));
                    }
                }
            }
            if read.error.is_some() {
                break;
            }
        }
        read
    }

    /// Adds the time of reading the body to the trace.
    pub(super) fn trace_body(&self, trace: &RequestTrace, begin: Instant) {
        match &self.error {
            Some(error) => trace.record_failed("body", begin, error.clone()),
            None => trace.record_passed("body", begin, format!("{} bytes", self.bytes)),
        }
    }

    /// Message of the Status in the response, or its text.
    fn message(&self, head: &Parts) -> String {
        if let Some(respond::ResponseStatus(status)) = head.extensions.get() {
            return status.message.clone();
        }
        match Status::from_json(&self.message_bytes) {
            Some(status) => status.message,
            None => String::from_utf8_lossy(&self.message_bytes)
                .chars()
                .take(1000)
                .collect::<String>()
                .trim()
                .to_owned(),
        }
    }
}

impl ReportBuilder {
    /// Starts a report for a request.
    pub(super) fn from_request(request: &Request) -> Self {
        let (method, path) = (request.method().to_string(), path_and_query(request));
        Self { method, path, received: request.received() }
    }

    /// Builds the response that contains the report.
    pub(super) fn into_response(self, mut head: Parts, read: &ReadBody, trace: &RequestTrace) -> Response {
        let is_error = head.status.is_client_error() || head.status.is_server_error();
        let sent = trace.is_sent();
        let message = if is_error { read.message(&head) } else { String::new() };
        let report = ReportJson {
            method: &self.method,
            path: &self.path,
            sent,
            ok: !is_error && read.error.is_none(),
            code: (!trace.is_stopped()).then_some(head.status.as_u16()),
            message: &message,
            bytes: read.bytes,
            whole_ms: milliseconds(self.received.elapsed()),
            contents: trace.contents(),
        };
        let mut response = match serde_json::to_vec(&report) {
            Ok(json) => respond::with_body(head.status, "application/json", json),
            Err(error) => respond::plain(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()),
        };
        // The Status of a refusal, for the audit log.
        if let Some(status) = head.extensions.remove::<respond::ResponseStatus>() {
            response.extensions_mut().insert(status);
        }
        response
    }
}
