//! Discovery and OpenAPI: the catalogue's answers, written as the caller wants them.

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderValue, USER_AGENT, VARY};
use http::{Response, StatusCode};
use portico_facade_catalog::{Catalog, Document, Reply, Request};
use portico_machinery::accept::Encoding;

use crate::body::Body;
use crate::context::RequestContext;
use crate::render::{GZIP_ABOVE, Style, accepts_gzip, gzip, pretty, yaml};
use crate::respond;

/// The catalogue's answer; nothing when the path is none of its or names what is not served.
pub(super) async fn answer(catalog: &Catalog, x: &RequestContext) -> Option<Response<Body>> {
    let request = Request {
        method: &x.parts.method,
        path: &x.info.path,
        query: x.query(),
        headers: &x.parts.headers,
        client: Some(x.connection.peer.ip()),
    };
    Some(match catalog.respond(&request).await? {
        Reply::Document(document) => written(x, document),
        Reply::Ready(response) => response.map(Body::whole),
        Reply::Refused(status) => respond::status(x, &status),
    })
}

fn written(x: &RequestContext, document: Document) -> Response<Body> {
    let style = Style::of(x.query(), x.header(USER_AGENT));
    let body = match document.encoding {
        Encoding::Yaml => yaml(&document.body).map_or(document.body, Into::into),
        Encoding::Json if document.pretty || style == Style::Pretty => pretty(&document.body).into(),
        Encoding::Json | Encoding::Protobuf => document.body,
    };
    let small = body.len() <= GZIP_ABOVE || !accepts_gzip(x.header(ACCEPT_ENCODING));
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
