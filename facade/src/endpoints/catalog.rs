//! Discovery and OpenAPI: the catalogue's answers, written as the caller wants them.

use axum::extract::{Request as Asked, State};
use http::StatusCode;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, USER_AGENT, VARY};
use http::request::Parts;
use portico_facade_catalog::{Catalog, Document, Reply, Request};
use portico_machinery::accept::Encoding;

use super::state::Shared;
use crate::body::Body;
use crate::render::{GZIP_ABOVE, Style, accepts_gzip, gzip, pretty, yaml};
use crate::request::{RequestView, Response};
use crate::respond;

/// `/apis`, `/openapi/...`
pub(super) async fn document(State(endpoints): Shared, request: Asked) -> Response {
    let (parts, _) = request.into_parts();
    match discovery(&endpoints.catalog, &parts).await {
        Some(response) => response,
        None => respond::not_found(&parts),
    }
}

/// The catalogue's answer; nothing when the path is none of its or names what is not served.
pub async fn discovery(catalog: &Catalog, request: &Parts) -> Option<Response> {
    let asked = Request {
        method: &request.method,
        path: &request.info().path,
        query: request.query(),
        headers: &request.headers,
        client: Some(request.connection().peer.ip()),
    };
    Some(match catalog.respond(&asked).await? {
        Reply::Document(document) => written(request, document),
        Reply::Ready(response) => response.map(Body::whole),
        Reply::Refused(status) => respond::status(request, &status),
    })
}

fn written(request: &Parts, document: Document) -> Response {
    let style = Style::of(request.query(), request.header(USER_AGENT));
    let body = match document.encoding {
        Encoding::Yaml => yaml(&document.body).map_or(document.body, Into::into),
        Encoding::Json if document.pretty || style == Style::Pretty => pretty(&document.body).into(),
        Encoding::Json | Encoding::Protobuf => document.body,
    };
    let small = body.len() <= GZIP_ABOVE || !accepts_gzip(request.header(ACCEPT_ENCODING));
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::OK;
    *response.headers_mut() = document.headers;
    let headers = response.headers_mut();
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(document.encoding.media_type()));
    if !small {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    let body = if small { body } else { gzip(&body).into() };
    *response.body_mut() = Body::whole(body);
    response
}
