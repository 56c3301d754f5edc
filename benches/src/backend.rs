//! The backend of every bench: TLS with client certificates verified, 1 KiB for every GET, on threads of its own.

use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use portico_kit::tasks::TaskSet;
use rustls::ServerConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio_rustls::TlsAcceptor;

use crate::Failure;

/// The length of an answer.
const BODY: usize = 1024;

/// A running backend; it ends when this is dropped.
pub(crate) struct Backend {
    /// Where.
    pub(crate) address: SocketAddr,
    runtime: Option<Runtime>,
}

impl Backend {
    /// Listens on a free port.
    pub(crate) async fn start(tls: ServerConfig) -> Result<Self, Failure> {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let tasks = TaskSet::new();
        let entered = runtime.enter();
        let listener = TcpListener::from_std(listener)?;
        tasks.clone().spawn("backend", accept(listener, TlsAcceptor::from(Arc::new(tls)), tasks));
        drop(entered);
        Ok(Self { address, runtime: Some(runtime) })
    }

    /// `https://address`
    pub(crate) fn url(&self) -> String {
        format!("https://{}", self.address)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, tasks: TaskSet) {
    let body = Bytes::from(document());
    while let Ok((stream, _)) = listener.accept().await {
        tasks.spawn("backend-connection", connection(stream, acceptor.clone(), body.clone()));
    }
}

async fn connection(stream: TcpStream, acceptor: TlsAcceptor, body: Bytes) {
    let _ = stream.set_nodelay(true);
    let handshake = tokio::time::timeout(Duration::from_secs(10), acceptor.accept(stream));
    // Whoever cannot shake hands, or goes away, says so on the other side.
    let Ok(Ok(stream)) = handshake.await else { return };
    let service = service_fn(move |request| std::future::ready(answer(&request, &body)));
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

fn answer(request: &Request<Incoming>, body: &Bytes) -> Result<Response<Full<Bytes>>, Infallible> {
    let path = request.uri().path();
    let known = path.starts_with("/apis/");
    let mut response = Response::new(Full::new(if known { body.clone() } else { Bytes::new() }));
    if known {
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    } else {
        // No OpenAPI, no aggregated discovery: that is asked per version.
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    Ok(response)
}

/// Discovery of a version that serves nothing, as long as [`BODY`].
fn document() -> Vec<u8> {
    let mut text =
        br#"{"kind":"APIResourceList","apiVersion":"v1","groupVersion":"","resources":[]}"#.to_vec();
    text.resize(BODY, b' ');
    text
}
