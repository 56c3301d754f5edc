//! Tests with scripted backends: requests, published entries, and the independence of services.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};

use portico_machinery::discovery::VersionDiscovery;
use portico_machinery::route::{Availability, Backend, ServiceReference, Target};

use super::*;
use crate::documents::Documents;

const AGGREGATED_TYPE: &str = "application/json;v=v2;as=APIGroupDiscoveryList;g=apidiscovery.k8s.io";

/// Responses by service name and path; a body of `hang` never responds.
#[derive(Default)]
struct Script {
    responses: Mutex<HashMap<(String, String), FetchedDocument>>,
    requested: Mutex<Vec<String>>,
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
        let response = FetchedDocument {
            status,
            content_type: content_type.to_owned(),
            etag: etag.to_owned(),
            body: body.to_owned().into(),
        };
        self.responses.lock().insert((service.to_owned(), path.to_owned()), response);
    }

    fn requests(&self, request: &str) -> usize {
        self.requested.lock().iter().filter(|a| *a == request).count()
    }
}

impl Fetch for Script {
    fn get<'a>(&'a self, get: GetRequest<'a>) -> FetchFuture<'a> {
        let service = get.backend.service.name.clone();
        self.requested.lock().push(format!("{service} {}", get.path));
        let scripted = self.responses.lock().get(&(service.clone(), get.path.to_owned())).cloned();
        Box::pin(async move {
            if service.starts_with("hang") {
                self.hanging.fetch_add(1, Ordering::SeqCst);
                tokio::time::sleep(get.timeout).await;
                return Err(FetchFailure("no answer in time".to_owned()));
            }
            let response = scripted.ok_or_else(|| FetchFailure("connection refused".to_owned()))?;
            if !response.etag.is_empty() && response.etag == get.if_none_match {
                return Ok(FetchedDocument { status: 304, ..FetchedDocument::default() });
            }
            Ok(response)
        })
    }
}

struct TestRemote {
    script: Arc<Script>,
    entries: Entries,
    remote: Remote,
    tasks: TaskSet,
}

fn test_remote() -> TestRemote {
    let script = Arc::new(Script::default());
    let entries = Entries::new(Documents::default());
    let remote = Remote::new(script.clone(), entries.clone());
    let tasks = TaskSet::new();
    remote.run(&tasks);
    TestRemote { script, entries, remote, tasks }
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
    let version_json = |v: &&str| {
        format!(r#"{{"version":"{v}","resources":[{{"resource":"{resource}","scope":"Cluster"}}]}}"#)
    };
    let versions: Vec<_> = versions.iter().map(version_json).collect();
    format!(
        r#"{{"items":[{{"metadata":{{"name":"{service}.example.com"}},"versions":[{}]}}]}}"#,
        versions.join(",")
    )
}

impl TestRemote {
    fn serve(&self, service: &str, versions: &[&str], resource: &str, etag: &str) {
        self.script.set_response(
            service,
            "/apis",
            200,
            AGGREGATED_TYPE,
            etag,
            &aggregated(service, versions, resource),
        );
    }

    /// Waits until the entries meet a condition; paused time makes minutes pass at once.
    async fn wait_until(
        &self,
        message: &str,
        condition: impl Fn(&BTreeMap<String, Arc<ServedVersion>>) -> bool,
    ) {
        let mut reader = self.entries.reader();
        let deadline = Duration::from_secs(1200);
        let waited = tokio::time::timeout(deadline, async {
            while !condition(&self.entries.all()) {
                reader.changed().await;
                reader.take_changes();
            }
        });
        assert!(waited.await.is_ok(), "{message}: {:?}", self.entries.all());
    }

    async fn resources(&self, key: &str) -> Vec<String> {
        let hash = self.entries.all()[key].discovery.clone();
        let json = self.entries.documents().get(&hash).await.unwrap();
        let version: VersionDiscovery = serde_json::from_slice(&json).unwrap();
        version.resources.into_iter().map(|r| r.resource).collect()
    }
}

const A: &str = "aggregator/a.example.com/v1";

fn is_current(all: &BTreeMap<String, Arc<ServedVersion>>, key: &str) -> bool {
    all.get(key).is_some_and(|s| !s.stale && !s.discovery.is_empty())
}

#[tokio::test(start_paused = true)]
async fn one_fetch_serves_all_versions_of_a_service() {
    let test = test_remote();
    test.serve("a", &["v1", "v2"], "things", "\"1\"");
    test.remote.set_routes([route("a", "v1", 1, true), route("a", "v2", 1, true), route("a", "v3", 1, true)]);
    test.wait_until("three versions", |all| all.len() == 3 && all.keys().all(|k| is_current(all, k))).await;
    assert_eq!(test.script.requests("a /apis"), 1);
    assert_eq!(test.resources(A).await, ["things"]);
    // A version that the backend does not list is current and empty.
    assert_eq!(test.resources("aggregator/a.example.com/v3").await, Vec::<String>::new());
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_changed_document_is_noticed_within_a_minute_and_an_equal_one_changes_nothing() {
    let test = test_remote();
    test.serve("a", &["v1"], "things", "\"1\"");
    test.remote.set_routes([route("a", "v1", 1, true)]);
    test.wait_until("the first answer", |all| is_current(all, A)).await;
    let first = test.entries.all()[A].clone();
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert!(test.script.requests("a /apis") >= 2);
    assert_eq!(test.entries.all()[A], first);
    test.serve("a", &["v1"], "others", "\"2\"");
    test.wait_until("the second answer", |all| all[A].discovery != first.discovery).await;
    assert_eq!(test.resources(A).await, ["others"]);
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_dead_backend_keeps_its_last_good_document_marked_stale_and_recovers() {
    let test = test_remote();
    test.serve("a", &["v1"], "things", "");
    test.remote.set_routes([route("a", "v1", 1, true)]);
    test.wait_until("the first answer", |all| is_current(all, A)).await;
    test.script.set_response("a", "/apis", 503, "text/plain", "", "away");
    test.wait_until("stale", |all| all[A].stale).await;
    assert_eq!(test.resources(A).await, ["things"]);
    test.serve("a", &["v1"], "things", "");
    test.wait_until("current again", |all| is_current(all, A)).await;
    // An unavailable backend is stale at once, and fetched at once when it is available again.
    test.remote.set_routes([route("a", "v1", 1, false)]);
    assert!(test.entries.all()[A].stale);
    let earlier_requests = test.script.requests("a /apis");
    test.remote.set_routes([route("a", "v1", 1, true)]);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(test.script.requests("a /apis") > earlier_requests && is_current(&test.entries.all(), A));
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_moved_backend_is_fetched_at_once_and_a_removed_one_is_forgotten() {
    let test = test_remote();
    test.serve("a", &["v1"], "things", "");
    test.remote.set_routes([route("a", "v1", 1, true)]);
    test.wait_until("the first answer", |all| is_current(all, A)).await;
    test.serve("a", &["v1"], "moved", "");
    test.remote.set_routes([route("a", "v1", 2, true)]);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(test.resources(A).await, ["moved"]);
    test.remote.set_routes([("v1.a.example.com".to_owned(), None)]);
    assert!(test.entries.all().is_empty() && test.remote.is_idle());
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn hanging_backends_do_not_delay_others() {
    let test = test_remote();
    let hanging: Vec<_> = (0..100).map(|i| route(&format!("hang{i}"), "v1", 1, true)).collect();
    test.remote.set_routes(hanging);
    // Each was tried once in the queue of healthy services: 100 of them, 16 at a time, one second each.
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert!(test.script.hanging.load(Ordering::SeqCst) >= 100);
    test.serve("a", &["v1"], "things", "");
    let before = tokio::time::Instant::now();
    test.remote.set_routes([route("a", "v1", 1, true)]);
    test.wait_until("the reachable backend", |all| is_current(all, A)).await;
    assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn other_responses_cause_legacy_lists_and_503_does_not() {
    let list = r#"{"kind":"APIResourceList","groupVersion":"a.example.com/v1","resources":[{"name":"olds","namespaced":true,"kind":"Old","verbs":["get"]}]}"#;
    for (status, media, body) in [
        (404, "text/plain", "404 page not found"),
        (406, "application/json", "{}"),
        (200, "application/json", r#"{"kind":"APIGroupList"}"#),
        (200, "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList", "{}"),
    ] {
        let test = test_remote();
        test.script.set_response("a", "/apis", status, media, "", body);
        test.script.set_response("a", "/apis/a.example.com/v1", 200, "application/json", "", list);
        test.remote.set_routes([route("a", "v1", 1, true)]);
        test.wait_until("the legacy list", |all| is_current(all, A)).await;
        assert_eq!(test.resources(A).await, ["olds"], "{status} {media}");
        test.tasks.cancel();
    }
    let test = test_remote();
    test.script.set_response("a", "/apis", 503, "text/plain", "", "away");
    test.script.set_response("a", "/apis/a.example.com/v1", 200, "application/json", "", list);
    test.remote.set_routes([route("a", "v1", 1, true)]);
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(test.script.requests("a /apis/a.example.com/v1"), 0);
    assert!(test.entries.all().is_empty());
    test.tasks.cancel();
}

fn list(service: &str, version: &str, resource: &str) -> String {
    format!(
        r#"{{"kind":"APIResourceList","groupVersion":"{service}.example.com/{version}","resources":[{{"name":"{resource}","kind":"K","verbs":["get"]}}]}}"#
    )
}

const A2: &str = "aggregator/a.example.com/v2";

#[tokio::test(start_paused = true)]
async fn a_version_with_a_failed_list_does_not_make_other_versions_stale() {
    let test = test_remote();
    test.script.set_response("a", "/apis", 404, "text/plain", "", "none");
    let (v1, v2) = ("/apis/a.example.com/v1", "/apis/a.example.com/v2");
    test.script.set_response("a", v1, 500, "text/plain", "", "oops");
    test.script.set_response("a", v2, 200, "application/json", "", &list("a", "v2", "things"));
    test.remote.set_routes([route("a", "v1", 1, true), route("a", "v2", 1, true)]);
    test.wait_until("the version with a list", |all| is_current(all, A2)).await;
    assert!(!is_current(&test.entries.all(), A));
    test.script.set_response("a", v1, 200, "application/json", "", &list("a", "v1", "others"));
    test.wait_until("both versions", |all| is_current(all, A) && is_current(all, A2)).await;
    assert_eq!(test.resources(A).await, ["others"]);
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn lists_of_unavailable_versions_are_not_fetched_and_their_last_ones_are_kept() {
    let test = test_remote();
    test.script.set_response("a", "/apis", 404, "text/plain", "", "none");
    let (v1, v2) = ("/apis/a.example.com/v1", "/apis/a.example.com/v2");
    test.script.set_response("a", v1, 200, "application/json", "", &list("a", "v1", "things"));
    test.script.set_response("a", v2, 200, "application/json", "", &list("a", "v2", "others"));
    test.remote.set_routes([route("a", "v1", 1, true), route("a", "v2", 1, false)]);
    test.wait_until("the available version", |all| is_current(all, A)).await;
    assert_eq!(test.script.requests("a /apis/a.example.com/v2"), 0);
    assert!(!test.entries.all().contains_key(A2));
    test.remote.set_routes([route("a", "v2", 1, true)]);
    test.wait_until("both versions", |all| is_current(all, A) && is_current(all, A2)).await;
    test.remote.set_routes([route("a", "v1", 1, false)]);
    test.script.set_response("a", v2, 200, "application/json", "", &list("a", "v2", "newer"));
    let other = test.entries.all()[A2].discovery.clone();
    test.wait_until("a refresh", |all| all[A2].discovery != other).await;
    assert!(test.entries.all()[A].stale);
    assert_eq!(test.resources(A).await, ["things"]);
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_recovered_backend_does_not_wait_for_hanging_ones() {
    let test = test_remote();
    test.remote.set_routes([route("a", "v1", 1, true)]);
    tokio::time::sleep(Duration::from_secs(20)).await;
    test.remote.set_routes([route("a", "v1", 1, false)]);
    let hanging: Vec<_> = (0..100).map(|i| route(&format!("hang{i}"), "v1", 1, true)).collect();
    test.remote.set_routes(hanging);
    tokio::time::sleep(Duration::from_secs(10)).await;
    test.serve("a", &["v1"], "things", "");
    let before = tokio::time::Instant::now();
    test.remote.set_routes([route("a", "v1", 1, true)]);
    test.wait_until("the recovered backend", |all| is_current(all, A)).await;
    assert!(before.elapsed() < Duration::from_millis(100), "{:?}", before.elapsed());
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_moved_backend_is_fetched_at_once_if_any_of_its_versions_is_available() {
    let test = test_remote();
    test.serve("a", &["v1", "v2"], "things", "");
    test.remote.set_routes([route("a", "v1", 1, false), route("a", "v2", 1, true)]);
    test.wait_until("the first answer", |all| is_current(all, A2)).await;
    test.serve("a", &["v1", "v2"], "moved", "");
    test.remote.set_routes([route("a", "v1", 2, false), route("a", "v2", 2, true)]);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(test.resources(A2).await, ["moved"]);
    test.tasks.cancel();
}

#[test]
fn a_version_removed_during_a_fetch_does_not_keep_the_others_stale() {
    let (mut services, documents) = (Services::default(), Documents::default());
    let mut set = |(name, route): (String, Option<Arc<Route>>)| services.set_route(&name, route).fetch;
    let key = set(route("a", "v1", 1, true)).unwrap();
    set(route("a", "v2", 1, true));
    let failed = services.job(&key).unwrap();
    services.set_failed(&key, &failed);
    let job = services.job(&key).unwrap();
    let (name, unavailable) = route("a", "v2", 1, false);
    services.set_route(&name, unavailable);
    let found =
        service_state::ServiceDiscovery { is_complete: true, ..service_state::ServiceDiscovery::default() };
    services.set_discovery(&key, &job, Arc::new(found), &documents);
    let stale = |version: &str| services.entry(&GroupVersion::new("a.example.com", version)).unwrap().stale;
    assert!(!stale("v1") && stale("v2"));
}

#[tokio::test(start_paused = true)]
async fn v3_documents_are_fetched_by_address_and_v2_is_split() {
    let test = test_remote();
    test.serve("a", &["v1"], "things", "\"1\"");
    let index = |hash: &str| {
        format!(
            r#"{{"paths":{{"apis/a.example.com/v1":{{"serverRelativeURL":"/openapi/v3/apis/a.example.com/v1?hash={hash}"}},
            "apis/other/v1":{{"serverRelativeURL":"/openapi/v3/apis/other/v1?hash=x"}}}}}}"#
        )
    };
    test.script.set_response("a", "/openapi/v3", 200, "text/plain", "", &index("H1"));
    test.script.set_response(
        "a",
        "/openapi/v3/apis/a.example.com/v1?hash=H1",
        200,
        "application/json",
        "\"H1\"",
        r#"{"one":1}"#,
    );
    let v2 = r##"{"swagger":"2.0","paths":{"/apis/a.example.com/v1/x":{"get":{"schema":{"$ref":"#/definitions/X"}}},
        "/apis/other/v1/y":{"get":{"schema":{"$ref":"#/definitions/Y"}}}},"definitions":{"X":{},"Y":{}}}"##;
    test.script.set_response("a", "/openapi/v2", 200, "application/json", "\"v2\"", v2);
    test.remote.set_routes([route("a", "v1", 1, true)]);
    let has_openapi = |all: &BTreeMap<String, Arc<ServedVersion>>| {
        all.get(A).is_some_and(|s| !s.openapi_v3.is_empty() && !s.openapi_v2.is_empty())
    };
    test.wait_until("OpenAPI", has_openapi).await;
    let entry = test.entries.all()[A].clone();
    let documents = test.entries.documents();
    assert_eq!(documents.get(&entry.openapi_v3).await.unwrap(), r#"{"one":1}"#);
    let part = documents.get(&entry.openapi_v2).await.unwrap();
    let expected = r##"{"paths":{"/apis/a.example.com/v1/x":{"get":{"schema":{"$ref":"#/definitions/X"}}}},"definitions":{"X":{}}}"##;
    assert_eq!(part, expected);
    tokio::time::sleep(Duration::from_secs(130)).await;
    assert_eq!(
        test.script.requests("a /openapi/v3/apis/a.example.com/v1?hash=H1"),
        1,
        "a document with an unchanged address is not fetched again"
    );
    test.script.set_response("a", "/openapi/v3", 200, "text/plain", "", &index("H2"));
    test.script.set_response(
        "a",
        "/openapi/v3/apis/a.example.com/v1?hash=H2",
        200,
        "application/json",
        "\"H2\"",
        r#"{"two":2}"#,
    );
    test.wait_until("the new document", |all| all[A].openapi_v3 != entry.openapi_v3).await;
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn a_backend_without_version_3_has_its_version_2_converted() {
    let test = test_remote();
    test.serve("a", &["v1"], "things", "\"1\"");
    test.script.set_response("a", "/openapi/v3", 404, "text/plain", "", "");
    let v2 = r##"{"paths":{"/apis/a.example.com/v1/":{"get":{}}},"definitions":{"X":{"type":"object"}}}"##;
    test.script.set_response("a", "/openapi/v2", 200, "application/json", "", v2);
    test.remote.set_routes([route("a", "v1", 1, true)]);
    test.wait_until("a converted document", |all| all.get(A).is_some_and(|s| !s.openapi_v3.is_empty())).await;
    let json = test.entries.documents().get(&test.entries.all()[A].openapi_v3).await.unwrap();
    assert!(String::from_utf8_lossy(&json).starts_with(r#"{"openapi":"3.0.0""#));
    test.tasks.cancel();
}

#[tokio::test(start_paused = true)]
async fn an_index_cannot_refer_to_other_hosts() {
    let test = test_remote();
    test.serve("a", &["v1"], "things", "\"1\"");
    let index = r#"{"paths":{"apis/a.example.com/v1":{"serverRelativeURL":"/metrics"}}}"#;
    test.script.set_response("a", "/openapi/v3", 200, "text/plain", "", index);
    test.remote.set_routes([route("a", "v1", 1, true)]);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(test.script.requests("a /metrics"), 0);
    assert!(test.entries.all()[A].openapi_v3.is_empty());
    test.tasks.cancel();
}
