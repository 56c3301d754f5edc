//! RequestInfo: what the request line asks for, and whether it may take long (1.3).

use http::{Response, StatusCode};
use percent_encoding::percent_decode_str;
use portico_machinery::request_info::{InvalidPath, RequestInfo};

use super::{Filter, Handler};
use crate::body::Body;
use crate::context::RequestContext;
use crate::respond;

/// See the module.
#[derive(Debug, Default)]
pub struct RequestInfoFilter;

impl Filter for RequestInfoFilter {
    async fn apply<H: Handler>(&self, x: &mut RequestContext, next: &H) -> Response<Body> {
        if !well_escaped(x.parts.uri.path()) {
            return respond::text(StatusCode::BAD_REQUEST, "400 Bad Request: invalid URL escape");
        }
        match read(x) {
            Ok(()) => next.handle(x).await,
            Err(error) => respond::internal(x, &format!("failed to create RequestInfo: {error}")),
        }
    }
}

fn read(x: &mut RequestContext) -> Result<(), InvalidPath> {
    let path = percent_decode_str(x.parts.uri.path()).decode_utf8_lossy();
    x.info = RequestInfo::parse(x.parts.method.as_str(), &path, x.query())?;
    x.long_running = is_long_running(&x.info);
    Ok(())
}

/// Go's HTTP server refuses what does not unescape before any filter sees it.
fn well_escaped(path: &str) -> bool {
    let mut tails = path.split('%').skip(1);
    tails.all(|tail| tail.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)))
}

/// kube-apiserver's list of requests without a deadline.
fn is_long_running(info: &RequestInfo) -> bool {
    if !info.is_resource_request {
        return info.path.starts_with("/debug/pprof/");
    }
    matches!(info.verb.as_str(), "watch" | "proxy") || info.connects()
}
