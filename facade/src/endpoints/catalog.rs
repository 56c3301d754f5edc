//! Discovery and OpenAPI: responses of the catalog in the encoding that the client accepts.

use axum::extract::{Request as Asked, State};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, USER_AGENT, VARY};
use http::request::Parts;
use portico_facade_catalog::{Catalog, Document, Reply, Request};
use portico_machinery::Status;
use portico_machinery::accept::Encoding;

use super::state::SharedEndpoints;
use crate::body::Body;
use crate::render::{JsonStyle, Layout, RenderedBody, Renderer, Rendering, accepts_gzip};
use crate::request::{RequestView, Response};
use crate::respond;

/// Serves `/apis` and `/openapi/...`.
pub(super) async fn document(State(endpoints): SharedEndpoints, request: Asked) -> Response {
    let (parts, _) = request.into_parts();
    let answer = discovery(&endpoints.catalog, &endpoints.renderer, &parts).await;
    answer.unwrap_or_else(|| respond::not_found(&parts))
}

/// Returns the response of the catalog; `None` if the path is not part of it or names an API that is not served.
pub async fn discovery(catalog: &Catalog, renderer: &Renderer, request: &Parts) -> Option<Response> {
    let reply = reply(catalog, request).await?;
    Some(render_reply(renderer, request, reply).await)
}

async fn reply(catalog: &Catalog, request: &Parts) -> Option<Reply> {
    let catalog_request = Request {
        method: &request.method,
        path: request.info().api_path(),
        query: request.query(),
        headers: &request.headers,
        client: Some(request.connection().peer.ip()),
    };
    catalog.respond(&request.active_config().apis, &catalog_request).await
}

async fn render_reply(renderer: &Renderer, request: &Parts, reply: Reply) -> Response {
    match reply {
        Reply::Document(document) => encode_document(renderer, request, document).await,
        Reply::Ready(response) => response.map(Body::full),
        Reply::Refused(status) => respond::status(request, &status),
    }
}

async fn encode_document(renderer: &Renderer, request: &Parts, document: Document) -> Response {
    let style = JsonStyle::negotiate(request.query(), request.header(USER_AGENT));
    let layout = match document.encoding {
        Encoding::Yaml => Layout::Yaml,
        Encoding::Json if document.pretty || style == JsonStyle::Pretty => Layout::Indented,
        Encoding::Json | Encoding::Protobuf => Layout::AsIs,
    };
    let rendering = Rendering { layout, gzip: accepts_gzip(request.header(ACCEPT_ENCODING)) };
    let RenderedBody { body, is_gzip, .. } = match renderer.render(rendering, document.body).await {
        Ok(rendered) => rendered,
        Err(error) => return respond::status(request, &Status::internal(error)),
    };
    let mut response = Response::new(Body::full(body));
    *response.headers_mut() = document.headers;
    let headers = response.headers_mut();
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(document.encoding.media_type()));
    if is_gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}
