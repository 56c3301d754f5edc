//! Control service and facades as separate processes: operation during an outage of the control service.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use portico_kit::tasks::TaskSet;
use portico_tests::http::Http;
use portico_tests::objects::{API_SERVICES, local_api_service};
use portico_tests::{Backend, Launch, Portico, eventually, wait_until};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

/// Registers a backend through one facade and waits until every facade serves it.
async fn served_by_all(facades: &[&Portico], backend: &Backend) {
    let created = facades[0].admin().post(API_SERVICES, &backend.api_service()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    for facade in facades {
        eventually("the facade routes to the backend", || async {
            let answer = facade.admin().get(&backend.path("/flunders")).await;
            if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
        })
        .await;
    }
}

async fn has_group(http: &Http, group: &str) -> Result<(), String> {
    let text = http.get("/apis").await.text();
    if text.contains(group) { Ok(()) } else { Err(text) }
}

#[tokio::test(flavor = "multi_thread")]
async fn facades_survive_an_outage_and_get_later_changes() {
    let backend = Backend::start("split.example.com").await;
    let mut server = Launch::server().start().await;
    assert_eq!(server.halves(), (false, true), "a server has no HTTPS");
    let first = Launch::facade(&server).start().await;
    let second = Launch::facade(&server).start().await;
    assert_eq!(first.halves(), (true, false), "a facade has no gRPC");
    served_by_all(&[&first, &second], &backend).await;

    server.kill();
    for facade in [&first, &second] {
        let admin = facade.admin();
        for _ in 0..5 {
            assert_eq!(admin.get(&backend.path("/flunders")).await.status, 200, "routes stay");
        }
        has_group(&admin, "split.example.com").await.unwrap();
        assert_eq!(admin.get(&backend.path("")).await.status, 200);
        assert_eq!(admin.get("/openapi/v3").await.status, 200);
        let refused = admin.get(API_SERVICES).await.status_body(503, "ServiceUnavailable");
        assert!(refused.to_string().contains("ControlServiceUnavailable"), "{refused}");
        let write = admin.post(API_SERVICES, &local_api_service("away.example.com")).await;
        write.status_body(503, "ServiceUnavailable");
        assert_eq!(admin.get("/readyz").await.status, 200, "a facade with a valid state is ready");
    }

    server.restart().await;
    let created = eventually("the facade reaches the control service again", || async {
        let answer = first.admin().post(API_SERVICES, &local_api_service("back.example.com")).await;
        if answer.status == 201 { Ok(()) } else { Err(answer.text()) }
    });
    created.await;
    for facade in [&first, &second] {
        let admin = facade.admin();
        eventually("the facade serves the new group", || has_group(&admin, "back.example.com")).await;
    }
}

/// Returns an error unless a facade's saved state contains this text.
fn mentions(facade: &Portico, words: &str) -> Result<(), String> {
    let state = std::fs::read(facade.data().join("facade-state/state")).map_err(|error| error.to_string())?;
    let is_contained = state.windows(words.len()).any(|part| part == words.as_bytes());
    is_contained.then_some(()).ok_or_else(|| format!("the state does not contain {words}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_facade_starts_from_its_state_without_a_control_service() {
    let backend = Backend::start("static.example.com").await;
    let mut server = Launch::server().start().await;
    let mut facade = Launch::facade(&server).start().await;
    served_by_all(&[&facade], &backend).await;
    // The state is saved after the response, completely: once it contains a later change, it contains all earlier ones.
    let later = facade.admin().post(API_SERVICES, &local_api_service("later.example.com")).await;
    assert_eq!(later.status, 201, "{}", later.text());
    eventually("the state is on disk", || std::future::ready(mentions(&facade, "later.example.com"))).await;
    server.kill();
    facade.kill();
    facade.restart().await;
    let admin = facade.admin();
    assert_eq!(
        admin.get(&backend.path("/flunders")).await.status,
        200,
        "the facade routes from its saved state"
    );
    has_group(&admin, "static.example.com").await.unwrap();
    assert_eq!(admin.get("/readyz").await.status, 200);
    let verbose = admin.get("/readyz?verbose").await.text();
    assert!(
        verbose.contains("stale") || verbose.contains("control service"),
        "the readiness check reports the lost control service: {verbose}"
    );
    server.restart().await;
    eventually("the facade serves again", || async {
        let answer = admin.get(API_SERVICES).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_facade_without_state_is_not_ready_and_returns_503() {
    let mut server = Launch::server().start().await;
    let facade = Launch::facade(&server);
    server.kill();
    let (facade, folder) = facade.args(&["--secure-port", "0"]).prepare_folder();
    let mut facade = facade.spawn();
    portico_tests::process::pause(Duration::from_secs(1)).await;
    assert!(facade.is_running(), "the facade waits: {}", facade.log());
    assert!(!folder.join("addresses.json").exists(), "the facade is not ready");
    server.restart().await;
    facade.wait_ready().await;
    let request = || http::Request::get(API_SERVICES).body(Default::default()).unwrap();
    eventually("the facade serves with a certificate of the internal CA", || async {
        let answer = facade.admin().fetch(request()).await.map_err(|e| e.to_string())?;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

/// A wire to a server whose first connections are accepted and never answered.
struct InitiallySilent {
    address: SocketAddr,
    /// Number of the first connection that is forwarded.
    forwarded_from: Arc<AtomicUsize>,
    /// Number of accepted connections.
    accepted: Arc<AtomicUsize>,
    _tasks: TaskSet,
}

impl InitiallySilent {
    async fn to(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (forwarded_from, accepted) =
            (Arc::new(AtomicUsize::new(usize::MAX)), Arc::new(AtomicUsize::new(0)));
        let (tasks, from, count) = (TaskSet::new(), forwarded_from.clone(), accepted.clone());
        let passing = tasks.clone();
        tasks.spawn_until_cancelled("silent-at-first", async move {
            let mut silent_connections = Vec::new();
            while let Ok((mut near, _)) = listener.accept().await {
                if count.fetch_add(1, Ordering::SeqCst) < from.load(Ordering::SeqCst) {
                    silent_connections.push(near);
                    continue;
                }
                passing.spawn_until_cancelled("passed-on", async move {
                    let mut far = TcpStream::connect(server).await.unwrap();
                    // Either side may end it.
                    let _ended = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                });
            }
        });
        Self { address, forwarded_from, accepted, _tasks: tasks }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unanswered_connection_is_replaced() {
    let server = Launch::server().start().await;
    let relay = InitiallySilent::to(server.grpc()).await;
    let text = std::fs::read_to_string(server.data().join("facade.kubeconfig")).unwrap();
    let kubeconfig = server.folder().join("through.kubeconfig");
    let through = text.replace(&server.grpc().to_string(), &relay.address.to_string());
    assert_ne!(through, text);
    std::fs::write(&kubeconfig, through).unwrap();
    let mut facade = Launch::facade_with_kubeconfig(&kubeconfig).spawn();
    wait_until("the facade has dialed the control service", async || {
        relay.accepted.load(Ordering::SeqCst) > 0
    })
    .await;
    relay.forwarded_from.store(relay.accepted.load(Ordering::SeqCst), Ordering::SeqCst);
    facade.wait_ready().await;
    let request = || http::Request::get(API_SERVICES).body(Default::default()).unwrap();
    eventually("the facade serves with a certificate that was signed for it", || async {
        let answer = facade.admin().fetch(request()).await.map_err(|e| e.to_string())?;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_control_service_lists_its_facades() {
    let server = Launch::server().start().await;
    let facade = Launch::facade(&server).start().await;
    let control = server.control();
    let listed = eventually("the facade is listed and current", || async {
        let request = portico_proto::config::FacadesRequest::default();
        let answer = control.config().facades(request).await.map_err(|e| e.to_string())?.into_inner();
        if answer.facades.len() == 1 { Ok(answer) } else { Err(format!("{answer:?}")) }
    })
    .await;
    assert!(!listed.facades[0].name.is_empty());
    drop(facade);
    eventually("the stopped facade is no longer listed", || async {
        let request = portico_proto::config::FacadesRequest::default();
        let answer = control.config().facades(request).await.map_err(|e| e.to_string())?.into_inner();
        if answer.facades.is_empty() { Ok(()) } else { Err(format!("{answer:?}")) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_of_a_facade_keep_their_identity_at_the_control_service() {
    let server = Launch::server().start().await;
    let facade = Launch::facade(&server).start().await;
    let alice = facade.anonymous().as_user("alice");
    let refused = alice.get(API_SERVICES).await.status_body(403, "Forbidden");
    assert!(refused["message"].as_str().unwrap().contains("\"alice\""), "{refused}");
    let path = "/api/v1/namespaces/default/configmaps";
    let made = facade
        .admin()
        .post(path, &json!({"kind": "ConfigMap", "metadata": {"name": "over-two-processes"}}))
        .await;
    assert_eq!(made.status, 201, "{}", made.text());
    let list = portico_proto::apiregistration::ListRequest::default();
    let refused = server.control_as("alice").api_services().list(list).await.unwrap_err();
    assert_eq!(refused.code(), tonic::Code::PermissionDenied);
}

#[tokio::test(flavor = "multi_thread")]
async fn stalled_clients_do_not_block_the_control_connection() {
    let server = Launch::server().start().await;
    let facade = Launch::facade(&server).arg("--stalled-write-timeout=1h").start().await;
    let admin = facade.admin();
    let maps = "/api/v1/namespaces/default/configmaps";
    for n in 0..60 {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": format!("large-{n}")},
            "data": {"k": "x".repeat(500_000)}});
        assert_eq!(admin.post(maps, &map).await.status, 201);
    }
    let mut unread = Vec::new();
    for _ in 0..8 {
        let request = http::Request::get(maps).body(http_body_util::Full::default()).unwrap();
        unread.push(admin.send(request).await.unwrap());
    }
    assert_eq!(admin.get(&format!("{maps}/large-0")).await.status, 200);
}
