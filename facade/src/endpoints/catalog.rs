//! Discovery and OpenAPI: the catalogue's answers, written as the caller wants them.

use std::sync::Arc;

use axum::extract::{Request as Asked, State};
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, USER_AGENT, VARY};
use http::request::Parts;
use portico_facade_catalog::{Catalog, Document, Reply, Request};
use portico_machinery::Status;
use portico_machinery::accept::Encoding;

use super::state::{Endpoints, Shared};
use crate::body::Body;
use crate::render::{Layout, Rendered, Renderer, Rendering, Style, accepts_gzip};
use crate::request::{RequestView, Response};
use crate::respond;

/// `/apis`, `/openapi/...`
pub(super) async fn document(State(endpoints): Shared, request: Asked) -> Response {
    let (parts, _) = request.into_parts();
    let answer = if parts.info().path.starts_with("/openapi/") {
        openapi(&endpoints, parts.clone()).await
    } else {
        discovery(&endpoints.catalog, &endpoints.renderer, &parts).await
    };
    answer.unwrap_or_else(|| respond::not_found(&parts))
}

/// OpenAPI's documents are large, merged, encoded and compressed: none of it on a thread that serves connections.
async fn openapi(endpoints: &Arc<Endpoints>, request: Parts) -> Option<Response> {
    let (shared, parts) = (Arc::clone(endpoints), request.clone());
    let answer = async move { discovery(&shared.catalog, &shared.renderer, &parts).await };
    match endpoints.renderer.run_future(answer).await {
        Ok(answer) => answer,
        Err(error) => Some(respond::status(&request, &Status::internal(error))),
    }
}

/// The catalogue's answer; nothing when the path is none of its or names what is not served.
pub async fn discovery(catalog: &Catalog, renderer: &Renderer, request: &Parts) -> Option<Response> {
    let asked = Request {
        method: &request.method,
        path: &request.info().path,
        query: request.query(),
        headers: &request.headers,
        client: Some(request.connection().peer.ip()),
    };
    Some(match catalog.respond(&asked).await? {
        Reply::Document(document) => written(renderer, request, document).await,
        Reply::Ready(response) => response.map(Body::whole),
        Reply::Refused(status) => respond::status(request, &status),
    })
}

async fn written(renderer: &Renderer, request: &Parts, document: Document) -> Response {
    let style = Style::of(request.query(), request.header(USER_AGENT));
    let layout = match document.encoding {
        Encoding::Yaml => Layout::Yaml,
        Encoding::Json if document.pretty || style == Style::Pretty => Layout::Indented,
        Encoding::Json | Encoding::Protobuf => Layout::AsIs,
    };
    let rendering = Rendering { layout, gzip: accepts_gzip(request.header(ACCEPT_ENCODING)) };
    let Rendered { body, is_gzip, .. } = match renderer.render(rendering, document.body).await {
        Ok(rendered) => rendered,
        Err(error) => return respond::status(request, &Status::internal(error)),
    };
    let mut response = Response::new(Body::whole(body));
    *response.headers_mut() = document.headers;
    let headers = response.headers_mut();
    headers.entry(CONTENT_TYPE).or_insert(HeaderValue::from_static(document.encoding.media_type()));
    if is_gzip {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        headers.append(VARY, HeaderValue::from_static("Accept-Encoding"));
    }
    response
}
