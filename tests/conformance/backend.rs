//! The aggregated API server and conversion webhook of the recordings: group wardle.example.com in two versions.
//!
//! Below `/apis/GROUP/VERSION`, a path that ends in one of these misbehaves, and any other echoes the request:
//! `answer/CODE`, `text/CODE`, `redirect`, `bytes/N`, `chunks/N`, `slow/SECONDS`, `drop`, `half`, `upgrade`.
//! `PUT /control {"discovery": 403}` sets the status of discovery from then on. Admission webhooks are below `/admission`.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use portico_kit::tasks::TaskSet;
use portico_tests::pki::Clients;
use portico_tests::process::pause;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

use crate::admission::Webhooks;
use crate::documents::{self, GROUP, VERSIONS};
use crate::fixture::Fixture;

/// Pause between two lines of `chunks`.
const CHUNK_INTERVAL: Duration = Duration::from_millis(50);

/// A running backend. Dropping it stops it.
pub struct Backend {
    pub address: SocketAddr,
    tasks: TaskSet,
}

/// State of a connection.
struct Connection {
    /// Status code of discovery.
    discovery: Arc<AtomicU16>,
    webhooks: Arc<Webhooks>,
    /// CN of the client's certificate.
    peer: Option<String>,
    tasks: TaskSet,
}

/// Error of a response that is missing or ends early because the connection is closed.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the backend closes the connection")
    }
}

impl std::error::Error for Closed {}

type Reply = Response<UnsyncBoxBody<Bytes, Closed>>;

impl Backend {
    /// Starts a backend with the certificates of the fixture.
    pub async fn start(fixture: &Fixture) -> Self {
        let proxies = fixture.authority("front-proxy-ca");
        let acceptor = fixture.pair("backend").acceptor(Clients::Optional(&proxies));
        let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
        let (address, tasks) = (listener.local_addr().unwrap(), TaskSet::new());
        let (set, discovery) = (tasks.clone(), Arc::new(AtomicU16::new(200)));
        let webhooks = Arc::new(Webhooks::default());
        tasks.spawn_until_cancelled("backend", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection =
                    serve(stream, acceptor.clone(), discovery.clone(), webhooks.clone(), set.clone());
                set.spawn_until_cancelled("backend-connection", connection);
            }
        });
        Self { address, tasks }
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn serve(
    stream: TcpStream,
    acceptor: TlsAcceptor,
    discovery: Arc<AtomicU16>,
    webhooks: Arc<Webhooks>,
    tasks: TaskSet,
) {
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let certificate = stream.get_ref().1.peer_certificates().and_then(|chain| chain.first());
    let peer = certificate.and_then(|der| {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).ok()?;
        let name = certificate.subject().iter_common_name().next()?.as_str().ok()?.to_owned();
        Some(name)
    });
    let connection = Arc::new(Connection { discovery, webhooks, peer, tasks });
    let service = service_fn(move |request| {
        let connection = connection.clone();
        async move { connection.respond(request).await }
    });
    let server = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // Disconnecting clients are part of the recordings.
    let _ = server.with_upgrades().await;
}

fn reply(status: u16, media_type: &str, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).map_err(|never| match never {}).boxed_unsync();
    Response::builder().status(status).header("content-type", media_type).body(body).unwrap()
}

fn json_reply(status: u16, value: &Value) -> Reply {
    reply(status, "application/json", value.to_string())
}

fn with_header(mut reply: Reply, name: &'static str, value: &str) -> Reply {
    reply.headers_mut().insert(name, value.parse().unwrap());
    reply
}

impl Connection {
    async fn respond(&self, mut request: Request<Incoming>) -> Result<Reply, Closed> {
        let upgrade = request.headers().contains_key("upgrade").then(|| hyper::upgrade::on(&mut request));
        let (head, body) = request.into_parts();
        let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
        let path = head.uri.path().to_owned();
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        match parts[..] {
            ["control"] => {
                let wanted: Value = serde_json::from_slice(&body).map_err(|_| Closed)?;
                self.discovery
                    .store(u16::try_from(wanted["discovery"].as_u64().unwrap()).unwrap(), Ordering::Relaxed);
                Ok(json_reply(200, &json!({})))
            }
            ["admission", ref rest @ ..] => {
                let name = rest.first().copied();
                let (code, media_type, text) = self.webhooks.respond(&head.method, name, &body);
                Ok(reply(code, &media_type, text))
            }
            ["webhook", name] => Ok(json_reply(200, &documents::convert(name, &body))),
            ["openapi", "v2"] => Ok(with_header(json_reply(200, &documents::openapi_v2()), "etag", "\"w2\"")),
            ["openapi", "v3"] => Ok(json_reply(200, &documents::openapi_index())),
            ["openapi", "v3", .., version] => {
                let document = json_reply(200, &documents::openapi_v3(version));
                Ok(with_header(document, "etag", &format!("\"H{version}\"")))
            }
            ["apis"] | ["apis", GROUP] | ["apis", GROUP, _] => Ok(self.discovery(&parts, &head.headers)),
            ["healthz" | "readyz" | "livez"] => Ok(reply(200, "text/plain", "ok")),
            _ => {
                if let (Some(upgrade), Some(&"upgrade")) = (upgrade, parts.last()) {
                    return Ok(self.echo_bytes(upgrade, &head.headers));
                }
                self.misbehave(&parts, &head, &body).await
            }
        }
    }

    fn discovery(&self, parts: &[&str], headers: &HeaderMap) -> Reply {
        match self.discovery.load(Ordering::Relaxed) {
            200 => {}
            code => return reply(code, "text/plain", "discovery is switched off\n"),
        }
        let aggregated =
            headers.get("accept").is_some_and(|a| a.to_str().is_ok_and(|a| a.contains("apidiscovery")));
        match parts {
            ["apis"] if aggregated => {
                reply(200, documents::AGGREGATED, documents::aggregated_discovery().to_string())
            }
            ["apis"] => json_reply(200, &documents::group_list()),
            ["apis", _] => json_reply(200, &documents::group()),
            [.., version] if VERSIONS.contains(version) => json_reply(200, &documents::resources(version)),
            _ => reply(404, "text/plain", "404 page not found\n"),
        }
    }

    async fn misbehave(
        &self,
        parts: &[&str],
        head: &http::request::Parts,
        body: &[u8],
    ) -> Result<Reply, Closed> {
        let (verb, argument) = match parts {
            [.., verb, argument] => (*verb, *argument),
            _ => ("", ""),
        };
        let number = argument.parse::<f64>().unwrap_or_default();
        Ok(match (verb, argument) {
            ("answer", code) => {
                let code: u16 = code.parse().map_err(|_| Closed)?;
                json_reply(code, &documents::failure(code))
            }
            ("text", code) => {
                reply(code.parse().map_err(|_| Closed)?, "text/plain", "plain words from the backend\n")
            }
            (_, "redirect") => {
                let moved = reply(302, "text/plain", "");
                with_header(moved, "location", &format!("/apis/{GROUP}/v1alpha1/elsewhere"))
            }
            ("bytes", length) => reply(200, "text/plain", "x".repeat(length.parse().map_err(|_| Closed)?)),
            (_, "drop") => return Err(Closed),
            (_, "half") => half(),
            ("chunks", count) => chunks(count.parse().map_err(|_| Closed)?),
            _ => {
                if verb == "slow" {
                    pause(Duration::from_secs_f64(number)).await;
                }
                let echo = json_reply(200, &documents::echo(head, body, self.peer.as_deref()));
                let echo = with_header(echo, "x-from-backend", "yes");
                with_header(echo, "warning", "299 - \"from the backend\"")
            }
        })
    }

    /// Responds with 101, and then echoes every byte.
    fn echo_bytes(&self, upgrade: hyper::upgrade::OnUpgrade, headers: &HeaderMap) -> Reply {
        self.tasks.spawn_until_cancelled("backend-upgraded", async move {
            let Ok(upgraded) = upgrade.await else { return };
            let (mut read, mut write) = tokio::io::split(TokioIo::new(upgraded));
            // The copy ends with the connection; errors do not matter.
            let _ = tokio::io::copy(&mut read, &mut write).await;
        });
        let mut reply = reply(101, "text/plain", "");
        *reply.headers_mut() = HeaderMap::new();
        reply.headers_mut().insert("connection", "Upgrade".parse().unwrap());
        reply.headers_mut().insert("upgrade", headers["upgrade"].clone());
        *reply.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
        reply
    }
}

/// Announces 100 bytes and sends 10.
fn half() -> Reply {
    let pieces = [Ok(Frame::data(Bytes::from_static(b"0123456789"))), Err(Closed)];
    let body = StreamBody::new(stream::iter(pieces)).boxed_unsync();
    Response::builder().header("content-length", "100").body(body).unwrap()
}

/// Lines of JSON, with a pause after each.
fn chunks(count: usize) -> Reply {
    let lines = stream::iter(0..count).then(|n| async move {
        if n > 0 {
            pause(CHUNK_INTERVAL).await;
        }
        let line = json!({"type": "ADDED", "object": {"n": n}});
        Ok(Frame::data(Bytes::from(format!("{line}\n"))))
    });
    let body = StreamBody::new(lines).boxed_unsync();
    Response::builder().header("content-type", "application/json").body(body).unwrap()
}
