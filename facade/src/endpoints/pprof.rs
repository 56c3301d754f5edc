//! `/debug/pprof`: profiles of the process, in builds with the cargo feature `pprof`.

#[cfg(feature = "pprof")]
mod profile;

use axum::extract::Request;
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use http::request::Parts;
use portico_kit::url_password::without_password;

use crate::request::Response;
use crate::respond;

pub(super) async fn redirect() -> Response {
    let mut response = respond::text(StatusCode::FOUND, "see /debug/pprof/");
    response.headers_mut().insert(LOCATION, HeaderValue::from_static("/debug/pprof/"));
    response
}

pub(super) async fn pprof(request: Request) -> Response {
    let (parts, _) = request.into_parts();
    match parts.uri.path().strip_prefix("/debug/pprof/") {
        Some("cmdline") => respond::plain(StatusCode::OK, command_line()),
        name => profiles(name.unwrap_or_default(), &parts).await,
    }
}

/// Returns the command line in the format of Go's `pprof.Cmdline`.
fn command_line() -> String {
    let arguments = std::env::args_os().map(|argument| without_password(&argument.to_string_lossy()));
    arguments.collect::<Vec<_>>().join("\0")
}

#[cfg(feature = "pprof")]
async fn profiles(name: &str, parts: &Parts) -> Response {
    use crate::request::RequestView;

    const INDEX: &str = "<html>\n<head><title>/debug/pprof/</title></head>\n<body>\n\
        <a href=\"profile?seconds=30\">profile</a>: CPU profile\n<br>\n<a href=\"cmdline\">cmdline</a>\n</body>\n</html>\n";
    match name {
        "" => respond::with_body(StatusCode::OK, "text/html; charset=utf-8", INDEX),
        "profile" => profile::profile(parts.query()).await,
        _ => respond::not_found(parts),
    }
}

#[cfg(not(feature = "pprof"))]
async fn profiles(_: &str, _: &Parts) -> Response {
    let message = "this build does not support profiles (cargo feature `pprof`)";
    respond::text(StatusCode::NOT_IMPLEMENTED, message)
}
