//! Mirrors of backends: the requests that are copied, and independence of requests from the mirror.

use std::process::Command;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::Request;
use http_body_util::Full;
use portico_tests::backend::{Backend, Behavior, SERVER_NAME};
use portico_tests::objects::API_SERVICES;
use portico_tests::tools::output;
use portico_tests::{Launch, Portico, binary, wait_until};
use serde_json::{Value, json};

const GROUP: &str = "mirrored.example.com";
const PATH: &str = "/apis/mirrored.example.com/v1/flunders";

/// Returns the APIService of this backend, which trusts both CAs, with these annotations for its mirror.
fn service(backend: &Backend, mirror: &Backend, annotations: &[(&str, &str)]) -> Value {
    let mut object = backend.api_service();
    object["spec"]["caBundle"] = json!(STANDARD.encode(format!("{}\n{}", backend.ca, mirror.ca)));
    let object_annotations = &mut object["metadata"]["annotations"];
    object_annotations["portico.dev/backend-mirror"] = json!(mirror.url());
    object_annotations["portico.dev/backend-mirror-server-name"] = json!(SERVER_NAME);
    for (key, value) in annotations {
        object_annotations[format!("portico.dev/backend-mirror{key}")] = json!(value);
    }
    object
}

/// Creates this APIService, and waits until it is served.
async fn serve(portico: &Portico, object: &Value) {
    let created = portico.admin().post(API_SERVICES, object).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let discovery = "/apis/mirrored.example.com/v1";
    wait_until("the API is served", async || portico.admin().get(discovery).await.status == 200).await;
}

/// Returns the value of this metric.
async fn metric(portico: &Portico, result: &str) -> f64 {
    let text = portico.admin().get("/metrics").await.text();
    let line = format!("portico_proxy_mirrored_requests_total{{result=\"{result}\"}}");
    let value = text.lines().find_map(|found| found.strip_prefix(&*line)).map(str::trim);
    value.map_or(0.0, |value| value.parse().unwrap())
}

fn explained(portico: &Portico) -> String {
    let mut command = Command::new(binary());
    command.args(["explain", "v1.mirrored.example.com"]);
    command.env("KUBECONFIG", portico.data().join("admin.kubeconfig"));
    String::from_utf8(output(&mut command).stdout).unwrap()
}

/// Returns the number of requests for objects, without the checks whether the API is served.
fn copies(mirror: &Backend) -> usize {
    mirror.requests().iter().filter(|seen| seen.target.starts_with(PATH)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_share_of_reads_is_copied_with_the_identity() {
    let portico = Portico::start().await;
    let (backend, mirror) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    serve(&portico, &service(&backend, &mirror, &[("-percent", "50")])).await;
    for _ in 0..20 {
        assert_eq!(portico.admin().get(PATH).await.status, 200);
        assert_eq!(portico.admin().post(PATH, &json!({"kind": "Flunder"})).await.status, 200);
    }
    wait_until("half of the reads are copied", async || copies(&mirror) == 10).await;
    let seen = mirror.last_request();
    assert_eq!((seen.method.as_str(), &*seen.target), ("GET", PATH));
    assert_eq!(seen.all("x-remote-user"), backend.last_request().all("x-remote-user"));
    assert_eq!(seen.all("portico-mirrored"), ["true"]);
    assert!(backend.last_request().all("portico-mirrored").is_empty());
    wait_until("Explain reports the copies", async || {
        explained(&portico).contains(" sent, 0 dropped, 0 failed")
    })
    .await;
    let text = explained(&portico);
    assert!(text.contains(&format!("50% of reads copied to {}", mirror.address)), "{text}");
    assert!(metric(&portico, "sent").await >= 10.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_with_short_bodies_are_copied() {
    let portico = Portico::start().await;
    let (backend, mirror) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    serve(&portico, &service(&backend, &mirror, &[("-max-body-bytes", "100")])).await;
    let short = json!({"kind": "Flunder", "metadata": {"name": "short"}});
    assert_eq!(portico.admin().post(PATH, &short).await.status, 200);
    wait_until("the request is copied", async || copies(&mirror) == 1).await;
    assert_eq!(mirror.last_request().body, short.to_string());
    let long = json!({"kind": "Flunder", "metadata": {"name": "x".repeat(100)}});
    assert_eq!(portico.admin().post(PATH, &long).await.status, 200);
    assert_eq!(backend.last_request().body, long.to_string());
    assert_eq!((metric(&portico, "dropped").await, copies(&mirror)), (1.0, 1));
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_do_not_wait_for_a_mirror_and_excess_copies_are_dropped() {
    let flags = ["--backend-max-mirrored-requests", "2", "--backend-mirror-timeout", "10s"];
    let portico = Launch::new().args(&flags).start().await;
    let (backend, mut mirror) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    serve(&portico, &service(&backend, &mirror, &[])).await;
    mirror.set_behavior(Behavior::Hang);
    // More copies than may wait are dropped: requests that waited for the mirror would never be this many at a time.
    for _ in 0..10 {
        assert_eq!(portico.admin().get(PATH).await.status, 200);
    }
    assert!(metric(&portico, "dropped").await >= 1.0);
    wait_until("the copies in flight have failed", async || metric(&portico, "failed").await >= 2.0).await;
    mirror.stop().await;
    assert_eq!(portico.admin().get(PATH).await.status, 200);
    wait_until("Explain reports the cause of the failures", async || {
        explained(&portico).contains("cannot connect to")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unverified_mirror_gets_no_identity() {
    let portico = Portico::start().await;
    let (backend, mirror) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    let mut object = service(&backend, &mirror, &[]);
    let spec = object["spec"].as_object_mut().unwrap();
    spec.remove("caBundle");
    spec.insert("insecureSkipTLSVerify".to_owned(), json!(true));
    serve(&portico, &object).await;
    let request = Request::get(PATH).header("cookie", "session=one").header("x-forwarded-for", "192.0.2.1");
    let answer = portico.admin().fetch(request.body(Full::default()).unwrap()).await.unwrap();
    assert_eq!(answer.status, 200);
    wait_until("the request is copied", async || copies(&mirror) == 1).await;
    let names: Vec<String> = mirror.last_request().headers.keys().map(ToString::to_string).collect();
    let is_identity = |name: &String| {
        name.starts_with("x-remote-") || ["cookie", "x-forwarded-for", "audit-id"].contains(&name.as_str())
    };
    assert!(!names.iter().any(is_identity), "{names:?}");
    assert_eq!(backend.last_request().all("cookie"), ["session=one"]);
    assert!(!backend.last_request().all("x-remote-user").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_with_another_server_name_gets_no_requests() {
    let portico = Portico::start().await;
    let (backend, mirror) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    serve(&portico, &service(&backend, &mirror, &[("-server-name", "another.example.com")])).await;
    assert_eq!(portico.admin().get(PATH).await.status, 200);
    wait_until("the copy has failed", async || metric(&portico, "failed").await >= 1.0).await;
    assert_eq!(copies(&mirror), 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mirror_may_be_a_service_created_later() {
    let portico = Portico::start().await;
    let backend = Backend::start(GROUP).await;
    let mirror = Backend::with_names(GROUP, &["next.default.svc"]).await;
    let port = mirror.address.port();
    let host = format!("https://next.default.svc:{port}");
    let object = service(&backend, &mirror, &[("", &host), ("-server-name", "next.default.svc")]);
    serve(&portico, &object).await;
    assert_eq!(portico.admin().get(PATH).await.status, 200);
    assert!(explained(&portico).contains("which has no address"));
    let next = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "next"},
        "spec": {"type": "ExternalName", "externalName": "localhost", "ports": [{"port": port}]},
    });
    let services = "/api/v1/namespaces/default/services";
    assert_eq!(portico.admin().post(services, &next).await.status, 201);
    wait_until("copies arrive", async || {
        portico.admin().get(PATH).await.status == 200 && copies(&mirror) > 0
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invalid_mirror_is_refused() {
    let portico = Portico::start().await;
    let (backend, mirror) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    for (key, value, why) in [
        ("", "http://10.0.0.1", "is not https://"),
        ("", "https://169.254.169.254", "link-local"),
        ("-percent", "0", "must be a number from 1 to 100"),
        ("-max-body-bytes", "2000000", "must be a number from 0 to 1048576"),
    ] {
        let refused = portico.admin().post(API_SERVICES, &service(&backend, &mirror, &[(key, value)])).await;
        let message = refused.status_body(422, "Invalid")["message"].to_string();
        assert!(
            message.contains(&format!("portico.dev/backend-mirror{key}")) && message.contains(why),
            "{message}"
        );
    }
}

/// Starts a server with a backend and its mirror, both over HTTP/2.
async fn over_http2(flags: &[&str], annotations: &[(&str, &str)]) -> (Portico, Backend, Backend) {
    let portico = Launch::new().args(flags).start().await;
    let (backend, mirror) = (Backend::over_http2(GROUP).await, Backend::over_http2(GROUP).await);
    let mut object = service(&backend, &mirror, annotations);
    object["metadata"]["annotations"]["portico.dev/backend-protocol"] = json!("h2");
    serve(&portico, &object).await;
    (portico, backend, mirror)
}

#[tokio::test(flavor = "multi_thread")]
async fn reads_and_whole_bodies_are_copied_over_http2() {
    let (portico, backend, mirror) = over_http2(&[], &[("-max-body-bytes", "1000000")]).await;
    for _ in 0..5 {
        assert_eq!(portico.admin().get(PATH).await.status, 200);
    }
    wait_until("reads are copied", async || copies(&mirror) == 5).await;
    let seen = mirror.last_request();
    assert_eq!(seen.all("x-remote-user"), backend.last_request().all("x-remote-user"));
    assert_eq!((seen.all("portico-mirrored"), seen.all("host").len()), (vec!["true".to_owned()], 0));
    // Longer than a window of flow control.
    let body = json!({"kind": "Flunder", "data": "x".repeat(900_000)});
    assert_eq!(portico.admin().post(PATH, &body).await.status, 200);
    wait_until("the write is copied", async || copies(&mirror) == 6).await;
    assert_eq!(mirror.last_request().body, body.to_string());
    assert_eq!(mirror.last_request().body, backend.last_request().body);
    let long = json!({"kind": "Flunder", "data": "x".repeat(1_000_001)});
    assert_eq!(portico.admin().post(PATH, &long).await.status, 200);
    assert_eq!(backend.last_request().body, long.to_string());
    wait_until("the long body is counted as dropped", async || metric(&portico, "dropped").await >= 1.0)
        .await;
    assert_eq!(copies(&mirror), 6);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_with_declared_length_is_copied_before_its_end_frame() {
    use portico_tests::http2::{DATA, END_HEADERS, END_STREAM, HEADERS, frame, literal, open};
    use tokio::io::AsyncWriteExt;
    let portico = Portico::start().await;
    let (backend, mirror) = (Backend::start(GROUP).await, Backend::start(GROUP).await);
    serve(&portico, &service(&backend, &mirror, &[("-max-body-bytes", "1000")])).await;
    let body = br#"{"kind": "Flunder"}"#;
    let (mut frames, mut sink) = open(&portico.admin(), &[]).await.unwrap();
    let pairs = [
        (":method", "POST"),
        (":scheme", "https"),
        (":authority", "portico"),
        (":path", PATH),
        ("content-type", "application/json"),
        ("content-length", "19"),
        ("authorization", "Bearer admin-token"),
    ];
    let head: Vec<u8> = pairs.into_iter().flat_map(|(name, value)| literal(name, value)).collect();
    sink.write_all(&frame(HEADERS, END_HEADERS, 1, &head)).await.unwrap();
    sink.write_all(&frame(DATA, 0, 1, body)).await.unwrap();
    sink.flush().await.unwrap();
    wait_until("the backend has received the whole body", async || {
        backend.requests().last().is_some_and(|seen| *seen.body == body[..])
    })
    .await;
    sink.write_all(&frame(DATA, END_STREAM, 1, b"")).await.unwrap();
    sink.flush().await.unwrap();
    while frames.next().await.is_some_and(|frame| frame.kind != HEADERS) {}
    wait_until("the request is copied", async || {
        mirror.requests().last().is_some_and(|seen| *seen.body == body[..])
    })
    .await;
    assert_eq!(metric(&portico, "dropped").await, 0.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_failing_and_dead_http2_mirrors_delay_no_request() {
    let flags = ["--backend-max-mirrored-requests", "4", "--backend-mirror-timeout", "10s"];
    let (portico, backend, mut mirror) = over_http2(&flags, &[("-max-body-bytes", "1000")]).await;
    let write = json!({"kind": "Flunder"});
    let send = async |requests: usize| {
        for _ in 0..requests {
            assert_eq!(portico.admin().get(PATH).await.status, 200);
            assert_eq!(portico.admin().post(PATH, &write).await.status, 200);
        }
    };
    // The mirror accepts requests and never responds: as many as may wait are sent, others dropped.
    mirror.set_behavior(Behavior::Hang);
    send(10).await;
    assert!(metric(&portico, "dropped").await >= 1.0);
    wait_until("the copies in flight have failed", async || metric(&portico, "failed").await >= 4.0).await;
    // Earlier copies do not block the mirror.
    mirror.set_behavior(Behavior::Normal);
    let arrived = copies(&mirror);
    wait_until("copies arrive again", async || {
        send(1).await;
        copies(&mirror) > arrived
    })
    .await;
    // The mirror resets every request.
    mirror.set_behavior(Behavior::Drop);
    let failed = metric(&portico, "failed").await;
    wait_until("the reset copy is counted as failed", async || {
        send(1).await;
        metric(&portico, "failed").await > failed
    })
    .await;
    // The mirror stops, and starts again.
    mirror.stop().await;
    send(2).await;
    wait_until("Explain reports the cause of the failures", async || {
        send(1).await;
        explained(&portico).contains("cannot connect to")
    })
    .await;
    mirror.set_behavior(Behavior::Normal);
    mirror.resume().await;
    let arrived = copies(&mirror);
    wait_until("copies arrive again", async || {
        send(1).await;
        copies(&mirror) > arrived
    })
    .await;
    assert!(backend.requests().len() >= 30);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_overlong_response_of_a_mirror_ends_only_its_stream() {
    let (portico, _backend, mirror) = over_http2(&[], &[]).await;
    let big = "/apis/mirrored.example.com/v1/big";
    for _ in 0..4 {
        let answer = portico.admin().get(big).await;
        assert_eq!((answer.status.as_u16(), answer.body.len()), (200, 8 << 20));
    }
    assert_eq!(portico.admin().get(PATH).await.status, 200);
    wait_until("every request is copied", async || {
        copies(&mirror) == 1 && metric(&portico, "sent").await >= 5.0
    })
    .await;
    assert_eq!((metric(&portico, "failed").await, metric(&portico, "dropped").await), (0.0, 0.0));
}
