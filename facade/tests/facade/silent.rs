//! A control service whose connections are open but which does not respond, such as a stopped process.

use std::time::Duration;

use http::Method;
use portico_proto::config as pb;

use super::control::{ScriptedControl, version};
use super::rig::{Rig, eventually, served};

const PODS: &str = "/api/v1/namespaces/default/pods";
const TIMEOUT: Duration = Duration::from_millis(200);

async fn rig(control: ScriptedControl) -> Rig {
    Rig::with_settings(control, |settings| settings.control_request_timeout = TIMEOUT)
        .await
        .until_configured()
        .await
}

#[tokio::test]
async fn local_requests_get_503_while_the_control_service_is_silent() {
    let rig = rig(ScriptedControl::new(vec![served("", "v1")])).await;
    rig.control.set_stopped(true);
    for path in [PODS.to_owned(), format!("{PODS}/a"), format!("{PODS}?watch=1")] {
        let refused = rig.client.get(&path).await;
        assert_eq!((refused.code, refused.header("retry-after")), (503, "1"), "{path}: {}", refused.text);
        assert!(refused.text.contains("no response or ping from the control service"), "{}", refused.text);
    }
    // The write may still be applied later, so clients are not asked to retry.
    let refused = rig.client.send(Method::POST, PODS, &[("content-type", "application/json")], "{}").await;
    assert_eq!((refused.code, refused.header("retry-after")), (503, ""));
    rig.control.set_stopped(false);
    assert_eq!(rig.client.get(&format!("{PODS}/a")).await.code, 404);
}

#[tokio::test]
async fn a_slow_control_service_that_answers_pings_is_waited_for() {
    let rig = rig(ScriptedControl::new(vec![served("", "v1")])).await;
    rig.control.set_stopped(true);
    let signs = async {
        let mut ticks = tokio::time::interval(TIMEOUT / 8);
        for revision in 10..40 {
            ticks.tick().await;
            rig.control.send_raw(pb::Entries { version: Some(version(revision)), entries: Vec::new() });
        }
        rig.control.set_stopped(false);
    };
    let path = format!("{PODS}/a");
    let (answer, ()) = tokio::join!(rig.client.get(&path), signs);
    assert_eq!(answer.code, 404, "{}", answer.text);
}

#[tokio::test]
async fn a_stream_that_is_open_and_silent_does_not_count_as_live() {
    let control = ScriptedControl::new(vec![served("", "v1")]);
    control.announce_heartbeat(Duration::from_millis(10));
    let rig = rig(control).await;
    let verbose = || async { rig.client.get("/readyz?verbose").await.text };
    assert!(!verbose().await.contains("fail-static"));
    // The open stream is silent, and no other one can be opened.
    rig.control.set_stopped(true);
    eventually(|| async { verbose().await.contains("fail-static: serving revision 1").then_some(()) }).await;
    rig.control.announce_heartbeat(Duration::ZERO);
    rig.control.set_stopped(false);
    eventually(|| async { (!verbose().await.contains("fail-static")).then_some(()) }).await;
    let metrics = rig.client.get("/metrics").await.text;
    assert!(metrics.contains("portico_config_age_seconds "), "{metrics}");
}
