//! The backend of every bench: TLS with client certificates verified, 1 KiB for every GET, on threads of its own.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use rustls::ServerConfig;

use crate::Failure;
use crate::server::Server;

/// The length of an answer.
const BODY: usize = 1024;

/// A running backend; it ends when this is dropped.
pub(crate) struct Backend {
    /// Where.
    pub(crate) address: SocketAddr,
    server: Server,
}

impl Backend {
    /// Listens on a free port.
    pub(crate) async fn start(tls: ServerConfig) -> Result<Self, Failure> {
        let body = Bytes::from(document());
        let server = Server::start(tls, move |request| std::future::ready(answer(&request, &body)))?;
        Ok(Self { address: server.address, server })
    }

    /// `https://address`
    pub(crate) fn url(&self) -> String {
        self.server.url()
    }
}

fn answer(request: &Request<Incoming>, body: &Bytes) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    let known = path.starts_with("/apis/");
    let mut response = Response::new(Full::new(if known { body.clone() } else { Bytes::new() }));
    if known {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    } else {
        // No OpenAPI, no aggregated discovery: that is asked per version.
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

/// Discovery of a version that serves nothing, as long as [`BODY`].
fn document() -> Vec<u8> {
    let mut text =
        br#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"","resources":[]}"#.to_vec();
    text.resize(BODY, b' ');
    text
}
