//! Work that takes long leaves the thread that serves its connection, so that others there are answered meanwhile.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use portico_kit::offload::Offload;
use portico_registry::MAX_INLINE_BYTES;

use crate::custom_resources::defined;
use crate::harness::{Harness, MERGE, Reply, object};

const CONFIG_MAPS: &str = "/api/v1/namespaces/default/configmaps";
const CRON_TABS: &str = "/apis/stable.example.com/v1/namespaces/default/crontabs";

/// A config map of very many small values.
fn large(name: &str) -> String {
    let mut data = String::new();
    for key in 0..30_000 {
        write!(data, r#","k{key}":"v""#).unwrap();
    }
    assert!(data.len() > 4 * MAX_INLINE_BYTES);
    object("ConfigMap", name, &format!(r#","data":{{"first":"v"{data}}}"#))
}

/// A definition whose schema is large, with a rule.
fn wide_version() -> String {
    let mut properties = String::from(r#""first":{"type":"string"}"#);
    for name in 0..6_000 {
        write!(properties, r#","p{name}":{{"type":"string","maxLength":{name}}}"#).unwrap();
    }
    assert!(properties.len() > 2 * MAX_INLINE_BYTES);
    format!(
        r#"{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{{"type":"object","properties":
        {{"spec":{{"type":"object","properties":{{{properties}}},"x-kubernetes-validations":[{{"rule":"self.first != 'bad'"}}]}}}}}}}}}}"#
    )
}

/// What each of three long requests takes of the thread that asks: a body, an object that is changed, a schema to compile.
async fn taken(offloads: bool) -> [Duration; 3] {
    let harness = defined(&wide_version()).await;
    if offloads {
        harness.registry.offload_to(Arc::new(Offload::with_threads("long", 1, harness.tasks()).unwrap()));
    }
    let tab = r#"{"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"t"},"spec":{"first":"ok"}}"#;
    let small = r#"{"data":{"first":"w"}}"#;
    let (body, url) = (large("large"), format!("{CONFIG_MAPS}/large"));
    let began = ThreadTime::now();
    let mut before = began.elapsed();
    let mut lap = |reply: &Reply, code: u16| {
        assert_eq!(reply.code, code, "{}", reply.text.chars().take(400).collect::<String>());
        let now = began.elapsed();
        let lap = now.checked_sub(before).unwrap();
        before = now;
        lap
    };
    let created = lap(&harness.post(CONFIG_MAPS, &body).await, 201);
    let patched = lap(&harness.patch(&url, MERGE, small).await, 200);
    let checked = lap(&harness.post(CRON_TABS, tab).await, 201);
    [created, patched, checked]
}

#[tokio::test]
async fn long_requests_take_little_of_the_thread_that_serves_them() {
    let (here, there) = (taken(false).await, taken(true).await);
    for (what, (here, there)) in ["body", "object", "schema"].iter().zip(here.iter().zip(&there)) {
        assert!(*there * 3 < *here, "{what}: {here:?} where it is asked, {there:?} with threads for it");
    }
}

#[tokio::test]
async fn an_offloaded_request_is_answered_as_any_other() {
    let harness = Harness::open().await;
    harness.registry.offload_to(Arc::new(Offload::with_threads("long", 1, harness.tasks()).unwrap()));
    assert_eq!(harness.post(CONFIG_MAPS, &large("one")).await.code, 201);
    let again = harness.post(CONFIG_MAPS, &large("one")).await;
    assert_eq!((again.code, again.at("reason")), (409, "AlreadyExists".to_owned()));
    let patched = harness.patch(&format!("{CONFIG_MAPS}/one"), MERGE, r#"{"data":{"k7":null}}"#).await;
    assert_eq!(patched.code, 200);
    assert!(patched.text.contains(r#""k6":"v""#) && !patched.text.contains(r#""k7":"#));
}
