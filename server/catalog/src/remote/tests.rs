//! Tests with scripted backends: requests, published entries, and the independence of services.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use portico_machinery::discovery::VersionDiscovery;
use portico_machinery::route::{Availability, Backend, ServiceReference, Target};

use super::*;
use crate::documents::Documents;

const TRIPLE: &str = "application/json;v=v2;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io";

/// Responses by service name and path; a body of `hang` never responds.
#[derive(Default)]
struct Script {
    answers: Mutex<HashMap<(String, String), Answer>>,
    asked: Mutex<Vec<String>>,
    hanging: AtomicUsize,
}

impl Script {
    fn set_response(
        &self,
        service: &str,
        path: &str,
        status: u16,
        content_type: &str,
        etag: &str,
        body: &str,
    ) {
        let answer = Answer {
            status,
            content_type: content_type.to_owned(),
            etag: etag.to_owned(),
            body: body.to_owned().into(),
        };
        self.answers.lock().insert((service.to_owned(), path.to_owned()), answer);
    }

    fn asked(&self, what: &str) -> usize {
        self.asked.lock().iter().filter(|a| *a == what).count()
    }
}

impl Fetch for Script {
    fn get<'a>(&'a self, get: Get<'a>) -> FetchFuture<'a> {
        let service = get.backend.service.name.clone();
        self.asked.lock().push(format!("{service} {}", get.path));
        let known = self.answers.lock().get(&(service.clone(), get.path.to_owned())).cloned();
        Box::pin(async move {
            if service.starts_with("hang") {
                self.hanging.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(get.timeout).await;
                return Err(FetchFailure("no answer in time".to_owned()));
            }
            let answer = known.ok_or_else(|| FetchFailure("connection refused".to_owned()))?;
            if !answer.etag.is_empty() && answer.etag == get.if_none_match {
                return Ok(Answer { status: 304, ..Answer::default() });
            }
            Ok(answer)
        })
    }
}

struct World {
    script: Arc<Script>,
    entries: Entries,
    remote: Remote,
    tasks: TaskSet,
}

fn world() -> World {
    let script = Arc::new(Script::default());
    let entries = Entries::new(Documents::default());
    let remote = Remote::new(script.clone(), entries.clone());
    let tasks = TaskSet::new();
    remote.run(&tasks);
    World { script, entries, remote, tasks }
}

fn route(service: &str, version: &str, port: u16, ok: bool) -> (String, Option<Arc<Route>>) {
    let group_version = GroupVersion::new(format!("{service}.example.com"), version);
    let backend = Backend {
        service: ServiceReference { namespace: "n".into(), name: service.to_owned(), port: 443 },
        targets: vec![Target { host: "10.0.0.1".into(), port }],
        ..Backend::default()
    };
    let route = Route {
        name: group_version.api_service_name(),
        group_version,
        backend: Some(backend.into()),
        available: Availability { ok, ..Availability::default() },
        ..Route::default()
    };
    (route.name.clone(), Some(Arc::new(route)))
}

fn aggregated(service: &str, versions: &[&str], resource: &str) -> String {
    let one = |v: &&str| {
        format!(r#"{{"version":"{v}","resources":[{{"resource":"{resource}","scope":"Cluster"}}]}}"#)
    };
    let versions: Vec<_> = versions.iter().map(one).collect();
    format!(
        r#"{{"items":[{{"metadata":{{"name":"{service}.example.com"}},"versions":[{}]}}]}}"#,
        versions.join(",")
    )
}

impl World {
    fn serve(&self, service: &str, versions: &[&str], resource: &str, etag: &str) {
        self.script.set_response(
            service,
            "/apis",
            200,
            TRIPLE,
            etag,
            &aggregated(service, versions, resource),
        );
    }

    /// Waits until the entries meet a condition; paused time makes minutes pass at once.
    async fn until(&self, what: &str, wanted: impl Fn(&BTreeMap<String, Arc<Served>>) -> bool) {
        let mut reader = self.entries.reader();
        let deadline = Duration::from_secs(1200);
        let waited = tokio::time::timeout(deadline, async {
            while !wanted(&self.entries.all()) {
                reader.changed().await;
                reader.look();
            }
        });
        assert!(waited.await.is_ok(), "{what}: {:?}", self.entries.all());
    }

    async fn resources(&self, key: &str) -> Vec<String> {
        let hash = self.entries.all()[key].discovery.clone();
        let json = self.entries.documents().get(&hash).await.unwrap();
        let version: VersionDiscovery = serde_json::from_slice(&json).unwrap();
        version.resources.into_iter().map(|r| r.resource).collect()
    }
}

const A: &str = "aggregator/a.example.com/v1";

fn current(all: &BTreeMap<String, Arc<Served>>, key: &str) -> bool {
    all.get(key).is_some_and(|s| !s.stale && !s.discovery.is_empty())
}

#[tokio::test(start_paused = true)]
async fn one_fetch_serves_all_versions_of_a_service() {
    let w = world();
    w.serve("a", &["v1", "v2"], "things", "\"1\"");
    w.remote.routes([route("a", "v1", 1, true), route("a", "v2", 1, true), route("a", "v3", 1, true)]);
    w.until("three versions", |all| all.len() == 3 && all.keys().all(|k| current(all, k))).await;
    assert_eq!(w.script.asked("a /apis"), 1);
    assert_eq!(w.resources(A).await, ["things"]);
    // A version that the backend does not list is current and empty.
    assert_eq!(w.resources("aggregator/a.example.com/v3").await, Vec::<String>::new());
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_changed_answer_is_noticed_within_a_minute_and_the_same_one_changes_nothing() {
    let w = world();
    w.serve("a", &["v1"], "things", "\"1\"");
    w.remote.routes([route("a", "v1", 1, true)]);
    w.until("the first answer", |all| current(all, A)).await;
    let first = w.entries.all()[A].clone();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(w.script.asked("a /apis") >= 2);
    assert_eq!(w.entries.all()[A], first);
    w.serve("a", &["v1"], "others", "\"2\"");
    w.until("the second answer", |all| all[A].discovery != first.discovery).await;
    assert_eq!(w.resources(A).await, ["others"]);
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_dead_backend_keeps_its_last_good_answer_marked_stale_and_recovers() {
    let w = world();
    w.serve("a", &["v1"], "things", "");
    w.remote.routes([route("a", "v1", 1, true)]);
    w.until("the first answer", |all| current(all, A)).await;
    w.script.set_response("a", "/apis", 503, "text/plain", "", "away");
    w.until("stale", |all| all[A].stale).await;
    assert_eq!(w.resources(A).await, ["things"]);
    w.serve("a", &["v1"], "things", "");
    w.until("current again", |all| current(all, A)).await;
    // An unavailable backend is stale at once, and fetched at once when it is available again.
    w.remote.routes([route("a", "v1", 1, false)]);
    assert!(w.entries.all()[A].stale);
    let asked = w.script.asked("a /apis");
    w.remote.routes([route("a", "v1", 1, true)]);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(w.script.asked("a /apis") > asked && current(&w.entries.all(), A));
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn who_moves_is_asked_at_once_and_who_leaves_is_forgotten() {
    let w = world();
    w.serve("a", &["v1"], "things", "");
    w.remote.routes([route("a", "v1", 1, true)]);
    w.until("the first answer", |all| current(all, A)).await;
    w.serve("a", &["v1"], "moved", "");
    w.remote.routes([route("a", "v1", 2, true)]);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(w.resources(A).await, ["moved"]);
    w.remote.routes([("v1.a.example.com".to_owned(), None)]);
    assert!(w.entries.all().is_empty() && w.remote.idle());
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_backends_that_hang() {
    let w = world();
    let hanging: Vec<_> = (0..100).map(|i| route(&format!("hang{i}"), "v1", 1, true)).collect();
    w.remote.routes(hanging);
    // Each was tried once in the queue of healthy services: 100 of them, 16 at a time, one second each.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(w.script.hanging.load(Ordering::SeqCst) >= 100);
    w.serve("a", &["v1"], "things", "");
    let before = tokio::time::Instant::now();
    w.remote.routes([route("a", "v1", 1, true)]);
    w.until("the one that answers", |all| current(all, A)).await;
    assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn other_answers_lead_to_the_legacy_lists_and_503_does_not() {
    let list = r#"{"kind":"APIResourceList","groupVersion":"a.example.com/v1","resources":[{"name":"olds","namespaced":true,"kind":"Old","verbs":["get"]}]}"#;
    for (status, media, body) in [
        (404, "text/plain", "404 page not found"),
        (406, "application/json", "{}"),
        (200, "application/json", r#"{"kind":"APIGroupList"}"#),
        (200, "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "{}"),
    ] {
        let w = world();
        w.script.set_response("a", "/apis", status, media, "", body);
        w.script.set_response("a", "/apis/a.example.com/v1", 200, "application/json", "", list);
        w.remote.routes([route("a", "v1", 1, true)]);
        w.until("the legacy list", |all| current(all, A)).await;
        assert_eq!(w.resources(A).await, ["olds"], "{status} {media}");
        w.tasks.cancel();
    }
    let w = world();
    w.script.set_response("a", "/apis", 503, "text/plain", "", "away");
    w.script.set_response("a", "/apis/a.example.com/v1", 200, "application/json", "", list);
    w.remote.routes([route("a", "v1", 1, true)]);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(w.script.asked("a /apis/a.example.com/v1"), 0);
    assert!(w.entries.all().is_empty());
    w.tasks.cancel();
}

fn list(service: &str, version: &str, resource: &str) -> String {
    format!(
        r#"{{"kind":"APIResourceList","groupVersion":"{service}.example.com/{version}","resources":[{{"name":"{resource}","kind":"K","verbs":["get"]}}]}}"#
    )
}

const A2: &str = "aggregator/a.example.com/v2";

#[tokio::test(start_paused = true)]
async fn a_version_whose_list_fails_leaves_the_other_versions_of_its_service_current() {
    let w = world();
    w.script.set_response("a", "/apis", 404, "text/plain", "", "none");
    let (v1, v2) = ("/apis/a.example.com/v1", "/apis/a.example.com/v2");
    w.script.set_response("a", v1, 500, "text/plain", "", "oops");
    w.script.set_response("a", v2, 200, "application/json", "", &list("a", "v2", "things"));
    w.remote.routes([route("a", "v1", 1, true), route("a", "v2", 1, true)]);
    w.until("the version that answers", |all| current(all, A2)).await;
    assert!(!current(&w.entries.all(), A));
    w.script.set_response("a", v1, 200, "application/json", "", &list("a", "v1", "others"));
    w.until("both versions", |all| current(all, A) && current(all, A2)).await;
    assert_eq!(w.resources(A).await, ["others"]);
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn lists_of_unavailable_versions_are_not_fetched_and_their_last_ones_stay() {
    let w = world();
    w.script.set_response("a", "/apis", 404, "text/plain", "", "none");
    let (v1, v2) = ("/apis/a.example.com/v1", "/apis/a.example.com/v2");
    w.script.set_response("a", v1, 200, "application/json", "", &list("a", "v1", "things"));
    w.script.set_response("a", v2, 200, "application/json", "", &list("a", "v2", "others"));
    w.remote.routes([route("a", "v1", 1, true), route("a", "v2", 1, false)]);
    w.until("the available version", |all| current(all, A)).await;
    assert_eq!(w.script.asked("a /apis/a.example.com/v2"), 0);
    assert!(!w.entries.all().contains_key(A2));
    w.remote.routes([route("a", "v2", 1, true)]);
    w.until("both versions", |all| current(all, A) && current(all, A2)).await;
    w.remote.routes([route("a", "v1", 1, false)]);
    w.script.set_response("a", v2, 200, "application/json", "", &list("a", "v2", "newer"));
    let other = w.entries.all()[A2].discovery.clone();
    w.until("a refresh", |all| all[A2].discovery != other).await;
    assert!(w.entries.all()[A].stale);
    assert_eq!(w.resources(A).await, ["things"]);
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_backend_that_is_back_does_not_wait_behind_those_that_hang() {
    let w = world();
    w.remote.routes([route("a", "v1", 1, true)]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    w.remote.routes([route("a", "v1", 1, false)]);
    let hanging: Vec<_> = (0..100).map(|i| route(&format!("hang{i}"), "v1", 1, true)).collect();
    w.remote.routes(hanging);
    tokio::time::sleep(Duration::from_secs(10)).await;
    w.serve("a", &["v1"], "things", "");
    let before = tokio::time::Instant::now();
    w.remote.routes([route("a", "v1", 1, true)]);
    w.until("the one that is back", |all| current(all, A)).await;
    assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_moved_backend_is_asked_at_once_if_any_of_its_versions_is_available() {
    let w = world();
    w.serve("a", &["v1", "v2"], "things", "");
    w.remote.routes([route("a", "v1", 1, false), route("a", "v2", 1, true)]);
    w.until("the first answer", |all| current(all, A2)).await;
    w.serve("a", &["v1", "v2"], "moved", "");
    w.remote.routes([route("a", "v1", 2, false), route("a", "v2", 2, true)]);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(w.resources(A2).await, ["moved"]);
    w.tasks.cancel();
}

#[test]
fn a_version_that_goes_away_while_a_fetch_runs_does_not_keep_the_others_stale() {
    let (mut services, documents) = (Services::default(), Documents::default());
    let mut set = |(name, route): (String, Option<Arc<Route>>)| services.set_route(&name, route).fetch;
    let key = set(route("a", "v1", 1, true)).unwrap();
    set(route("a", "v2", 1, true));
    let failed = services.job(&key).unwrap();
    services.failed(&key, &failed);
    let job = services.job(&key).unwrap();
    let (name, away) = route("a", "v2", 1, false);
    services.set_route(&name, away);
    let found = known::Found { is_whole: true, ..known::Found::default() };
    services.discovered(&key, &job, Arc::new(found), &documents);
    let stale = |version: &str| services.served(&GroupVersion::new("a.example.com", version)).unwrap().stale;
    assert!(!stale("v1") && stale("v2"));
}

#[tokio::test(start_paused = true)]
async fn documents_of_version_3_are_fetched_by_their_address_and_version_2_is_cut() {
    let w = world();
    w.serve("a", &["v1"], "things", "\"1\"");
    let index = |hash: &str| {
        format!(
            r#"{{"paths":{{"apis/a.example.com/v1":{{"serverRelativeURL":"/openapi/v3/apis/a.example.com/v1?hash={hash}"}},
            "apis/other/v1":{{"serverRelativeURL":"/openapi/v3/apis/other/v1?hash=x"}}}}}}"#
        )
    };
    w.script.set_response("a", "/openapi/v3", 200, "text/plain", "", &index("H1"));
    w.script.set_response(
        "a",
        "/openapi/v3/apis/a.example.com/v1?hash=H1",
        200,
        "application/json",
        "\"H1\"",
        r#"{"one":1}"#,
    );
    let v2 = r##"{"swagger":"2.0","paths":{"/apis/a.example.com/v1/x":{"get":{"schema":{"$ref":"#/definitions/X"}}},
        "/apis/other/v1/y":{"get":{"schema":{"$ref":"#/definitions/Y"}}}},"definitions":{"X":{},"Y":{}}}"##;
    w.script.set_response("a", "/openapi/v2", 200, "application/json", "\"v2\"", v2);
    w.remote.routes([route("a", "v1", 1, true)]);
    let described = |all: &BTreeMap<String, Arc<Served>>| {
        all.get(A).is_some_and(|s| !s.openapi_v3.is_empty() && !s.openapi_v2.is_empty())
    };
    w.until("OpenAPI", described).await;
    let served = w.entries.all()[A].clone();
    let documents = w.entries.documents();
    assert_eq!(documents.get(&served.openapi_v3).await.unwrap(), r#"{"one":1}"#);
    let part = documents.get(&served.openapi_v2).await.unwrap();
    let want = r##"{"paths":{"/apis/a.example.com/v1/x":{"get":{"schema":{"$ref":"#/definitions/X"}}}},"definitions":{"X":{}}}"##;
    assert_eq!(part, want);
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!(
        w.script.asked("a /openapi/v3/apis/a.example.com/v1?hash=H1"),
        1,
        "the address set_response it is the same"
    );
    w.script.set_response("a", "/openapi/v3", 200, "text/plain", "", &index("H2"));
    w.script.set_response(
        "a",
        "/openapi/v3/apis/a.example.com/v1?hash=H2",
        200,
        "application/json",
        "\"H2\"",
        r#"{"two":2}"#,
    );
    w.until("the new document", |all| all[A].openapi_v3 != served.openapi_v3).await;
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_backend_without_version_3_has_its_version_2_converted() {
    let w = world();
    w.serve("a", &["v1"], "things", "\"1\"");
    w.script.set_response("a", "/openapi/v3", 404, "text/plain", "", "");
    let v2 = r##"{"paths":{"/apis/a.example.com/v1/":{"get":{}}},"definitions":{"X":{"type":"object"}}}"##;
    w.script.set_response("a", "/openapi/v2", 200, "application/json", "", v2);
    w.remote.routes([route("a", "v1", 1, true)]);
    w.until("a converted document", |all| all.get(A).is_some_and(|s| !s.openapi_v3.is_empty())).await;
    let json = w.entries.documents().get(&w.entries.all()[A].openapi_v3).await.unwrap();
    assert!(String::from_utf8_lossy(&json).starts_with(r#"{"openapi":"3.0.0""#));
    w.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn an_index_cannot_lead_elsewhere() {
    let w = world();
    w.serve("a", &["v1"], "things", "\"1\"");
    let index = r#"{"paths":{"apis/a.example.com/v1":{"serverRelativeURL":"/metrics"}}}"#;
    w.script.set_response("a", "/openapi/v3", 200, "text/plain", "", index);
    w.remote.routes([route("a", "v1", 1, true)]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(w.script.asked("a /metrics"), 0);
    assert!(w.entries.all()[A].openapi_v3.is_empty());
    w.tasks.cancel();
}
