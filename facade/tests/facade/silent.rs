//! A control service whose connections are open but which does not respond, such as a stopped process.

use std::time::Duration;

use http::Method;
use portico_proto::config as pb;

use super::control::{Scripted, version};
use super::rig::{Rig, eventually, served};

const PODS: &str = "/api/v1/namespaces/default/pods";
const BOUND: Duration = Duration::from_millis(200);

async fn rig(control: Scripted) -> Rig {
    Rig::with(control, |settings| settings.control_request_timeout = BOUND).await.configured().await
}

#[tokio::test]
async fn local_requests_are_answered_with_503_while_it_is_silent() {
    let rig = rig(Scripted::new(vec![served("", "v1")])).await;
    rig.control.stop(true);
    for path in [PODS.to_owned(), format!("{PODS}/a"), format!("{PODS}?watch=1")] {
        let refused = rig.client.get(&path).await;
        assert_eq!((refused.code, refused.header("retry-after")), (503, "1"), "{path}: {}", refused.text);
        assert!(refused.text.contains("no sign of life"), "{}", refused.text);
    }
    // The write may still be applied later, so clients are not asked to retry.
    let refused = rig.client.send(Method::POST, PODS, &[("content-type", "application/json")], "{}").await;
    assert_eq!((refused.code, refused.header("retry-after")), (503, ""));
    rig.control.stop(false);
    assert_eq!(rig.client.get(&format!("{PODS}/a")).await.code, 404);
}

#[tokio::test]
async fn one_that_works_for_long_and_gives_signs_of_life_is_waited_for() {
    let rig = rig(Scripted::new(vec![served("", "v1")])).await;
    rig.control.stop(true);
    let signs = async {
        let mut ticks = tokio::time::interval(BOUND / 8);
        for revision in 10..40 {
            ticks.tick().await;
            rig.control.raw(pb::Entries { version: Some(version(revision)), entries: Vec::new() });
        }
        rig.control.stop(false);
    };
    let path = format!("{PODS}/a");
    let (answer, ()) = tokio::join!(rig.client.get(&path), signs);
    assert_eq!(answer.code, 404, "{}", answer.text);
}

#[tokio::test]
async fn a_stream_that_is_open_and_silent_does_not_count_as_live() {
    let control = Scripted::new(vec![served("", "v1")]);
    control.promise(Duration::from_millis(10));
    let rig = rig(control).await;
    let verbose = || async { rig.client.get("/readyz?verbose").await.text };
    assert!(!verbose().await.contains("fail-static"));
    // The open stream is silent, and no other one can be opened.
    rig.control.stop(true);
    eventually(|| async { verbose().await.contains("fail-static: serving revision 1").then_some(()) }).await;
    rig.control.promise(Duration::ZERO);
    rig.control.stop(false);
    eventually(|| async { (!verbose().await.contains("fail-static")).then_some(()) }).await;
    let metrics = rig.client.get("/metrics").await.text;
    assert!(metrics.contains("portico_config_age_seconds "), "{metrics}");
}
