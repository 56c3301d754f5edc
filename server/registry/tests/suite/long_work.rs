//! Work that takes long leaves the thread that serves its connection, so that others there are answered meanwhile.

use std::fmt::Write as _;
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use cpu_time::ThreadTime;
use futures::StreamExt;
use portico_kit::offload::Offload;
use portico_registry::{Body, MAX_INLINE_BYTES};

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

const TABLE: &str = "application/json;as=Table;v=v1;g=meta.k8s.io";
const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
const YAML: &str = "application/yaml";

/// Lists of lists of aliases, almost as many as a text of this size may expand to, with a comment of so many bytes.
fn aliases(bytes: usize) -> String {
    let mut text = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(",");
        writeln!(text, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    format!("{text}# {}\n", "x".repeat(bytes))
}

/// Creates config maps whose Table and protobuf forms take long.
async fn fill(harness: &Harness) {
    for at in 0..40 {
        let data: String = (0..500).map(|key| format!(r#","k{key}":"v""#)).collect();
        let object = object("ConfigMap", &format!("m{at}"), &format!(r#","data":{{"first":"v"{data}}}"#));
        assert_eq!(harness.post(CONFIG_MAPS, &object).await.code, 201);
    }
}

/// What small requests that cost much take of the thread that asks: aliases, tables and protobuf of what is stored.
async fn small_requests(offloads: bool) -> [Duration; 3] {
    let harness = Harness::open().await;
    if offloads {
        harness.registry.offload_to(Arc::new(Offload::with_threads("long", 1, harness.tasks()).unwrap()));
    }
    fill(&harness).await;
    let expand = aliases(5_000);
    let begun = ThreadTime::now();
    let bomb = harness.ask("POST", CONFIG_MAPS, "", YAML, &expand).await;
    let expanded = begun.elapsed();
    assert_eq!(bomb.code, 400, "{}", bomb.text);
    assert!(bomb.text.contains("document contains excessive aliasing"), "{}", bomb.text);
    let mut taken = [expanded, Duration::ZERO, Duration::ZERO];
    for (accept, taken) in [TABLE, PROTOBUF].into_iter().zip(&mut taken[1..]) {
        let begun = ThreadTime::now();
        let list = harness.answer("GET", CONFIG_MAPS, accept, "", "").await;
        assert_eq!(list.code, 200);
        let Body::List(pieces) = list.body else {
            *taken = begun.elapsed();
            continue;
        };
        let sizes = pieces.map(|piece| piece.unwrap().len());
        assert!(sizes.collect::<Vec<_>>().await.into_iter().sum::<usize>() > 1_000);
        *taken = begun.elapsed();
    }
    taken
}

#[tokio::test]
async fn small_requests_that_cost_much_take_little_of_the_thread_that_serves_them() {
    let (here, there) = (small_requests(false).await, small_requests(true).await);
    for (what, (here, there)) in ["aliases", "table", "protobuf"].iter().zip(here.iter().zip(&there)) {
        assert!(*there * 3 < *here, "{what}: {here:?} where it is asked, {there:?} with threads for it");
    }
}

#[tokio::test]
async fn reads_wait_for_no_place_that_writes_hold() {
    let harness = Harness::open().await;
    fill(&harness).await;
    let offload = Arc::new(Offload::with_threads("long", 1, harness.tasks()).unwrap());
    harness.registry.offload_to(Arc::clone(&offload));
    // More than there are places: each of them waits, as a write does for a webhook.
    let mut writes: Vec<_> = (0..16).map(|_| Box::pin(offload.run("waits", pending::<()>()))).collect();
    for write in &mut writes {
        assert!(futures::poll!(write).is_pending());
    }
    for accept in [TABLE, PROTOBUF] {
        let list = harness.answer("GET", CONFIG_MAPS, accept, "", "").await;
        assert_eq!(list.code, 200);
        if let Body::List(pieces) = list.body {
            assert!(pieces.collect::<Vec<_>>().await.into_iter().all(|piece| piece.is_ok()));
        }
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
