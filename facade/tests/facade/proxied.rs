//! Routes to backends, added and removed by the configuration stream.

use http_body_util::BodyExt;
use portico_machinery::digest::sha256_hex;
use portico_proto::convert::PayloadKind;

use super::backend::Backend;
use super::rig::{Rig, eventually, removal, route};
use super::stalled::wait_until_terminated;

#[tokio::test]
async fn a_route_serves_from_its_acknowledgement_to_its_removal() {
    let rig = Rig::start(Vec::new()).await.until_configured().await;
    let backend = Backend::start("svc.ns.svc");
    let path = "/apis/g.example/v1/namespaces/n/things?limit=1";
    assert_eq!(rig.client.get(path).await.code, 404);
    rig.control.change(route("v1.g.example", &backend)).await;
    let got = rig.client.get(path).await;
    assert_eq!(got.text, format!("GET {path} user=root authorization=\"\""));
    assert_eq!(rig.http2().get(path).await.text, got.text);
    assert_eq!(rig.client.with_token("alice").get(path).await.code, 403);
    assert!(rig.client.get("/").await.text.contains("\"/apis/g.example/v1\""));
    rig.control.change(vec![removal(PayloadKind::Route, "v1.g.example")]).await;
    assert_eq!(rig.client.get(path).await.text, "404 page not found\n");
}

#[tokio::test]
async fn a_bundle_can_arrive_after_its_route_or_from_the_catalog() {
    let backend = Backend::start("svc.ns.svc");
    let rig = Rig::start(Vec::new()).await.until_configured().await;
    let mut entries = route("v1.g.example", &backend);
    entries.truncate(1);
    rig.control.change(entries).await;
    assert_eq!(rig.client.get("/apis/g.example/v1/things").await.code, 500);
    rig.control.add_document(&sha256_hex(&backend.ca), backend.ca.clone().into());
    eventually(|| async { (rig.client.get("/apis/g.example/v1/things").await.code == 200).then_some(()) })
        .await;
}

#[tokio::test]
async fn routes_stay_active_while_the_control_service_is_away() {
    let backend = Backend::start("svc.ns.svc");
    let rig = Rig::start(route("v1.g.example", &backend)).await.until_configured().await;
    rig.control.set_away(true);
    for _ in 0..20 {
        assert_eq!(rig.client.get("/apis/g.example/v1/things").await.code, 200);
    }
    assert_eq!(rig.client.get("/readyz").await.text, "ok");
}

#[tokio::test]
async fn a_deadline_ends_a_request_to_a_silent_backend() {
    let backend = Backend::start("svc.ns.svc");
    let rig = Rig::start(route("v1.g.example", &backend)).await.until_configured().await;
    let got = rig.client.get("/apis/g.example/v1/things/hang?timeout=200ms").await;
    assert_eq!(got.code, 504, "{}", got.text);
}

#[tokio::test]
async fn a_deadline_that_ends_the_body_of_a_backends_response_is_counted_as_a_termination() {
    let backend = Backend::start("svc.ns.svc");
    let rig = Rig::start(route("v1.g.example", &backend)).await.until_configured().await;
    let path = "/apis/g.example/v1/things/stall?timeout=500ms";
    let response = rig.client.open(http::Method::GET, path, &[], "").await.unwrap();
    assert_eq!(response.status(), 200);
    assert!(response.into_body().collect().await.is_err(), "it is cut");
    wait_until_terminated(&rig).await;
}

#[tokio::test]
async fn an_upgrade_passes_through_as_raw_bytes() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let backend = Backend::start("svc.ns.svc");
    let rig = Rig::start(route("v1.g.example", &backend)).await.until_configured().await;
    let headers = [("connection", "Upgrade"), ("upgrade", "SPDY/3.1")];
    let path = "/apis/g.example/v1/namespaces/n/things/x/exec";
    let response = rig.client.open(http::Method::POST, path, &headers, "").await.unwrap();
    assert_eq!(response.status(), 101);
    let mut io = hyper_util::rt::TokioIo::new(hyper::upgrade::on(response).await.unwrap());
    io.write_all(b"raw bytes").await.unwrap();
    let mut back = [0; 9];
    io.read_exact(&mut back).await.unwrap();
    assert_eq!(&back, b"raw bytes");
}
