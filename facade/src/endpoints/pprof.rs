//! `/debug/pprof`: profiles of the process, in builds with the cargo feature `pprof`.

#[cfg(feature = "pprof")]
mod profile;

use axum::extract::Request;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};

use crate::request::Response;
use crate::respond;

pub(super) async fn redirect() -> Response {
    let mut response = respond::text(StatusCode::FOUND, "see /debug/pprof/");
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("/debug/pprof/"));
    response
}

#[cfg(feature = "pprof")]
pub(super) async fn pprof(request: Request) -> Response {
    use crate::request::RequestView;

    const INDEX: &str = "<html>\n<head><title>/debug/pprof/</title></head>\n<body>\n\
        <a href=\"profile?seconds=30\">profile</a>: CPU profile\n</body>\n</html>\n";
    let (parts, _) = request.into_parts();
    match parts.info().path.strip_prefix("/debug/pprof/") {
        Some("") => respond::whole(StatusCode::OK, "text/html; charset=utf-8", INDEX),
        Some("profile") => profile::profile(parts.query()).await,
        _ => respond::not_found(&parts),
    }
}

#[cfg(not(feature = "pprof"))]
pub(super) async fn pprof(_: Request) -> Response {
    let message = "profiles are left out of this build (cargo feature `pprof`)";
    respond::text(StatusCode::NOT_IMPLEMENTED, message)
}
