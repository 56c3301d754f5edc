//! Endpoints of the facade itself, over both protocols.

use http::Method;
use portico_proto::convert::PayloadKind;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::backend::issue;
use super::client::Client;
use super::control::ScriptedControl;
use super::rig::{Rig, WAIT_TIMEOUT, check, eventually, removal, served};

#[tokio::test]
async fn a_facade_without_configuration_is_alive_not_ready_and_responds_503_to_unknown_paths() {
    let control = ScriptedControl::new(Vec::new());
    control.set_away(true);
    let rig = Rig::with_settings(control, |_| {}).await;
    assert_eq!(rig.client.get("/livez").await.text, "ok");
    let ready = rig.client.get("/readyz").await;
    assert_eq!(ready.code, 500);
    assert!(ready.text.contains("[-]informer-sync failed: reason withheld\n"), "{}", ready.text);
    let early = rig.client.get("/apis/g/v1/things").await;
    assert_eq!((early.code, early.header("retry-after")), (503, "5"));
    assert!(early.text.contains("before all known HTTP paths have been installed"), "{}", early.text);
    rig.control.set_away(false);
    let rig = rig.until_configured().await;
    assert_eq!(rig.client.get("/readyz").await.text, "ok");
    let after_start = rig.client.get("/apis/g/v1/things").await;
    assert_eq!((after_start.code, after_start.text.as_str()), (404, "404 page not found\n"));
    assert_eq!(after_start.header("content-type"), "text/plain; charset=utf-8");
}

#[tokio::test]
async fn the_control_services_checks_appear_under_their_own_names() {
    let rig =
        Rig::start(vec![check("poststarthook/rbac/bootstrap-roles", true)]).await.until_configured().await;
    let verbose = rig.client.get("/readyz?verbose").await;
    let want = "[+]ping ok\n[+]log ok\n[+]informer-sync ok\n[+]poststarthook/priority-and-fairness-filter ok\n\
        [+]poststarthook/priority-and-fairness-config-consumer ok\n[+]poststarthook/rbac/bootstrap-roles ok\n[+]shutdown ok\nreadyz check passed\n";
    assert_eq!(verbose.text, want);
    rig.control.change(vec![check("etcd", false)]).await;
    assert_eq!(rig.client.get("/readyz").await.code, 500);
    let single_check = rig.client.get("/readyz/etcd").await;
    assert_eq!((single_check.code, single_check.text.as_str()), (500, "internal server error: it hurts\n"));
    assert_eq!(rig.client.get("/readyz?exclude=etcd").await.text, "ok");
    rig.control.change(vec![removal(PayloadKind::Check, "etcd")]).await;
    assert_eq!(rig.client.get("/readyz/etcd").await.code, 404);
    assert_eq!(rig.client.get("/readyz/").await.code, 404);
    assert_eq!(rig.client.send(Method::POST, "/readyz", &[], "").await.text, "ok");
}

#[tokio::test]
async fn an_escaped_path_is_decoded() {
    let rig = Rig::start(vec![served("", "v1")]).await.until_configured().await;
    for (path, code) in [
        ("/%76ersion", 200),
        ("/healthz/%70ing?verbose", 200),
        ("/healthz%2Fping", 200),
        ("/openapi%2fv2", 200),
        ("/readyz/no%20such%3Fcheck", 404),
        ("/version%2f%2f", 404),
    ] {
        assert_eq!(rig.client.get(path).await.code, code, "{path}");
    }
}

#[tokio::test]
async fn fixed_paths_respond_as_upstream() {
    let rig = Rig::start(vec![served("apps", "v1"), served("", "v1")]).await.until_configured().await;
    let version = rig.client.get("/version").await;
    assert!(version.text.starts_with("{\n  \"major\": \"1\","), "{}", version.text);
    assert_eq!(rig.client.send(Method::POST, "/version", &[], "").await.code, 405);
    let refused = rig.client.send(Method::GET, "/version", &[("accept", "application/yaml")], "").await;
    assert_eq!(refused.code, 406);
    let index = rig.client.get("/").await;
    for path in ["/apis", "/apis/apps/v1", "/api/v1", "/readyz/ping", "/metrics", "/version"] {
        assert!(index.text.contains(&format!("\"{path}\"")), "{path} is not in {}", index.text);
    }
    assert!(!index.text.contains("/debug"), "{}", index.text);
    assert_eq!(index.text, rig.client.get("/index.html").await.text);
    assert_eq!(rig.client.get("/debug/pprof").await.code, 302);
    assert_eq!(rig.client.get("/debug/flags/v").await.code, 406);
    assert_eq!(rig.client.send(Method::PUT, "/debug/flags/v", &[], "4").await.code, 400);
    assert_eq!(rig.client.get("/api/v2/pods").await.code, 404);
    assert!(rig.client.get("/api/v2/pods").await.text.contains("could not find the requested resource"));
    let metrics = rig.client.get("/metrics").await;
    assert!(metrics.text.contains("apiserver_request_total{verb=\"GET\""), "{}", metrics.text);
    assert_eq!(rig.client.get("/healthz").await.text, "ok");
    assert!(rig.client.get("/metrics/slis").await.text.contains("kubernetes_healthcheck"));
}

#[tokio::test]
async fn http2_serves_the_same_and_unauthorized_clients_get_goaway() {
    let rig = Rig::start(Vec::new()).await.until_configured().await;
    let client = rig.http2();
    assert_eq!(client.get("/readyz").await.text, "ok");
    let refused = client.with_token("wrong").get("/readyz").await;
    assert_eq!(refused.code, 401);
    assert_eq!(client.get("/readyz").await.text, "ok");
    // The configuration contains no role, and an empty policy allows nothing.
    assert_eq!(client.with_token("").get("/version").await.code, 403);
    assert_eq!(client.with_token("alice").get("/metrics").await.code, 403);
}

#[tokio::test]
async fn a_request_head_that_does_not_end_and_an_idle_connection_are_closed() {
    let rig = Rig::with_settings(ScriptedControl::new(Vec::new()), |s| {
        s.request_header_timeout = std::time::Duration::from_millis(100);
        s.idle_timeout = std::time::Duration::from_millis(100);
    })
    .await;
    for sent in ["GET /readyz HTTP/1.1\r\nHost: x\r\nX-Slow: ", ""] {
        let tls = portico_kit::tls::ClientTls::builder()
            .roots(portico_kit::tls::Roots::Pem { label: "test".into(), pem: rig.ca.clone().into() })
            .build()
            .unwrap();
        let tcp = tokio::net::TcpStream::connect(rig.facade.addr()).await.unwrap();
        let name = rustls_pki_types::ServerName::try_from("localhost").unwrap();
        let mut io = tokio_rustls::TlsConnector::from(tls.config()).connect(name, tcp).await.unwrap();
        io.write_all(sent.as_bytes()).await.unwrap();
        let mut received = Vec::new();
        let read = tokio::time::timeout(WAIT_TIMEOUT, io.read_to_end(&mut received)).await;
        assert!(read.is_ok(), "the connection stays open after {sent:?}");
    }
}

#[tokio::test]
async fn a_reload_activates_new_tokens_and_certificates_and_keeps_the_old_ones_if_invalid() {
    let rig = Rig::start(Vec::new()).await.until_configured().await;
    let renewed = rig.client.with_token("renewed");
    assert_eq!(renewed.get("/version").await.code, 401);
    std::fs::write(rig.tokens.path(), "renewed,root,1,system:masters\n").unwrap();
    assert!(rig.facade.reload().await.is_empty());
    eventually(|| async { (renewed.get("/version").await.code == 200).then_some(()) }).await;
    assert_eq!(rig.client.get("/version").await.code, 401);
    std::fs::write(rig.tokens.path(), "only-a-token\n").unwrap();
    assert_eq!(rig.facade.reload().await.len(), 1);
    assert_eq!(renewed.get("/version").await.code, 200);

    let (ca, pair) = issue("localhost");
    rig.certificate.send(pair).unwrap();
    let client = Client::new(rig.facade.addr(), &ca, http::Version::HTTP_11).with_token("renewed");
    let get_status =
        || async { client.open(Method::GET, "/version", &[], "").await.ok().map(|r| r.status().as_u16()) };
    assert_eq!(eventually(get_status).await, 200);
}

#[tokio::test]
async fn an_invalid_entry_is_reported_and_the_others_are_active() {
    use portico_proto::config as pb;
    let rig = Rig::start(Vec::new()).await.until_configured().await;
    let bad = pb::Entry { key: "v1.bad".into(), ..pb::Entry::default() };
    let good: pb::Entry = (&check("good", true)).into();
    rig.control.send_raw(pb::Entries { version: Some(super::control::version(9)), entries: vec![bad, good] });
    let ack = rig.control.wait_for_ack(9).await;
    assert_eq!(ack.refused.len(), 1);
    assert_eq!(ack.refused[0].key, "v1.bad");
    eventually(|| async { (rig.client.get("/readyz/good").await.code == 200).then_some(()) }).await;
}
