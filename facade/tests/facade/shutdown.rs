//! Upstream's way to stop.

use std::time::Duration;

use http::Method;
use http_body_util::BodyExt;

use super::control::Scripted;
use super::rig::{Rig, served};

#[tokio::test]
async fn during_the_delay_everything_but_readiness_is_served_and_then_nothing_is() {
    let rig =
        Rig::with(Scripted::new(Vec::new()), |s| s.shutdown_delay_duration = Duration::from_millis(500))
            .await;
    let Rig { facade, client, .. } = rig.configured().await;
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
async fn a_watch_ends_with_the_process_and_within_its_grace() {
    for grace in [Duration::ZERO, Duration::from_secs(24 * 60 * 60)] {
        let control = Scripted::new(vec![served("apps", "v1")]);
        let rig = Rig::with(control, |s| s.shutdown_watch_termination_grace_period = grace).await;
        let Rig { facade, client, .. } = rig.configured().await;
        let watch = client.open(Method::GET, "/apis/apps/v1/things?watch=true", &[], "").await.unwrap();
        let (_, body) = tokio::join!(facade.shutdown(), watch.into_body().collect());
        assert!(body.is_ok(), "{grace:?}: the watch was cut instead of ended: {body:?}");
    }
}
