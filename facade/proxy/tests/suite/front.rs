//! A front: a plain HTTP/1.1 listener that passes each request to the proxy as one fixed user.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use portico_kit::dial::{Connector, ConnectorOptions};
use portico_kit::metrics::Registry;
use portico_kit::received_body::ReceivedBody;
use portico_kit::tasks::TaskSet;
use portico_kit::tls::CertPair;
use portico_machinery::route::{Availability, Backend as To, Route, ServiceReference, Target, Trust};
use portico_machinery::{GroupVersion, RequestInfo, Status, UserInfo};
use portico_proxy::{
    ClientAddress, ClientCert, Identity, Kubelets, Limits, Proxy, ProxyContext, ProxyMetrics, ProxySettings,
    RequestBody, RouteEntry,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::backend::{Backend, EVENT_TIMEOUT, NAME};

/// A path of a resource.
pub const FLUNDERS: &str = "/apis/wardle.example.com/v1/flunders";
/// The path of discovery.
pub const DISCOVERY: &str = "/apis/wardle.example.com/v1";

/// Settings that a test may vary; build it, then call [`Setup::start`].
pub struct Setup {
    pub route: Route,
    pub bundle: Bytes,
    pub user: Option<UserInfo>,
    pub limits: Limits,
    pub client_cert: Option<watch::Receiver<Arc<CertPair>>>,
    /// Deadline that the chain sets for each request.
    pub deadline: Option<Duration>,
    pub registry: Registry,
    pub connector: Connector,
    /// True if clients use HTTP/2.
    pub http2: bool,
}

impl Setup {
    /// Returns a setup with a route to these backends (which share the CA of the first one) and user alice.
    pub fn to(backends: &[&Backend]) -> Self {
        Self::to_addresses(
            &backends.iter().map(|b| b.address).collect::<Vec<_>>(),
            backends[0].authority.cert_pem(),
        )
    }

    pub fn to_addresses(addresses: &[SocketAddr], ca: &str) -> Self {
        let targets =
            addresses.iter().map(|a| Target { host: a.ip().to_string(), port: a.port() }).collect::<Vec<_>>();
        let backend = To {
            service: ServiceReference { namespace: "wardle".into(), name: "flunders".into(), port: 443 },
            targets,
            server_name: NAME.into(),
            trust: Trust::Bundle("hash".into()),
            ..To::default()
        };
        let route = Route {
            name: "v1.wardle.example.com".into(),
            group_version: GroupVersion { group: "wardle.example.com".into(), version: "v1".into() },
            backend: Some(backend.into()),
            available: Availability { ok: true, reason: "Passed".into(), ..Availability::default() },
            ..Route::default()
        };
        let mut user = UserInfo::new("alice", ["dev", "system:authenticated"]);
        user.uid = "uid-alice".into();
        user.extra = BTreeMap::from([("example.com/scopes".into(), vec!["read".into()])]);
        let limits = Limits { dial_timeout: Duration::from_secs(5), ..Limits::default() };
        let registry = Registry::new();
        Self {
            route,
            bundle: Bytes::copy_from_slice(ca.as_bytes()),
            user: Some(user),
            limits,
            client_cert: None,
            deadline: None,
            registry,
            connector: Connector::new(ConnectorOptions::default()),
            http2: false,
        }
    }

    pub fn backend(&mut self) -> &mut To {
        Arc::get_mut(self.route.backend.as_mut().unwrap()).unwrap()
    }

    pub async fn start(self) -> Front {
        let Self { route, bundle, user, limits, client_cert, deadline, registry, connector, http2 } = self;
        let tasks = TaskSet::new();
        let kubelets = Kubelets::default();
        let client_cert = client_cert.map(ClientCert::Present);
        let settings = ProxySettings { connector, client_cert, kubelets, tasks: tasks.clone(), limits };
        let proxy = Proxy::new(settings, ProxyMetrics::new(&registry));
        let upstream =
            Arc::new(RouteEntry::new(Arc::new(route), &|hash| (hash == "hash").then(|| bundle.clone())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (ending, ended) = watch::channel(0);
        let ending = Arc::new(ending);
        let address = listener.local_addr().unwrap();
        let front = Front { address, tasks, proxy, upstream, registry, ended };
        let (proxy, upstream, tasks) = (front.proxy.clone(), front.upstream.clone(), front.tasks.clone());
        front.tasks.spawn_until_cancelled("front", async move {
            while let Ok((stream, peer)) = listener.accept().await {
                let (proxy, upstream) = (proxy.clone(), upstream.clone());
                let (identity, client) = (user.as_ref().map(Identity::new), ClientAddress::from(peer.ip()));
                let service = service_fn(move |request: Request<Incoming>| {
                    let (proxy, upstream) = (proxy.clone(), upstream.clone());
                    let (identity, client) = (identity.clone(), client.clone());
                    async move {
                        let path = request.uri().path().to_owned();
                        let info = RequestInfo::parse(request.method().as_str(), &path, "").unwrap();
                        let context = ProxyContext {
                            identity: identity.as_ref(),
                            audit_id: &HeaderValue::from_static("audit-1"),
                            client: Some(&client),
                            request_info: &info,
                            deadline: deadline.map(|wait| Instant::now() + wait),
                            trace: None,
                        };
                        let (request, _) = ReceivedBody::wrap_request(request);
                        Ok::<_, Infallible>(proxy.handle(&upstream, request, context).await)
                    }
                });
                let (executor, ending) = (tasks.executor("front-stream"), ending.clone());
                tasks.spawn_until_cancelled("front-connection", async move {
                    let io = TokioIo::new(stream);
                    if http2 {
                        let serving = hyper::server::conn::http2::Builder::new(executor);
                        let _ = serving.serve_connection(io, service).await;
                    } else {
                        let serving = hyper::server::conn::http1::Builder::new();
                        let _ = serving.serve_connection(io, service).with_upgrades().await;
                    }
                    ending.send_modify(|ended| *ended += 1);
                });
            }
        });
        front
    }
}

pub struct Front {
    pub address: SocketAddr,
    pub tasks: TaskSet,
    pub proxy: Proxy,
    pub upstream: Arc<RouteEntry>,
    pub registry: Registry,
    /// Number of ended client connections.
    ended: watch::Receiver<usize>,
}

impl Drop for Front {
    fn drop(&mut self) {
        self.tasks.cancel();
    }
}

/// A complete response.
#[derive(Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: String,
    pub trailers: Option<HeaderMap>,
}

impl Answer {
    /// Decodes the body as a failure Status with the response's code.
    pub fn failure(&self) -> Status {
        let status = Status::from_json(self.body.as_bytes()).unwrap_or_else(|| panic!("no Status: {self:?}"));
        assert_eq!((status.code, status.is_failure()), (self.status.as_u16(), true));
        status
    }

    /// Returns the code, and reason and message of the cause, of a failure.
    pub fn cause(&self) -> (u16, String, String) {
        let status = self.failure();
        let cause = status.details.and_then(|d| d.causes.into_iter().next()).unwrap_or_default();
        (status.code, cause.reason, cause.message)
    }
}

impl Front {
    pub async fn get(&self, path: &str) -> Answer {
        self.send("GET", path, &[], "").await
    }

    /// Sends one request on a new connection.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut request = Request::builder().method(method).uri(path).header("host", "front");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Full::new(Bytes::copy_from_slice(body.as_bytes()))).unwrap();
        let stream = TcpStream::connect(self.address).await.unwrap();
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.unwrap();
        self.tasks.spawn_until_cancelled("client", async move {
            let _ = connection.await;
        });
        let response = tokio::time::timeout(EVENT_TIMEOUT, sender.send_request(request));
        let (parts, body) = response.await.expect("no answer").unwrap().into_parts();
        let collected = body.collect().await.unwrap();
        let trailers = collected.trailers().cloned();
        let body = String::from_utf8(collected.to_bytes().to_vec()).unwrap();
        Answer { status: parts.status, headers: parts.headers, body, trailers }
    }

    /// Requests in flight at the front's backend.
    pub fn upstream_in_flight(&self) -> usize {
        self.upstream.in_flight()
    }

    /// Returns the code of a GET through another route, without the listener.
    pub async fn direct(&self, upstream: &RouteEntry) -> u16 {
        let identity = Identity::new(&UserInfo::new("alice", ["dev"]));
        let info = RequestInfo::parse("GET", FLUNDERS, "").unwrap();
        let context = ProxyContext {
            identity: Some(&identity),
            audit_id: &HeaderValue::from_static(""),
            client: None,
            request_info: &info,
            deadline: None,
            trace: None,
        };
        let request = Request::builder().uri(FLUNDERS).body(RequestBody::empty()).unwrap();
        let response = self.proxy.handle(upstream, request, context).await;
        let code = response.status().as_u16();
        response.into_body().collect().await.unwrap();
        code
    }

    /// Waits until this many client connections have ended, and no request is in flight.
    pub async fn wait_idle(&self, connections: usize) {
        let mut ended = self.ended.clone();
        let resting = async {
            ended.wait_for(|ended| *ended >= connections).await.unwrap();
            while self.upstream_in_flight() > 0 {
                tokio::task::yield_now().await;
            }
        };
        let rested = tokio::time::timeout(EVENT_TIMEOUT, resting).await;
        rested.expect("connections or permits are not given back");
    }

    pub async fn raw(&self) -> RawClient {
        RawClient { stream: TcpStream::connect(self.address).await.unwrap() }
    }

    /// Returns the value of the metric line with this prefix.
    pub fn metric(&self, line: &str) -> String {
        let text = self.registry.encode(portico_kit::metrics::Format::Text);
        let found = text.lines().find_map(|l| l.strip_prefix(line)).unwrap_or_default();
        found.trim().to_owned()
    }
}

/// A client that writes and reads bytes.
pub struct RawClient {
    pub stream: TcpStream,
}

impl RawClient {
    pub async fn write(&mut self, text: &str) {
        self.stream.write_all(text.as_bytes()).await.unwrap();
    }

    /// Reads until this text has arrived, and returns all input.
    pub async fn read_until(&mut self, words: &str) -> String {
        let mut all = Vec::new();
        let reading = async {
            let mut piece = [0; 4096];
            while !String::from_utf8_lossy(&all).contains(words) {
                let read = self.stream.read(&mut piece).await.unwrap();
                assert!(read > 0, "ended before {words:?}: {}", String::from_utf8_lossy(&all));
                all.extend_from_slice(&piece[..read]);
            }
        };
        tokio::time::timeout(EVENT_TIMEOUT, reading).await.expect("the expected text did not arrive");
        String::from_utf8(all).unwrap()
    }

    /// Reads to the end of the connection.
    pub async fn read_to_end(&mut self) -> String {
        let mut all = Vec::new();
        let read = tokio::time::timeout(EVENT_TIMEOUT, self.stream.read_to_end(&mut all)).await;
        // A reset is an end as well.
        let _ = read.expect("the connection does not end");
        String::from_utf8(all).unwrap()
    }
}
