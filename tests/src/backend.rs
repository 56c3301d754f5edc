//! An aggregated API server with correct or faulty behavior, as a test requests: real sockets, real TLS, its own CA.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use futures::StreamExt;
use futures::stream;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use portico_kit::pki::CertInfo;
use portico_kit::tasks::TaskSet;
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, watch};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use crate::objects;
use crate::pki::{Authority, CertPair, Clients};

/// Server name that the proxy verifies for Service `default/backend`.
pub const SERVER_NAME: &str = "backend.default.svc";

/// Behavior of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Behavior {
    /// Serves discovery, and an Echo of any other request.
    Normal,
    /// Responds to everything with this status and a short text.
    Code(u16),
    /// Responds to everything with a redirect.
    Redirect,
    /// Behaves as [`Behavior::Normal`], after this delay.
    Slow(Duration),
    /// Reads the request and responds once the behavior changes.
    Paused,
    /// Reads the request and never responds.
    Hang,
    /// Resets every connection at once.
    Reset,
    /// Accepts connections and never speaks TLS.
    HalfOpen,
    /// Closes the connection when the request has arrived.
    Drop,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub struct ReceivedRequest {
    /// Method of the request.
    pub method: Method,
    /// Path and query as sent.
    pub target: String,
    /// Headers of the request.
    pub headers: HeaderMap,
    /// Body of the request.
    pub body: Bytes,
    /// Client certificate, if one was presented.
    pub client: Option<Arc<CertInfo>>,
}

impl ReceivedRequest {
    /// Returns every value of a header.
    pub fn all(&self, name: &str) -> Vec<String> {
        self.headers
            .get_all(name)
            .iter()
            .map(|v| String::from_utf8_lossy(v.as_bytes()).into_owned())
            .collect()
    }
}

struct Shared {
    group: String,
    mood: watch::Sender<Behavior>,
    seen: Mutex<Vec<ReceivedRequest>>,
    pieces: broadcast::Sender<String>,
    /// Number of objects in a list.
    list_size: AtomicUsize,
}

/// A running backend. Dropping it stops it.
pub struct Backend {
    /// Address on which it listens; unchanged by [`Backend::stop`] and [`Backend::resume`].
    pub address: SocketAddr,
    /// Value for `caBundle` (PEM): usually the CA that signed its certificate.
    pub ca: String,
    shared: Arc<Shared>,
    acceptor: TlsAcceptor,
    tasks: TaskSet,
}

impl Backend {
    /// Starts a backend that serves `<group>/v1`, resource flunders, with a certificate for [`SERVER_NAME`].
    pub async fn start(group: &str) -> Self {
        Self::with_names(group, &[SERVER_NAME]).await
    }

    /// Starts a backend at an address of this machine that is not loopback, which EndpointSlices refuse. `None`, and a report,
    /// if there is no such address.
    pub async fn on_own_address(group: &str) -> Option<Self> {
        let ip = crate::own_address()?;
        Some(Self::start_at((ip, 0).into(), group, &[SERVER_NAME], None).await)
    }

    /// Starts a kubelet at this address, with a certificate for it, that requires client certificates of this CA (PEM).
    pub async fn kubelet(ip: IpAddr, clients: &str) -> Self {
        Self::start_at((ip, 0).into(), "kubelet", &[&ip.to_string()], Some(clients)).await
    }

    /// Starts a backend as [`Backend::start`] does, that requires client certificates of this CA (PEM).
    pub async fn with_client_ca(group: &str, clients: &str) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), group, &[SERVER_NAME], Some(clients)).await
    }

    /// Starts a backend with a certificate for these names.
    pub async fn with_names(group: &str, names: &[&str]) -> Self {
        Self::start_at(([127, 0, 0, 1], 0).into(), group, names, None).await
    }

    async fn start_at(address: SocketAddr, group: &str, names: &[&str], clients: Option<&str>) -> Self {
        let authority = Authority::new("backend-ca");
        Self::start_with_pair(address, group, &authority.server(names), authority.pem, clients).await
    }

    /// Starts a backend as [`Backend::start`] does, that supports only HTTP/2.
    pub async fn over_http2(group: &str) -> Self {
        let mut backend = Self::start(group).await;
        let mut tls = ServerConfig::clone(backend.acceptor.config());
        tls.alpn_protocols = vec![b"h2".to_vec()];
        backend.acceptor = TlsAcceptor::from(Arc::new(tls));
        backend.stop().await;
        backend.resume().await;
        backend
    }

    /// Starts a backend whose `caBundle` is its own certificate.
    pub async fn with_self_signed(group: &str, pair: &CertPair) -> Self {
        Self::start_with_pair(([127, 0, 0, 1], 0).into(), group, pair, pair.cert.clone(), None).await
    }

    async fn start_with_pair(
        address: SocketAddr,
        group: &str,
        pair: &CertPair,
        ca: String,
        clients: Option<&str>,
    ) -> Self {
        let acceptor = pair.acceptor(clients.map_or(Clients::Any, Clients::Required));
        let listener = TcpListener::bind(address).await.unwrap();
        let shared = Arc::new(Shared {
            group: group.to_owned(),
            mood: watch::Sender::new(Behavior::Normal),
            seen: Mutex::default(),
            pieces: broadcast::channel(64).0,
            list_size: AtomicUsize::new(0),
        });
        let mut backend =
            Self { address: listener.local_addr().unwrap(), ca, shared, acceptor, tasks: TaskSet::new() };
        backend.serve(listener);
        backend
    }

    fn serve(&mut self, listener: TcpListener) {
        self.tasks = TaskSet::new();
        let (set, shared, acceptor) = (self.tasks.clone(), self.shared.clone(), self.acceptor.clone());
        self.tasks.spawn_until_cancelled("backend", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let connection = connection(stream, shared.clone(), acceptor.clone(), set.clone());
                set.spawn_until_cancelled("backend-connection", connection);
            }
        });
    }

    /// Stops listening and closes every connection.
    pub async fn stop(&mut self) {
        self.tasks.cancel();
        let tasks = self.tasks.clone();
        crate::wait_until("the backend has stopped", || std::future::ready(tasks.running().is_empty())).await;
    }

    /// Listens again at the same address.
    pub async fn resume(&mut self) {
        let address = self.address;
        let bind = || async move { TcpListener::bind(address).await };
        let listener = crate::eventually("the backend's address is free", bind).await;
        self.serve(listener);
    }

    /// Sets the behavior from now on.
    pub fn set_behavior(&self, behavior: Behavior) {
        self.shared.mood.send_replace(behavior);
    }

    /// Sets the number of objects of lists from now on.
    pub fn set_list_size(&self, objects: usize) {
        self.shared.list_size.store(objects, Ordering::Relaxed);
    }

    /// Returns the requests that arrived, except for discovery, OpenAPI and probes.
    pub fn requests(&self) -> Vec<ReceivedRequest> {
        self.shared.seen.lock().unwrap().clone()
    }

    /// Returns the newest of these requests.
    pub fn last_request(&self) -> ReceivedRequest {
        self.requests().pop().expect("a request arrived")
    }

    /// Sends a chunk to every reader of `…/stream`; returns false if there is none.
    pub fn push_to_streams(&self, piece: &str) -> bool {
        self.shared.pieces.send(piece.to_owned()).is_ok()
    }

    /// Returns `https://address`, for `portico.dev/backend-urls`.
    pub fn url(&self) -> String {
        format!("https://{}", self.address)
    }

    /// Returns an APIService with the address of this backend.
    pub fn api_service(&self) -> Value {
        objects::api_service_with_urls(&self.shared.group, &self.ca, &self.url())
    }

    /// Returns a path of its API.
    pub fn path(&self, rest: &str) -> String {
        format!("/apis/{}/v1{rest}", self.shared.group)
    }

    /// Returns the name of its APIService.
    pub fn name(&self) -> String {
        format!("v1.{}", self.shared.group)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

async fn connection(stream: TcpStream, shared: Arc<Shared>, acceptor: TlsAcceptor, tasks: TaskSet) {
    let mood = *shared.mood.borrow();
    match mood {
        Behavior::Reset => {
            // A linger of zero makes the close a reset.
            let _ = socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO));
            return;
        }
        Behavior::HalfOpen => return std::future::pending().await,
        _ => {}
    }
    let Ok(stream) = acceptor.accept(stream).await else { return };
    let certificates = stream.get_ref().1.peer_certificates().and_then(|certificates| certificates.first());
    let client = certificates.map(|leaf| Arc::new(CertInfo::parse(leaf).unwrap()));
    let http2 = stream.get_ref().1.alpn_protocol() == Some(b"h2");
    let executor = tasks.executor("backend-stream");
    let service = service_fn(move |request| respond(request, client.clone(), shared.clone(), tasks.clone()));
    if http2 {
        let mut server = hyper::server::conn::http2::Builder::new(executor);
        server.timer(TokioTimer::new());
        let _ = server.serve_connection(TokioIo::new(stream), service).await;
        return;
    }
    let server = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .half_close(false)
        .serve_connection(TokioIo::new(stream), service);
    // Errors of disconnected clients do not matter.
    let _ = server.with_upgrades().await;
}

/// Error that makes the server close the connection without a response.
#[derive(Debug)]
struct Closed;

impl std::fmt::Display for Closed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the backend closes the connection")
    }
}

impl std::error::Error for Closed {}

type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

fn reply(status: StatusCode, media_type: &str, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).boxed_unsync();
    Response::builder().status(status).header("content-type", media_type).body(body).unwrap()
}

fn json_reply(value: &Value) -> Reply {
    reply(StatusCode::OK, "application/json", value.to_string())
}

async fn respond(
    mut request: Request<Incoming>,
    client: Option<Arc<CertInfo>>,
    shared: Arc<Shared>,
    tasks: TaskSet,
) -> Result<Reply, Closed> {
    let upgrade = request.headers().contains_key("upgrade").then(|| hyper::upgrade::on(&mut request));
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Closed)?.to_bytes();
    let target = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let path = parts.uri.path().to_owned();
    let seen = ReceivedRequest { method: parts.method, target, headers: parts.headers, body, client };
    let discovery = discovery(&shared.group, &path);
    if discovery.is_none() && !path.starts_with("/openapi") {
        shared.seen.lock().unwrap().push(seen.clone());
    }
    let mood = *shared.mood.borrow();
    match mood {
        Behavior::Code(code) => {
            let code = StatusCode::from_u16(code).unwrap();
            return Ok(reply(code, "text/plain", format!("the backend says {code}")));
        }
        Behavior::Redirect => {
            let mut redirect = reply(StatusCode::FOUND, "text/plain", "");
            redirect.headers_mut().insert("location", "https://192.0.2.1/elsewhere".parse().unwrap());
            return Ok(redirect);
        }
        Behavior::Slow(time) => crate::process::pause(time).await,
        Behavior::Paused => {
            // The sender lives as long as `shared`.
            let _ = shared.mood.subscribe().wait_for(|mood| *mood != Behavior::Paused).await;
        }
        Behavior::Hang | Behavior::HalfOpen => return std::future::pending().await,
        Behavior::Drop | Behavior::Reset => return Err(Closed),
        Behavior::Normal => {}
    }
    if let Some(upgrade) = upgrade {
        return Ok(echo_bytes(upgrade, &seen, &tasks));
    }
    Ok(match discovery {
        Some(document) => json_reply(&document),
        None if path.starts_with("/openapi") => reply(StatusCode::NOT_FOUND, "text/plain", "no documents"),
        None if path.ends_with("/stream") => streamed(&shared),
        None if path.ends_with("/page.html") => reply(
            StatusCode::OK,
            "text/html; charset=utf-8",
            "<a href=\"/next\">next</a><a href=\"near\">near</a>",
        ),
        None if path.ends_with("/moved") => {
            let mut moved = reply(StatusCode::FOUND, "text/plain", "");
            moved.headers_mut().insert("location", "/next?x=1".parse().unwrap());
            moved
        }
        None if path.ends_with("/big") => {
            reply(StatusCode::OK, "application/octet-stream", vec![b'x'; 8 << 20])
        }
        None if path == "/admission/endless" => endless(),
        None if path.starts_with("/admission/") => {
            reply(StatusCode::OK, "application/json", crate::admission::respond(&path, &seen.body))
        }
        None if path == "/tokens" => json_reply(&crate::access_review::respond_to_token(&seen.body)),
        None if path == "/access" => json_reply(&crate::access_review::respond(&seen.body)),
        None if path == "/images" => json_reply(&crate::image_review::respond(&seen.body)),
        None if path.starts_with("/convert") => json_reply(&crate::conversion::respond(&path, &seen.body)),
        None => json_reply(&echo(&seen, shared.list_size.load(Ordering::Relaxed))),
    })
}

fn echo(seen: &ReceivedRequest, listed: usize) -> Value {
    let headers: serde_json::Map<String, Value> =
        seen.headers.keys().map(|name| (name.to_string(), seen.all(name.as_str()).into())).collect();
    let body = String::from_utf8_lossy(&seen.body);
    // A list, for clients that enumerate objects.
    let items: Vec<Value> =
        (0..listed).map(|n| json!({"metadata": {"name": format!("flunder-{n}")}})).collect();
    json!({"kind": "EchoList", "method": seen.method.as_str(), "target": seen.target, "headers": headers, "body": body, "items": items})
}

/// Returns an endless response of the chunks that the test pushes.
fn streamed(shared: &Shared) -> Reply {
    let pieces = stream::unfold(shared.pieces.subscribe(), |mut pieces| async {
        let piece = pieces.recv().await.ok()?;
        Some((Ok(Frame::data(Bytes::from(piece))), pieces))
    });
    // The head is sent at once, with a first line that identifies the stream.
    let first = stream::once(std::future::ready(Ok(Frame::data(Bytes::from_static(b"{\"ready\":true}\n")))));
    let body = StreamBody::new(first.chain(pieces)).boxed_unsync();
    Response::builder().header("content-type", "application/json").body(body).unwrap()
}

/// Returns an endless body, sent as fast as it is read.
fn endless() -> Reply {
    let pieces = stream::repeat_with(|| Ok(Frame::data(Bytes::from_static(&[b' '; 64 << 10]))));
    let body = StreamBody::new(pieces).boxed_unsync();
    Response::builder().header("content-type", "application/json").body(body).unwrap()
}

/// Returns 101, and then echoes every byte.
fn echo_bytes(upgrade: hyper::upgrade::OnUpgrade, seen: &ReceivedRequest, tasks: &TaskSet) -> Reply {
    tasks.spawn_until_cancelled("backend-upgraded", async move {
        let Ok(upgraded) = upgrade.await else { return };
        let (mut read, mut write) = tokio::io::split(TokioIo::new(upgraded));
        let _ = tokio::io::copy(&mut read, &mut write).await;
    });
    let protocol = seen.headers["upgrade"].clone();
    let mut reply = reply(StatusCode::SWITCHING_PROTOCOLS, "text/plain", "");
    reply.headers_mut().clear();
    reply.headers_mut().insert("connection", "Upgrade".parse().unwrap());
    reply.headers_mut().insert("upgrade", protocol);
    reply
}

/// Returns the documents below `/apis`; `None` for other paths.
fn discovery(group: &str, path: &str) -> Option<Value> {
    let version = json!({"groupVersion": format!("{group}/v1"), "version": "v1"});
    let api_group = json!({"kind": "APIGroup", "apiVersion": "v1", "name": group, "versions": [version], "preferredVersion": version});
    let verbs = ["create", "delete", "get", "list", "patch", "update", "watch"];
    if path == "/apis" {
        return Some(json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": [api_group]}));
    }
    match path.strip_prefix("/apis/")?.strip_prefix(group)? {
        "" | "/" => Some(api_group),
        "/v1" | "/v1/" => {
            Some(json!({"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": format!("{group}/v1"),
            "resources": [{"name": "flunders", "singularName": "flunder", "namespaced": true, "kind": "Flunder", "verbs": verbs, "shortNames": ["fl"]}]}))
        }
        _ => None,
    }
}
