//! `/console/`: a web page that shows the API and the state of this facade.
//!
//! The page is static and the same for all users; it loads its data with the credentials of its user. Paths below
//! `/console/data/` serve state of the facade, each with its own permission (docs/internals/adr/0032).

mod audit_tail;
mod backends;
mod files;
mod last_hour;
mod lines;

pub(super) use audit_tail::audit_tail;
pub(super) use backends::backends;
pub(super) use last_hour::last_hour;

use axum::extract::Request;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderName, HeaderValue,
    IF_NONE_MATCH, LOCATION, REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use http::{Method, StatusCode};
use portico_machinery::Status;

use crate::console_paths::{ASSETS, PAGE};
use crate::render::accepts_gzip;
use crate::request::{RequestView, Response};
use crate::respond;
use files::{File, files};

/// Allows scripts and styles of this origin only, and no text that is parsed as markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
    font-src 'none'; base-uri 'none'; frame-ancestors 'none'; form-action 'none'; require-trusted-types-for 'script'; \
    trusted-types 'none'";
/// Cache policy of assets: their path changes with their contents.
const IMMUTABLE: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
/// Cache policy of the page: browsers revalidate it with each use.
const REVALIDATE: HeaderValue = HeaderValue::from_static("no-cache");

const HEADERS: [(HeaderName, &str); 6] = [
    (CONTENT_SECURITY_POLICY, POLICY),
    (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (VARY, "accept-encoding"),
];

/// Redirects `/console` to the page.
pub(super) async fn redirect() -> Response {
    let mut response = respond::plain(StatusCode::FOUND, "");
    response.headers_mut().insert(LOCATION, HeaderValue::from_static(PAGE));
    response
}

/// Serves the page.
pub(super) async fn page(request: Request) -> Response {
    serve_file(&request, Some(&files().page), REVALIDATE)
}

/// Serves an asset of the page; its folder is named after the contents.
pub(super) async fn asset(request: Request) -> Response {
    let path = request.uri().path().strip_prefix(ASSETS).unwrap_or_default();
    let folder_and_name = path.split_once('/').filter(|(folder, _)| *folder == files().folder);
    serve_file(&request, folder_and_name.and_then(|(_, name)| files().assets.get(name)), IMMUTABLE)
}

fn serve_file(request: &Request, file: Option<&File>, cache_control: HeaderValue) -> Response {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return respond::status(request, &Status::method_not_allowed());
    }
    let Some(file) = file else { return respond::page_not_found() };
    let is_not_modified =
        request.header(IF_NONE_MATCH).split(',').any(|tag| tag.trim() == file.tag || tag.trim() == "*");
    let gzip = file.gzip.as_ref().filter(|_| accepts_gzip(request.header(ACCEPT_ENCODING)));
    let mut response = match (is_not_modified, gzip) {
        (true, _) => respond::with_body(StatusCode::NOT_MODIFIED, file.media_type, ""),
        (false, Some(gzip)) => respond::with_body(StatusCode::OK, file.media_type, gzip.clone()),
        (false, None) => respond::with_body(StatusCode::OK, file.media_type, file.plain.clone()),
    };
    let headers = response.headers_mut();
    if gzip.is_some() && !is_not_modified {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    if let Ok(tag) = HeaderValue::from_str(&file.tag) {
        headers.insert(ETAG, tag);
    }
    headers.insert(CACHE_CONTROL, cache_control);
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
