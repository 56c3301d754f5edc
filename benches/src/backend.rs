//! The backend of every bench: TLS with client certificates verified, 1 KiB for every GET, late for some, on threads of its own.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

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

/// What paths end in whose answers take long.
pub(crate) const SLOW: &str = "/slow";
/// They take so many milliseconds at least,
const SHORTEST: u64 = 40;
/// and up to so many more.
const SPREAD: u64 = 21;

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
        let asked = Arc::new(AtomicU64::new(0));
        let server = Server::start(tls, move |request: Request<Incoming>| {
            let slow = request.uri().path().ends_with(SLOW);
            let number = if slow { asked.fetch_add(1, Ordering::Relaxed) } else { 0 };
            let response = answer(&request, &body);
            async move {
                if slow {
                    tokio::time::sleep(Duration::from_millis(SHORTEST + number * 7 % SPREAD)).await;
                }
                response
            }
        })?;
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
