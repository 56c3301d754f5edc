//! Responses of JSON lines: those in memory, and with `watch=true` each new one, until the client disconnects or
//! the facade stops.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::Request;
use bytes::{Bytes, BytesMut};
use futures::stream;
use http::{Method, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use portico_kit::lifecycle::Signal;
use portico_kit::recent_lines::{Lines, RecentLines};
use portico_machinery::Status;

use crate::body::Body;
use crate::console_paths::is_watch;
use crate::endpoints::json_body::JSON_LINES;
use crate::request::{RequestView, Response};
use crate::respond;

/// Serves the lines of `recent`.
pub(super) fn lines(request: &Request, recent: &Arc<RecentLines>, stopping: &Signal) -> Response {
    if request.method() != Method::GET {
        return respond::status(request, &Status::method_not_allowed());
    }
    let all = recent.read_all();
    if !is_watch(request.query()) {
        return respond::with_body(StatusCode::OK, JSON_LINES, text(&all));
    }
    let reader =
        Reader { recent: Arc::clone(recent), stopping: stopping.clone(), first: Some(all), next_index: 0 };
    let body = StreamBody::new(stream::unfold(reader, |mut reader| async {
        let text = reader.next().await?;
        Some((Ok::<_, Infallible>(Frame::data(text)), reader))
    }));
    let mut response = respond::with_body(StatusCode::OK, JSON_LINES, "");
    *response.body_mut() = Body::streamed(body);
    response
}

/// Position of a client in the stream of lines.
struct Reader {
    recent: Arc<RecentLines>,
    stopping: Signal,
    first: Option<Lines>,
    next_index: u64,
}

impl Reader {
    /// Waits for the next lines. Returns `None` at the end of the stream.
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            let lines = match self.first.take() {
                Some(first) => first,
                None => {
                    tokio::select! {
                        () = self.recent.wait_for_line(self.next_index) => {}
                        () = self.stopping.signaled() => return None,
                    }
                    self.recent.read_from(self.next_index)
                }
            };
            self.next_index = lines.next;
            if !lines.lines.is_empty() || lines.missed > 0 {
                return Some(text(&lines));
            }
        }
    }
}

/// Joins lines. A first line has the number of lines that the reader missed.
fn text(lines: &Lines) -> Bytes {
    let mut text = BytesMut::new();
    if lines.missed > 0 {
        text.extend_from_slice(format!("{{\"missed\":{}}}\n", lines.missed).as_bytes());
    }
    for line in &lines.lines {
        text.extend_from_slice(line.trim_ascii_end());
        text.extend_from_slice(b"\n");
    }
    text.freeze()
}
