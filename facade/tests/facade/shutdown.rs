//! Shutdown in upstream's order.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::control::ScriptedControl;
use super::rig::{Rig, WAIT_TIMEOUT, served};
use super::stalled::dial;

#[tokio::test]
async fn during_the_delay_all_but_readiness_is_served_and_afterwards_nothing() {
    let rig = Rig::with_settings(ScriptedControl::new(Vec::new()), |s| {
        s.shutdown_delay_duration = Duration::from_millis(500)
    })
    .await;
    let Rig { facade, client, .. } = rig.until_configured().await;
    let life = facade.lifecycle().clone();
    let addr = facade.addr();
    let stopping = facade.shutdown();
    let clients = async {
        life.shutdown_initiated.signaled().await;
        let ready = client.get("/readyz").await;
        assert_eq!(ready.code, 500);
        assert!(ready.text.contains("[-]shutdown failed"), "{}", ready.text);
        assert_eq!(client.get("/livez").await.text, "ok");
        assert_eq!(client.get("/version").await.code, 200);
        assert!(!life.not_accepting_new_request.is_signaled());
    };
    tokio::join!(stopping, clients);
    assert!(life.http_server_stopped_listening.is_signaled());
    assert!(tokio::net::TcpStream::connect(addr).await.is_err());
}

#[tokio::test]
async fn during_the_delay_http1_connections_end_after_the_next_response_and_http2_connections_stay() {
    let rig = Rig::with_settings(ScriptedControl::new(Vec::new()), |s| {
        s.shutdown_delay_duration = 10 * WAIT_TIMEOUT
    })
    .await;
    let rig = rig.until_configured().await;
    let (mut http1, http2) = (dial(&rig, b"http/1.1").await, rig.http2());
    assert!(!livez(&mut http1).await.contains("\r\nconnection:"), "kept before the stop");
    assert_eq!(http2.get("/version").await.code, 200);
    let life = rig.facade.lifecycle().clone();
    let clients = async {
        life.shutdown_initiated.signaled().await;
        let responded = livez(&mut http1).await;
        assert!(responded.starts_with("HTTP/1.1 200 OK\r\n"), "{responded}");
        assert!(responded.contains("connection: close\r\n"), "{responded}");
        http1.read_to_end(&mut Vec::new()).await.unwrap();
        assert_eq!(http2.get("/version").await.header("connection"), "");
    };
    tokio::select! {
        () = rig.facade.shutdown() => panic!("the delay has ended"),
        () = clients => {}
    }
}

/// Sends a request over this connection and returns the response.
async fn livez(connection: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin)) -> String {
    connection
        .write_all(b"GET /livez HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer master\r\n\r\n")
        .await
        .unwrap();
    let mut response = Vec::new();
    while !response.ends_with(b"\r\n\r\nok") {
        response.push(connection.read_u8().await.unwrap());
    }
    String::from_utf8(response).unwrap()
}

#[tokio::test]
async fn a_watch_ends_with_the_process_and_within_its_grace_period() {
    for grace in [Duration::ZERO, Duration::from_secs(24 * 60 * 60)] {
        let control = ScriptedControl::new(vec![served("apps", "v1")]);
        let rig = Rig::with_settings(control, |s| s.shutdown_watch_termination_grace_period = grace).await;
        let Rig { facade, client, .. } = rig.until_configured().await;
        let watch = client.open(Method::GET, "/apis/apps/v1/things?watch=true", &[], "").await.unwrap();
        let (_, body) = tokio::join!(facade.shutdown(), watch.into_body().collect());
        assert!(body.is_ok(), "{grace:?}: the watch was cut instead of ended: {body:?}");
    }
}
