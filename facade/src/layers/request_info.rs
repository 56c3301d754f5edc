//! RequestInfo: parses the request line, and decides whether the request is long-running (1.3).

use http::StatusCode;
use percent_encoding::percent_decode_str;
use portico_machinery::request_info::{InvalidPath, RequestInfo};
use tower_http::validate_request::ValidateRequest;

use crate::body::Body;
use crate::console_paths;
use crate::request::{Request, RequestView, Response, Target};
use crate::respond;

/// Layer that attaches the request info.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadRequestInfo;

impl ValidateRequest<Body> for ReadRequestInfo {
    type ResponseBody = Body;

    fn validate(&mut self, request: &mut Request) -> Result<(), Response> {
        if !has_valid_escapes(request.uri().path()) {
            return Err(respond::text(StatusCode::BAD_REQUEST, "400 Bad Request: invalid URL escape"));
        }
        let target = parse_target(request)
            .map_err(|error| respond::internal(request, &format!("failed to create RequestInfo: {error}")))?;
        request.extensions_mut().insert(target);
        Ok(())
    }
}

fn parse_target(request: &Request) -> Result<Target, InvalidPath> {
    let path = percent_decode_str(request.uri().path()).decode_utf8_lossy();
    let info = RequestInfo::parse(request.method().as_str(), &path, request.query())?;
    Ok(Target { long_running: is_long_running(&info, request.query()), info: info.into() })
}

/// True if all escapes in the path are valid: Go's HTTP server refuses invalid ones before any filter.
fn has_valid_escapes(path: &str) -> bool {
    let mut tails = path.split('%').skip(1);
    tails.all(|tail| tail.as_bytes().get(..2).is_some_and(|hex| hex.iter().all(u8::is_ascii_hexdigit)))
}

/// True for kube-apiserver's requests without a deadline, and for the streams of the console.
fn is_long_running(info: &RequestInfo, query: &str) -> bool {
    if !info.is_resource_request {
        let watches = info.verb == "get" && console_paths::is_watch(query);
        return info.path.starts_with("/debug/pprof/")
            || info.path.starts_with(console_paths::DATA) && watches
            || info.path == console_paths::WATCH_FACADES;
    }
    matches!(info.verb.as_str(), "watch" | "proxy") || info.is_connect()
}
