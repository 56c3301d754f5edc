//! A facade with several control services: selection, failover, and states that it must never show.

use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use portico_facade::{ControlServices, ProcessResources};
use portico_kit::tasks::TaskSet;
use portico_proto::config as pb;
use portico_proto::objects::DoResponse;

use super::control::{ScriptedControl, version};
use super::rig::{Rig, eventually, served};

const PODS: &str = "/api/v1/namespaces/default/pods";

/// Starts a facade with two control services, the first of which is in use.
async fn rig(one: &ScriptedControl, other: &ScriptedControl) -> (Rig, TaskSet) {
    let (process, tasks) = (ProcessResources::default(), TaskSet::new());
    let by_name = [("one", one), ("other", other)].map(|(name, it)| (name.to_owned(), it.transport()));
    let services = ControlServices::new(by_name.into(), Duration::from_millis(500), None);
    services.start(&process.registry, &tasks);
    let rig = Rig::with_services(one.clone(), services, process, |_| {}).until_configured().await;
    wait_for_readyz(&rig, "one in use (serving)").await;
    (rig, tasks)
}

/// Waits until `/readyz?verbose` contains `words`.
async fn wait_for_readyz(rig: &Rig, words: &str) {
    eventually(|| async { rig.client.get("/readyz?verbose").await.text.contains(words).then_some(()) }).await;
}

fn control() -> ScriptedControl {
    ScriptedControl::new(vec![served("", "v1")])
}

#[tokio::test]
async fn a_control_service_of_another_store_is_never_used() {
    let (one, other) = (control(), control());
    one.set_ping("store", 1);
    other.set_ping("another", 1);
    let (rig, _tasks) = rig(&one, &other).await;
    eventually(|| async {
        let metrics = rig.client.get("/metrics").await.text;
        metrics.contains(r#"portico_control_service_refused_total{server="other"} 1"#).then_some(())
    })
    .await;
    one.set_away(true);
    assert_eq!(rig.client.get(&format!("{PODS}/a")).await.code, 503);
    assert!(other.received_calls().is_empty(), "{:?}", other.received_calls());
}

#[tokio::test]
async fn a_control_service_behind_the_shown_revision_is_waited_for() {
    let (one, other) = (control(), control());
    one.set_ping("store", 50);
    other.set_ping("store", 10);
    let (rig, _tasks) = rig(&one, &other).await;
    one.push_answer(DoResponse { code: 200, revision: 50, ..DoResponse::default() });
    let path = format!("{PODS}/a");
    assert_eq!(rig.client.get(&path).await.code, 200);
    other.push_answer(DoResponse { code: 200, revision: 50, ..DoResponse::default() });
    one.set_away(true);
    let catches_up = async {
        other.wait_for_ping(50).await;
        assert!(other.received_calls().is_empty(), "it was asked although it is behind");
        other.set_ping("store", 50);
    };
    let (answer, ()) = tokio::join!(rig.client.get(&path), catches_up);
    assert_eq!((answer.code, other.received_calls().len()), (200, 1), "{}", answer.text);
}

#[tokio::test]
async fn a_control_service_that_is_behind_does_not_confirm_the_configuration() {
    let (one, other) = (control(), control());
    one.set_ping("store", 2);
    other.set_ping("store", 1);
    let (rig, _tasks) = rig(&one, &other).await;
    one.change(vec![served("apps", "v1")]).await;
    one.set_away(true);
    wait_for_readyz(&rig, "other in use (serving)").await;
    let age = || async {
        let metrics = rig.client.get("/metrics").await.text;
        let age = metrics.lines().find_map(|line| line.strip_prefix("portico_config_age_seconds "));
        age.unwrap().parse::<i64>().unwrap()
    };
    eventually(|| async {
        // Independent of the number of messages.
        other.send_raw(pb::Entries { version: Some(version(1)), entries: Vec::new() });
        (age().await >= 1).then_some(())
    })
    .await;
    other.change(vec![served("apps", "v1")]).await;
    eventually(|| async {
        other.send_raw(pb::Entries { version: Some(version(2)), entries: Vec::new() });
        (age().await == 0).then_some(())
    })
    .await;
}

#[tokio::test]
async fn control_services_of_an_earlier_release_are_used_without_pings() {
    let (one, other) = (control(), control());
    let (rig, _tasks) = rig(&one, &other).await;
    one.set_away(true);
    other.push_answer(DoResponse { code: 200, ..DoResponse::default() });
    assert_eq!(rig.client.get(&format!("{PODS}/a")).await.code, 200);
    wait_for_readyz(&rig, "other in use (serving), 1 of 2 serve").await;
}

#[tokio::test]
async fn a_list_that_breaks_off_resumes_at_its_revision() {
    let (one, other) = (control(), control());
    one.set_ping("store", 7);
    other.set_ping("store", 7);
    let (rig, _tasks) = rig(&one, &other).await;
    // More than a facade collects before it responds.
    let parts = [b'a', b'b', b'c'].map(|byte| Bytes::from(vec![byte; 200_000]));
    one.set_list_parts(parts.to_vec());
    one.set_list_revision(7, 2);
    let answer = rig.client.get(&format!("{PODS}?limit=9")).await;
    assert_eq!(answer.code, 200);
    assert!(answer.text.as_bytes() == parts.concat(), "{} bytes", answer.text.len());
    let queries: Vec<_> = one.received_calls().into_iter().map(|received| received.call.query).collect();
    assert_eq!(queries, ["limit=9", "limit=9&resourceVersion=7&resourceVersionMatch=Exact"]);
}

/// Returns the next bytes of a streamed body.
async fn next(body: &mut (impl hyper::body::Body<Data = Bytes, Error: std::fmt::Debug> + Unpin)) -> Bytes {
    let frame = tokio::time::timeout(Duration::from_secs(60), body.frame()).await.unwrap();
    frame.unwrap().unwrap().into_data().unwrap()
}

#[tokio::test]
async fn a_watch_that_resumes_within_a_revision_gets_each_event_once() {
    let (one, other) = (control(), control());
    one.set_ping("store", 9);
    other.set_ping("store", 10);
    let (rig, _tasks) = rig(&one, &other).await;
    let watch = format!("{PODS}?watch=1&resourceVersion=9");
    let mut body = rig.client.open(Method::GET, &watch, &[], "").await.unwrap().into_body();
    // The control service is lost after two of the five events of revision 10.
    for event in ["a", "b"] {
        assert!(one.frame_at(event, 9, true));
        assert_eq!(next(&mut body).await, event);
    }
    one.set_away(true);
    eventually(|| async { (!other.received_calls().is_empty()).then_some(()) }).await;
    eventually(|| async { other.frame_at("a", 9, true).then_some(()) }).await;
    for (event, revision, more) in
        [("b", 9, true), ("c", 9, true), ("d", 9, true), ("e", 10, false), ("f", 11, false)]
    {
        assert!(other.frame_at(event, revision, more));
    }
    for event in ["c", "d", "e", "f"] {
        assert_eq!(next(&mut body).await, event);
    }
    assert_eq!(other.received_calls()[0].call.query, "watch=1&resourceVersion=9");
}
