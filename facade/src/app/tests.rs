//! Table of requests and the effect of each layer on them. The director is a stub.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use http::StatusCode;
use http::header::{HeaderMap, HeaderValue};
use http_body_util::BodyExt;
use portico_auditor::Auditor;
use portico_auth::AuthenticatorChain;
use portico_auth::authn::{ReviewError, TokenFile, TokenReviewBackend, TokenReviewFuture};
use portico_auth::authz::{AuthorizationMode, RemoteAuthorizer, RemoteDecisionFuture};
use portico_kit::lifecycle::Signal;
use portico_kit::metrics::{Format, Registry};
use portico_machinery::Attributes;
use portico_machinery::rbac::{Binding, Fact, Policy, RoleRef, Rule, Subject};

use tower::Service;

mod audit;

use super::*;
use crate::active_config::ActiveConfig;
use crate::body::Body;
use crate::connection::Connection;
use crate::in_flight::InFlight;
use crate::layers::hsts::hsts;
use crate::metrics::access::{AuthenticationMetrics, AuthorizationMetrics};
use crate::request::{Request, RequestView, Response};
use crate::respond;
use crate::wait_group::WaitGroup;

/// Behaves as the path names.
async fn stub(request: Request) -> Result<Response, Infallible> {
    Ok(match request.info().path.as_str() {
        "/panic" => panic!("asked to"),
        "/slow" => std::future::pending().await,
        "/slow-body" => {
            Response::new(Body::streamed(http_body_util::StreamBody::new(futures::stream::pending::<
                Result<http_body::Frame<bytes::Bytes>, crate::body::BoxError>,
            >())))
        }
        "/warn" => {
            request.record().warn(["careful".to_owned(), "careful".to_owned()]);
            Response::new(Body::empty())
        }
        "/seen" => {
            let user = request.user();
            let names: Vec<_> = request.headers().keys().map(http::HeaderName::as_str).collect();
            respond::plain(StatusCode::OK, format!("{} {:?} {names:?}", user.name, user.groups))
        }
        "/own-cache" => {
            let mut response = Response::new(Body::empty());
            response.headers_mut().insert("cache-control", HeaderValue::from_static("public"));
            response
        }
        _ => respond::plain(StatusCode::OK, "stub"),
    })
}

struct Rig {
    complete: Signal,
    not_accepting: Signal,
    group: WaitGroup,
    registry: Registry,
    timeout: Duration,
    reads: usize,
    retry_after: bool,
    decider: Arc<dyn RemoteAuthorizer>,
    auditor: Option<Arc<Auditor>>,
}

impl Default for Rig {
    fn default() -> Self {
        Self {
            complete: Signal::new("complete"),
            not_accepting: Signal::new("stop"),
            group: WaitGroup::default(),
            registry: Registry::new(),
            timeout: Duration::from_secs(60),
            reads: 2,
            retry_after: false,
            decider: Arc::new(UnreachableService),
            auditor: None,
        }
    }
}

/// Control service that cannot be reached: reviews no token and makes no decision.
struct UnreachableService;

impl TokenReviewBackend for UnreachableService {
    fn review<'a>(&'a self, _: &'a str) -> TokenReviewFuture<'a> {
        Box::pin(std::future::ready(Err(ReviewError::Unreachable)))
    }
}

impl RemoteAuthorizer for UnreachableService {
    fn decide<'a>(&'a self, _: &'a Attributes) -> RemoteDecisionFuture<'a> {
        Box::pin(std::future::ready(None))
    }
}

/// Decider that never responds.
struct SilentDecider;

impl RemoteAuthorizer for SilentDecider {
    fn decide<'a>(&'a self, _: &'a Attributes) -> RemoteDecisionFuture<'a> {
        Box::pin(std::future::pending())
    }
}

impl Rig {
    fn app(&self) -> impl Handler + use<> {
        let metrics = RequestMetrics::new(&self.registry);
        let tokens =
            "good,alice,1\nmaster,root,2,\"system:masters\"\nnode,system:node:n,3,\"system:nodes\"\n";
        let tokens = Arc::new(TokenFile::parse(tokens).unwrap());
        let mut in_force = ActiveConfig::default();
        let chain = AuthenticatorChain::default().with_tokens(tokens).with_anonymous(true);
        in_force.set_authenticators(chain);
        in_force.set_policy(version_reader_policy(), &[AuthorizationMode::Node, AuthorizationMode::Rbac]);
        let layers = Layers {
            mux_complete: self.complete.clone(),
            active_config: Arc::new(ArcSwap::from_pointee(in_force)),
            metrics: metrics.clone(),
            retry_after: self.retry_after.then(|| RetryAfter { not_accepting: self.not_accepting.clone() }),
            hsts: hsts(&["max-age=1".to_owned(), "preload".to_owned()]).unwrap(),
            goaway_chance: None,
            watch_termination: None,
            wait_group: CountShortRequests { group: self.group.clone() },
            audits: self
                .auditor
                .clone()
                .map(|auditor| AuditState { auditor, duration: metrics.filter("audit") }),
            request_deadlines: RequestDeadlines {
                auditor: None,
                request_timeout: self.timeout,
                stalled_read: Duration::from_secs(10),
            },
            cors: AllowedOrigins::new(&["^https://good\\.example$".to_owned()]).unwrap(),
            authentication: Authenticator {
                console: false,
                cors: None,
                auditor: None,
                reviewer: Arc::new(UnreachableService),
                metrics: AuthenticationMetrics::new(&self.registry, metrics.filter("authentication")),
            },
            exports_spans: false,
            route_traces: RouteTraceState {
                remote_authorizer: self.decider.clone(),
                facade: "test".to_owned(),
            },
            impersonation: ImpersonationState {
                decider: self.decider.clone(),
                duration: metrics.filter("impersonation"),
            },
            flow: None,
            max_in_flight: Some(MaxInFlight { in_flight: InFlight::new(self.reads, 1, metrics.clone()) }),
            authorization: AuthorizationState {
                decider: self.decider.clone(),
                metrics: AuthorizationMetrics::new(&self.registry, metrics.filter("authorization")),
                console: false,
            },
            test_faults: None,
        };
        app(layers, tower::service_fn(stub))
    }

    async fn send(&self, request: Request) -> Answer {
        send(&self.app(), request).await
    }
}

/// Returns the part of the bootstrap policy that lets all users read `/version` and the health checks.
fn version_reader_policy() -> Policy {
    let list = |words: &[&str]| words.iter().map(|w| (*w).to_owned()).collect::<Vec<_>>();
    let rule = Rule {
        verbs: list(&["get"]),
        non_resource_urls: list(&["/healthz", "/livez", "/readyz", "/version"]),
        ..Rule::default()
    };
    let groups = ["system:authenticated", "system:unauthenticated"];
    let binding = Binding {
        role: RoleRef { is_cluster_role: true, name: "info".to_owned() },
        subjects: groups.map(|g| Subject::Group(g.to_owned())).to_vec(),
    };
    let facts = [
        ("clusterroles/info", Fact::Rules(vec![rule])),
        ("clusterrolebindings/info", Fact::Binding(binding)),
    ];
    let mut policy = Policy::default();
    facts.into_iter().for_each(|(key, fact)| policy.set(key.parse().unwrap(), Some(fact)));
    policy
}

struct Answer {
    code: u16,
    headers: HeaderMap,
    body: String,
}

impl Answer {
    fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }
}

async fn send(app: &impl Handler, request: Request) -> Answer {
    let Ok(response) = app.clone().call(request).await;
    let (parts, body) = response.into_parts();
    let body = body.collect().await.map(|b| b.to_bytes()).unwrap_or_default();
    Answer {
        code: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    }
}

/// Builds a request from a line (`GET /x`) and headers (`a: b`), as root unless there is an Authorization header.
fn request(line: &str, headers: &[&str]) -> Request {
    let (method, uri) = line.split_once(' ').unwrap();
    let mut builder = http::Request::builder().method(method).uri(uri);
    if !headers.iter().any(|h| h.starts_with("Authorization") || *h == "anonymous") {
        builder = builder.header("Authorization", "Bearer master");
    }
    for (name, value) in headers.iter().filter_map(|h| h.split_once(": ")) {
        builder = builder.header(name, value);
    }
    let connection = Arc::new(Connection::plain(([127, 0, 0, 1], 5).into()));
    builder.extension(connection).body(Body::empty()).unwrap()
}

/// Request line, headers, expected code, part of the body, header name, header value.
type Row = (&'static str, &'static [&'static str], u16, &'static str, &'static str, &'static str);

#[tokio::test]
async fn each_layer_has_its_effect() {
    #[rustfmt::skip]
    let rows: &[Row] = &[
        ("GET /x", &["Audit-ID: abc"], 200, "stub", "audit-id", "abc"),
        ("GET /x", &[], 200, "stub", "cache-control", "no-cache, private"),
        ("GET /x", &[], 200, "stub", "strict-transport-security", "max-age=1; preload"),
        ("GET /api/v1/namespaces/a/secrets/s", &["Authorization: Bearer node"], 503, "the control service is not available", "", ""),
        ("GET /api/v1/namespaces/a/secrets", &["Authorization: Bearer node"], 403, "No Object name found", "", ""),
        ("GET /api/v1/nodes/n", &["Authorization: Bearer node"], 200, "stub", "", ""),
        ("GET /own-cache", &[], 200, "", "cache-control", "public"),
        ("GET /panic", &[], 500, "This request caused apiserver to panic.", "x-content-type-options", "nosniff"),
        ("GET /api/v1/watch", &[], 500, "Internal Server Error: \"/api/v1/watch\": failed to create RequestInfo", "", ""),
        ("GET /a%zz", &[], 400, "invalid URL escape", "", ""),
        ("GET /x?timeout=5", &[], 400, "invalid timeout specified in the request URL", "content-type", "application/json"),
        ("GET /x?timeout=5s", &[], 200, "stub", "", ""),
        ("GET /x?timeout=0s", &[], 200, "stub", "", ""),
        ("GET /x?timeout=-1s", &[], 200, "stub", "", ""),
        ("GET /api/v1/pods?watch=true&timeout=5", &[], 200, "stub", "", ""),
        ("GET /warn", &[], 200, "", "warning", "299 - \"careful\""),
        ("OPTIONS /x", &["anonymous", "Origin: https://good.example"], 204, "", "access-control-allow-origin", "https://good.example"),
        ("GET /x", &["Origin: https://good.example"], 200, "stub", "access-control-allow-credentials", "true"),
        ("GET /x", &["Origin: https://evil-good.example"], 200, "stub", "access-control-allow-origin", ""),
        ("GET /x", &["Authorization: Bearer wrong"], 401, "\"reason\":\"Unauthorized\"", "www-authenticate", ""),
        ("GET /x", &["anonymous"], 403, "forbidden: User \\\"system:anonymous\\\" cannot get path \\\"/x\\\"", "", ""),
        ("GET /version", &["anonymous"], 200, "stub", "", ""),
        ("POST /version", &["anonymous"], 403, "cannot post path", "", ""),
        ("GET /x", &["Authorization: Bearer good"], 403, "alice", "", ""),
        ("GET /seen", &["Impersonate-User: bob", "Impersonate-Group: system:masters"], 200, "bob [\"system:masters\", \"system:authenticated\"] []", "", ""),
        ("GET /seen", &["Impersonate-Group: system:masters"], 400, "without impersonating a user name", "", ""),
        ("GET /version", &["Authorization: Bearer good", "Impersonate-User: bob"], 403, "User \\\"alice\\\" cannot impersonate", "", ""),
        ("GET /seen", &["X-Remote-User: mallory", "x-remote-extra-a: b"], 200, "root [\"system:masters\", \"system:authenticated\"] []", "", ""),
    ];
    let rig = Rig::default();
    let app = rig.app();
    for (line, headers, code, body, name, value) in rows {
        let got = send(&app, request(line, headers)).await;
        assert_eq!(got.code, *code, "{line} {headers:?}: {}", got.body);
        assert!(got.body.contains(body), "{line} {headers:?}: {}", got.body);
        if !name.is_empty() {
            assert_eq!(got.header(name), *value, "{line} {headers:?}");
        }
    }
}

#[tokio::test]
async fn a_missing_audit_id_is_generated() {
    let got = Rig::default().send(request("GET /x", &[])).await;
    assert!(uuid::Uuid::parse_str(got.header("audit-id")).is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_deadline_ends_a_slow_handler_with_504_and_cuts_a_slow_body() {
    let rig = Rig::default();
    let app = rig.app();
    let begin = tokio::time::Instant::now();
    let got = send(&app, request("GET /slow?timeout=3s", &["Accept: application/yaml"])).await;
    assert_eq!(got.code, 504);
    assert!(
        got.body.starts_with(r#"{"metadata":{},"status":"Failure","message":"Timeout: "#),
        "{}",
        got.body
    );
    assert!(got.header("content-type").starts_with("text/plain"));
    assert!(!got.header("audit-id").is_empty());
    assert_eq!(begin.elapsed().as_secs(), 3);
    let got = send(&app, request("GET /slow-body?timeout=10h", &[])).await;
    assert_eq!((got.code, got.body.as_str()), (200, ""));
    assert!((59..=63).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    let text = rig.registry.encode(Format::Text);
    assert!(text.contains("apiserver_request_terminations_total") && text.contains("code=\"504\""), "{text}");
}

#[tokio::test(start_paused = true)]
async fn a_timeout_during_authorization_is_counted_with_the_labels_of_its_request() {
    let rig = Rig { decider: Arc::new(SilentDecider), ..Rig::default() };
    let secret = request("GET /api/v1/namespaces/n/secrets/s?timeout=3s", &["Authorization: Bearer node"]);
    assert_eq!(rig.send(secret).await.code, 504);
    let text = rig.registry.encode(Format::Text);
    let counted = |line: &&str| line.starts_with("apiserver_request_total{") && line.contains("code=\"504\"");
    let line = text.lines().find(counted).unwrap();
    assert!(line.contains("verb=\"GET\"") && line.contains("scope=\"resource\""), "{line}");
}

#[tokio::test]
async fn the_limiter_refuses_all_but_masters_and_long_running_requests() {
    let rig = Rig { reads: 1, ..Rig::default() };
    let app = rig.app();
    let mut slow = app.clone();
    let (started, running) = tokio::sync::oneshot::channel();
    let tasks = portico_kit::tasks::TaskSet::new();
    tasks.spawn_until_cancelled("slow", async move {
        // The permit lives as long as the response's body.
        let response = slow.call(request("GET /api/v1/namespaces/slow/pods", &[])).await;
        let _ = started.send(response);
    });
    let held = running.await.unwrap();
    let got = send(&app, request("GET /version", &["Authorization: Bearer good"])).await;
    assert_eq!((got.code, got.header("retry-after")), (429, "1"));
    assert_eq!(got.body, "Too many requests, please try again later.\n");
    assert_eq!(send(&app, request("GET /x", &[])).await.code, 200);
    let watch = send(&app, request("GET /api/v1/pods?watch=true", &["Authorization: Bearer good"])).await;
    assert_eq!(watch.code, 403);
    drop(held);
    assert_eq!(send(&app, request("GET /version", &["Authorization: Bearer good"])).await.code, 200);
}

#[tokio::test]
async fn a_drain_refuses_late_requests_but_not_health() {
    let rig = Rig::default();
    let app = rig.app();
    rig.group.close();
    let got = send(&app, request("GET /x", &[])).await;
    assert_eq!((got.code, got.header("retry-after")), (503, "1"));
    assert!(got.body.contains("apiserver is shutting down"), "{}", got.body);
    assert_eq!(send(&app, request("GET /healthz", &[])).await.code, 200);
    assert_eq!(send(&app, request("GET /x", &["User-Agent: kube-apiserver/v1"])).await.code, 200);

    let rig = Rig { retry_after: true, ..Rig::default() };
    let app = rig.app();
    assert_eq!(send(&app, request("GET /x", &[])).await.code, 200);
    rig.not_accepting.signal();
    let got = send(&app, request("GET /x", &[])).await;
    assert_eq!((got.code, got.header("retry-after"), got.header("connection")), (429, "5", "close"));
    assert_eq!(send(&app, request("GET /metrics", &[])).await.code, 200);
}

#[test]
fn the_future_of_a_request_is_small() {
    let size = std::mem::size_of_val(&Rig::default().app().call(request("GET /x", &[])));
    // The future is copied once per request; a layer that keeps much state across an await increases it. The director's is boxed.
    let director = std::mem::size_of_val(&stub(request("GET /x", &[])));
    assert!(size < director + 1024 && size < 4096, "{size} bytes");
}

#[test]
fn invalid_settings_are_refused_at_start() {
    for origin in ["", "example.com", "^a", "a$", "("] {
        assert!(AllowedOrigins::new(&[origin.to_owned()]).is_err(), "{origin}");
    }
    assert!(hsts(&["max-age=x".to_owned()]).is_err());
    assert!(hsts(&[]).unwrap().is_none());
}
