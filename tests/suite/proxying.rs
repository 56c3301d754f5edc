//! Requests that reach a backend: identity headers, streams, responses.

use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use portico_tests::http::{FullResponse, JsonLines};
use portico_tests::objects::{API_SERVICES, available_condition, remote_api_service};
use portico_tests::{Backend, Behavior, Launch, Portico, WAIT_LIMIT, eventually, pki, wait_until};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::audit::{METADATA, lines, with_audit_log};

/// Starts a process with a route to this backend, and waits until it is available.
pub async fn routed(backend: &Backend) -> Portico {
    let portico = Portico::start().await;
    register(&portico, backend).await;
    portico
}

/// Registers the backend and waits until it is available.
pub async fn register(portico: &Portico, backend: &Backend) {
    let created = portico.admin().post(API_SERVICES, &backend.api_service()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    wait_for(portico, backend, "True").await;
    eventually("the backend answers", || async {
        let answer = portico.admin().get(&backend.path("")).await;
        if answer.status == 200 { Ok(()) } else { Err(answer.text()) }
    })
    .await;
}

/// Waits for the condition's status and returns its reason and message.
pub async fn wait_for(portico: &Portico, backend: &Backend, status: &str) -> (String, String) {
    let path = format!("{API_SERVICES}/{}", backend.name());
    eventually(&format!("{} is Available={status}", backend.name()), || async {
        let (is, reason, message) = available_condition(&portico.admin().get(&path).await.json());
        if is == status { Ok((reason, message)) } else { Err((is, reason, message)) }
    })
    .await
}

async fn get(portico: &Portico, path: &str, headers: &[(&str, &str)]) -> FullResponse {
    let mut request = Request::get(path);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    portico.anonymous().as_user("admin").fetch(request.body(Full::default()).unwrap()).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_arrives_as_it_was_sent_with_the_callers_identity() {
    let backend = Backend::start("echo.example.com").await;
    let portico = routed(&backend).await;
    let path = backend.path("/namespaces/x/flunders?b=1&a=2");
    let answer = portico.admin().request(Method::POST, &path, "application/json", "{\"a\":1}").await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = backend.last_request();
    assert_eq!(seen.method, Method::POST);
    assert_eq!(seen.body, Bytes::from_static(b"{\"a\":1}"));
    assert!(seen.target.starts_with(&backend.path("/namespaces/x/flunders?")), "{}", seen.target);
    assert_eq!(seen.all("x-remote-user"), ["admin"]);
    assert_eq!(seen.all("x-remote-uid"), ["uid-admin"]);
    assert_eq!(seen.all("x-remote-group"), ["system:masters", "system:authenticated"]);
    assert_eq!(seen.all("authorization"), Vec::<String>::new());
    assert_eq!(seen.all("x-forwarded-for"), ["127.0.0.1"]);
    assert_eq!(seen.all("x-forwarded-uri"), [backend.path("/namespaces/x/flunders")]);
    assert_eq!(seen.all("host"), [backend.address.to_string()]);
    assert_eq!(seen.all("audit-id").len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_cannot_forge_an_identity() {
    let backend = Backend::start("spoof.example.com").await;
    let portico = routed(&backend).await;
    let spoofs = [
        ("x-remote-user", "root"),
        ("X-Remote-Group", "everyone"),
        ("X-REMOTE-UID", "0"),
        ("X-Remote-Extra-Foo", "bar"),
        ("connection", "x-remote-user, x-remote-group, x-spoof"),
        ("x-spoof", "hop"),
        ("te", "gzip"),
    ];
    let answer = get(&portico, &backend.path("/flunders"), &spoofs).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = backend.last_request();
    assert_eq!(seen.all("x-remote-user"), ["admin"]);
    assert_eq!(seen.all("x-remote-group"), ["system:masters", "system:authenticated"]);
    assert_eq!(seen.all("x-remote-uid"), ["uid-admin"]);
    assert!(
        seen.headers.keys().all(|name| !name.as_str().starts_with("x-remote-extra")),
        "{:?}",
        seen.headers
    );
    assert!(seen.all("x-spoof").is_empty() && seen.all("te").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn impersonation_applies_to_proxied_requests() {
    let backend = Backend::start("impersonated.example.com").await;
    let portico = routed(&backend).await;
    let headers = [
        ("impersonate-user", "dora"),
        ("impersonate-group", "system:masters"),
        ("impersonate-extra-Team", "red"),
    ];
    let answer = get(&portico, &backend.path("/flunders"), &headers).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    let seen = backend.last_request();
    assert_eq!(seen.all("x-remote-user"), ["dora"]);
    assert_eq!(seen.all("x-remote-extra-team"), ["red"]);
    assert!(seen.headers.keys().all(|name| !name.as_str().starts_with("impersonate")), "{:?}", seen.headers);
    assert!(seen.all("x-remote-uid").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn authorization_precedes_the_backend() {
    let backend = Backend::start("asked.example.com").await;
    let portico = routed(&backend).await;
    let alice = portico.anonymous().as_user("alice");
    alice.get(&backend.path("/flunders")).await.status_body(403, "Forbidden");
    assert!(backend.requests().is_empty());
    assert_eq!(alice.get(&backend.path("")).await.status, 200, "every authenticated user may read discovery");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_certificate_names_the_user() {
    let backend = Backend::start("cert.example.com").await;
    let (launch, folder) = Launch::new().prepare_folder();
    let authority = pki::Authority::new("clients");
    let ca = folder.join("clients.crt");
    std::fs::write(&ca, &authority.pem).unwrap();
    let portico = launch.args(&["--client-ca-file", ca.to_str().unwrap()]).start().await;
    register(&portico, &backend).await;
    let eve = portico.with_certificate(&authority.client("eve", &["system:masters"]));
    assert_eq!(eve.get(&backend.path("/flunders")).await.status, 200);
    let seen = backend.last_request();
    assert_eq!(seen.all("x-remote-user"), ["eve"]);
    let rogue = portico.with_certificate(&pki::Authority::new("clients").client("eve", &["system:masters"]));
    rogue.get(&backend.path("/flunders")).await.status_body(401, "Unauthorized");
    let token_wins = rogue.as_user("admin").get(&backend.path("/flunders")).await;
    assert_eq!(token_wins.status, 200, "a bad certificate beside a good token is the token's user");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_arrives_piece_by_piece() {
    let backend = Backend::start("stream.example.com").await;
    let portico = routed(&backend).await;
    let request = Request::get(backend.path("/flunders/stream?watch=1")).body(Full::default()).unwrap();
    let answer = portico.admin().send(request).await.unwrap();
    assert_eq!(answer.status(), 200);
    let mut lines = JsonLines::new(answer.into_body());
    assert_eq!(lines.next().await, Some(json!({"ready": true})));
    for n in 0..3 {
        assert!(backend.push_to_streams(&format!("{{\"n\":{n}}}\n")));
        // The next chunk is sent only after this one has arrived.
        assert_eq!(lines.next().await, Some(json!({"n": n})));
    }
    drop(lines);
    eventually("the backend notices that the client has disconnected", || async {
        if backend.push_to_streams("{}\n") { Err("a client still reads") } else { Ok(()) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_bodies_pass_completely_in_both_directions() {
    let backend = Backend::start("large.example.com").await;
    let portico = routed(&backend).await;
    let big = portico.admin().get(&backend.path("/flunders/big")).await;
    assert_eq!(big.body.len(), 8 << 20);
    let body = vec![b'y'; 5 << 20];
    let answer = portico.admin().request(Method::POST, &backend.path("/flunders"), "text/plain", body).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
    assert_eq!(backend.last_request().body.len(), 5 << 20, "the limit on bodies is for local objects");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upgraded_connection_carries_bytes_both_ways_and_the_identity() {
    let backend = Backend::start("upgrade.example.com").await;
    let (launch, log) = with_audit_log(Launch::new(), METADATA);
    let portico = launch.start().await;
    register(&portico, &backend).await;
    let mut stream = portico.anonymous().dial().await.unwrap();
    let head = format!(
        "GET {} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer admin-token\r\nX-Remote-User: root\r\n\
         Connection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n\
         Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
        backend.path("/namespaces/x/flunders/y/exec")
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut read = Vec::new();
    while !read.ends_with(b"\r\n\r\n") {
        read.push(tokio::time::timeout(WAIT_LIMIT, stream.read_u8()).await.unwrap().unwrap());
    }
    let answer = String::from_utf8(read).unwrap();
    assert!(answer.starts_with("HTTP/1.1 101 "), "{answer}");
    for message in ["hello", "again"] {
        stream.write_all(message.as_bytes()).await.unwrap();
        let mut echoed = [0; 5];
        tokio::time::timeout(WAIT_LIMIT, stream.read_exact(&mut echoed)).await.unwrap().unwrap();
        assert_eq!(echoed, message.as_bytes());
    }
    assert_eq!(backend.last_request().all("x-remote-user"), ["admin"]);
    let ended = || {
        lines(&log)
            .iter()
            .any(|e| e["objectRef"]["subresource"] == "exec" && e["stage"] == "ResponseComplete")
    };
    assert!(!ended(), "the event is complete when the connection ends");
    drop(stream);
    wait_until("the end of the connection is recorded", || std::future::ready(ended())).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn responses_are_forwarded_except_for_redirects() {
    let backend = Backend::start("says.example.com").await;
    let portico = routed(&backend).await;
    for code in [201, 404, 418, 500] {
        backend.set_behavior(Behavior::Code(code));
        let answer = portico.admin().get(&backend.path("/flunders")).await;
        assert_eq!(answer.status.as_u16(), code);
        assert!(answer.text().contains("the backend says"), "{}", answer.text());
    }
    backend.set_behavior(Behavior::Redirect);
    let answer = portico.admin().get(&backend.path("/flunders")).await;
    assert_eq!(answer.status, 502, "redirects are not followed and not passed on");
    assert!(answer.header("location").is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_name_service_resolves_to_its_host() {
    let backend = Backend::start("named.example.com").await;
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin
        .post(API_SERVICES, &remote_api_service("named.example.com", &backend.ca, backend.address.port()))
        .await;
    let (reason, _) = wait_for(&portico, &backend, "False").await;
    assert_eq!(reason, "ServiceNotFound");
    let service = json!({"kind": "Service", "metadata": {"name": "backend"}, "spec": {"type": "ExternalName", "externalName": "localhost"}});
    let created = admin.post("/api/v1/namespaces/default/services", &service).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let (reason, _) = wait_for(&portico, &backend, "True").await;
    assert_eq!(reason, "Passed");
    let answer = admin.get(&backend.path("/flunders")).await;
    assert_eq!(answer.status, 200, "{}", answer.text());
}

#[tokio::test(flavor = "multi_thread")]
async fn endpoints_of_a_service_are_dialed_and_updated() {
    let Some(backend) = Backend::on_own_address("slices.example.com").await else { return };
    let portico = Portico::start().await;
    let admin = portico.admin();
    admin.post(API_SERVICES, &remote_api_service("slices.example.com", &backend.ca, 443)).await;
    let service = json!({"kind": "Service", "metadata": {"name": "backend"}, "spec": {"ports": [{"port": 443, "name": "https"}]}});
    let created = admin.post("/api/v1/namespaces/default/services", &service).await;
    assert_eq!(created.status, 201, "{}", created.text());
    let (reason, _) = wait_for(&portico, &backend, "False").await;
    assert!(["EndpointsNotFound", "ServiceNotFound"].contains(&reason.as_str()), "{reason}");
    let slice = json!({"kind": "EndpointSlice", "metadata": {"name": "b", "labels": {"kubernetes.io/service-name": "backend"}},
        "addressType": "IPv4", "endpoints": [{"addresses": [backend.address.ip()]}],
        "ports": [{"name": "https", "port": backend.address.port()}]});
    let created = admin.post("/apis/discovery.k8s.io/v1/namespaces/default/endpointslices", &slice).await;
    assert_eq!(created.status, 201, "{}", created.text());
    wait_for(&portico, &backend, "True").await;
    assert_eq!(admin.get(&backend.path("/flunders")).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_api_service_is_not_served() {
    let backend = Backend::start("deleted.example.com").await;
    let portico = routed(&backend).await;
    portico.admin().delete(&format!("{API_SERVICES}/{}", backend.name())).await;
    eventually("the path is no longer served", || async {
        let answer = portico.admin().get(&backend.path("/flunders")).await;
        if answer.status == 404 { Ok(()) } else { Err(answer.status) }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_upload_that_is_cut_or_malformed_does_not_reach_the_backend() {
    let backend = Backend::start("cut.example.com").await;
    let portico = routed(&backend).await;
    let before = backend.requests().len();
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer admin-token\r\n",
        backend.path("/flunders")
    );
    let chunked = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
    for (request, code, words) in [
        (format!("{head}Content-Length: 11\r\n\r\nhello"), 503, "ended before it was complete"),
        (chunked.clone(), 503, "ended before it was complete"),
        (format!("{chunked}5\r\nhello\r\n"), 503, "ended before it was complete"),
        (format!("{chunked}5\r\nhel"), 503, "ended before it was complete"),
        (format!("{chunked}5\r\nhello\r\n0x0\r\n\r\n"), 400, "not chunked as HTTP/1.1 wants it"),
        (
            format!("{chunked}fffffffffffffffff\r\nhello\r\n0\r\n\r\n"),
            400,
            "not chunked as HTTP/1.1 wants it",
        ),
        (format!("{chunked}5\r\nhello0\r\n\r\n"), 400, "not chunked as HTTP/1.1 wants it"),
    ] {
        let mut stream = portico.anonymous().dial().await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        let reading = tokio::time::timeout(WAIT_LIMIT, stream.read_to_end(&mut answer)).await;
        reading.expect("the deadline is not waited for").unwrap();
        let answer = String::from_utf8(answer).unwrap();
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {code} ")) && answer.contains(words),
            "{request:?}: {answer}"
        );
    }
    let last = portico.admin().request(Method::POST, &backend.path("/flunders"), "text/plain", "whole").await;
    assert_eq!(last.status, 200, "{}", last.text());
    let bodies: Vec<Bytes> = backend.requests().drain(before..).map(|seen| seen.body).collect();
    assert_eq!(bodies, ["whole"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_ca_bundle_may_be_the_backends_certificate_itself() {
    let names = [portico_tests::SERVER_NAME];
    for (group, pair) in [
        ("another.example.com", pki::Authority::new("another").server(&names)),
        ("itself.example.com", pki::self_signed(&names)),
    ] {
        // The probe, discovery and a request each dial separately.
        let backend = Backend::with_self_signed(group, &pair).await;
        let portico = routed(&backend).await;
        let answer = portico.admin().get(&backend.path("/flunders")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxied_page_contains_no_markup_of_the_caller() {
    let backend = Backend::start("markup.example.com").await;
    let portico = routed(&backend).await;
    let proxy = "/api/v1/namespaces/default/services/https:backend:443/proxy";
    for below in [
        "//%22%3E%3Cscript%3Ealert(1)%3C/script%3E//page.html",
        "/./%22%3E%3Cimg%20src=x%3E/page.html",
        "/a//b/page.html",
    ] {
        let page = portico.admin().get(&format!("{proxy}{below}")).await;
        assert_eq!(
            page.text(),
            format!("<a href=\"{proxy}/next\">next</a><a href=\"near\">near</a>"),
            "{below}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn lack_of_file_descriptors_does_not_open_a_circuit() {
    let backend = Backend::start("descriptors.example.com").await;
    let portico = Portico::start().await;
    let created = portico.admin().post(API_SERVICES, &backend.api_service()).await;
    assert_eq!(created.status, 201, "{}", created.text());
    wait_for(&portico, &backend, "True").await;
    // The proxy has not dialed it yet, and no further connection is accepted from here on.
    let connection = tokio::sync::Mutex::new(portico.admin().connect().await.unwrap());
    let path = backend.path("/flunders");
    let get = || async { connection.lock().await.get(&path).await.unwrap() };
    assert_eq!(connection.lock().await.get("/readyz").await.unwrap().status, 200);
    let limit = portico.exhaust_files();
    eventually("the route is served, and its backend cannot be dialed", || async {
        let text = get().await.text();
        if text.contains("too many open files") { Ok(()) } else { Err(text) }
    })
    .await;
    // More attempts than needed to open a circuit.
    for _ in 0..10 {
        let begin = std::time::Instant::now();
        let answer = get().await;
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
        answer.status_body(503, "ServiceUnavailable");
        assert!(answer.text().contains("too many open files"), "{}", answer.text());
    }
    portico.limit_files(limit);
    let answer = get().await;
    assert_eq!(answer.status, 200, "no circuit is open: {}", answer.text());
    assert_eq!(portico.admin().get("/readyz").await.status, 200);
}
