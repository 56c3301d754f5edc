//! `--cache-max-bytes`: objects that do not fit into memory are read from the database, and served like all others.

use portico_tests::http::{Http, JsonLines};
use portico_tests::objects::CONFIG_MAPS;
use portico_tests::{Launch, Portico};
use serde_json::{Value, json};

use crate::shared_engine_checks::watch;

/// Size of the cache in bytes.
const BUDGET: &str = "65536";
/// Number of objects of 4 KiB, some of which are red.
const OBJECTS: usize = 60;

fn map(n: usize) -> Value {
    let colour = if n.is_multiple_of(3) { "red" } else { "blue" };
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": format!("m{n:03}"), "labels": {"colour": colour}},
        "data": {"k": "x".repeat(4_096)}})
}

fn name(n: usize) -> String {
    format!("m{n:03}")
}

async fn with_objects() -> (Portico, Http) {
    let portico = Launch::new().args(&["--cache-max-bytes", BUDGET]).start().await;
    let admin = portico.admin();
    for n in 0..OBJECTS {
        assert_eq!(admin.post(CONFIG_MAPS, &map(n)).await.status, 201);
    }
    (portico, admin)
}

fn names(list: &Value) -> Vec<String> {
    let items = list["items"].as_array().unwrap().iter();
    items.map(|item| item["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}

/// Returns all pages of a list, and the `remainingItemCount` of each.
async fn pages(admin: &Http, query: &str) -> (Vec<String>, Vec<Option<u64>>) {
    let (mut all, mut remaining, mut token) = (Vec::new(), Vec::new(), String::new());
    loop {
        let answer = admin.get(&format!("{CONFIG_MAPS}?{query}&continue={token}")).await;
        assert_eq!(answer.status, 200, "{}", answer.text());
        let list = answer.json();
        all.extend(names(&list));
        remaining.push(list["metadata"]["remainingItemCount"].as_u64());
        token = list["metadata"]["continue"].as_str().unwrap_or_default().to_owned();
        if token.is_empty() {
            return (all, remaining);
        }
    }
}

async fn metric(admin: &Http, name: &str) -> u64 {
    let text = admin.get("/metrics").await.text();
    let line = text.lines().find(|line| line.split([' ', '{']).next() == Some(name));
    line.and_then(|line| line.rsplit(' ').next()).unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn uncached_objects_are_listed_and_read() {
    let (_portico, admin) = with_objects().await;
    let (all, remaining) = pages(&admin, "limit=25").await;
    assert_eq!(all.iter().filter(|name| name.starts_with('m')).count(), OBJECTS);
    // A ConfigMap that the server maintains in each namespace may exist as well.
    let total = all.len() as u64;
    assert_eq!(remaining, [Some(total - 25), Some(total - 50), None]);
    let red: Vec<String> = (0..OBJECTS).filter(|n| n.is_multiple_of(3)).map(name).collect();
    for query in ["labelSelector=colour%3Dred&limit=7", "labelSelector=colour%3Dred&resourceVersion=0"] {
        assert_eq!(pages(&admin, query).await.0, red, "{query}");
    }
    assert_eq!(pages(&admin, "fieldSelector=metadata.name%3Dm007").await.0, [name(7)]);
    assert_eq!(admin.get(&format!("{CONFIG_MAPS}/m007")).await.json()["metadata"]["name"], "m007");
    assert_eq!(admin.get(&format!("{CONFIG_MAPS}/none")).await.status, 404);
    // A past state is not returned as the current one.
    let before =
        admin.get(&format!("{CONFIG_MAPS}/m000")).await.json()["metadata"]["resourceVersion"].clone();
    let before = before.as_str().unwrap().to_owned();
    admin.delete(&format!("{CONFIG_MAPS}/m001")).await;
    let exact = format!("resourceVersionMatch=Exact&resourceVersion={before}");
    assert!(!pages(&admin, &exact).await.0.contains(&name(1)), "m001 was created after this revision");
    let (newest, _) = pages(&admin, "limit=500").await;
    assert_eq!(newest.len(), all.len() - 1);
    assert!(metric(&admin, "portico_store_cache_bytes").await <= BUDGET.parse().unwrap());
    assert!(metric(&admin, "portico_store_reads_past_cache_total").await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn preconditions_are_checked_against_the_database() {
    let (_portico, admin) = with_objects().await;
    let url = format!("{CONFIG_MAPS}/m003");
    let first = admin.get(&url).await.json();
    let mut second = first.clone();
    second["data"]["k"] = "second".into();
    assert_eq!(admin.put(&url, &second).await.status, 200);
    // An update with the earlier version conflicts.
    let stale = admin.put(&url, &first).await;
    assert_eq!((stale.status.as_u16(), stale.json()["reason"].as_str()), (409, Some("Conflict")));
    assert_eq!(admin.get(&url).await.json()["data"]["k"], "second");
    assert_eq!(admin.post(CONFIG_MAPS, &map(3)).await.status, 409);
    let merged = admin.merge(&url, &json!({"data": {"more": "y"}})).await.json();
    assert_eq!((&merged["data"]["k"], &merged["data"]["more"]), (&json!("second"), &json!("y")));
    assert_eq!(admin.delete(&url).await.status, 200);
    assert_eq!(admin.delete(&url).await.status, 404);
    assert_eq!(admin.post(CONFIG_MAPS, &map(3)).await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn watches_report_objects_that_enter_and_leave_a_selector() {
    let (_portico, admin) = with_objects().await;
    let query = "labelSelector=colour%3Dred&sendInitialEvents=true&allowWatchBookmarks=true\
        &resourceVersionMatch=NotOlderThan";
    let mut events = watch(&admin, query).await;
    let mut added = Vec::new();
    loop {
        let event = events.next().await.unwrap();
        match event["type"].as_str().unwrap() {
            "ADDED" => added.push(event["object"]["metadata"]["name"].as_str().unwrap().to_owned()),
            kind => {
                assert_eq!(kind, "BOOKMARK");
                assert_eq!(event["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
                break;
            }
        }
    }
    assert_eq!(added, (0..OBJECTS).filter(|n| n.is_multiple_of(3)).map(name).collect::<Vec<_>>());
    let paint = async |n, colour: &str| {
        let patch = json!({"metadata": {"labels": {"colour": colour}}});
        assert_eq!(admin.merge(&format!("{CONFIG_MAPS}/{}", name(n)), &patch).await.status, 200);
    };
    // None of them is in memory: their previous states come from the database.
    for (n, colour, expected) in [(3, "blue", "DELETED"), (4, "red", "ADDED"), (6, "red", "MODIFIED")] {
        if expected == "MODIFIED" {
            let patch = json!({"data": {"more": "y"}});
            assert_eq!(admin.merge(&format!("{CONFIG_MAPS}/{}", name(n)), &patch).await.status, 200);
        } else {
            paint(n, colour).await;
        }
        let event = next_change(&mut events).await;
        assert_eq!(
            (event["type"].as_str(), &event["object"]["metadata"]["name"]),
            (Some(expected), &json!(name(n)))
        );
    }
    admin.delete(&format!("{CONFIG_MAPS}/{}", name(9))).await;
    let deletion = next_change(&mut events).await;
    assert_eq!(
        (&deletion["type"], &deletion["object"]["metadata"]["name"]),
        (&json!("DELETED"), &json!(name(9)))
    );
}

async fn next_change(events: &mut JsonLines) -> Value {
    loop {
        let event = events.next().await.unwrap();
        if event["type"] != "BOOKMARK" {
            return event;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cache_stays_within_its_limit() {
    const LARGE: usize = 24;
    const BYTES: usize = 512 << 10;
    let portico = Launch::new().args(&["--cache-max-bytes", "4194304"]).start().await;
    let admin = portico.admin();
    for n in 0..LARGE {
        let large = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name(n)},
            "data": {"k": "x".repeat(BYTES)}});
        assert_eq!(admin.post(CONFIG_MAPS, &large).await.status, 201);
        assert!(metric(&admin, "portico_store_cache_bytes").await <= 4_194_304);
    }
    assert_eq!(pages(&admin, "limit=2").await.0.iter().filter(|name| name.starts_with('m')).count(), LARGE);
    assert!(metric(&admin, "portico_store_cache_bytes").await <= 4_194_304);
    assert!(metric(&admin, "portico_store_cache_evictions_total").await > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn memory_stays_bounded_however_much_is_stored() {
    const LARGE: usize = 192;
    const BYTES: usize = 512 << 10;
    let portico = Launch::new().args(&["--cache-max-bytes", "4194304"]).start().await;
    let admin = portico.admin();
    let large = |n: usize| {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name(n)},
            "data": {"k": "x".repeat(BYTES)}})
    };
    for n in 0..8 {
        assert_eq!(admin.post(CONFIG_MAPS, &large(n)).await.status, 201);
    }
    pages(&admin, "limit=2").await;
    let before = portico.resident_kib();
    for n in 8..LARGE {
        assert_eq!(admin.post(CONFIG_MAPS, &large(n)).await.status, 201);
    }
    assert_eq!(pages(&admin, "limit=2").await.0.iter().filter(|name| name.starts_with('m')).count(), LARGE);
    let grown = portico.resident_kib().saturating_sub(before) as usize * 1_024;
    // A complete cache would need all of this memory.
    assert!(grown < (LARGE - 8) * BYTES / 2, "{} MiB more", grown >> 20);
    assert!(metric(&admin, "portico_store_cache_evictions_total").await > 0);
}
