//! Backend of the benches: TLS with verified client certificates, 1 KiB for every GET, slow for some paths, on separate threads.

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

/// Length of a response in bytes.
const BODY_BYTES: usize = 1024;

/// Suffix of paths with slow responses.
pub(crate) const SLOW: &str = "/slow";
/// Minimum delay of a slow response in milliseconds.
const SLOW_MIN_MS: u64 = 40;
/// Range of additional delay of a slow response in milliseconds.
const SLOW_SPREAD_MS: u64 = 21;

/// A running backend; it ends when this is dropped.
pub(crate) struct Backend {
    /// Address on which it listens.
    pub(crate) address: SocketAddr,
    server: Server,
}

impl Backend {
    /// Listens on a free port.
    pub(crate) async fn start(tls: ServerConfig) -> Result<Self, Failure> {
        let body = Bytes::from(discovery_document());
        let slow_requests = Arc::new(AtomicU64::new(0));
        let server = Server::start(tls, move |request: Request<Incoming>| {
            let slow = request.uri().path().ends_with(SLOW);
            let number = if slow { slow_requests.fetch_add(1, Ordering::Relaxed) } else { 0 };
            let response = answer(&request, &body);
            async move {
                if slow {
                    tokio::time::sleep(Duration::from_millis(SLOW_MIN_MS + number * 7 % SLOW_SPREAD_MS))
                        .await;
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
    let is_discovery = path.starts_with("/apis/");
    let mut response = Response::new(Full::new(if is_discovery { body.clone() } else { Bytes::new() }));
    if is_discovery {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    } else {
        // There is no OpenAPI and no aggregated discovery: discovery is requested per version.
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    response
}

/// Discovery document of a version without resources, padded to [`BODY_BYTES`].
fn discovery_document() -> Vec<u8> {
    let mut text =
        br#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"","resources":[]}"#.to_vec();
    text.resize(BODY_BYTES, b' ');
    text
}
