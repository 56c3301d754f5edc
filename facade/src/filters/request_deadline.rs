//! RequestDeadline: `?timeout=` can only shorten `--request-timeout`; both count from arrival. Bodies of requests with a
//! deadline must not stall either.

use std::time::Duration;

use http::Response;
use portico_gostd::url::first_value;
use portico_machinery::Status;

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

/// See the module.
#[derive(Debug)]
pub struct RequestDeadline {
    /// `--request-timeout`
    pub request_timeout: Duration,
    /// `--stalled-read-timeout`
    pub stalled_read: Duration,
}

impl Filter for RequestDeadline {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        if x.long_running {
            return next.handle(x).await;
        }
        match asked(x.query()) {
            Ok(asked) => {
                let shorter = asked.filter(|t| !t.is_zero() && *t < self.request_timeout);
                x.deadline = Some(x.received + shorter.unwrap_or(self.request_timeout));
                x.body = std::mem::take(&mut x.body).paced(self.stalled_read);
                next.handle(x).await
            }
            Err(error) => {
                let message = format!("invalid timeout specified in the request URL - {error}");
                respond::status(x, &Status::bad_request(message))
            }
        }
    }
}

/// The client's own timeout; zero stands for everything that means "no shorter than usual".
fn asked(query: &str) -> Result<Option<Duration>, String> {
    match first_value(query, "timeout").as_deref() {
        None | Some("") => Ok(None),
        Some(text) => match text.strip_prefix('-') {
            Some(negative) => {
                portico_gostd::time::parse_duration(negative).map(|_| None).map_err(|e| e.to_string())
            }
            None => portico_gostd::time::parse_duration(text).map(Some).map_err(|e| e.to_string()),
        },
    }
}
